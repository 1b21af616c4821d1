package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/internal/test/backendtest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// TestConnections counts the connections of callers, and asks on each.
func TestConnections(t *testing.T) {
	type user struct {
		name string // of the token; "" comes over a pipe, without a principal
		rev  protocol.Revision
		asks bool // it can be asked
	}
	const legacy, modern = protocol.V20250618, protocol.V20260728
	principal := func(f *mcp.Frame) string { return f.Principal() }
	for _, tt := range []struct {
		name  string
		back  protocol.Revision
		by    func(f *mcp.Frame) string // the caller of For; nil for no For
		u     Upstream
		users []user
		want  int    // connections besides that for lists
		asked string // which of the users are asked
	}{
		{"a modern upstream without For", modern, nil, Upstream{}, []user{{"ada", modern, false}, {"bob", modern, false}, {"bob", legacy, false}}, 1, ""},
		{"other capabilities", modern, nil, Upstream{}, []user{{"ada", modern, false}, {"bob", modern, true}, {"cy", modern, true}}, 2, "bob cy"},
		{"callers of For", modern, principal, Upstream{}, []user{{"ada", modern, true}, {"ada", modern, true}, {"bob", modern, true}}, 2, "ada ada bob"},
		{"principals of a legacy upstream", legacy, nil, Upstream{}, []user{{"ada", modern, true}, {"ada", modern, true}, {"bob", modern, true}}, 2, "ada ada bob"},
		{"sessions of a legacy upstream", legacy, nil, Upstream{}, []user{{"ada", legacy, true}, {"ada", legacy, true}, {"bob", legacy, true}}, 3, "ada ada bob"},
		{"sessions and For", legacy, principal, Upstream{}, []user{{"ada", legacy, true}, {"ada", legacy, true}, {"ada", modern, true}}, 3, "ada ada ada"},
		{"an upstream whose era is not known", modern, principal, Upstream{NoQuestions: true}, []user{{"ada", legacy, false}, {"ada", legacy, false}, {"ada", modern, false}}, 1, ""},
		{"neither principal nor session", legacy, nil, Upstream{}, []user{{"", modern, true}, {"", modern, true}}, 1, ""},
		{"Shared", legacy, nil, Upstream{Shared: true}, []user{{"ada", legacy, true}, {"bob", modern, true}}, 0, ""},
		{"NoQuestions of a modern upstream", modern, nil, Upstream{NoQuestions: true}, []user{{"ada", legacy, true}, {"bob", modern, true}}, 0, ""},
		{"NoQuestions of a legacy upstream", legacy, nil, Upstream{NoQuestions: true}, []user{{"ada", legacy, true}, {"bob", modern, true}}, 2, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up := greeter(t, "up", tt.back)
			if !strings.Contains(tt.name, "not known") {
				tt.u.Transport = local(up)
			}
			if tt.by != nil {
				tt.u.For = func(f *mcp.Frame) (string, client.Transport, error) { return tt.by(f), local(up), nil }
			}
			g, s := start(t, map[string]Upstream{"up": tt.u})
			url := serveHTTP(t, s)
			var asked []string
			for _, who := range tt.users {
				o := &client.Options{Revisions: []protocol.Revision{who.rev}}
				if who.asks {
					o.Elicit = answers
				}
				to := local(s)
				if who.name != "" {
					to = bearer(url, who.name)
				}
				c, err := client.Connect(t.Context(), to, o)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = c.Close() }()
				if got := text(c.Call(t.Context(), "up_greet", greetIn{"x"})); strings.HasPrefix(got, "up greets x") {
					asked = append(asked, who.name)
				}
			}
			g.pool.mu.Lock()
			n := len(g.pool.all)
			g.pool.mu.Unlock()
			if got := strings.Join(asked, " "); n != tt.want || got != tt.asked {
				t.Errorf("%d connections, want %d; asked are %q, want %q", n, tt.want, got, tt.asked)
			}
		})
	}
}

// TestListConnection has a legacy upstream that asks outside of calls: the list connection
// declares that everything can be asked, unless it serves all, and answers nothing.
func TestListConnection(t *testing.T) {
	for name, u := range map[string]Upstream{"plain": {}, "Shared": {Shared: true}, "NoQuestions": {NoQuestions: true}} {
		told, answered := make(chan string, 1), make(chan string, 1)
		u.Transport = client.Local(func(_ context.Context, conn transport.Conn) error {
			for {
				line, err := conn.Read()
				if err != nil {
					return nil
				}
				var m struct {
					ID     json.RawMessage
					Method string
					Params struct{ Capabilities json.RawMessage }
					Error  json.RawMessage
				}
				if json.Unmarshal(line, &m) != nil {
					continue
				}
				out := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`, m.ID)
				switch {
				case m.Error != nil:
					answered <- string(m.Error)
					continue
				case m.Method == protocol.MethodInitialize:
					told <- string(m.Params.Capabilities)
					out = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}}`, m.ID)
				case m.Method == protocol.MethodInitialized:
					out = `{"jsonrpc":"2.0","id":"q","method":"roots/list"}`
				case m.Method != protocol.MethodToolsList:
					out = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`, m.ID)
				}
				if m.ID == nil && m.Method != protocol.MethodInitialized {
					continue
				}
				if conn.Write([]byte(out)) != nil || conn.Flush() != nil {
					return nil
				}
			}
		})
		start(t, map[string]Upstream{"up": u})
		caps := <-told
		for _, kind := range []string{"roots", "sampling", "elicitation"} {
			if strings.Contains(caps, kind) != (name == "plain") {
				t.Errorf("%s: %s is declared: %s", name, kind, caps)
			}
		}
		if got := <-answered; !strings.Contains(got, "-32601") {
			t.Errorf("%s: the question was answered with %s", name, got)
		}
	}
}

// TestBurst has an upstream whose list changes often: it is listed once for all of that.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := 0
		up := newServer(t, "up", nil)
		up.MustAdd(mcp.Tool("t", func(*mcp.Frame, struct{}) (string, error) { return "", nil }))
		up.Use(func(next mcp.Handler) mcp.Handler {
			return func(f *mcp.Frame) (protocol.Result, error) {
				if f.Request().Method == protocol.MethodToolsList {
					lists++
				}
				return next(f)
			}
		})
		g, s := start(t, map[string]Upstream{"up": {Transport: local(up), Shared: true}})
		time.Sleep(time.Second)
		lists = 0
		for i := range 40 {
			up.MustAdd(mcp.Tool(fmt.Sprint("t", i), func(*mcp.Frame, struct{}) (string, error) { return "", nil }))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * quiet)
		synctest.Wait()
		c := connect(t, s, protocol.V20260728, nil)
		if got := toolNames(t, c); len(got) != 41 || lists > 2 {
			t.Errorf("%d tools after %d lists", len(got), lists)
		}
		if err := errors.Join(c.Close(), g.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestOpensLate has an upstream whose connections of callers take 7 s: a list has the
// others after 5 s, and what comes later is notified.
func TestOpensLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := backendtest.New(t, "slow", nil)
		late := client.Conn(func(ctx context.Context) (transport.Conn, error) {
			time.Sleep(7 * time.Second)
			near, far := transport.Pipe()
			go func() { _ = slow.Server.ServeConn(context.WithoutCancel(ctx), far); _ = far.Close() }()
			return near, nil
		})
		g, s := start(t, map[string]Upstream{"quick": {Transport: local(greeter(t, "quick"))}})
		if err := g.Set("slow", Upstream{For: func(*mcp.Frame) (string, client.Transport, error) { return "ada", late, nil }}); err != nil {
			t.Fatal(err)
		}
		changed := make(chan time.Time, 10)
		c := connect(t, s, protocol.V20260728, &client.Options{Listen: &client.Filter{ToolsListChanged: true}, OnNotification: func(client.Notification) { changed <- time.Now() }})
		began := time.Now()
		if got := toolNames(t, c); len(got) != 4 || time.Since(began) != listWait {
			t.Errorf("%q after %v", got, time.Since(began))
		}
		if got := (<-changed).Sub(began); got < 7*time.Second || got > 8*time.Second {
			t.Errorf("notified after %v", got)
		}
		again := time.Now()
		if got := toolNames(t, c); len(got) != 6 || time.Since(again) != 0 {
			t.Errorf("%q after %v", got, time.Since(again))
		}
		if err := errors.Join(c.Close(), g.Close()); err != nil {
			t.Error(err)
		}
		slow.Cut(errors.New("over"))
		_ = slow.Server.Shutdown(t.Context())
	})
}

// TestWarmReplaced replaces an upstream by one that takes 7 s to connect, and by one that does
// not connect: Warm waits for both.
func TestWarmReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := backendtest.New(t, "slow", nil)
		late := client.Conn(func(ctx context.Context) (transport.Conn, error) {
			time.Sleep(7 * time.Second)
			near, far := transport.Pipe()
			go func() { _ = slow.Server.ServeConn(context.WithoutCancel(ctx), far); _ = far.Close() }()
			return near, nil
		})
		never := client.Conn(func(context.Context) (transport.Conn, error) { return nil, errors.New("no such place") })
		g, s := start(t, map[string]Upstream{"up": {Transport: local(greeter(t, "up"))}})
		began := time.Now()
		if err := errors.Join(g.Set("up", Upstream{Transport: late}), g.Warm(t.Context())); err != nil {
			t.Error(err)
		}
		took := time.Since(began)
		c := connect(t, s, protocol.V20260728, nil)
		if got := toolNames(t, c); !slices.Equal(got, []string{"up_echo", "up_sum"}) || took != 7*time.Second {
			t.Errorf("%q after %v", got, took)
		}
		if err := errors.Join(g.Set("up", Upstream{Transport: never}), g.Warm(t.Context())); err == nil || !strings.Contains(err.Error(), `server "up"`) {
			t.Errorf("got %v", err)
		}
		if err := errors.Join(g.Set("up", Upstream{For: own(slow.Server)}), g.Warm(t.Context())); err != nil || g.all()[0].For == nil {
			t.Errorf("an upstream without a list connection is not there: %v", err)
		}
		if err := errors.Join(c.Close(), g.Close()); err != nil {
			t.Error(err)
		}
		slow.Cut(errors.New("over"))
		_ = slow.Server.Shutdown(t.Context())
	})
}

// TestWarmBesideSet replaces and removes an upstream that takes 7 s to connect after 3 s, while
// Warm waits for it, before and after it has a place: Warm waits for what was set last.
func TestWarmBesideSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backendtest.New(t, "b", nil)
		late := Upstream{Transport: client.Conn(func(ctx context.Context) (transport.Conn, error) {
			if err := pause.For(ctx, 7*time.Second); err != nil {
				return nil, err
			}
			near, far := transport.Pipe()
			go func() { _ = b.Server.ServeConn(context.WithoutCancel(ctx), far); _ = far.Close() }()
			return near, nil
		})}
		never := Upstream{Transport: client.Conn(func(context.Context) (transport.Conn, error) { return nil, errors.New("no such place") })}
		g, _ := start(t, map[string]Upstream{"up": {Transport: local(greeter(t, "up"))}})
		for _, tt := range []struct {
			then              func() error
			replaced, opening string // what Warm returns, and when, if there is another upstream in place, or none
		}{
			{func() error { return g.Set("up", late) }, "10s: <nil>", "10s: <nil>"},
			{func() error { return g.Set("up", never) }, `3s: gateway: server "up": … no such place`, `7s: gateway: server "up": … no such place`},
			{func() error { g.Remove("up"); return nil }, "3s: <nil>", "3s: <nil>"},
		} {
			for i, want := range []string{tt.replaced, tt.opening} {
				g.Remove("up")
				if err := errors.Join(g.Set("up", Upstream{Transport: local(greeter(t, "up"))}), g.Warm(t.Context())); err != nil {
					t.Fatal(err)
				}
				if i == 1 {
					g.Remove("up")
				}
				began, warm := time.Now(), make(chan error)
				if err := g.Set("up", late); err != nil {
					t.Fatal(err)
				}
				go func() { warm <- g.Warm(t.Context()) }()
				time.Sleep(3 * time.Second)
				err := errors.Join(tt.then(), <-warm)
				begins, ends, _ := strings.Cut(want, "…")
				if got := fmt.Sprintf("%v: %v", time.Since(began), err); !strings.HasPrefix(got, begins) || !strings.HasSuffix(got, ends) || ends == "" && got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		b.Cut(errors.New("over"))
		_ = b.Server.Shutdown(t.Context())
	})
}

// TestAway has an upstream that goes away: its list stays, and calls say what to do, in 5 s.
func TestAway(t *testing.T) {
	for era, rev := range eras {
		t.Run(era, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := backendtest.New(t, "up", &mcp.Options{Revisions: []protocol.Revision{rev}})
				g, s := start(t, map[string]Upstream{"up": {Transport: b.Transport()}})
				c := connect(t, s, protocol.V20260728, nil)
				before := toolNames(t, c)
				call := func() string { return text(c.Call(t.Context(), "up_echo", backendtest.EchoIn{Text: "x"})) }
				b.Cut(errors.New("no route to it"))
				for _, away := range []time.Duration{0, time.Second, time.Minute, time.Hour} {
					time.Sleep(away)
					began := time.Now()
					if got := call(); !strings.HasPrefix(got, `Server "up" cannot be reached: `) || !strings.HasSuffix(got, "; try again later, or do without it.") || time.Since(began) > listWait {
						t.Errorf("after %v: %q within %v", away, got, time.Since(began))
					}
					if after := toolNames(t, c); len(before) != 2 || !slices.Equal(before, after) {
						t.Errorf("after %v: the list was %q, and is %q", away, before, after)
					}
				}
				b.Accept()
				time.Sleep(10 * time.Minute)
				if got := call(); got != "up x" {
					t.Errorf("it does not come back: %q", got)
				}
				if err := errors.Join(c.Close(), g.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestCallsInProgress has an upstream with as many calls as there may be.
func TestCallsInProgress(t *testing.T) {
	g, s := start(t, map[string]Upstream{"up": {Transport: local(greeter(t, "up"))}, "other": {Transport: local(greeter(t, "other"))}})
	u := g.owner("up_steps")
	for range maxCalls {
		u.calls <- struct{}{}
	}
	for era, rev := range eras {
		c := connect(t, s, rev, nil)
		if got := text(c.Call(t.Context(), "up_steps", greetIn{"x"})); got != `Server "up" has 256 calls in progress; try again later.` {
			t.Errorf("%s: got %q", era, got)
		}
		if got := text(c.Call(t.Context(), "other_steps", greetIn{"x"})); got != "done" {
			t.Errorf("%s: the other upstream: %q", era, got)
		}
	}
	for range maxCalls {
		<-u.calls
	}
	if got := text(connect(t, s, protocol.V20260728, nil).Call(t.Context(), "up_steps", greetIn{"x"})); got != "done" {
		t.Errorf("afterwards: %q", got)
	}
}

// TestFirstSetCounts has two upstreams with one resource: it is that of the one that was set
// first, whichever lists first.
func TestFirstSetCounts(t *testing.T) {
	open := make(chan struct{})
	reads := func(name string) *mcp.Server {
		s := newServer(t, name, nil)
		s.MustAdd(mcp.Resource("note://same", func(*mcp.Frame) (string, error) { return "of " + name, nil }))
		return s
	}
	first := reads("first")
	s := newServer(t, "front", nil)
	g := New(s, nil)
	defer func() { _ = g.Close() }()
	err := errors.Join(
		g.Set("first", Upstream{Shared: true, Transport: client.Local(func(ctx context.Context, conn transport.Conn) error { <-open; return first.ServeConn(ctx, conn) })}),
		g.Set("second", Upstream{Shared: true, Transport: local(reads("second"))}))
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, s, protocol.V20260728, nil)
	read := func() string {
		r, err := c.Read(t.Context(), "note://same")
		if err != nil {
			return err.Error()
		}
		return r.Contents[0].Text
	}
	<-g.owner("second_x").listed
	if got := read(); got != "of second" {
		t.Errorf("before the first one lists: %s", got)
	}
	close(open)
	<-g.owner("first_x").listed
	if err := g.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != "of first" {
		t.Errorf("afterwards: %s", got)
	}
	if notes := fmt.Sprint(g.Status()[1].LeftOut); !strings.Contains(notes, `"first" has it, too`) {
		t.Errorf("the status of the second one: %s", notes)
	}
}

// TestReplacement replaces an upstream by one that does not list: it comes after 30 s, and
// calls of the old one end after 30 s more.
func TestReplacement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := newServer(t, "up", nil, protocol.V20250618)
		up.MustAdd(mcp.Tool("wait", func(f *mcp.Frame, _ struct{}) (string, error) { <-f.Done(); return "", context.Cause(f) }))
		g, s := start(t, map[string]Upstream{"up": {Transport: local(up)}})
		changes := make(chan time.Time, 100)
		c := connect(t, s, protocol.V20260728, &client.Options{Listen: &client.Filter{ToolsListChanged: true}, OnNotification: func(client.Notification) { changes <- time.Now() }})
		began, ended := time.Now(), make(chan time.Duration, 1)
		toolNames(t, c)
		go func() {
			_, _ = c.Call(t.Context(), "up_wait", nil, client.Timeout(-1))
			ended <- time.Since(began)
		}()
		synctest.Wait()
		hangs := client.Local(func(ctx context.Context, _ transport.Conn) error { <-ctx.Done(); return nil })
		if err := g.Set("up", Upstream{Transport: hangs}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(29 * time.Second)
		if got := toolNames(t, c); len(got) != 1 || len(changes) != 0 {
			t.Errorf("%q after 29 s, %d changes", got, len(changes))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if at := (<-changes).Sub(began); at != changeTime || len(changes) != 0 {
			t.Errorf("a change after %v, and %d more", at, len(changes))
		}
		if took := <-ended; took != 2*changeTime {
			t.Errorf("the call ended after %v", took)
		}
		if err := errors.Join(c.Close(), g.Close()); err != nil {
			t.Error(err)
		}
	})
}
