package inspector

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// The bounds of views: how long a document may be, how many origins each of its lists may
// have, how long the server has to return it, how many requests of views may be in
// progress, and how many messages the page reports at a time.
const (
	maxView         = 8 << 20
	maxOrigins      = 32
	viewTime        = 30 * time.Second
	maxViewRequests = 8
	maxReported     = 1000
)

// codeDenied is the error of what a view may not do.
const codeDenied = -32000

// frameDocument is the sandbox proxy of SEP-1865.
//
//go:embed views.html
var frameDocument []byte

// Frames serves the document that shows a view, under the policy that the query asks
// for. Only the pages can have it in a frame.
func Frames(pages []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", framePolicy(r.URL.Query())+"; frame-ancestors "+strings.Join(pages, " "))
		_, _ = w.Write(frameDocument)
	})
}

// domains are the lists of origins that a view may declare, by their names.
var domains = []string{"connectDomains", "resourceDomains", "frameDomains", "baseUriDomains"}

// framePolicy is the Content-Security-Policy of SEP-1865, section "Content Security Policy
// Enforcement", without 'self', as nothing of a view comes from this program, and
// without forms that leave the page. It leaves out everything else than origins.
func framePolicy(declared url.Values) string {
	list := map[string]string{}
	for _, name := range domains {
		var good []string
		for _, origin := range declared[name] {
			if wire.CheckViewOrigin(origin, name == domains[0]) == nil && len(good) < maxOrigins {
				good = append(good, origin)
			}
		}
		list[name] = strings.Join(good, " ")
	}
	allow := func(directive, always, name string) string {
		return directive + " " + cmp.Or(strings.TrimSpace(always+" "+list[name]), "'none'")
	}
	return strings.Join([]string{
		"default-src 'none'", allow("script-src", "'unsafe-inline'", "resourceDomains"), allow("style-src", "'unsafe-inline'", "resourceDomains"),
		allow("img-src", "data:", "resourceDomains"), allow("media-src", "data:", "resourceDomains"), allow("font-src", "", "resourceDomains"),
		allow("connect-src", "", "connectDomains"), allow("frame-src", "", "frameDomains"), allow("base-uri", "", "baseUriDomains"),
		"object-src 'none'", "form-action 'none'",
	}, "; ")
}

// readUI returns what a tool has to do with views. Invalid metadata counts as none.
func readUI(raw json.RawMessage) wire.ToolUI {
	var t struct {
		Meta struct {
			UI  json.RawMessage `json:"ui"`
			Old string          `json:"ui/resourceUri"`
		} `json:"_meta"`
	}
	var ui wire.ToolUI
	_ = jsonx.Unmarshal(raw, &t)        // else there is none
	_ = jsonx.Unmarshal(t.Meta.UI, &ui) // the same
	ui.View = cmp.Or(ui.View, t.Meta.Old)
	return ui
}

// shownView is a view as the page shows it.
type shownView struct {
	URI      string              `json:"uri"`
	HTML     string              `json:"html"`
	Query    string              `json:"query"` // for the document of frames
	Granted  map[string][]string `json:"granted"`
	Asks     []string            `json:"asks,omitempty"` // permissions, which are not granted
	Border   *bool               `json:"border,omitempty"`
	Tool     json.RawMessage     `json:"tool"`
	Problems []string            `json:"problems,omitempty"`
}

// errNoView is the answer to a tool without a view.
var errNoView = errors.New("the tool has no view")

// uiOf returns the member ui of a _meta, nil if there is none.
func uiOf(meta json.RawMessage) json.RawMessage {
	var m struct {
		UI json.RawMessage `json:"ui"`
	}
	_ = jsonx.Unmarshal(meta, &m) // else there is none
	return m.UI
}

// viewAnswer is the answer to a request of a view.
type viewAnswer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  *viewError      `json:"error,omitempty"`
}

type viewError struct {
	Code    protocol.Code   `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}
