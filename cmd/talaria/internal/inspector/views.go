package inspector

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/record"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/recording"
	"github.com/talaria-go/mcp/internal/visible"
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

// showView reads the view of a tool.
func (i pages) showView(w http.ResponseWriter, r *http.Request) {
	e, err := i.find(r.Context(), "tool", r.URL.Query().Get("tool"))
	uri := readUI(e.raw).View
	to := i.current()
	switch {
	case err == nil && uri == "":
		err = errNoView
	case err == nil && to == nil:
		err = errNoConnection
	}
	var v *shownView
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), viewTime)
		defer cancel()
		var raw json.RawMessage
		if err = to.Request(ctx, protocol.MethodResourcesRead, map[string]any{"uri": uri}, &raw); err == nil {
			v, err = i.readView(uri, raw)
		}
	}
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	v.Tool = e.raw
	reply(w, v)
}

// readView reads the result of resources/read, and notes what other hosts would not
// accept of it.
func (i *Inspector) readView(uri string, raw json.RawMessage) (*shownView, error) {
	var r struct {
		Contents []struct {
			URI, MIMEType string
			Text          *string
			Blob          *string
			Meta          json.RawMessage `json:"_meta"`
		}
	}
	if err := jsonx.Unmarshal(raw, &r); err != nil || len(r.Contents) == 0 {
		return nil, fmt.Errorf("the view %s has no contents", visible.Line(uri, visible.Name))
	}
	c := r.Contents[0]
	v := &shownView{URI: visible.Line(uri, visible.Sentence), Granted: map[string][]string{}}
	note := func(format string, args ...any) {
		if len(v.Problems) < maxOrigins {
			v.Problems = append(v.Problems, visible.Line(fmt.Sprintf(format, args...), visible.Sentence))
		}
	}
	switch {
	case c.Text != nil:
		v.HTML = *c.Text
	case c.Blob != nil:
		text, err := base64.StdEncoding.DecodeString(*c.Blob)
		if err != nil {
			return nil, fmt.Errorf("the blob of the view %s is not base64", v.URI)
		}
		v.HTML = string(text)
	default:
		return nil, fmt.Errorf("the view %s has neither a text nor a blob", v.URI)
	}
	if len(v.HTML) > maxView {
		return nil, fmt.Errorf("the view %s has %d bytes, which exceeds the limit of %d", v.URI, len(v.HTML), maxView)
	}
	if !strings.HasPrefix(uri, "ui://") {
		note("its URI must begin with ui://; got %s", uri)
	}
	if c.MIMEType != wire.ViewType {
		note("its mimeType must be %s; got %q", wire.ViewType, c.MIMEType)
	}
	if text := strings.TrimSpace(strings.TrimPrefix(v.HTML, "\ufeff")); !strings.HasPrefix(text, "<!--") && !strings.EqualFold(text[:min(len(text), 14)], "<!doctype html") {
		note("it must be a whole document, which begins with <!doctype html>")
	}
	meta := uiOf(c.Meta)
	if meta == nil {
		meta = i.listedUI(uri)
	}
	i.grant(v, meta, note)
	return v, nil
}

// uiOf returns the member ui of a _meta, nil if there is none.
func uiOf(meta json.RawMessage) json.RawMessage {
	var m struct {
		UI json.RawMessage `json:"ui"`
	}
	_ = jsonx.Unmarshal(meta, &m) // else there is none
	return m.UI
}

// listedUI is that of the entry of resources/list, which counts where the contents have
// none.
func (i *Inspector) listedUI(uri string) json.RawMessage {
	lists, _ := i.lists()
	if lists["resource"] != nil {
		for _, e := range lists["resource"].Entries {
			if e.Name == uri {
				var r struct {
					Meta json.RawMessage `json:"_meta"`
				}
				_ = jsonx.Unmarshal(e.raw, &r) // else there is none
				return uiOf(r.Meta)
			}
		}
	}
	return nil
}

// grant gives a view what it declares, as far as it is valid.
func (i *Inspector) grant(v *shownView, meta json.RawMessage, note func(format string, args ...any)) {
	var ui struct {
		CSP         map[string]json.RawMessage `json:"csp"`
		Permissions map[string]json.RawMessage `json:"permissions"`
		Border      *bool                      `json:"prefersBorder"`
	}
	if len(meta) > 0 {
		if err := jsonx.Unmarshal(meta, &ui); err != nil {
			note("its _meta.ui does not decode: %v", err)
		}
	}
	query := url.Values{}
	for _, name := range domains {
		var list []string
		if text := ui.CSP[name]; len(text) > 0 && jsonx.Unmarshal(text, &list) != nil {
			note("csp.%s must be a list of texts", name)
			continue
		}
		for _, origin := range list {
			err := wire.CheckViewOrigin(origin, name == domains[0])
			if err == nil && len(query[name]) == maxOrigins {
				err = fmt.Errorf("the limit of %d origins is exceeded", maxOrigins)
			}
			if err != nil {
				note("csp.%s: %q is not allowed: %v", name, origin, err)
				continue
			}
			query.Add(name, origin)
		}
		if query[name] != nil {
			v.Granted[name] = query[name]
		}
	}
	for name := range ui.Permissions {
		v.Asks = append(v.Asks, visible.Line(name, visible.Name))
	}
	slices.Sort(v.Asks)
	v.Query, v.Border = query.Encode(), ui.Border
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

// viewRequest makes a request of a view. It ends with the view.
func (i pages) viewRequest(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Method string
		Params struct {
			Name      string          `json:"name"`
			URI       string          `json:"uri"`
			Arguments json.RawMessage `json:"arguments"`
		}
	}
	if !body(w, r, &q) {
		return
	}
	to := i.current()
	if to == nil {
		refuse(w, http.StatusConflict, errNoConnection)
		return
	}
	defer i.viewRequests.Add(-1)
	if i.viewRequests.Add(1) > maxViewRequests {
		reply(w, viewAnswer{Error: &viewError{Code: codeDenied, Message: "too many requests of views at once (limit 8)"}})
		return
	}
	var raw json.RawMessage
	var err error
	switch q.Method {
	case protocol.MethodToolsCall:
		e, missing := i.find(r.Context(), "tool", q.Params.Name)
		if may := readUI(e.raw).Visibility; missing == nil && may != nil && !slices.Contains(may, "app") {
			reply(w, viewAnswer{Error: &viewError{Code: codeDenied, Message: fmt.Sprintf("the tool %s is not for views: its visibility does not have app", e.Label)}})
			return
		}
		if len(q.Params.Arguments) == 0 {
			q.Params.Arguments = json.RawMessage("{}")
		}
		var result *client.CallToolResult
		ctx := context.WithValue(r.Context(), askerKey{}, asker{0, visible.Line(q.Params.Name, visible.Name) + " of the view"})
		if result, err = to.Call(ctx, q.Params.Name, q.Params.Arguments); err == nil {
			raw = result.Raw
		}
	case protocol.MethodResourcesRead:
		err = to.Request(r.Context(), q.Method, map[string]any{"uri": q.Params.URI}, &raw)
	default:
		refuse(w, http.StatusBadRequest, fmt.Errorf("a view makes no request %q", visible.Line(q.Method, visible.Name)))
		return
	}
	own, _ := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		reply(w, viewAnswer{Result: raw})
	case own != nil && own.Result != nil: // what is wrong with it is the view's business
		reply(w, viewAnswer{Result: own.Result})
	default:
		failed := &viewError{Code: codeDenied, Message: visible.Text(err.Error(), visible.Sentence)}
		if own != nil && own.Code != 0 {
			failed.Code, failed.Data = own.Code, own.Data
		}
		reply(w, viewAnswer{Error: failed})
	}
}

// viewMessages takes what a view and the page have said to each other, for the traffic.
func (i pages) viewMessages(w http.ResponseWriter, r *http.Request) {
	var q struct {
		View int64
		List []struct {
			At   int64 // milliseconds since 1970
			From string
			Text string
		}
	}
	if !body(w, r, &q) {
		return
	}
	i.mu.Lock() // Close ends the store after it had it
	defer i.mu.Unlock()
	for _, m := range q.List[:min(len(q.List), maxReported)] {
		dir := recording.In
		if m.From == "view" {
			dir = recording.Out
		}
		if i.ctx.Err() == nil {
			i.store.Add(recording.Entry{At: time.UnixMilli(m.At), Dir: dir, Conn: record.ViewConn + strconv.FormatInt(q.View, 10), Text: []byte(m.Text)})
		}
	}
	reply(w, struct{}{})
}
