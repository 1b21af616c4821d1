package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/principal"
	"github.com/talaria-go/mcp/protocol"
)

type idIn struct {
	ID string `json:"id" validate:"oneof=one two"`
}

// guarded returns a server on which half of everything is for admins.
func guarded(t testing.TB, opts mcp.Options, only mcp.Option) *mcp.Server {
	t.Helper()
	s := bare(opts)
	byID := func(_ *mcp.Frame, in idIn) (string, error) { return in.ID, nil }
	for _, who := range []struct {
		name string
		opts mcp.Bundle
	}{{"open", nil}, {"shut", mcp.Bundle{only}}} {
		s.MustAdd(
			mcp.Tool(who.name, text, who.opts),
			mcp.Prompt(who.name, byID, who.opts),
			mcp.Resource(who.name+":x", readText, who.opts),
			mcp.Template(who.name+":{id}/y", byID, who.opts),
		)
	}
	return s
}

var listMethods = []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"}

// calls are requests for components that are called NAME.
var calls = []struct{ method, params string }{
	{"tools/call", `{"name":"NAME"}`},
	{"prompts/get", `{"name":"NAME","arguments":{"id":"one"}}`},
	{"resources/read", `{"uri":"NAME:x"}`},
	{"resources/read", `{"uri":"NAME:one/y"}`},
	{"completion/complete", `{"ref":{"type":"ref/prompt","name":"NAME"},"argument":{"name":"id","value":"o"}}`},
	{"completion/complete", `{"ref":{"type":"ref/prompt","name":"NAME","uri":"` + strings.Repeat("x", 9000) + `"},"argument":{"name":"id","value":"o"}}`},
	{"completion/complete", `{"ref":{"type":"ref/resource","uri":"NAME:{id}/y"},"argument":{"name":"id","value":"o"}}`},
}

// What is hidden is in no list and answers as what does not exist, by an option
// of the component and by the filter of the server.
func TestHidden(t *testing.T) {
	var admin atomic.Bool
	ways := map[string]func(t *testing.T) *mcp.Server{
		"VisibleTo": func(t *testing.T) *mcp.Server {
			return guarded(t, mcp.Options{}, mcp.VisibleTo(func(*mcp.Frame) bool { return admin.Load() }))
		},
		"Filter": func(t *testing.T) *mcp.Server {
			return guarded(t, mcp.Options{Filter: func(_ *mcp.Frame, kind mcp.Kind, name string) bool {
				switch kind {
				case mcp.KindTool, mcp.KindPrompt, mcp.KindResource, mcp.KindTemplate:
					return admin.Load() || !strings.HasPrefix(name, "shut")
				}
				t.Errorf("kind %q", kind)
				return false
			}}, mcp.Doc(""))
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			everywhere(t, way, func(t *testing.T, c *talker) {
				for _, is := range []bool{false, true, false} {
					admin.Store(is)
					checkHidden(t, c, is)
				}
			})
		})
	}
}

func checkHidden(t *testing.T, c *talker, admin bool) {
	for _, method := range listMethods {
		list := c.ask(method, "{}")
		if !strings.Contains(list, "open") || strings.Contains(list, "shut") != admin {
			t.Errorf("admin %v: %s: %s", admin, method, list)
		}
		if c.rev.Modern() && !strings.Contains(list, `"cacheScope":"private"`) {
			t.Errorf("%s may be shared: %s", method, list)
		}
	}
	for _, call := range calls {
		ask := func(name string) string { return c.ask(call.method, strings.ReplaceAll(call.params, "NAME", name)) }
		if open := ask("open"); strings.Contains(open, `"error"`) {
			t.Errorf("%s of what is open: %s", call.method, open)
		}
		if admin {
			if got := ask("shut"); strings.Contains(got, `"error"`) {
				t.Errorf("%s of an admin: %s", call.method, got)
			}
			continue
		}
		code, message := fault(t, ask("shut"))
		wantCode, want := fault(t, ask("none"))
		if want = strings.ReplaceAll(want, "none", "shut"); code != wantCode || message != want {
			t.Errorf("%s of what is hidden: %d %q, want %d %q", call.method, code, message, wantCode, want)
		}
	}
}

// Lists without components that can be hidden stay shared.
func TestHiddenLeavesOthersShared(t *testing.T) {
	s := bare(mcp.Options{})
	s.MustAdd(
		mcp.Tool("open", text),
		mcp.Prompt("shut", text, mcp.VisibleTo(func(*mcp.Frame) bool { return false })),
	)
	ask := asker(t, s)
	if got := ask("tools/list", ""); !strings.Contains(got, `"cacheScope":"public"`) {
		t.Errorf("tools: %s", got)
	}
	if got := ask("prompts/list", ""); !strings.Contains(got, `"cacheScope":"private"`) || strings.Contains(got, "shut") {
		t.Errorf("prompts: %s", got)
	}
}

func TestHiddenPages(t *testing.T) {
	s := bare(mcp.Options{PageSize: 2, Filter: func(_ *mcp.Frame, _ mcp.Kind, name string) bool {
		return !strings.HasSuffix(name, "x")
	}})
	for i := range 5 {
		s.MustAdd(tool(fmt.Sprint(i)), tool(fmt.Sprint(i, "x")))
	}
	ask := asker(t, s)
	var names []string
	params := ""
	for range 3 {
		var page struct {
			Tools      []struct{ Name string }
			NextCursor string
		}
		if err := json.Unmarshal([]byte(ask("tools/list", params)), &page); err != nil {
			t.Fatal(err)
		}
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		names = append(names, "|")
		params = fmt.Sprintf(`"cursor":%q`, page.NextCursor)
		if page.NextCursor == "" {
			break
		}
	}
	if got := strings.Join(names, ""); got != "01|23|4|" {
		t.Errorf("pages %s, want 01|23|4|", got)
	}
}

// Nobody is told of changes to a resource that is hidden from him.
func TestHiddenSubscriptions(t *testing.T) {
	shut := mcp.VisibleTo(func(*mcp.Frame) bool { return false })
	updates := func(s *mcp.Server) {
		for _, uri := range []string{"shut:x", "shut:one/y", "open:one/y"} {
			s.ResourceUpdated(uri)
		}
	}
	t.Run("legacy", func(t *testing.T) {
		s := guarded(t, mcp.Options{}, shut)
		s.MustAdd(mcp.Tool("id", func(f *mcp.Frame, _ empty) (string, error) { return f.SessionID(), nil }))
		c, _ := session1(t, s)
		for _, uri := range []string{"shut:x", "shut:one/y", "open:one/y"} {
			c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":%q}}`, uri))
			if got := c.hear(); !strings.Contains(got, `"result"`) {
				t.Errorf("%s: %s, want a result as of a resource that is not there", uri, got)
			}
		}
		updates(s)
		if got := c.hear(); !strings.Contains(got, "open:one/y") {
			t.Errorf("heard %s", got)
		}
	})
	t.Run("modern", func(t *testing.T) {
		s := guarded(t, mcp.Options{}, shut)
		c := pipeWire(t, s)
		c.say(expand(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["shut:x","shut:one/y","open:one/y"]},$META}}`, protocol.Latest))
		if got := c.hear(); !strings.Contains(got, "shut:x") {
			t.Errorf("%s: want shut:x, as of a resource that is not there", got)
		}
		updates(s)
		if got := c.hear(); !strings.Contains(got, "open:one/y") {
			t.Errorf("heard %s", got)
		}
	})
}

// Headers that a hidden tool would want do not give it away.
func TestHiddenHeaders(t *testing.T) {
	s := bare(mcp.Options{})
	s.MustAdd(mcp.Tool("shut", func(*mcp.Frame, searchIn) (string, error) { return "", nil },
		mcp.VisibleTo(func(f *mcp.Frame) bool { return f.Principal() == "admin" })))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Handler().ServeHTTP(w, r.WithContext(principal.With(r.Context(), r.Header.Get("X-User"))))
	}))
	defer server.Close()
	for user, want := range map[string]int{"admin": -32020, "guest": -32602} {
		line := expand(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shut","arguments":{"query":"q","region":"north"},$META}}`, protocol.Latest)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "shut", "X-User": user} {
			req.Header.Set(name, value)
		}
		res, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if code, message := fault(t, string(body)); code != want {
			t.Errorf("%s: %d %s, want %d", user, code, message, want)
		}
	}
}

func TestTool(t *testing.T) {
	s := guarded(t, mcp.Options{}, mcp.VisibleTo(func(*mcp.Frame) bool { return false }))
	found := map[string]bool{}
	s.Use(func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			name := f.Request().Params.Name
			definition, ok := s.Tool(f, name)
			if found[name] = ok; ok && definition.Name != name {
				t.Errorf("%s: found %s", name, definition.Name)
			}
			return next(f)
		}
	})
	ask := asker(t, s)
	for _, name := range []string{"open", "shut", "none"} {
		ask("tools/call", fmt.Sprintf(`"name":%q`, name))
	}
	if !found["open"] || found["shut"] || found["none"] {
		t.Errorf("found %v, want open alone", found)
	}
}
