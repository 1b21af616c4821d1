package lists_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// addSets gives a server the sets "admin" and "audit", and tools that enable and
// disable them.
func addSets(t *testing.T, s *mcp.Server) {
	t.Helper()
	for _, err := range []error{
		s.AddSet("admin", harness.Tool("ban"), mcp.Prompt("ban_letter", func(*mcp.Frame, struct{}) (string, error) { return "banned", nil }),
			mcp.Bytes("file:///bans", []byte("bans"), mcp.MIME("text/plain"))),
		s.AddSet("audit", harness.Tool("trace")),
		s.AddSet("audit", mcp.Tool("hidden", func(*mcp.Frame, struct{}) (string, error) { return "", nil }, mcp.VisibleTo(func(*mcp.Frame) bool { return false }))),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	type in struct {
		Sets []string `json:"sets"`
	}
	s.MustAdd(
		mcp.Tool("enable", func(f *mcp.Frame, in in) (string, error) { return "done", s.EnableSet(f, in.Sets...) }),
		mcp.Tool("disable", func(f *mcp.Frame, in in) (string, error) { return "done", s.DisableSet(f, in.Sets...) }),
	)
}

func TestSets(t *testing.T) {
	for _, transport := range harness.TransportsOf(protocol.V20250618) {
		t.Run(transport.Name, func(t *testing.T) {
			s := harness.ListenServer(t, mcp.Options{})
			addSets(t, s)
			mine, other := harness.OpenSession(t, transport, s), harness.OpenSession(t, transport, s)
			call := func(tool, sets string) string { return `{"name":"` + tool + `","arguments":{"sets":[` + sets + `]}}` }
			for _, step := range []struct {
				client         harness.Conversation
				method, params string
				has, lacks     string
			}{
				{mine, "tools/list", `{}`, `"name":"enable"`, `"name":"ban"`},
				{mine, "tools/call", `{"name":"ban"}`, "Unknown tool: ban", ""},
				{mine, "resources/read", `{"uri":"file:///bans"}`, "-32002", ""},
				{mine, "tools/call", call("enable", `"admin"`), `"text":"done"`, "isError"},
				{mine, "tools/list", `{}`, `"name":"ban"`, `"name":"trace"`},
				{mine, "tools/call", `{"name":"ban"}`, `"text"`, "isError"},
				{mine, "resources/read", `{"uri":"file:///bans"}`, `"text":"bans"`, ""},
				{mine, "prompts/get", `{"name":"ban_letter"}`, "banned", ""},
				{mine, "tools/call", call("enable", `"admin","audit"`), `"text":"done"`, "isError"},
				{mine, "tools/list", `{}`, `"name":"trace"`, `"name":"hidden"`},
				{other, "tools/list", `{}`, `"name":"enable"`, `"name":"ban"`},
				{other, "tools/call", `{"name":"ban"}`, "Unknown tool: ban", ""},
				{mine, "tools/call", call("enable", `"audit","nothing"`), `there is no set \"nothing\"`, ""},
				{mine, "tools/call", call("disable", `"admin"`), `"text":"done"`, "isError"},
				{mine, "tools/list", `{}`, `"name":"trace"`, `"name":"ban"`},
				{mine, "tools/call", call("disable", `"admin"`), `"text":"done"`, "isError"},
			} {
				got := harness.Ask(t, step.client, step.method, step.params)
				if !strings.Contains(got, step.has) || step.lacks != "" && strings.Contains(got, step.lacks) {
					t.Errorf("%s %s: got %s\nwant %q in it, and not %q", step.method, step.params, got, step.has, step.lacks)
				}
			}
		})
	}
}

// Modern revisions have no sessions, and see no set.
func TestSetsInTheModernEra(t *testing.T) {
	for _, transport := range harness.Transports {
		s := harness.ListenServer(t, mcp.Options{})
		addSets(t, s)
		c := transport.Open(t, s, protocol.Latest)
		for _, name := range []string{"enable", "disable"} {
			got := harness.Ask(t, c, "tools/call", harness.Expand(`{"name":"`+name+`","arguments":{"sets":["admin"]},$META}`, protocol.Latest))
			if !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "need a legacy session") {
				t.Errorf("%s, %s: got %s", transport.Name, name, got)
			}
		}
		if got := harness.Ask(t, c, "tools/list", harness.Expand(`{$META}`, protocol.Latest)); strings.Contains(got, `"name":"ban"`) {
			t.Errorf("%s: got %s", transport.Name, got)
		}
	}
}

// The client whose sets change hears which lists do, once, and no other does.
func TestSetsAreTold(t *testing.T) {
	s := harness.ListenServer(t, mcp.Options{})
	addSets(t, s)
	open := func() harness.Listener {
		w := harness.PipeWire(t, s)
		w.Say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		w.Hear()
		w.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		return w
	}
	mine, other := open(), open()
	for i, step := range []struct {
		tool  string
		lists []string
	}{
		{"enable", []string{"tools", "resources", "prompts"}},
		{"enable", nil}, // it is enabled already
		{"disable", []string{"tools", "resources", "prompts"}},
		{"disable", nil},
	} {
		mine.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"sets":["admin"]}}}`, i+2, step.tool))
		heard := map[string]bool{}
		for range len(step.lists) + 1 {
			heard[mine.Hear()] = true
		}
		for _, kind := range step.lists {
			if want := `{"jsonrpc":"2.0","method":"notifications/` + kind + `/list_changed"}`; !heard[want] {
				t.Errorf("step %d: heard %v, want %s", i, heard, want)
			}
		}
	}
	for _, w := range []harness.Listener{mine, other} {
		w.Say(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
		harness.WantPlain(t, w, `{"jsonrpc":"2.0","id":9,"result":{}}`)
	}
}

// What cannot be a set is an error that says why.
func TestSetFaults(t *testing.T) {
	s := harness.ListenServer(t, mcp.Options{})
	for want, err := range map[string]error{
		"a name has 1 to 128":           s.AddSet("", harness.Tool("a")),
		"component 0 is nil":            s.AddSet("admin", nil),
		`method "own/method" cannot be`: s.AddSet("admin", mcp.Method("own/method", func(*mcp.Frame, struct{}) (struct{}, error) { return struct{}{}, nil })),
		`"first" is registered already`: s.AddSet("admin", harness.Tool("first"), harness.Tool("never")),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := s.AddSet("admin", harness.Tool("never")); err != nil {
		t.Error(err)
	}
}

// A server that is mounted has sets of its own, also under a name that its parent
// has, too.
func TestSetsOfMountedServers(t *testing.T) {
	for _, transport := range harness.TransportsOf(protocol.V20250618) {
		t.Run(transport.Name, func(t *testing.T) {
			s := harness.ListenServer(t, mcp.Options{})
			addSets(t, s)
			child := mcp.NewServer(mcp.Info{Name: "child", Version: "1"}, nil)
			if err := child.AddSet("admin", harness.Tool("grant")); err != nil {
				t.Fatal(err)
			}
			child.MustAdd(mcp.Tool("enable", func(f *mcp.Frame, _ struct{}) (string, error) { return "done", child.EnableSet(f, "admin") }))
			if err := s.Mount("child", child); err != nil {
				t.Fatal(err)
			}
			c := harness.OpenSession(t, transport, s)
			if got := harness.Ask(t, c, "tools/call", `{"name":"child_grant"}`); !strings.Contains(got, "Unknown tool: child_grant") {
				t.Errorf("got %s", got)
			}
			harness.Ask(t, c, "tools/call", `{"name":"child_enable"}`)
			if got := harness.Ask(t, c, "tools/list", `{}`); !strings.Contains(got, `"child_grant"`) || strings.Contains(got, `"ban"`) {
				t.Errorf("got %s", got)
			}
		})
	}
}

// A set that is enabled at one replica is there at all of them, and the client
// hears of it on its stream, wherever that is.
func TestSetsOfReplicas(t *testing.T) {
	r := harness.NewReplicas(t, 4, mcp.Options{}, func(_ int, s *mcp.Server) { addSets(t, s) })
	told := make(chan string, 100)
	c, err := client.Connect(t.Context(), client.HTTP(r.URL, nil), &client.Options{
		Revisions: []protocol.Revision{protocol.LatestLegacy}, OnNotification: func(n client.Notification) { told <- n.Method },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	other := r.Connect(t, protocol.LatestLegacy)
	call := func(tool string, sets ...string) error {
		var arguments any
		if sets != nil {
			arguments = map[string]any{"sets": sets}
		}
		result, err := c.Call(t.Context(), tool, arguments)
		if err == nil && result.IsError {
			err = fmt.Errorf("%s", result.Text())
		}
		return err
	}
	// Two sets at the same time, at two replicas.
	var both sync.WaitGroup
	for _, set := range []string{"admin", "audit"} {
		both.Go(func() {
			if err := call("enable", set); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	for range 8 {
		for _, tool := range []string{"ban", "trace"} {
			if err := call(tool); err != nil {
				t.Errorf("%s: %v", tool, err)
			}
			if result, err := other.Call(t.Context(), tool, nil); err == nil && !result.IsError {
				t.Errorf("%s is there for another client", tool)
			}
		}
	}
	for heard := map[string]bool{}; len(heard) < 3; { // tools, resources and prompts
		select {
		case method := <-told:
			heard[method] = true
		case <-time.After(10 * time.Second):
			t.Fatalf("the client has heard %v", heard)
		}
	}
	if err := call("disable", "admin"); err != nil {
		t.Error(err)
	}
	for range 4 {
		if err := call("ban"); err == nil || !strings.Contains(err.Error(), "Unknown tool") {
			t.Errorf("ban is still there: %v", err)
		}
	}
}

// Where the store fails, nothing is enabled and nobody is told that it is.
func TestSetsWithoutTheStore(t *testing.T) {
	store := &harness.ReadOnly{Store: scale.NewLocal()}
	s := harness.Fixture(t, &mcp.Options{Store: store, StateKeys: harness.SharedKeys})
	addSets(t, s)
	d := &harness.BareClient{T: t, H: s.Handler(), Rev: protocol.LatestLegacy}
	d.Initialize()
	enable := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"enable","arguments":{"sets":["admin"]}}}`
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	store.Refuses.Store(true)
	d.Want(d.Do(http.MethodPost, enable), http.StatusOK, `"data":{"executed":true}`)
	store.Refuses.Store(false)
	if res := d.Do(http.MethodPost, list); strings.Contains(res.Body.String(), `"ban"`) {
		t.Errorf("the set is there: %s", res.Body)
	}
	d.Want(d.Do(http.MethodPost, enable), http.StatusOK, `"text":"done"`)
	d.Want(d.Do(http.MethodPost, list), http.StatusOK, `"ban"`)
}
