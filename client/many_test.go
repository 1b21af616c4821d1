package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// newMany makes a Many of these servers that is closed at the end of the test.
func newMany(t *testing.T, opts *client.ManyOptions, backends ...*backend) *client.Many {
	t.Helper()
	m := client.NewMany(opts)
	t.Cleanup(func() {
		for range 2 {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	for _, b := range backends {
		if err := m.Add(b.name, b.transport(), nil); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// Every call finds its server, whatever revision that speaks, and a server that
// is down is only missing.
func TestManyCaller(t *testing.T) {
	servers := []*backend{
		newBackend(t, "old", &mcp.Options{Revisions: []protocol.Revision{protocol.V20250618}}),
		newBackend(t, "new", &mcp.Options{Revisions: []protocol.Revision{protocol.V20260728}}),
		newBackend(t, "dotted.name", nil),
	}
	down := newBackend(t, "down", nil)
	down.cut(errors.New("nobody listens"))
	m := newMany(t, nil, append(servers, down)...)
	if err := m.Warm(t.Context()); err == nil || !strings.Contains(err.Error(), `server "down": connect`) || !strings.Contains(err.Error(), "nobody listens") {
		t.Errorf("warming up: got %v", err)
	}
	for _, b := range servers {
		c, err := m.Client(t.Context(), b.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.ServerInfo().Name; got != b.name {
			t.Errorf("got the client of %s, want %s", got, b.name)
		}
	}
	if err := m.Ping(t.Context()); err == nil || strings.Contains(err.Error(), "old") || !strings.Contains(err.Error(), "down") {
		t.Errorf("got %v", err)
	}
	down.accept()
	if err := m.Remove("down"); err != nil {
		t.Fatal(err)
	}
	for _, b := range servers {
		useCaller(t, m, b.name+".", b.name)
	}
}

func TestManyNames(t *testing.T) {
	a := newBackend(t, "a", nil)
	m := newMany(t, &client.ManyOptions{Separator: "_"}, a)
	echo(t, m, "a_echo", "x", "a x")
	for _, test := range []struct {
		name string
		ok   bool
	}{{"a", false}, {"a_b", false}, {"", false}, {"ab", true}, {"b", true}, {"b_c", false}} {
		if err := m.Add(test.name, a.transport(), nil); (err == nil) != test.ok {
			t.Errorf("%q: got %v", test.name, err)
		}
	}
	if err := m.Add("c", nil, nil); err == nil {
		t.Error("nil is no transport")
	}
	for _, name := range []string{"echo", "c_echo", "_echo", ""} {
		_, err := m.Call(t.Context(), name, nil)
		if !errors.Is(err, client.ErrNotFound) || !strings.Contains(err.Error(), "the servers are a, ab, b") {
			t.Errorf("%q: got %v", name, err)
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
func TestManyServerDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		b.cut(errors.New("not yet"))
		var mu sync.Mutex
		var heard []string
		m := newMany(t, &client.ManyOptions{OnStatus: func(s client.ServerStatus) {
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
		if got := tools(); got != "a.echo a.sum" {
			t.Errorf("got %s", got)
		}
		if _, err := m.Call(t.Context(), "b.echo", echoIn{"x"}); !errors.Is(err, client.ErrClosed) || !client.Retriable(err) || !strings.Contains(err.Error(), `server "b": connect: connection closed: not yet`) {
			t.Errorf("got %v", err)
		}
		echo(t, m, "a.echo", "x", "a x")
		b.accept()
		time.Sleep(time.Minute)
		if got := tools(); got != "a.echo a.sum b.echo b.sum" {
			t.Errorf("got %s", got)
		}
		status := m.Status()
		if len(status) != 2 || status[1].State != client.StateReady || status[1].Err != nil || status[1].Info.Name != "b" || status[0].Revision != protocol.Latest {
			t.Errorf("got %+v", status)
		}

		b.cut(errors.New("gone again"))
		synctest.Wait()
		if got := tools(); got != "a.echo a.sum" {
			t.Errorf("got %s", got)
		}
		if status := m.Status()[1]; status.State == client.StateReady || status.Err == nil {
			t.Errorf("got %+v", status)
		}
		echo(t, m, "a.echo", "x", "a x")
		time.Sleep(10 * time.Minute) // longer than a client tries to come back
		b.accept()
		time.Sleep(time.Minute)
		echo(t, m, "b.echo", "x", "b x")
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(heard, ", "); !strings.HasPrefix(got, "a ready, b disconnected") && !strings.HasPrefix(got, "b disconnected, a ready") || !strings.HasSuffix(got, "b ready") {
			t.Errorf("heard %s", got)
		}
	})
}

// A server that does not answer delays a list for a time, and no longer.
func TestManySlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newBackend(t, "a", nil), newBackend(t, "b", nil)
		b.server.Use(func(next mcp.Handler) mcp.Handler {
			return func(f *mcp.Frame) (protocol.Result, error) {
				if f.Request().Method == "prompts/list" {
					<-f.Done()
				}
				return next(f)
			}
		})
		m := newMany(t, &client.ManyOptions{ListTimeout: 3 * time.Second}, a, b)
		start := time.Now()
		var names []string
		for prompt, err := range m.Prompts(t.Context()) {
			names = append(names, fmt.Sprint(prompt.Name, err))
		}
		if got := strings.Join(names, " "); got != "a.greet<nil>" || time.Since(start) != 3*time.Second {
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
func TestManyNotifications(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20251125, protocol.V20260728} {
		opts := &mcp.Options{Revisions: []protocol.Revision{rev}}
		a, b := newBackend(t, "a", opts), newBackend(t, "b", opts)
		type event struct {
			server string
			client.Event
		}
		heard := make(chan event, 10)
		var own sync.WaitGroup
		own.Add(1)
		var once sync.Once
		m := newMany(t, &client.ManyOptions{
			Client:         &client.Options{OnNotification: func(client.Event) { once.Do(own.Done) }},
			OnNotification: func(server string, e client.Event) { heard <- event{server, e} },
		}, a, b)
		if err := m.Subscribe(t.Context(), "b.notes://1"); err != nil {
			t.Fatal(err)
		}
		a.server.ResourceUpdated("notes://1") // nobody asked for it
		b.server.ResourceUpdated("notes://1")
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
		if err := m.Unsubscribe(t.Context(), "b.notes://1"); err != nil {
			t.Error(err)
		}
	}
}

// A configuration file gives servers of every kind; a bad one costs the others
// nothing.
func TestManyConfig(t *testing.T) {
	b := newBackend(t, "web", &mcp.Options{HTTP: streamableOptions()})
	var auth sync.Map
	web := httptest.NewServer(recordHeader(b.server.Handler(), "Authorization", &auth))
	t.Cleanup(web.Close) // after the Many
	socket := httptest.NewServer(b.server.WebSocketHandler())
	t.Cleanup(socket.Close)
	text := fmt.Sprintf(`{"mcpServers": {
		"http": {"url": %[1]q, "headers": {"Authorization": "Bearer ${env:TOKEN}"}},
		"sse": {"type": "sse", "url": "%[1]s/sse"},
		"ws": {"type": "ws", "url": %[2]q},
		"off": {"url": "http://127.0.0.1:1/mcp", "disabled": true},
		"missing": {"command": "talaria-no-such-program"},
		"bad": {"command": "${NONE}"},
		"http.2": {"url": %[1]q}
	}}`, web.URL, socket.URL)
	c, err := client.ParseConfig("mcp.json", []byte(text), &client.ConfigOptions{Env: configEnv})
	if err != nil {
		t.Fatal(err)
	}
	m := newMany(t, nil)
	err = m.AddConfig(c, nil)
	if err == nil || !strings.Contains(err.Error(), `mcp.json: server "bad": command: the environment has no NONE`) || !strings.Contains(err.Error(), "add server http.2") {
		t.Errorf("got %v", err)
	}
	if err := m.Warm(t.Context()); err == nil || !strings.Contains(err.Error(), "talaria-no-such-program") || !strings.Contains(err.Error(), `server "bad"`) {
		t.Errorf("got %v", err)
	}
	var got []string
	for _, s := range m.Status() {
		got = append(got, fmt.Sprint(s.Name, " ", s.State))
	}
	if want := "http ready, sse ready, ws ready, missing disconnected, bad disconnected"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
	for _, name := range []string{"http", "sse", "ws"} {
		echo(t, m, name+".echo", "x", "web x")
	}
	if _, ok := auth.Load("Bearer s3cret"); !ok {
		t.Error("the header of the file was not sent")
	}
	if _, err := m.Call(t.Context(), "bad.echo", nil); !errors.Is(err, client.ErrClosed) || !strings.Contains(err.Error(), "NONE") {
		t.Errorf("got %v", err)
	}
	if err := m.Remove("bad"); err != nil {
		t.Error(err)
	}
}

// A server of a file that is a program gets its arguments, its environment and
// its directory.
func TestConfigCommand(t *testing.T) {
	c, err := client.ParseConfig("mcp.json", []byte(`{"mcpServers":{"x":{"command":"prog","args":["-a","b c"],"env":{"B":"2","A":"1"},"cwd":"/srv"}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	made, err := c.Servers[0].Transport(nil)
	if err != nil {
		t.Fatal(err)
	}
	cmd := made.(*client.CommandTransport)
	if got := fmt.Sprintf("%q %q %q %s", cmd.Name, cmd.Args, cmd.Env, cmd.Dir); got != `"prog" ["-a" "b c"] ["A=1" "B=2"] /srv` {
		t.Errorf("got %s", got)
	}
	if _, err := (client.ServerConfig{Name: "x", Type: "pigeon"}).Transport(nil); err == nil {
		t.Error("there is no such type")
	}
}
