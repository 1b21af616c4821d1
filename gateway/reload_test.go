package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/config"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// slowServer has a tool that waits a moment, over HTTP.
func slowServer(t testing.TB, name string, rev protocol.Revision) string {
	s := newServer(t, name, nil, rev)
	s.MustAdd(mcp.Tool("work", func(f *mcp.Frame, in greetIn) (string, error) {
		select {
		case <-f.Done():
			return "", context.Cause(f)
		case <-time.After(5 * time.Millisecond):
			return name + " worked for " + in.Who, nil
		}
	}), mcp.Tool("drop", func(*mcp.Frame, struct{}) (string, error) { return "", nil }))
	web := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
		defer stop()
		_ = s.Shutdown(ctx)
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL
}

// How much the tests below do.
var (
	reloads   = flag.Int("reloads", testdep.Rounds(20, 100), "changes of a file in TestApply")
	isolation = flag.Duration("isolation", time.Duration(testdep.Rounds(500, 5000))*time.Millisecond, "time of each half of TestIsolation; from 10 s on it compares latencies")
	sessions  = flag.Int("sessions", testdep.Rounds(300, 5000), "sessions in TestManySessions")
)

// TestApply changes a file while calls are in progress.
func TestApply(t *testing.T) {
	for back, behind := range eras {
		t.Run(back, func(t *testing.T) {
			steady, changing := slowServer(t, "steady", behind), slowServer(t, "changing", behind)
			g, s := start(t, nil)
			apply := func(text string) error {
				f, err := config.Parse("mcp.json", []byte(text), nil)
				if err != nil {
					return err
				}
				return g.Apply(f, nil)
			}
			file := func(n int) string {
				return fmt.Sprintf(`{"mcpServers": {"steady": {"url": %q}, "changing": {"url": %q, "headers": {"X-Round": "%d"}, "talaria": {"rules": [{"tool": "drop", "name": "drop%d"}]}},}} // as people write them`, steady, changing, n, n)
			}
			if err := apply(file(0)); err != nil {
				t.Fatal(err)
			}
			if err := g.Warm(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			var calls atomic.Int64
			var all sync.WaitGroup
			for i := range max(4, testdep.Rounds(8, 16)) {
				c := connect(t, s, []protocol.Revision{protocol.V20250618, protocol.V20260728}[i%2], nil)
				for range 4 {
					all.Go(func() {
						for ctx.Err() == nil {
							if got := text(c.Call(t.Context(), "steady_work", greetIn{"Ada"})); got != "steady worked for Ada" {
								t.Errorf("got %q", got)
								return
							}
							calls.Add(1)
						}
					})
				}
			}
			c := connect(t, s, protocol.V20260728, nil)
			changes, slowest := *reloads, time.Duration(0)
			for n := 1; n <= changes; n++ {
				began := time.Now()
				if err := apply(file(n)); err != nil {
					t.Error(err)
				}
				for want := fmt.Sprintf("changing_drop%d", n); !slices.Contains(toolNames(t, c), want); time.Sleep(5 * time.Millisecond) {
					if time.Since(began) > 20*time.Second {
						t.Fatalf("%s does not come", want)
					}
				}
				slowest = max(slowest, time.Since(began))
			}
			stop()
			all.Wait()
			if calls.Load() == 0 {
				t.Error("there were no calls")
			}
			t.Logf("%d calls of an unchanged upstream, %d changes, the slowest took %v", calls.Load(), changes, slowest)
			// What is wrong with one server costs only that one.
			err := apply(fmt.Sprintf(`{"mcpServers": {"steady": {"url": %q}, "changing": {"url": "no url"}, "bad name": {"url": %q}, "odd": {"url": %q, "talaria": {"onyl": []}},
				"typo": {"url": %q, "talaria": {"rules": [{"tool": "a"}, {"tool": "b", "fixd": {"org": 1}}]}}}}`, steady, steady, steady, steady))
			for _, want := range []string{"changing", "a name has letters", `unknown member "onyl"`, `rule 2: unknown member "fixd"`} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %v", want, err)
				}
			}
			if got := toolNames(t, c); !slices.Contains(got, fmt.Sprintf("changing_drop%d", changes)) {
				t.Errorf("a server with an error did not stay: %q", got)
			}
			if err := apply(fmt.Sprintf(`{"mcpServers": {"steady": {"url": %q}}}`, steady)); err != nil {
				t.Error(err)
			}
			if got := toolNames(t, c); !slices.Equal(got, []string{"steady_drop", "steady_work"}) {
				t.Errorf("after the removal: %q", got)
			}
		})
	}
}

// gigabyte is an HTTP server that answers each request with 1 GB.
func gigabyte(t testing.TB) string {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for part := []byte(strings.Repeat(" ", 1<<16)); ; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return web.URL
}

// bad are upstreams that hang, die each second, flood and list too much.
func bad(t testing.TB) map[string]Upstream {
	hangs := make(chan struct{})
	t.Cleanup(func() { close(hangs) })
	return map[string]Upstream{
		"hangs": {Transport: client.Local(func(ctx context.Context, _ transport.Conn) error {
			select {
			case <-ctx.Done():
			case <-hangs:
			}
			return nil
		})},
		"dies": {Transport: client.Local(func(ctx context.Context, _ transport.Conn) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			return errors.New("dead")
		})},
		"floods": {Transport: client.HTTP(gigabyte(t), nil)},
		"lists": {Transport: client.Local(answering(func(m *protocol.Message) string {
			if m.Method == "initialize" {
				return `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`
			}
			if m.Method == "tools/list" { // for ever: each page has another
				return `{"tools":[` + strings.TrimSuffix(strings.Repeat(`{"name":"a","inputSchema":{"type":"object"}},`, 20_000), ",") + `],"nextCursor":"more"}`
			}
			return ""
		}))},
	}
}

// TestIsolation has upstreams that hang, die and flood, and others whose calls must not
// fail, nor take longer than without them.
func TestIsolation(t *testing.T) {
	ups := map[string]Upstream{}
	for i := range 8 {
		name := fmt.Sprintf("good%d", i)
		ups[name] = Upstream{Transport: client.HTTP(slowServer(t, name, []protocol.Revision{protocol.V20250618, protocol.V20260728}[i%2]), nil)}
	}
	g, s := start(t, ups)
	work := func() (calls int, p99 time.Duration) {
		var all sync.WaitGroup
		var mu sync.Mutex
		var took []time.Duration
		for i := range 8 {
			c := connect(t, s, []protocol.Revision{protocol.V20250618, protocol.V20260728}[i%2], nil)
			all.Go(func() {
				for n, end := 0, time.Now().Add(*isolation); time.Now().Before(end); n++ {
					name, began := fmt.Sprintf("good%d", (i+n)%8), time.Now()
					if got := text(c.Call(t.Context(), name+"_work", greetIn{"Ada"})); got != name+" worked for Ada" {
						t.Errorf("got %q", got)
						return
					}
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
				}
			})
		}
		all.Wait()
		slices.Sort(took)
		return len(took), took[len(took)*99/100]
	}
	work() // opens connections
	before, usual := work()
	for name, u := range bad(t) {
		if err := g.Set(name, u); err != nil {
			t.Fatal(err)
		}
	}
	with, p99 := work()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d calls, p99 %v; beside bad upstreams %d calls, p99 %v; peak %d MiB", before, usual, with, p99, usage.Maxrss>>10)
	if *isolation >= 10*time.Second && p99 > 2*usual {
		t.Errorf("p99 went from %v to %v", usual, p99)
	}
	c := connect(t, s, protocol.V20260728, nil)
	r, err := c.Call(t.Context(), "dies_x", nil)
	if err != nil || !r.IsError || !strings.HasPrefix(r.Text(), `Server "dies" cannot be reached: `) || !strings.HasSuffix(r.Text(), "; try again later, or do without it.") {
		t.Errorf("got %q", text(r, err))
	}
	if got := toolNames(t, c); len(got) != 16 {
		t.Errorf("got %q", got)
	}
	// The list was waited for once.
	began := time.Now()
	toolNames(t, c)
	if took := time.Since(began); took >= listWait {
		t.Errorf("a second list took %v", took)
	}
}

// TestManySessions has more sessions than there may be connections to a legacy upstream.
func TestManySessions(t *testing.T) {
	g, s := start(t, map[string]Upstream{"up": {Transport: local(greeter(t, "up", protocol.V20250618))}})
	most := 0
	for range *sessions {
		c := connect(t, s, protocol.V20250618, nil)
		if got := text(c.Call(t.Context(), "up_steps", greetIn{"x"})); got != "done" {
			t.Fatalf("got %q", got)
		}
		g.pool.mu.Lock()
		most = max(most, len(g.pool.all))
		g.pool.mu.Unlock()
	}
	if want := min(maxConnections, *sessions); most != want {
		t.Errorf("%d connections, want %d", most, want)
	}
}

// TestManyCallers has more callers than there may be connections.
func TestManyCallers(t *testing.T) {
	up := greeter(t, "up", protocol.V20250618)
	s := newServer(t, "front", nil)
	g := New(s, &Options{Connections: 4})
	defer func() { _ = g.Close() }()
	if err := g.Set("up", Upstream{For: own(up)}); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		c := connect(t, s, protocol.V20260728, &client.Options{Info: client.Info{Name: fmt.Sprint("user", i), Version: "1"}})
		if got := text(c.Call(t.Context(), "up_steps", greetIn{"x"})); got != "done" {
			t.Errorf("got %q", got)
		}
		if n := len(g.pool.all); n > 4 {
			t.Fatalf("%d connections", n)
		}
	}
	// All are in use.
	busy := newServer(t, "busy", nil, protocol.V20250618)
	release, entered := make(chan struct{}), make(chan struct{}, 4)
	busy.MustAdd(mcp.Tool("wait", func(*mcp.Frame, struct{}) (string, error) { entered <- struct{}{}; <-release; return "", nil }))
	if err := g.Set("busy", Upstream{For: own(busy)}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 4 {
		c := connect(t, s, protocol.V20260728, &client.Options{Info: client.Info{Name: fmt.Sprint("user", i), Version: "1"}})
		all.Go(func() {
			if _, err := c.Call(t.Context(), "busy_wait", nil); err != nil {
				t.Error(err)
			}
		})
		<-entered
	}
	c := connect(t, s, protocol.V20260728, &client.Options{Info: client.Info{Name: "late", Version: "1"}})
	if got := text(c.Call(t.Context(), "busy_wait", nil)); got != `Too many callers use "busy" now; try again later.` {
		t.Errorf("got %q", got)
	}
	close(release)
	all.Wait()
}

// TestSessionsKeepTheirState has sessions of one principal, whose state at a legacy upstream
// must not mix.
func TestSessionsKeepTheirState(t *testing.T) {
	ended, logger := make(chan error, 3), zerolog.Nop()
	up := mcp.NewServer(mcp.Info{Name: "up", Version: "1"}, &mcp.Options{Revisions: []protocol.Revision{protocol.V20250618}, Logger: &logger,
		OnSessionEnd: func(_ *mcp.Frame, reason error) {
			select {
			case ended <- reason:
			default: // that of the list connection
			}
		}})
	up.MustAdd(mcp.Tool("count", func(f *mcp.Frame, _ struct{}) (int, error) {
		n, _ := f.Get("n")
		count, _ := n.(int)
		f.Set("n", count+1)
		return count + 1, nil
	}))
	g, s := start(t, map[string]Upstream{"up": {Transport: local(up)}})
	url := serveHTTP(t, s)
	for range 3 {
		c, err := client.Connect(t.Context(), bearer(url, "ada"), &client.Options{Revisions: []protocol.Revision{protocol.V20250618}})
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 3; n++ {
			if got := text(c.Call(t.Context(), "up_count", nil)); got != fmt.Sprint(n) {
				t.Errorf("got %s, want %d", got, n)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	// Connections go with their sessions.
	for range 3 {
		<-ended
	}
	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()
	if n := len(g.pool.all); n > 0 {
		t.Errorf("%d connections are left", n)
	}
}

// TestCredentials has an upstream that refuses a token until it is renewed.
func TestCredentials(t *testing.T) {
	up := newServer(t, "up", nil)
	up.MustAdd(mcp.Tool("who", func(f *mcp.Frame, _ struct{}) (string, error) { return f.Identity().Subject, nil }))
	url := serveHTTP(t, up)
	var token atomic.Value
	token.Store("bad")
	_, s := start(t, map[string]Upstream{"up": {For: func(f *mcp.Frame) (string, client.Transport, error) {
		return "caller", bearer(url, token.Load().(string)), nil
	}}})
	c := connect(t, s, protocol.V20260728, nil)
	if got := text(c.Call(t.Context(), "up_who", nil)); !strings.Contains(got, `Server "up" cannot be reached`) {
		t.Errorf("got %q", got)
	}
	token.Store("ada")
	for range 2 {
		if got := text(c.Call(t.Context(), "up_who", nil)); got != "ada" {
			t.Errorf("got %q", got)
		}
	}
	_, s = start(t, map[string]Upstream{"up": {For: func(*mcp.Frame) (string, client.Transport, error) { return "", bearer(url, "ada"), nil }}})
	c = connect(t, s, protocol.V20260728, nil)
	if got := text(c.Call(t.Context(), "up_who", nil)); got != `gateway: For of "up" named no caller` {
		t.Errorf("got %q", got)
	}
	for _, end := range []func(){func() { panic("for") }, runtime.Goexit} {
		_, s = start(t, map[string]Upstream{"up": {For: func(*mcp.Frame) (string, client.Transport, error) { end(); return "x", nil, nil }}})
		c = connect(t, s, protocol.V20260728, nil)
		if r, err := c.Call(t.Context(), "up_who", nil); err != nil || !r.IsError {
			t.Errorf("got %q", text(r, err))
		}
		if got := toolNames(t, c); len(got) != 0 {
			t.Errorf("got %q", got)
		}
	}
}

// BenchmarkCall compares calls through a gateway with direct ones. GATEWAY_STDIO names a
// server that speaks over standard input and output, and has the tool echo.
func BenchmarkCall(b *testing.B) {
	up := greeter(b, "up")
	front := newServer(b, "front", nil)
	g := New(front, nil)
	defer func() { _ = g.Close() }()
	t := local(up)
	if name := os.Getenv("GATEWAY_STDIO"); name != "" {
		t = client.Command(name)
	}
	if err := g.Set("up", Upstream{Transport: t}); err != nil {
		b.Fatal(err)
	}
	if err := g.Warm(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, way := range []struct {
		name, tool string
		t          client.Transport
	}{{"direct", "echo", t}, {"gateway", "up_echo", local(front)}} {
		b.Run(way.name, func(b *testing.B) {
			c, err := client.Connect(b.Context(), way.t, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Call(b.Context(), way.tool, json.RawMessage(`{"who":"Ada"}`)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
