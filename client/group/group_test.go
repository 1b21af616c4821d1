package group_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/config"
	"github.com/talaria-go/mcp/client/group"
	"github.com/talaria-go/mcp/internal/test/backendtest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport/websocket"
)

// newGroup makes a Group of these servers that is closed at the end of the test.
func newGroup(t *testing.T, opts *group.Options, backends ...*backendtest.Backend) *group.Group {
	t.Helper()
	m := group.New(opts)
	t.Cleanup(func() {
		for range 2 {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	for _, b := range backends {
		if err := m.Add(b.Name, b.Transport(), nil); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// Every call finds its server, whatever revision that speaks, and a server that
// is down is only missing.
func TestGroupCaller(t *testing.T) {
	servers := []*backendtest.Backend{
		backendtest.New(t, "old", &mcp.Options{Revisions: []protocol.Revision{protocol.V20250618}}),
		backendtest.New(t, "new", &mcp.Options{Revisions: []protocol.Revision{protocol.V20260728}}),
		backendtest.New(t, "dotted.name", nil),
	}
	down := backendtest.New(t, "down", nil)
	down.Cut(errors.New("nobody listens"))
	m := newGroup(t, nil, append(servers, down)...)
	if err := m.Warm(t.Context()); err == nil || !strings.Contains(err.Error(), `server "down": connect`) || !strings.Contains(err.Error(), "nobody listens") {
		t.Errorf("warming up: got %v", err)
	}
	for _, b := range servers {
		c, err := m.Client(t.Context(), b.Name)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Server().Info.Name; got != b.Name {
			t.Errorf("got the client of %s, want %s", got, b.Name)
		}
	}
	if err := m.Ping(t.Context()); err == nil || strings.Contains(err.Error(), "old") || !strings.Contains(err.Error(), "down") {
		t.Errorf("got %v", err)
	}
	down.Accept()
	if err := m.Remove("down"); err != nil {
		t.Fatal(err)
	}
	for _, b := range servers {
		backendtest.UseCaller(t, m, b.Name+"_", b.Name+".", b.Name)
	}
}

// Names that are empty or taken are refused, and what belongs to no server is not
// found.
func TestGroupNames(t *testing.T) {
	a := backendtest.New(t, "a", nil)
	m := newGroup(t, nil, a)
	backendtest.Echo(t, m, "a_echo", "x", "a x")
	for _, test := range []struct {
		name string
		ok   bool
	}{{"a", false}, {"", false}, {"ab", true}, {"b", true}} {
		if err := m.Add(test.name, a.Transport(), nil); (err == nil) != test.ok {
			t.Errorf("%q: got %v", test.name, err)
		}
	}
	if err := m.Add("c", nil, nil); err == nil {
		t.Error("nil is no transport")
	}
	for _, name := range []string{"echo", "a.echo", "c_echo", "_echo", ""} {
		_, err := m.Call(t.Context(), name, nil)
		if !errors.Is(err, client.ErrNotFound) || !strings.Contains(err.Error(), `server and "_"; the servers are a, ab, b`) {
			t.Errorf("%q: got %v", name, err)
		}
	}
	for _, uri := range []string{"notes://1", "a_notes://1", "c.notes://1", ""} {
		_, err := m.Read(t.Context(), uri)
		if !errors.Is(err, client.ErrNotFound) || !strings.Contains(err.Error(), `server and "."; the servers are a, ab, b`) {
			t.Errorf("%q: got %v", uri, err)
		}
	}
	if err := m.Remove("c"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if _, err := m.Client(t.Context(), "c"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	_, err := m.Call(t.Context(), "a_none", nil)
	if fault, ok := errors.AsType[*protocol.Error](err); !ok || !strings.Contains(err.Error(), `server "a": `) {
		t.Errorf("got %v, %v", err, fault)
	}
}

// A server that is lost fails its own calls, and comes back.
func TestGroupServerDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := backendtest.New(t, "a", nil), backendtest.New(t, "b", nil)
		b.Cut(errors.New("not yet"))
		var mu sync.Mutex
		var heard []string
		m := newGroup(t, &group.Options{OnStatus: func(s group.Status) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, fmt.Sprint(s.Name, " ", s.State))
		}}, a, b)
		tools := func() string {
			var names []string
			for tool, err := range m.Tools(t.Context()) {
				if err != nil {
					t.Error(err)
				}
				names = append(names, tool.Name)
			}
			return strings.Join(names, " ")
		}
		if got := tools(); got != "a_echo a_sum" {
			t.Errorf("got %s", got)
		}
		if _, err := m.Call(t.Context(), "b_echo", backendtest.EchoIn{Text: "x"}); !errors.Is(err, client.ErrConnection) || !client.Retriable(err) || !strings.Contains(err.Error(), `server "b": connect to `) || !strings.HasSuffix(err.Error(), `: no connection: not yet`) {
			t.Errorf("got %v", err)
		}
		backendtest.Echo(t, m, "a_echo", "x", "a x")
		b.Accept()
		time.Sleep(time.Minute)
		if got := tools(); got != "a_echo a_sum b_echo b_sum" {
			t.Errorf("got %s", got)
		}
		status := m.Status()
		if len(status) != 2 || status[1].State != client.StateReady || status[1].Err != nil || status[1].Info.Name != "b" || status[0].Revision != protocol.Latest {
			t.Errorf("got %+v", status)
		}

		b.Cut(errors.New("gone again"))
		synctest.Wait()
		if got := tools(); got != "a_echo a_sum" {
			t.Errorf("got %s", got)
		}
		if status := m.Status()[1]; status.State == client.StateReady || status.Err == nil {
			t.Errorf("got %+v", status)
		}
		backendtest.Echo(t, m, "a_echo", "x", "a x")
		time.Sleep(10 * time.Minute) // longer than a client tries to come back
		b.Accept()
		time.Sleep(time.Minute)
		backendtest.Echo(t, m, "b_echo", "x", "b x")
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(heard, ", "); !strings.HasPrefix(got, "a ready, b disconnected") && !strings.HasPrefix(got, "b disconnected, a ready") || !strings.HasSuffix(got, "b ready") {
			t.Errorf("heard %s", got)
		}
	})
}

// A server that does not answer delays a list for a time, and no longer.
func TestGroupSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := backendtest.New(t, "a", nil), backendtest.New(t, "b", nil)
		b.Server.Use(func(next mcp.Handler) mcp.Handler {
			return func(f *mcp.Frame) (protocol.Result, error) {
				if f.Request().Method == "prompts/list" {
					<-f.Done()
				}
				return next(f)
			}
		})
		m := newGroup(t, &group.Options{ListTimeout: 3 * time.Second}, a, b)
		start := time.Now()
		var names []string
		for prompt, err := range m.Prompts(t.Context()) {
			names = append(names, fmt.Sprint(prompt.Name, err))
		}
		if got := strings.Join(names, " "); got != "a_greet<nil>" || time.Since(start) != 3*time.Second {
			t.Errorf("got %s after %v", got, time.Since(start))
		}
		if err := m.Status()[1].Err; !errors.Is(err, client.ErrTimeout) {
			t.Errorf("got %v", err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		names = nil
		for prompt, err := range m.Prompts(ctx) {
			names = append(names, prompt.Name)
			if !errors.Is(err, client.ErrTimeout) {
				t.Errorf("got %v", err)
			}
		}
		if len(names) != 1 || names[0] != "" {
			t.Errorf("got %q", names)
		}
	})
}

// Notifications come with the name of their server.
func TestGroupNotifications(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20251125, protocol.V20260728} {
		opts := &mcp.Options{Revisions: []protocol.Revision{rev}}
		a, b := backendtest.New(t, "a", opts), backendtest.New(t, "b", opts)
		type event struct {
			server string
			client.Notification
		}
		heard := make(chan event, 10)
		var own sync.WaitGroup
		own.Add(1)
		var once sync.Once
		m := newGroup(t, &group.Options{
			Client:         &client.Options{OnNotification: func(client.Notification) { once.Do(own.Done) }},
			OnNotification: func(server string, e client.Notification) { heard <- event{server, e} },
		}, a, b)
		told := make(chan string, 1)
		sub, err := m.Listen(t.Context(), "b", client.Filter{ResourceSubscriptions: []string{"notes://1"}}, func(n client.Notification) { told <- string(n.Params) })
		if err != nil {
			t.Fatal(err)
		}
		a.Server.ResourceUpdated("notes://1") // nobody asked for it
		b.Server.ResourceUpdated("notes://1")
		for e := range heard {
			if e.Method != protocol.MethodResourceUpdated {
				continue // that the subscription stands
			}
			var params struct{ URI string }
			if err := json.Unmarshal(e.Params, &params); err != nil || e.server != "b" || params.URI != "b.notes://1" {
				t.Errorf("%s: got %s %s", rev, e.server, e.Params)
			}
			break
		}
		own.Wait()
		if params := <-told; !strings.Contains(params, `"b.notes://1"`) {
			t.Errorf("%s: the subscription heard %s", rev, params)
		}
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
		if _, err := m.Listen(t.Context(), "c", client.Filter{}, nil); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("listening to nobody: %v", err)
		}
	}
}

// A configuration file gives servers of every kind; a bad one costs the others
// nothing.
func TestGroupConfig(t *testing.T) {
	b := backendtest.New(t, "web", &mcp.Options{HTTP: mcp.HTTPOptions{SSE: true}})
	var auth sync.Map
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth.Store(r.Header.Get("Authorization"), true)
		b.Server.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close) // after the Many
	socket := httptest.NewServer(websocket.Handler(b.Server))
	t.Cleanup(socket.Close)
	text := fmt.Sprintf(`{"mcpServers": {
		"http": {"url": %[1]q, "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
		"sse": {"type": "sse", "url": "%[1]s/sse"},
		"ws": {"type": "ws", "url": %[2]q},
		"off": {"url": "http://127.0.0.1:1/mcp", "disabled": true},
		"missing": {"command": "talaria-no-such-program"},
		"bad": {"command": "${NONE}"},
		"http_2": {"url": %[1]q}
	}}`, web.URL, socket.URL)
	c, err := config.Parse("mcp.json", []byte(text), &config.Options{Env: func(name string) (string, bool) { return "s3cret", name == "TOKEN" }})
	if err != nil {
		t.Fatal(err)
	}
	m := newGroup(t, nil)
	err = m.AddConfig(c, nil)
	if err == nil || !strings.Contains(err.Error(), `mcp.json: server "bad": command: the environment has no NONE`) {
		t.Errorf("got %v", err)
	}
	if err := m.Warm(t.Context()); err == nil || !strings.Contains(err.Error(), "talaria-no-such-program") || !strings.Contains(err.Error(), `server "bad"`) {
		t.Errorf("got %v", err)
	}
	var got []string
	for _, s := range m.Status() {
		got = append(got, fmt.Sprint(s.Name, " ", s.State))
	}
	if want := "http ready, sse ready, ws ready, missing disconnected, bad disconnected, http_2 ready"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
	for _, name := range []string{"http", "sse", "ws", "http_2"} {
		backendtest.Echo(t, m, name+"_echo", "x", "web x")
	}
	if err := m.AddConfig(c, nil); err == nil || strings.Count(err.Error(), "the name is taken") != 6 {
		t.Errorf("added twice: %v", err)
	}
	if _, ok := auth.Load("Bearer s3cret"); !ok {
		t.Error("the header of the file was not sent")
	}
	if _, err := m.Call(t.Context(), "bad_echo", nil); !errors.Is(err, client.ErrConnection) || !strings.Contains(err.Error(), "NONE") {
		t.Errorf("got %v", err)
	}
	if err := m.Remove("bad"); err != nil {
		t.Error(err)
	}
}

// The first subscription of a client that is open again at another connection says so, however
// long the server was away.
func TestGroupResumed(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
		for _, away := range []time.Duration{0, 2 * time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				b := backendtest.New(t, "a", nil)
				g := group.New(nil)
				resumed := make(chan *client.Subscription, 10)
				if err := g.Add("a", b.Transport(), &client.Options{Revisions: []protocol.Revision{rev}, Listen: &client.Filter{ToolsListChanged: true},
					OnResumed: func(s *client.Subscription) { resumed <- s }}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if len(resumed) != 0 {
					t.Errorf("%s: it was never interrupted", rev)
				}
				b.Cut(errors.New("away"))
				time.Sleep(away)
				b.Accept()
				time.Sleep(5 * time.Minute)
				if len(resumed) != 1 || !(<-resumed).Accepted().ToolsListChanged {
					t.Errorf("%s, away for %v: OnResumed was called %d times", rev, away, len(resumed))
				}
				if err := g.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
