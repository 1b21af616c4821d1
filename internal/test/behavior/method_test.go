package behavior_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// result returns the result of an answer, without what every result has.
func result(t testing.TB, answer string) string {
	t.Helper()
	var m struct{ Result map[string]any }
	if err := json.Unmarshal([]byte(answer), &m); err != nil || m.Result == nil {
		t.Fatalf("no result: %s", answer)
	}
	delete(m.Result, "_meta")
	delete(m.Result, "resultType")
	text, err := json.Marshal(m.Result)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type areaIn struct {
	Width  int    `json:"width" validate:"required,min=1"`
	Height int    `json:"height" validate:"required,min=1"`
	Name   string `json:"name,omitempty"`
}

type areaOut struct {
	Area int `json:"area"`
}

func TestMethods(t *testing.T) {
	server := func(t *testing.T) *mcp.Server {
		s := harness.Bare(mcp.Options{})
		s.MustAdd(
			mcp.Method("acme/area", func(_ *mcp.Frame, in areaIn) (areaOut, error) {
				if in.Name == "secret" {
					return areaOut{}, &mcp.Error{Code: 4711, Message: "not yours"}
				}
				return areaOut{in.Width * in.Height}, nil
			}),
			mcp.Method("acme/nothing", func(*mcp.Frame, struct{}) (*areaOut, error) { return nil, nil }),
			mcp.Method("acme/raw", func(f *mcp.Frame, params json.RawMessage) (json.RawMessage, error) {
				if f.Request().ID.IsZero() {
					t.Error("the handler of requests got a notification")
				}
				var in struct{ A json.RawMessage }
				if err := json.Unmarshal(params, &in); err != nil || in.A == nil {
					return nil, err
				}
				return json.RawMessage(`{"a": ` + string(in.A) + `}`), nil
			}),
			mcp.Method("acme/wrong", func(context.Context, json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(`[]`), nil
			}),
		)
		return s
	}
	harness.Everywhere(t, server, func(t *testing.T, c *harness.Talker) {
		for _, ok := range []struct{ method, params, want string }{
			{"acme/area", `{"width":3,"height":4}`, `{"area":12}`},
			{"acme/area", `{"width":3,"height":4,"name":"x"}`, `{"area":12}`},
			{"acme/nothing", `{}`, `{}`},
			{"acme/raw", `{"a":[1,2]}`, `{"a":[1,2]}`},
			{"acme/raw", `{"name":5,"uri":[],"a":1}`, `{"a":1}`},
		} {
			if got := result(t, c.Ask(ok.method, ok.params)); got != ok.want {
				t.Errorf("%s %s: %s, want %s", ok.method, ok.params, got, ok.want)
			}
		}
		for _, bad := range []struct {
			method, params string
			code           int
			message        string
		}{
			{"acme/area", `{"width":0}`, -32602, `height`},
			{"acme/area", `{"width":"3","height":4}`, -32602, `width`},
			{"acme/wrong", `{}`, -32603, `Internal error`},
			{"acme/area", `{"width":1,"height":2,"deep":3}`, -32602, `deep`},
			{"acme/area", `{"width":1,"height":2,"name":"secret"}`, 4711, `not yours`},
			{"acme/other", `{}`, -32601, `acme/other`},
			{"tools/bogus", `{}`, -32601, `tools/bogus`},
		} {
			code, message := harness.Fault(t, c.Ask(bad.method, bad.params))
			if code != bad.code || !strings.Contains(message, bad.message) {
				t.Errorf("%s %s: %d %q, want %d %q", bad.method, bad.params, code, message, bad.code, bad.message)
			}
		}
		c.Say(`{"jsonrpc":"2.0","method":"acme/raw"}`)
		if got := result(t, c.Ask("tools/list", "{}")); !strings.Contains(got, `"tools":[]`) {
			t.Errorf("the methods of the specification are lost: %s", got)
		}
	})
}

// A notification handler that fails is logged as a warning, with its method; one
// that does not is not logged, and neither is what the server refuses.
func TestNotificationHandlerFails(t *testing.T) {
	for _, tr := range harness.TransportsOf(protocol.LatestLegacy) {
		t.Run(tr.Name, func(t *testing.T) {
			var log harness.LogText
			logger := zerolog.New(&log).Level(zerolog.InfoLevel)
			s := mcp.NewServer(mcp.Info{Name: "notes", Version: "1"}, &mcp.Options{Logger: &logger})
			s.MustAdd(mcp.Tool("fine", func(*mcp.Frame, struct{}) (string, error) { return "all is well", nil }, mcp.Doc("Says that all is well.")))
			if err := errors.Join(
				s.OnNotification("acme/bad", func(*mcp.Frame) error { return errors.New("no shelf\x1b[31m") }),
				s.OnNotification("acme/good", func(*mcp.Frame) error { return nil }),
			); err != nil {
				t.Fatal(err)
			}
			p := harness.Join(t, tr, protocol.LatestLegacy, s)
			for _, method := range []string{"acme/good", "acme/none", "acme/bad"} {
				p.C.Say(`{"jsonrpc":"2.0","method":"` + method + `"}`)
			}
			p.Want(p.Ask("tools/call", `"name":"fine"`), "all is well")
			want := `{"level":"warn","method":"acme/bad","error":"no shelf␛[31m","message":"a notification handler failed"}` + "\n"
			if got := log.String(); got != want {
				t.Errorf("log %s, want %s", got, want)
			}
		})
	}
}

func TestMethodFaults(t *testing.T) {
	raw := func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }
	note := func(*mcp.Frame) error { return nil }
	s := harness.Bare(mcp.Options{})
	if err := errors.Join(s.Add(mcp.Method("acme/a", raw)), s.OnNotification("acme/n", note), s.OnNotification("notifications/cancelled", note)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"taken", s.Add(mcp.Method("acme/a", raw)), "registered already"},
		{"taken by a notification", s.Add(mcp.Method("acme/n", raw)), "registered already"},
		{"nil", s.Add(mcp.Method[*mcp.Frame, struct{}, struct{}]("acme/b", nil)), "the func is nil"},
		{"empty", s.Add(mcp.Method("", raw)), "1 to 128"},
		{"space", s.Add(mcp.Method("acme/a b", raw)), "1 to 128"},
		{"ping", s.Add(mcp.Method("ping", raw)), `owns names that begin with "ping"`},
		{"tools", s.Add(mcp.Method("tools/search", raw)), `as in "acme/tools/search"`},
		{"JSON-RPC", s.Add(mcp.Method("rpc.x", raw)), `"rpc."`},
		{"notification", s.Add(mcp.Method("notifications/x", raw)), `"notifications/"`},
		{"second fn", s.OnNotification("acme/n", note), "registered already"},
		{"fn of a method", s.OnNotification("acme/a", note), "registered already"},
		{"request", s.OnNotification("tools/call", note), `owns names that begin with "tools/"`},
		{"nil fn", s.OnNotification("acme/m", nil), "the func is nil"},
		{"typed name", s.Add(mcp.Method("tools/x", func(*mcp.Frame, struct{}) (struct{}, error) { return struct{}{}, nil })), `owns`},
		{"typed nil", s.Add(mcp.Method[*mcp.Frame, struct{}, struct{}]("acme/x", nil)), "the func is nil"},
		{"result", s.Add(mcp.Method("acme/x", func(*mcp.Frame, struct{}) (string, error) { return "", nil })), "a method cannot return string"},
		{"member", s.Add(mcp.Method("acme/x", func(*mcp.Frame, struct{}) (out struct {
			Meta string `json:"_meta"`
		}, err error) {
			return out, nil
		})), "field Meta"},
		{"option", s.Add(mcp.Method("acme/x", func(*mcp.Frame, struct{}) (struct{}, error) { return struct{}{}, nil }, mcp.Doc("d"), nil)), "option 1 is nil"},
		{"tags", s.Add(mcp.Method("acme/x", func(*mcp.Frame, struct {
			A int `json:"a" validate:"nonsense"`
		}) (struct{}, error) {
			return struct{}{}, nil
		})), "nonsense"},
	} {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: error %v, want it to contain %q", tt.name, tt.err, tt.want)
		}
	}
	harness.Greet(t, harness.Transports[1], s, protocol.LatestLegacy)
	if err := s.Add(mcp.Method("acme/late", raw)); err == nil || !strings.Contains(err.Error(), "serves already") {
		t.Errorf("a method that comes late: %v", err)
	}
	if err := s.OnNotification("acme/late", note); err == nil || !strings.Contains(err.Error(), "serves already") {
		t.Errorf("a notification that comes late: %v", err)
	}
	if err := s.Add(mcp.Tool("late", func(*mcp.Frame, struct{}) (string, error) { return "", nil })); err != nil {
		t.Errorf("a tool may come late: %v", err)
	}
}

func TestOnNotification(t *testing.T) {
	var mu sync.Mutex
	var heard []string
	server := func(t *testing.T) *mcp.Server {
		heard = nil
		s := harness.Bare(mcp.Options{})
		for _, method := range []string{"notifications/initialized", "notifications/roots/list_changed", "notifications/acme/tick", "acme/tock"} {
			if err := s.OnNotification(method, func(f *mcp.Frame) error {
				mu.Lock()
				defer mu.Unlock()
				heard = append(heard, fmt.Sprintf("%s %v", f.Request().Method, f.Initialized()))
				return errors.New("for the log")
			}); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	harness.Everywhere(t, server, func(t *testing.T, c *harness.Talker) {
		var want []string
		if !c.Rev.Modern() {
			want = []string{"notifications/initialized true"} // the default came first
		}
		for _, method := range []string{"notifications/roots/list_changed", "notifications/acme/tick", "acme/tock"} {
			c.Say(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, c.Dress(`{"name":{"first":"a"}}`)))
			want = append(want, method+" true")
		}
		if code, _ := harness.Fault(t, c.Ask("acme/tock", "{}")); code != -32601 {
			t.Errorf("a request for a notification: %d, want -32601", code)
		}
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(heard, ", "); got != strings.Join(want, ", ") {
			t.Errorf("heard %s, want %s", got, strings.Join(want, ", "))
		}
	})
}

func TestDiscover(t *testing.T) {
	server := func(*testing.T) *mcp.Server {
		s := harness.Bare(mcp.Options{
			Instructions: "Ask anything.",
			Discover: func(f *mcp.Frame, d *mcp.Discovery) {
				d.Info = mcp.Info{Name: "for " + f.Revision().String()}
				d.Capabilities.Logging = nil
				d.Capabilities.Experimental = map[string]any{"acme": struct{}{}}
				d.Instructions += " In English."
			},
		})
		s.MustAdd(harness.Tool("one"))
		return s
	}
	for _, rev := range testdep.Revisions() {
		for _, over := range harness.TransportsOf(rev) {
			c := &harness.Talker{Conversation: over.Open(t, server(t), rev), T: t, Rev: rev}
			method, params := "server/discover", "{}"
			if !rev.Modern() {
				method, params = "initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}`, rev)
			}
			answer := c.Ask(method, params)
			for _, want := range []string{`"name":"for ` + rev.String() + `","version":"1"`, `"experimental":{"acme":{}}`, `"tools":{`, `"instructions":"Ask anything. In English."`} {
				if !strings.Contains(answer, want) {
					t.Errorf("%s %v: %s lacks %s", over.Name, rev, answer, want)
				}
			}
			if strings.Contains(answer, "logging") || strings.Contains(answer, `"name":"bare"`) {
				t.Errorf("%s %v: %s", over.Name, rev, answer)
			}
			if rev.Modern() && !strings.Contains(answer, `"cacheScope":"private"`) {
				t.Errorf("what was made for one client may be shared: %s", answer)
			}
		}
	}
}

// A method of the user's own asks legacy clients; for modern ones it learns
// that it cannot.
func TestMethodAsks(t *testing.T) {
	s := harness.Bare(mcp.Options{})
	s.MustAdd(mcp.Method("acme/who", func(f *mcp.Frame, _ struct{}) (map[string]string, error) {
		answer, err := mcp.Elicit[struct {
			Name string `json:"name"`
		}](f, "name", "Who are you?")
		return map[string]string{"name": answer.Value.Name}, err
	}))
	for _, rev := range testdep.Revisions() {
		if !rev.Has(protocol.FeatureElicitation) {
			continue
		}
		for name, options := range map[string][]mcptest.Option{"pipe": nil, "http": {mcptest.OverHTTP()}} {
			c := harness.NewAsked(t, s, rev, append(options, mcptest.Accepting(map[string]string{"name": "Ada"}))...)
			result, err := c.TryRequest("acme/who", nil)
			switch {
			case rev.Modern() && (err == nil || !strings.Contains(err.Error(), "lets only tools/call, prompts/get and resources/read ask the client, not acme/who")):
				t.Errorf("%v %s: %v, want to hear that it cannot ask", rev, name, err)
			case !rev.Modern() && (err != nil || !strings.Contains(string(result), `"Ada"`)):
				t.Errorf("%v %s: %s, %v", rev, name, result, err)
			}
		}
	}
}
