package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/clients/subscriptions"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// TestWatchesStay has a client that watches a resource: it is notified after its connection
// was idle, others needed room, and another connection has come.
func TestWatchesStay(t *testing.T) {
	for back, behind := range eras {
		for front, rev := range eras {
			t.Run(back+"/"+front, func(t *testing.T) {
				up := greeter(t, "up", behind)
				s := newServer(t, "front", nil)
				g := New(s, &Options{Connections: 3})
				defer func() { _ = g.Close() }()
				if err := g.Set("up", Upstream{For: func(f *mcp.Frame) (string, client.Transport, error) { return f.ClientInfo().Name, local(up), nil }}); err != nil {
					t.Fatal(err)
				}
				dial := func(name string) *client.Client {
					return connect(t, s, rev, &client.Options{Info: client.Info{Name: name, Version: "1"}})
				}
				call := func(c *client.Client) {
					t.Helper()
					if got := text(c.Call(t.Context(), "up_steps", greetIn{"x"})); got != "done" {
						t.Errorf("got %q", got)
					}
				}
				c := dial("ada")
				call(c)
				updated := make(chan struct{}, 100)
				sub, err := c.Listen(t.Context(), client.Filter{ResourceSubscriptions: []string{"note://up"}}, func(client.Notification) { updated <- struct{}{} })
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = sub.Close() }()
				pooled := func() (all []*connection) {
					g.pool.each(g.all()[0], func(c *connection) { all = append(all, c) })
					return all
				}
				for _, step := range []struct {
					name string
					do   func()
				}{
					{"nothing", func() {}},
					{"idle time", func() {
						before := pooled()
						g.pool.sweep(time.Now().Add(time.Hour))
						for _, c := range before {
							if !slices.Contains(pooled(), c) {
								<-c.ended
							}
						}
					}},
					{"other callers", func() {
						for i := range 5 {
							call(dial(fmt.Sprint("user", i)))
						}
					}},
					{"a renewal", func() {
						for _, c := range pooled() {
							g.pool.drop(c, true)
						}
						call(c)
					}},
				} {
					step.do()
					up.ResourceUpdated("note://up")
					select {
					case <-updated:
					case <-time.After(10 * time.Second):
						t.Fatalf("after %s the client is not notified", step.name)
					}
				}
				// A connection without a watched resource ends first.
				g.pool.sweep(time.Now().Add(time.Hour))
				if n := len(g.pool.all); n != 1 || len(g.pool.left) != 0 {
					t.Errorf("%d connections are left, and %d closed ones", n, len(g.pool.left))
				}
			})
		}
	}
}

// TestFollow has sets that take each other's resources over.
func TestFollow(t *testing.T) {
	var a, b subscriptions.Recent
	for i := range 10 {
		a.Want(fmt.Sprint("a:", i), "", 10)
	}
	for range 3 {
		b.Want("b:own", "", 10)
		b.Want("a:3", "", 10)
		b.Follow(&a, 10)
	}
	if got, want := fmt.Sprint(b.Wanted()), "[a:1 a:2 a:4 a:5 a:6 a:7 a:8 a:9 b:own a:3]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A client that subscribes to more than there is room for takes the place of none with fewer.
func TestOwnersMakeRoom(t *testing.T) {
	for name, tt := range map[string]struct{ wants, want string }{
		"one owner":             {"a:1 a:2 a:3 a:4 a:5", "2 3 4 5"},
		"again":                 {"a:1 a:2 a:3 a:4 a:1 a:5", "3 4 1 5"},
		"a flood":               {"b:1 b:2 a:3 a:4 a:5 a:6 a:7 a:8", "1 2 7 8"},
		"a flood before":        {"a:3 a:4 a:5 a:6 b:1 b:2", "5 6 1 2"},
		"the same resource":     {"b:1 a:1 a:2 a:3 a:4 a:5 a:6", "1 4 5 6"},
		"the same, wanted late": {"a:1 b:1 a:2 a:3 a:4 a:5 a:6", "1 4 5 6"},
		"three":                 {"b:1 c:2 a:3 a:4 a:5 a:6 a:7", "1 2 6 7"},
		"without a name":        {":1 a:2 a:3 a:4 a:5 a:6", "1 4 5 6"},
	} {
		var r subscriptions.Recent
		for one := range strings.FieldsSeq(tt.wants) {
			owner, uri, _ := strings.Cut(one, ":")
			before := r.Wanted()
			oldest := r.Want(uri, owner, 4)
			for _, had := range before {
				if gone := !slices.Contains(r.Wanted(), had); gone != (had == oldest) {
					t.Errorf("%s: after %s %q is gone: %t, and %q made room", name, one, had, gone, oldest)
				}
			}
		}
		if got := strings.Join(r.Wanted(), " "); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

// A caller with many connections closes none that watches for a caller with fewer.
func TestCallersMakeRoom(t *testing.T) {
	for name, tt := range map[string]struct {
		have   string // caller and use of each connection, the oldest first: busy, watching or idle
		caller string
		gone   string // "" if there is no room, and "-" if nothing has to go
	}{
		"room":                        {"a:w a:b", "a", "-"},
		"half of all":                 {"a:w a:w a:w a:w", "a", "a0"},
		"half of all, unused first":   {"a:w a:i a:w a:w", "a", "a1"},
		"half of all, in use":         {"a:b a:b a:b a:b", "a", ""},
		"half of all, another idle":   {"b:i a:b a:b a:b a:b", "a", ""},
		"without a name":              {":w :w :w :w :w", "", "-"},
		"full, without a name":        {":w :w :w :w :w :w :w :w", "", "0"},
		"full, watching for fewer":    {"b:w a:b a:b a:b c:b c:b c:w d:w", "a", "c6"},
		"full, one idle":              {"b:i a:b a:b a:b c:b c:b c:w d:w", "a", "b0"},
		"full, all others have fewer": {"b:w a:b a:b a:b c:b c:b d:w d:w", "a", ""},
		"full, a new one":             {"b:w a:b a:b a:b c:b c:b d:w d:w", "e", "b0"},
		"full, all in use":            {"b:b a:b a:b a:b c:b c:b d:b d:b", "e", ""},
	} {
		p := pool{max: 8, all: map[poolKey]*connection{}, left: map[poolKey]*connection{}}
		gone := "-"
		for i, one := range strings.Fields(tt.have) {
			caller, use, _ := strings.Cut(one, ":")
			c := &connection{used: time.Unix(int64(i), 0), cancel: func() { gone = fmt.Sprint(caller, i) }}
			c.is.Store(&connKey{caller: caller, session: fmt.Sprint(i)})
			switch use {
			case "b":
				c.busy = 1
			case "w":
				c.watched.Want("x://y", caller, maxWatched)
			}
			p.all[poolKey{nil, c.key()}] = c
		}
		if !p.room(tt.caller) {
			gone = ""
		}
		if gone != tt.gone {
			t.Errorf("%s: %q is closed, want %q", name, gone, tt.gone)
		}
	}
}

// counting is a legacy upstream with a resource, that counts the requests for lists of tools.
// A method of hangs has no answer until the connection ends.
func counting(lists *atomic.Int64, hangs ...string) client.Transport {
	return client.Local(func(ctx context.Context, conn transport.Conn) error {
		return answering(func(m *protocol.Message) string {
			for _, method := range hangs {
				if m.Method == method {
					<-ctx.Done()
				}
			}
			switch m.Method {
			case protocol.MethodInitialize:
				return `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"serverInfo":{"name":"raw","version":"1"}}`
			case protocol.MethodToolsList:
				lists.Add(1)
				return `{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`
			case protocol.MethodResourcesList:
				return `{"resources":[{"uri":"note://raw","name":"raw"}]}`
			case protocol.MethodSubscribe, protocol.MethodUnsubscribe:
				return `{}`
			}
			return ""
		})(ctx, conn)
	})
}

// TestListedOnce counts the lists that new connections ask for.
func TestListedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lists atomic.Int64
		g, s := start(t, map[string]Upstream{"up": {Transport: counting(&lists)}})
		for range 3 {
			began := time.Now()
			if got := toolNames(t, connect(t, s, protocol.V20250618, nil)); len(got) != 1 {
				t.Errorf("got %q", got)
			}
			if took := time.Since(began); took != 0 {
				t.Errorf("the list took %v", took)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := lists.Load(); n != 4 {
			t.Errorf("%d lists of the upstream, want one for each session, and that of the list connection", n)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestOneWaitForChanges has upstreams that notify of changes and list none.
func TestOneWaitForChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ups, lists := map[string]Upstream{}, make([]atomic.Int64, 3)
		for i := range lists {
			ups[fmt.Sprint("up", i)] = Upstream{Shared: true, Transport: counting(&lists[i])}
		}
		g, s := start(t, ups)
		c := connect(t, s, protocol.V20250618, nil)
		time.Sleep(time.Second)
		for _, u := range g.all() {
			u.list.changes.Add(1)
		}
		began := time.Now()
		if got := toolNames(t, c); len(got) != 3 {
			t.Errorf("got %q", got)
		}
		if took := time.Since(began); took != changeWait {
			t.Errorf("the list took %v, want %v", took, changeWait)
		}
		if err := errors.Join(c.Close(), g.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestUnsubscribeWaits ends subscriptions of sessions with an upstream that does not answer.
func TestUnsubscribeWaits(t *testing.T) {
	for _, test := range []struct {
		name  string
		hangs []string
		other bool // an upstream with nothing of it is opening
		want  time.Duration
	}{
		{"all answer", nil, false, 0},
		{"another upstream is opening", nil, true, 0},
		{"the upstream hangs", []string{protocol.MethodUnsubscribe}, false, listWait},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lists atomic.Int64
				g, s := start(t, map[string]Upstream{"up": {Transport: counting(&lists, test.hangs...)}})
				c := connect(t, s, protocol.V20250618, nil)
				sub, err := c.Listen(t.Context(), client.Filter{ResourceSubscriptions: []string{"note://raw"}}, nil)
				if err != nil || len(sub.Accepted().ResourceSubscriptions) != 1 {
					t.Fatalf("got %v", err)
				}
				if test.other {
					opening := client.Local(func(ctx context.Context, _ transport.Conn) error { <-ctx.Done(); return nil })
					if err := g.Set("other", Upstream{For: func(*mcp.Frame) (string, client.Transport, error) { return "ada", opening, nil }}); err != nil {
						t.Fatal(err)
					}
					if got := toolNames(t, c); len(got) != 1 {
						t.Errorf("got %q", got)
					}
				}
				began := time.Now()
				if err := sub.Close(); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took != test.want {
					t.Errorf("it took %v, want %v", took, test.want)
				}
				if err := errors.Join(c.Close(), g.Close()); err != nil && !strings.Contains(err.Error(), "closed") {
					t.Error(err)
				}
			})
		})
	}
}

// TestIdle has callers that do not come back: their connections end after Options.Idle.
func TestIdle(t *testing.T) {
	for idle, want := range map[time.Duration]time.Duration{0: idleTime, 20 * time.Second: 20 * time.Second, time.Hour: time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			up := greeter(t, "up", protocol.V20250618)
			s := newServer(t, "front", nil)
			g := New(s, &Options{Idle: idle})
			defer func() { _ = g.Close() }()
			if err := g.Set("up", Upstream{For: func(f *mcp.Frame) (string, client.Transport, error) { return f.ClientInfo().Name, local(up), nil }}); err != nil {
				t.Fatal(err)
			}
			for i := range 5 {
				c, err := client.Connect(t.Context(), local(s), &client.Options{Info: client.Info{Name: fmt.Sprint("user", i), Version: "1"}})
				if err != nil {
					t.Fatal(err)
				}
				if got := text(c.Call(t.Context(), "up_steps", greetIn{"x"})); got != "done" {
					t.Errorf("got %q", got)
				}
				defer func() { _ = c.Close() }()
			}
			open := func() int {
				g.pool.mu.Lock()
				defer g.pool.mu.Unlock()
				return len(g.pool.all)
			}
			time.Sleep(want - time.Second)
			if n := open(); n != 5 {
				t.Errorf("%v: %d connections too early", idle, n)
			}
			time.Sleep(2*time.Second + min(want, sweepEvery))
			if n := open(); n != 0 {
				t.Errorf("%v: %d connections are left", idle, n)
			}
		})
	}
}

// TestShare: the connection of a session to an upstream that has become modern has the key by
// which upstream.key finds it, so that it is not left over when the session ends.
func TestShare(t *testing.T) {
	for name, c := range map[string]struct {
		each      bool
		was, want connKey
	}{
		"a session":          {false, connKey{caller: "ada", session: "1", caps: "{}"}, connKey{modern: true, caps: "{}"}},
		"stdio":              {false, connKey{stdio: true, caps: "{}"}, connKey{modern: true, caps: "{}"}},
		"a session with For": {true, connKey{caller: "ada", session: "1", caps: "{}"}, connKey{modern: true, caller: "ada", caps: "{}"}},
	} {
		u := &upstream{}
		if c.each {
			u.For = func(*mcp.Frame) (string, client.Transport, error) { return "ada", nil, nil }
		}
		p := &pool{max: 10, all: map[poolKey]*connection{}}
		first, second := &connection{upstream: u}, &connection{upstream: u}
		first.is.Store(&c.was)
		p.all[poolKey{u, c.was}] = first
		p.share(first)
		if got := p.find(u, c.want); got != first || len(p.all) != 1 || first.key() != c.want {
			t.Errorf("%s: the key is %+v", name, first.key())
		}
		second.is.Store(&c.was) // of another session; the key is taken
		p.all[poolKey{u, c.was}] = second
		p.share(second)
		if p.find(u, c.was) != second || p.find(u, c.want) != first {
			t.Errorf("%s: the second connection has %+v", name, second.key())
		}
	}
}
