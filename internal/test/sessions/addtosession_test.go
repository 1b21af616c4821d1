package sessions_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// grower returns a server whose tool "grow" adds components to the session that
// calls it, and whose tool "shrink" takes them back.
func grower(t *testing.T) *mcp.Server {
	s := harness.ListenServer(t, mcp.Options{})
	s.MustAdd(
		mcp.Tool("grow", func(f *mcp.Frame, _ struct{}) (string, error) {
			err := s.AddToSession(f, harness.Tool("own"), mcp.Bytes("file:///own", []byte("own"), mcp.MIME("text/plain")),
				mcp.Template("own://{id}", func(_ *mcp.Frame, in struct {
					ID string `json:"id"`
				}) (string, error) {
					return in.ID, nil
				}),
				mcp.Prompt("own", func(*mcp.Frame, struct{}) (string, error) { return "own", nil }))
			return "grown", err
		}),
		mcp.Tool("shrink", func(f *mcp.Frame, _ struct{}) (string, error) {
			sum := 0
			for _, kind := range []mcp.Kind{mcp.KindTool, mcp.KindResource, mcp.KindTemplate, mcp.KindPrompt} {
				n, err := s.RemoveFromSession(f, kind, "own", "own://{id}", "first")
				if err != nil {
					return "", err
				}
				sum += n
			}
			return fmt.Sprint(sum), nil
		}),
		mcp.Tool("wrong", func(f *mcp.Frame, _ struct{}) (string, error) { return "", s.AddToSession(f, nil) }),
		mcp.Tool("twice", func(f *mcp.Frame, _ struct{}) (string, error) {
			return "", s.AddToSession(f, harness.Tool("first"), harness.Tool("never"))
		}),
		mcp.Tool("method", func(f *mcp.Frame, in struct{}) (string, error) {
			return "", s.AddToSession(f, mcp.Method("own/method", func(*mcp.Frame, struct{}) (struct{}, error) { return in, nil }))
		}),
	)
	return s
}

func TestSessionComponents(t *testing.T) {
	for _, transport := range harness.TransportsOf(protocol.V20250618) {
		t.Run(transport.Name, func(t *testing.T) {
			s := grower(t)
			mine, other := harness.OpenSession(t, transport, s), harness.OpenSession(t, transport, s)
			for _, step := range []struct {
				client         harness.Conversation
				method, params string
				has, lacks     string
			}{
				{mine, "tools/call", `{"name":"grow"}`, `"text":"grown"`, "isError"},
				{mine, "tools/list", `{}`, `"name":"own"`, ""},
				{mine, "tools/list", `{}`, `"name":"first"`, ""},
				{mine, "tools/call", `{"name":"own"}`, `"text":"own"`, "isError"},
				{mine, "resources/list", `{}`, "file:///own", ""},
				{mine, "resources/templates/list", `{}`, "own://{id}", ""},
				{mine, "resources/read", `{"uri":"file:///own"}`, `"text":"own"`, ""},
				{mine, "resources/read", `{"uri":"own://7"}`, `"text":"7"`, ""},
				{mine, "prompts/get", `{"name":"own"}`, `"text":"own"`, ""},
				{mine, "prompts/list", `{}`, `"name":"own"`, ""},
				{mine, "tools/call", `{"name":"grow"}`, `\"own\" is registered already`, ""},
				{mine, "tools/call", `{"name":"twice"}`, `\"first\" is registered already`, ""},
				{mine, "tools/list", `{}`, `"name":"own"`, `"name":"never"`},
				{mine, "tools/call", `{"name":"wrong"}`, "component 0 is nil", ""},
				{mine, "tools/call", `{"name":"method"}`, "method \\\"own/method\\\" cannot be in a session", ""},

				{other, "tools/list", `{}`, `"name":"first"`, `"name":"own"`},
				{other, "tools/call", `{"name":"own"}`, "Unknown tool: own", ""},
				{other, "resources/read", `{"uri":"own://7"}`, `-32002`, ""},
				{other, "prompts/get", `{"name":"own"}`, "Unknown prompt: own", ""},
				{other, "tools/call", `{"name":"shrink"}`, `"text":"0"`, "isError"},

				{mine, "tools/call", `{"name":"shrink"}`, `"text":"3"`, "isError"},
				{mine, "tools/call", `{"name":"own"}`, "Unknown tool: own", ""},
				{mine, "resources/read", `{"uri":"file:///own"}`, `"text":"own"`, ""},
				{mine, "tools/list", `{}`, `"name":"first"`, `"name":"own"`},
			} {
				got := harness.Ask(t, step.client, step.method, step.params)
				if !strings.Contains(got, step.has) || step.lacks != "" && strings.Contains(got, step.lacks) {
					t.Errorf("%s %s: got %s\nwant %q in it, and not %q", step.method, step.params, got, step.has, step.lacks)
				}
			}
		})
	}
}

func TestSessionComponentsInTheModernEra(t *testing.T) {
	for _, transport := range harness.Transports {
		c := transport.Open(t, grower(t), protocol.Latest)
		for _, name := range []string{"grow", "shrink"} {
			got := harness.Ask(t, c, "tools/call", harness.Expand(`{"name":"`+name+`",$META}`, protocol.Latest))
			if !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "need a legacy session") {
				t.Errorf("%s, %s: got %s", transport.Name, name, got)
			}
		}
	}
}

// TestSessionComponentsAreTold checks that the client whose components changed
// hears of it, and no other.
func TestSessionComponentsAreTold(t *testing.T) {
	s := grower(t)
	open := func() harness.Listener {
		w := harness.PipeWire(t, s)
		w.Say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		w.Hear()
		w.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		return w
	}
	mine, other := open(), open()
	mine.Say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"grow"}}`)
	heard := map[string]bool{}
	for range 4 { // three lists and the answer, in any order
		heard[mine.Hear()] = true
	}
	for _, kind := range []string{"tools", "resources", "prompts"} {
		if want := `{"jsonrpc":"2.0","method":"notifications/` + kind + `/list_changed"}`; !heard[want] {
			t.Errorf("heard %v, want %s", heard, want)
		}
	}
	other.Say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	harness.WantPlain(t, other, `{"jsonrpc":"2.0","id":2,"result":{}}`)
}

// Components of one session are nothing that replicas could share.
func TestAddToSessionShared(t *testing.T) {
	var said error
	s := harness.Fixture(t, &mcp.Options{Store: scale.NewLocal(), StateKeys: harness.SharedKeys})
	s.MustAdd(mcp.Tool("more", func(f *mcp.Frame, _ struct{}) (string, error) {
		said = s.AddToSession(f, mcp.Tool("extra", func(*mcp.Frame, struct{}) (string, error) { return "", nil }))
		return "", nil
	}))
	d := &harness.BareClient{T: t, H: s.Handler(), Rev: protocol.LatestLegacy}
	d.Initialize()
	d.Want(d.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"more"}}`), http.StatusOK, `"content"`)
	if said == nil || !strings.Contains(said.Error(), "Options.Store") {
		t.Errorf("AddToSession: %v", said)
	}
}
