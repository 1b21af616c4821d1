package client

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// crashing plays a server that ends its connection after each call of crash.
func crashing(t *testing.T, rev string) *testTransport {
	return scripted(t, func(s *script) {
		if rev == "2026-07-28" {
			s.modernHello()
		} else {
			s.legacyHello(rev)
		}
		for h := s.next(); h != nil; h = s.next() {
			switch {
			case strings.Contains(h.raw, `"crash"`):
				return
			case h.Method == "subscriptions/listen":
				s.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"toolsListChanged":true}}}`, h.ID)
				s.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, h.ID)
			case h.Method == "tools/list":
				s.result(h, `{"resultType":"complete","tools":[{"name":"crash","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}`)
			case len(h.ID) > 0:
				s.result(h, `{"resultType":"complete","content":[{"type":"text","text":"alive"}]}`)
			}
		}
	})
}

func exactly() *Backoff { return &Backoff{Jitter: -1} }

// A call waits for a connection as long as ReconnectWait says.
func TestReconnectWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := only(protocol.V20260728)
		opts.Reconnect, opts.ReconnectWait = exactly(), 100*time.Millisecond
		c := connect(t, crashing(t, "2026-07-28"), opts)
		if _, err := c.Call(t.Context(), "crash", nil); !errors.Is(err, ErrConnection) {
			t.Errorf("crash: %v", err)
		}
		began := time.Now()
		if _, err := c.Call(t.Context(), "other", nil); !errors.Is(err, ErrTimeout) || time.Since(began) != opts.ReconnectWait {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := c.WaitReady(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A server that crashed is started again; what was under way fails at once
// unless sending it again is safe.
func TestReconnect(t *testing.T) {
	for _, rev := range []string{"2025-06-18", "2026-07-28"} {
		t.Run(rev, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				known, _ := protocol.ParseRevision(rev)
				var mu sync.Mutex
				var states []State
				opts := only(known)
				opts.Reconnect = exactly()
				opts.OnState = func(s State, _ error) {
					mu.Lock()
					states = append(states, s)
					mu.Unlock()
				}
				c := connect(t, crashing(t, rev), opts)
				_, err := c.Call(t.Context(), "crash", nil)
				if !errors.Is(err, ErrConnection) || !Retriable(err) {
					t.Errorf("crash: %v", err)
				}
				if c.State() != StateDisconnected {
					t.Errorf("state %v", c.State())
				}
				short, stop := context.WithTimeout(t.Context(), time.Second/2)
				defer stop()
				for what, wait := range map[string]func() error{
					"a call":    func() error { _, err := c.Call(short, "other", nil); return err },
					"WaitReady": func() error { return c.WaitReady(short) },
				} {
					if err := wait(); !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "while the client reconnects after: ") || errors.Is(err, ErrConnection) {
						t.Errorf("%s that waits for half a second: %v", what, err)
					}
				}
				begin := time.Now()
				r, err := c.Call(t.Context(), "other", nil) // waits
				if err != nil || r.Text() != "alive" || time.Since(begin) != time.Second/2 {
					t.Errorf("afterwards: %+v, %v after %v", r, err, time.Since(begin))
				}
				if err := c.WaitReady(t.Context()); err != nil || c.Stats().Reconnects != 1 {
					t.Errorf("WaitReady: %v, stats %+v", err, c.Stats())
				}
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				want := []State{StateConnecting, StateInitializing, StateReady, StateDisconnected, StateConnecting, StateInitializing, StateReady}
				if !slices.Equal(states, want) {
					t.Errorf("states %v", states)
				}
			})
		})
	}
}

// Marked as harmless, the same call is sent again, and once.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		calls := 0
		tr := scripted(t, func(s *script) {
			s.legacyHello("2025-06-18")
			h := s.next()
			if h == nil {
				return
			}
			mu.Lock()
			calls++
			n := calls
			mu.Unlock()
			if n%2 == 1 {
				return // crash
			}
			s.result(h, `{"content":[]}`)
			s.drain()
		})
		opts := *legacy
		c := connect(t, tr, &opts)
		if _, err := c.Call(t.Context(), "x", nil, Idempotent()); err != nil {
			t.Errorf("idempotent: %v", err)
		}
		if _, err := connect(t, tr, &opts).Call(t.Context(), "x", nil, Idempotent(), Retry(1)); !errors.Is(err, ErrConnection) {
			t.Errorf("NoRetry: %v", err)
		}
		if calls != 3 {
			t.Errorf("the server saw %d calls", calls)
		}
	})
}

// What the client listens to it listens to again.
func TestListenSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, crashing(t, "2026-07-28"), modernOptions())
		heard := make(chan Notification, 4)
		sub, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true}, func(e Notification) { heard <- e })
		if err != nil {
			t.Fatal(err)
		}
		<-heard
		if _, err := c.Call(t.Context(), "crash", nil); !errors.Is(err, ErrConnection) {
			t.Errorf("crash: %v", err)
		}
		<-heard
		if sub.Err() != nil {
			t.Errorf("Err %v", sub.Err())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if !errors.Is(sub.Err(), ErrClosed) {
			t.Errorf("Err after Close: %v", sub.Err())
		}
	})
}

// The attempts take n² seconds, 15 at most, and end.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var dials []time.Duration
		begin := time.Now()
		broken := false
		good := crashing(t, "2025-06-18")
		tr := &testTransport{"memory:broken", func(ctx context.Context) (transport.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			dials = append(dials, time.Since(begin))
			if broken {
				return nil, errors.New("connection refused")
			}
			broken = true
			return good.dial(ctx)
		}}
		opts := *legacy
		opts.Reconnect = exactly()
		c := connect(t, tr, &opts)
		if _, err := c.Call(t.Context(), "crash", nil); !errors.Is(err, ErrConnection) {
			t.Errorf("crash: %v", err)
		}
		waiting := make(chan error, 1)
		go func() { // reading is safe: it waits for the connection
			_, err := c.Call(t.Context(), "other", nil, Timeout(-1))
			waiting <- err
		}()
		if err := <-waiting; !errors.Is(err, ErrConnection) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("who waited got %v", err)
		}
		if c.State() != StateDisconnected {
			t.Errorf("state %v", c.State())
		}
		if err := c.WaitReady(t.Context()); !errors.Is(err, ErrConnection) {
			t.Errorf("WaitReady: %v", err)
		}
		want := []time.Duration{0, 1, 5, 14, 29, 44} // seconds
		for i := range want {
			want[i] *= time.Second
		}
		if !slices.Equal(dials, want) {
			t.Errorf("dialled after %v", dials)
		}
		broken = false
		if err := c.Reconnect(t.Context()); err != nil || c.State() != StateReady {
			t.Errorf("Reconnect: %v, state %v", err, c.State())
		}
	})
}

func TestBackoffWait(t *testing.T) {
	b := &Backoff{Base: time.Second, Max: 10 * time.Second, Attempts: -1, Jitter: 0.5}
	for n := 1; n < 100; n++ {
		d, ok := b.wait(n)
		middle := min(time.Duration(n*n)*time.Second, 10*time.Second)
		if !ok || d < middle/2 || d > middle*3/2 {
			t.Errorf("attempt %d waits %v, %v", n, d, ok)
		}
	}
}

// expiring plays legacy HTTP: the session ends before the first call. The tool
// has that hint.
func expiring(hint string) *fakeHTTP {
	calls := 0
	return &fakeHTTP{name: "http://fake", respond: func(l *fakeLink, _ context.Context, m *link.Message) error {
		switch m.Method {
		case protocol.MethodInitialize:
			l.answer(m, fakeInitialize)
		case protocol.MethodToolsList:
			l.answer(m, `{"tools":[{"name":"x","inputSchema":{"type":"object"},"annotations":{`+hint+`}}]}`)
		case protocol.MethodToolsCall:
			if calls++; calls == 1 || strings.Contains(string(m.Body), "always") {
				return link.ErrSession
			}
			l.answer(m, `{"content":[{"type":"text","text":"done"}]}`)
		}
		return nil
	}}
}

// An expired session is followed by a new one, and the call by its like only
// where that is safe.
func TestSessionExpiry(t *testing.T) {
	const again = "initialize notifications/initialized tools/call initialize notifications/initialized tools/call"
	tests := []struct {
		name, tool string
		hint       string
		options    []CallOption
		fails      bool
		want       string
	}{
		{"safe", "x", "", []CallOption{Idempotent()}, false, again},
		{"unsafe", "x", "", nil, true, strings.TrimSuffix(again, " tools/call")},
		{"safe, but not wanted", "x", "", []CallOption{Idempotent(), Retry(1)}, true, strings.TrimSuffix(again, " tools/call")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := expiring(tt.hint)
			opts := *legacy
			c := connect(t, tr, &opts)
			r, err := c.Call(t.Context(), tt.tool, nil, tt.options...)
			if tt.fails != errors.Is(err, ErrSessionExpired) || !tt.fails && (err != nil || r.Text() != "done") {
				t.Errorf("%+v, %v", r, err)
			}
			if got := strings.Join(tr.sent(), " "); got != tt.want {
				t.Errorf("sent %s, want %s", got, tt.want)
			}
			if c.State() != StateReady {
				t.Errorf("state %v", c.State())
			}
		})
	}
}

// A tool whose hints say so is safe; a session that always ends is not an
// endless loop.
func TestSessionExpiryHints(t *testing.T) {
	tr := expiring(`"readOnlyHint":true`)
	opts := *legacy
	c := connect(t, tr, &opts)
	if _, err := c.Tool(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Call(t.Context(), "x", nil); err != nil || r.Text() != "done" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := c.Call(t.Context(), "x", map[string]bool{"always": true}); !errors.Is(err, ErrSessionExpired) || !Retriable(err) {
		t.Errorf("always: %v", err)
	}
}

// Many that find the session expired share one new one.
func TestSessionExpiryShared(t *testing.T) {
	var mu sync.Mutex
	sessions := 0
	tr := &fakeHTTP{name: "http://fake", respond: func(l *fakeLink, _ context.Context, m *link.Message) error {
		mu.Lock()
		defer mu.Unlock()
		switch m.Method {
		case protocol.MethodInitialize:
			sessions++
			l.answer(m, fakeInitialize)
		case protocol.MethodToolsCall:
			if sessions == 1 {
				return link.ErrSession
			}
			l.answer(m, `{"content":[]}`)
		}
		return nil
	}}
	opts := *legacy
	c := connect(t, tr, &opts)
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			if _, err := c.Call(t.Context(), "x", nil, Idempotent()); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if sessions != 2 {
		t.Errorf("%d sessions", sessions)
	}
}

func TestCloseTwice(t *testing.T) {
	c := connect(t, serving(t, fixture(t, nil)), nil)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error("second Close:", err)
	}
}

// Close ends in bounded time even if the server neither reads nor ends, and
// while subscriptions and calls are open.
func TestCloseSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ends []transport.Conn
		tr := &testTransport{"memory:stuck", func(context.Context) (transport.Conn, error) {
			near, far := transport.Pipe()
			ends = append(ends, far)
			s := &script{t, far}
			go s.modernHello() // and never again
			return near, nil
		}}
		c, err := Connect(t.Context(), tr, modernOptions())
		if err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		for range 200 { // more than the pipe holds
			calls.Go(func() {
				if _, err := c.Call(t.Context(), "x", nil, Timeout(time.Hour)); !errors.Is(err, ErrClosed) {
					t.Errorf("error %v", err)
				}
			})
		}
		calls.Go(func() {
			if _, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true}, nil); !errors.Is(err, ErrClosed) {
				t.Errorf("Listen: %v", err)
			}
		})
		synctest.Wait()
		begin := time.Now()
		_ = c.Close() // how it ended is not the point
		if took := time.Since(begin); took > 2*c.opts.CloseTimeout {
			t.Errorf("Close took %v", took)
		}
		calls.Wait()
		_ = ends[0].Close()
	})
}

// The end of a client leaves no goroutine behind.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		c, err := Connect(t.Context(), crashing(t, "2026-07-28"), modernOptions())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true}, nil); err != nil {
			t.Error(err)
		}
		_, _ = c.Call(t.Context(), "crash", nil) // it reconnects while it is closed
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	for limit := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(limit); {
		runtime.Gosched() // the server's own end a little later
	}
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines, %d before", now, before)
	}
}

// A server that ends right after the handshake is not started again and again
// without rest; once it lives, the next loss is waited for as the first one.
func TestCrashLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var dials []time.Duration
		ill, well := scripted(t, func(s *script) {
			s.legacyHello("2025-06-18")
			synctest.Wait() // the client has sent all that it has to say
		}), crashing(t, "2025-06-18")
		tr := &testTransport{"memory:ill", func(ctx context.Context) (transport.Conn, error) {
			dials = append(dials, time.Since(begin).Round(time.Second))
			if time.Since(begin) > 100*time.Second {
				return well.dial(ctx)
			}
			return ill.dial(ctx)
		}}
		opts := *legacy
		opts.Reconnect = exactly()
		c := connect(t, tr, &opts)
		time.Sleep(3 * time.Minute)
		if _, err := c.Call(t.Context(), "crash", nil); !errors.Is(err, ErrConnection) {
			t.Errorf("crash: %v", err)
		}
		if _, err := c.Call(t.Context(), "alive", nil); err != nil {
			t.Errorf("after the crash: %v", err)
		}
		want := []time.Duration{0, 1, 5, 14, 29, 44, 59, 74, 89, 104, 181} // seconds
		for i := range want {
			want[i] *= time.Second
		}
		if !slices.Equal(dials, want) {
			t.Errorf("dialled after %v, want %v", dials, want)
		}
	})
}
