package lists_test

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
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// What is hidden is in no list and answers as what does not exist, by an option
// of the component and by the filter of the server.
func TestHidden(t *testing.T) {
	var admin atomic.Bool
	ways := map[string]func(t *testing.T) *mcp.Server{
		"VisibleTo": func(t *testing.T) *mcp.Server {
			return harness.Guarded(t, mcp.Options{}, mcp.VisibleTo(func(*mcp.Frame) bool { return admin.Load() }))
		},
		"Filter": func(t *testing.T) *mcp.Server {
			return harness.Guarded(t, mcp.Options{Filter: func(_ *mcp.Frame, kind mcp.Kind, name string) bool {
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
			harness.Everywhere(t, way, func(t *testing.T, c *harness.Talker) {
				for _, is := range []bool{false, true, false} {
					admin.Store(is)
					checkHidden(t, c, is)
				}
			})
		})
	}
}

func checkHidden(t *testing.T, c *harness.Talker, admin bool) {
	for _, method := range harness.ListMethods {
		list := c.Ask(method, "{}")
		if !strings.Contains(list, "open") || strings.Contains(list, "shut") != admin {
			t.Errorf("admin %v: %s: %s", admin, method, list)
		}
		if c.Rev.Modern() && !strings.Contains(list, `"cacheScope":"private"`) {
			t.Errorf("%s may be shared: %s", method, list)
		}
	}
	for _, call := range harness.Calls {
		ask := func(name string) string { return c.Ask(call.Method, strings.ReplaceAll(call.Params, "NAME", name)) }
		if open := ask("open"); strings.Contains(open, `"error"`) {
			t.Errorf("%s of what is open: %s", call.Method, open)
		}
		if admin {
			if got := ask("shut"); strings.Contains(got, `"error"`) {
				t.Errorf("%s of an admin: %s", call.Method, got)
			}
			continue
		}
		code, message := harness.Fault(t, ask("shut"))
		wantCode, want := harness.Fault(t, ask("none"))
		if want = strings.ReplaceAll(want, "none", "shut"); code != wantCode || message != want {
			t.Errorf("%s of what is hidden: %d %q, want %d %q", call.Method, code, message, wantCode, want)
		}
	}
}

// Lists without components that can be hidden stay shared.
func TestHiddenLeavesOthersShared(t *testing.T) {
	s := harness.Bare(mcp.Options{})
	s.MustAdd(
		mcp.Tool("open", harness.Text),
		mcp.Prompt("shut", harness.Text, mcp.VisibleTo(func(*mcp.Frame) bool { return false })),
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
	s := harness.Bare(mcp.Options{PageSize: 2, Filter: func(_ *mcp.Frame, _ mcp.Kind, name string) bool {
		return !strings.HasSuffix(name, "x")
	}})
	for i := range 5 {
		s.MustAdd(harness.Tool(fmt.Sprint(i)), harness.Tool(fmt.Sprint(i, "x")))
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
		s := harness.Guarded(t, mcp.Options{}, shut)
		s.MustAdd(mcp.Tool("id", func(f *mcp.Frame, _ struct{}) (string, error) { return f.SessionID(), nil }))
		c, _ := harness.Session1(t, s)
		for _, uri := range []string{"shut:x", "shut:one/y", "open:one/y"} {
			c.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":%q}}`, uri))
			if got := c.Hear(); !strings.Contains(got, `"result"`) {
				t.Errorf("%s: %s, want a result as of a resource that is not there", uri, got)
			}
		}
		updates(s)
		if got := c.Hear(); !strings.Contains(got, "open:one/y") {
			t.Errorf("heard %s", got)
		}
	})
	t.Run("modern", func(t *testing.T) {
		s := harness.Guarded(t, mcp.Options{}, shut)
		c := harness.PipeWire(t, s)
		c.Say(harness.Expand(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["shut:x","shut:one/y","open:one/y"]},$META}}`, protocol.Latest))
		if got := c.Hear(); !strings.Contains(got, "shut:x") {
			t.Errorf("%s: want shut:x, as of a resource that is not there", got)
		}
		updates(s)
		if got := c.Hear(); !strings.Contains(got, "open:one/y") {
			t.Errorf("heard %s", got)
		}
	})
}

// Headers that a hidden tool would want do not give it away.
func TestHiddenHeaders(t *testing.T) {
	s := harness.Bare(mcp.Options{})
	s.MustAdd(mcp.Tool("shut", func(*mcp.Frame, harness.SearchIn) (string, error) { return "", nil },
		mcp.VisibleTo(func(f *mcp.Frame) bool { return f.Principal() == "admin" })))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Handler().ServeHTTP(w, r.WithContext(core.WithPrincipal(r.Context(), r.Header.Get("X-User"))))
	}))
	defer server.Close()
	for user, want := range map[string]int{"admin": -32020, "guest": -32602} {
		line := harness.Expand(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shut","arguments":{"query":"q","region":"north"},$META}}`, protocol.Latest)
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
		if code, message := harness.Fault(t, string(body)); code != want {
			t.Errorf("%s: %d %s, want %d", user, code, message, want)
		}
	}
}

func TestTool(t *testing.T) {
	s := harness.Guarded(t, mcp.Options{}, mcp.VisibleTo(func(*mcp.Frame) bool { return false }))
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
