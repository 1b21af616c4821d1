package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// in runs a test of calls with fake time, against a server that test plays.
func in(t *testing.T, opts *Options, play func(s *script), test func(t *testing.T, c *Client)) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{}
		if opts != nil {
			o = *opts
		}
		o.Revisions = []protocol.Revision{protocol.V20250618}
		o.NoReconnect = true
		c, err := Connect(t.Context(), scripted(t, func(s *script) {
			s.legacyHello("2025-06-18")
			play(s)
		}), &o)
		if err != nil {
			t.Fatal(err)
		}
		test(t, c)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestTimeout(t *testing.T) {
	silent := func(s *script) {
		s.next()
		if h := s.next(); h.Method != "notifications/cancelled" || !strings.Contains(string(h.Params), `"requestId":2`) {
			s.t.Errorf("after the timeout the client sent %s", h.raw)
		}
		s.drain()
	}
	tests := []struct {
		name    string
		opts    *Options
		options []CallOption
		want    time.Duration
	}{
		{"default", nil, nil, 30 * time.Second},
		{"of the client", &Options{Timeout: time.Minute}, nil, time.Minute},
		{"of the call", &Options{Timeout: time.Minute}, []CallOption{Timeout(time.Second)}, time.Second},
		{"maximum", nil, []CallOption{Timeout(-1)}, 10 * time.Minute},
		{"maximum of the client", &Options{MaxTimeout: time.Second}, nil, time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in(t, tt.opts, silent, func(t *testing.T, c *Client) {
				begin := time.Now()
				_, err := c.Call(t.Context(), "x", nil, tt.options...)
				if !errors.Is(err, ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || !Retriable(err) || time.Since(begin) != tt.want {
					t.Errorf("%v after %v", err, time.Since(begin))
				}
				if stats := c.Stats(); stats.TimedOut != 1 || stats.Pending != 0 {
					t.Errorf("stats %+v", stats)
				}
			})
		})
	}
}

// Progress starts the clock anew, but not for ever.
func TestProgressResets(t *testing.T) {
	in(t, &Options{MaxTimeout: time.Minute}, func(s *script) {
		h := s.next()
		if !strings.Contains(string(h.Params), `"progressToken":2`) {
			t.Errorf("params %s", h.Params)
		}
		for i := range 6 {
			time.Sleep(20 * time.Second)
			s.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":%d}}`, i)
		}
		s.drain()
	}, func(t *testing.T, c *Client) {
		begin := time.Now()
		if _, err := c.Call(t.Context(), "x", nil); !errors.Is(err, ErrTimeout) || time.Since(begin) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

func TestContext(t *testing.T) {
	gone := errors.New("the user left")
	in(t, nil, func(s *script) { s.drain() }, func(t *testing.T, c *Client) {
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			time.Sleep(time.Second)
			cancel(gone)
		}()
		if _, err := c.Call(ctx, "x", nil); !errors.Is(err, ErrCancelled) || !errors.Is(err, gone) {
			t.Errorf("cancelled: %v", err)
		}
		if _, err := c.Call(ctx, "x", nil); !errors.Is(err, ErrCancelled) {
			t.Errorf("cancelled before: %v", err)
		}
		deadline, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := c.Call(deadline, "x", nil); !errors.Is(err, ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("deadline: %v", err)
		}
	})
}

// All pending calls can be cancelled, and the server hears of each.
func TestCancelPending(t *testing.T) {
	cancelled := make(chan string, 2)
	in(t, nil, func(s *script) {
		for h := s.next(); h != nil; h = s.next() {
			if h.Method == "notifications/cancelled" {
				cancelled <- string(h.Params)
			}
		}
	}, func(t *testing.T, c *Client) {
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				_, err := c.Call(t.Context(), "x", nil)
				if !errors.Is(err, ErrCancelled) || !strings.Contains(err.Error(), "batch cancellation") {
					t.Errorf("error %v", err)
				}
			})
		}
		synctest.Wait()
		pending := c.Pending()
		if len(pending) != 2 || pending[0].Method != "tools/call" || pending[0].Name != "x" {
			t.Errorf("pending %+v", pending)
		}
		for _, p := range pending {
			if err := c.Cancel(p.ID, "batch cancellation"); err != nil {
				t.Error(err)
			}
		}
		calls.Wait()
		for range 2 {
			if params := <-cancelled; !strings.Contains(params, `"reason":"batch cancellation"`) {
				t.Errorf("params %s", params)
			}
		}
		if err := c.Cancel(protocol.NewID("nope"), ""); !errors.Is(err, ErrNotFound) {
			t.Errorf("Cancel of nothing: %v", err)
		}
	})
}

// CancelAll ends every call, and neither a subscription nor what begins later.
func TestCancelAll(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20241105, protocol.V20251125, protocol.V20260728} {
		t.Run(rev.String(), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { cancelAll(t, rev) }) })
	}
}

func cancelAll(t *testing.T, rev protocol.Revision) {
	cancelled := make(chan string, 3)
	c, err := Connect(t.Context(), scripted(t, func(s *script) {
		if rev.Modern() {
			s.modernHello()
		} else {
			s.legacyHello(rev.String())
		}
		for h := s.next(); h != nil; h = s.next() {
			switch h.Method {
			case "notifications/cancelled":
				cancelled <- string(h.Params)
			case "subscriptions/listen":
				s.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"toolsListChanged":true}}}`, h.ID)
			case "resources/read":
				s.result(h, `{"contents":[],"resultType":"complete"}`)
			}
		}
	}), &Options{Revisions: []protocol.Revision{rev}, NoReconnect: true, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.CancelAll("none"); len(got) != 0 {
		t.Errorf("cancelled %+v before there was anything", got)
	}
	sub, err := c.Listen(t.Context(), Filter{ToolsListChanged: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	before := c.Stats()
	var calls sync.WaitGroup
	for i := range 3 {
		calls.Go(func() {
			time.Sleep(time.Duration(i) * time.Second) // of the bubble
			_, err := c.Call(t.Context(), fmt.Sprint("x", i), nil)
			if !errors.Is(err, ErrCancelled) || !strings.Contains(err.Error(), "the user left") {
				t.Errorf("error %v", err)
			}
		})
	}
	time.Sleep(5 * time.Second)
	got := c.CancelAll("the user left")
	calls.Wait()
	if len(got) != 3 || got[0].Name != "x0" || got[2].Name != "x2" || got[0].Method != "tools/call" {
		t.Errorf("cancelled %+v", got)
	}
	for range 3 {
		if params := <-cancelled; !strings.Contains(params, `"reason":"the user left"`) {
			t.Errorf("params %s", params)
		}
	}
	select {
	case <-sub.Done():
		t.Error("the subscription ended")
	default:
	}
	if stats := c.Stats(); stats.Cancelled != 3 || stats.Pending != before.Pending {
		t.Errorf("stats %+v, before %+v", stats, before)
	}
	if _, err := c.Read(t.Context(), "x://later"); err != nil {
		t.Errorf("a call after CancelAll: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestCancelOne(t *testing.T) {
	in(t, nil, func(s *script) { s.drain() }, func(t *testing.T, c *Client) {
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := c.Call(t.Context(), "x", nil); !errors.Is(err, ErrCancelled) {
				t.Errorf("error %v", err)
			}
		})
		synctest.Wait()
		time.Sleep(time.Second)
		pending := c.Pending()
		if len(pending) != 1 || time.Since(pending[0].Start) != time.Second {
			t.Fatalf("pending %+v", pending)
		}
		if err := c.Cancel(pending[0].ID, "enough"); err != nil {
			t.Error(err)
		}
		calls.Wait()
	})
}

func TestServerCancels(t *testing.T) {
	in(t, nil, func(s *script) {
		h := s.next()
		s.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"server timeout"}}`, h.ID)
		s.drain()
	}, func(t *testing.T, c *Client) {
		if _, err := c.Call(t.Context(), "x", nil); !errors.Is(err, ErrCancelled) || !strings.Contains(err.Error(), "server timeout") {
			t.Errorf("error %v", err)
		}
	})
}

func TestCloseEndsCalls(t *testing.T) {
	for _, rev := range []string{"2025-06-18", "2026-07-28"} {
		t.Run(rev, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cancelled := make(chan string, 1)
				tr := scripted(t, func(s *script) {
					if rev == "2025-06-18" {
						s.fault(s.next(), -32601, "no")
						s.legacyHello(rev)
					} else {
						s.modernHello()
					}
					s.next()
					cancelled <- s.next().raw
					s.drain()
				})
				c, err := Connect(t.Context(), tr, nil)
				if err != nil {
					t.Fatal(err)
				}
				var calls sync.WaitGroup
				calls.Go(func() {
					_, err := c.Call(t.Context(), "x", nil)
					if !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), "closed: by Client.Close") || Retriable(err) {
						t.Errorf("error %v", err)
					}
				})
				synctest.Wait()
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				calls.Wait()
				if got := <-cancelled; !strings.Contains(got, "notifications/cancelled") || !strings.Contains(got, "client closed") {
					t.Errorf("the server heard %s", got)
				}
				if _, err := c.Call(t.Context(), "x", nil); !errors.Is(err, ErrClosed) || Retriable(err) {
					t.Errorf("a call after Close: %v", err)
				}
				if err := c.WaitReady(t.Context()); !errors.Is(err, ErrClosed) {
					t.Errorf("WaitReady after Close: %v", err)
				}
			})
		})
	}
}

// Over modern HTTP the end of the exchange is the cancellation.
func TestHTTPCancel(t *testing.T) {
	tr := &fakeHTTP{name: "http://fake", respond: func(l *fakeLink, ctx context.Context, m *link.Message) error {
		if m.Method == protocol.MethodDiscover {
			l.answer(m, fakeDiscover)
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}}
	c := connect(t, tr, nil)
	if _, err := c.Call(t.Context(), "x", nil, Timeout(time.Millisecond)); !errors.Is(err, ErrTimeout) {
		t.Errorf("error %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for _, method := range tr.sent() {
		if method == protocol.MethodCancelled {
			t.Error("the client sent a notification, too")
		}
	}
}

// What is not offered is not asked for.
func TestCapabilities(t *testing.T) {
	play := func(s *script) {
		s.fault(s.until("tools/list"), -32601, "asked all the same")
		s.drain()
	}
	hello := func(s *script) {
		s.result(s.until("initialize"), `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		play(s)
	}
	opts := *legacy
	c := connect(t, scripted(t, hello), &opts)
	ctx := t.Context()
	for name, do := range map[string]func() error{
		"list":      func() error { _, err := listTools(ctx, c, ""); return err },
		"call":      func() error { _, err := c.Call(ctx, "x", nil); return err },
		"read":      func() error { _, err := c.Read(ctx, "x"); return err },
		"prompt":    func() error { _, err := c.GetPrompt(ctx, "x", nil); return err },
		"complete":  func() error { _, err := c.Complete(ctx, Completion{Prompt: "x", Argument: "y"}); return err },
		"level":     func() error { return c.SetLevel(ctx, protocol.LevelInfo) },
		"subscribe": func() error { _, err := c.Listen(ctx, Filter{ResourceSubscriptions: []string{"x"}}, nil); return err },
		"batch":     func() error { _, err := c.Batch(ctx, Operation{Method: "ping"}); return err },
		"task":      func() error { _, err := c.Task(ctx, "x"); return err },
	} {
		if err := do(); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if stats := c.Stats(); stats.Requests != 1 {
		t.Errorf("sent %d requests beside initialize", stats.Requests-1)
	}
	opts.LaxCapabilities = true
	lax := connect(t, scripted(t, hello), &opts)
	if _, err := listTools(ctx, lax, ""); code(err) != protocol.CodeMethodNotFound {
		t.Errorf("lax: %v", err)
	}
}

// What misbehaving servers send costs the call that it is for, at most.
func TestMisbehaviour(t *testing.T) {
	tests := []struct {
		name string
		play func(s *script, h *heard) // answers the second call
		want string                    // in its error; "" for a timeout
	}{
		{"garbage", func(s *script, _ *heard) { s.say("%s", "not JSON at all {{{") }, ""},
		{"half a message", func(s *script, h *heard) { s.say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[`, h.ID) }, "not valid"},
		{"no version", func(s *script, h *heard) { s.say(`{"id":%s,"result":{"content":[]}}`, h.ID) }, "not valid"},
		{"result and error", func(s *script, h *heard) {
			s.say(`{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":""}}`, h.ID)
		}, "not valid"},
		{"a member twice", func(s *script, h *heard) {
			s.say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"content":[]}}`, h.ID)
		}, "not valid"},
		{"an unknown id", func(s *script, _ *heard) { s.say(`{"jsonrpc":"2.0","id":99,"result":{}}`) }, ""},
		{"an id of another type", func(s *script, h *heard) { s.say(`{"jsonrpc":"2.0","id":"%s","result":{}}`, h.ID) }, ""},
		{"no content", func(s *script, h *heard) { s.result(h, `{}`) }, "member content is missing"},
		{"content that is a text", func(s *script, h *heard) { s.result(h, `{"content":["hologram"]}`) }, "content item 0"},
		{"a result that is none", func(s *script, h *heard) { s.result(h, `[]`) }, "not that of tools/call"},
		{"an error that is none", func(s *script, h *heard) { s.say(`{"jsonrpc":"2.0","id":%s,"error":5}`, h.ID) }, "an error that is not an object"},
		{"deep nesting", func(s *script, h *heard) {
			s.result(h, `{"content":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)+`}`)
		}, ""},
		{"silence", func(*script, *heard) {}, ""},
		{"endless progress", func(s *script, h *heard) {
			for i := range 3000 {
				s.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, h.ID, i)
			}
		}, ""},
		{"a flood of notifications", func(s *script, _ *heard) {
			for range 3000 {
				s.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
			}
		}, ""},
		{"a batch", func(s *script, h *heard) { s.say(`[{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}]`, h.ID) }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var slow chan struct{}
			opts := &Options{OnNotification: func(Notification) { <-slow }} // a handler that hangs
			in(t, opts, func(s *script) {
				slow = make(chan struct{})
				first := s.next()
				second := s.next()
				tt.play(s, second)
				s.result(first, `{"content":[{"type":"text","text":"unharmed"}]}`)
				s.result(first, `{"content":[{"type":"text","text":"again"}]}`) // a duplicate
				s.result(s.until("ping"), `{}`)
				s.drain()
			}, func(t *testing.T, c *Client) {
				var calls sync.WaitGroup
				calls.Go(func() {
					r, err := c.Call(t.Context(), "first", nil)
					if err != nil || r.Text() != "unharmed" {
						t.Errorf("first: %+v, %v", r, err)
					}
				})
				synctest.Wait()
				calls.Go(func() {
					_, err := c.Call(t.Context(), "second", nil, OnProgress(func(Progress) {}))
					if err == nil || !strings.Contains(err.Error(), tt.want) || tt.want == "" && !errors.Is(err, ErrTimeout) && !strings.Contains(err.Error(), "nested deeper") {
						t.Errorf("second: %v, want %q", err, tt.want)
					}
				})
				calls.Wait()
				if err := c.Ping(t.Context()); err != nil {
					t.Errorf("Ping afterwards: %v", err)
				}
				if stats := c.Stats(); stats.Pending != 0 {
					t.Errorf("stats %+v", stats)
				}
				close(slow)
			})
		})
	}
}

// 10,000 calls in flight over one connection come back to their callers.
func TestManyCalls(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "many", Version: "1"}, &mcp.Options{Limits: mcp.Limits{Concurrent: 20000}})
	calls := testdep.Rounds(2000, 10_000)
	var gate sync.WaitGroup
	gate.Add(calls)
	s.MustAdd(mcp.Tool("echo", func(_ *mcp.Frame, in struct{ N int }) (int, error) {
		gate.Done()
		gate.Wait() // until all are in flight
		return in.N, nil
	}))
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
		if rev.Modern() {
			gate.Add(calls)
		}
		c := connect(t, serving(t, s), only(rev))
		var running sync.WaitGroup
		for i := range calls {
			running.Go(func() {
				n := 0
				r, err := c.Call(t.Context(), "echo", map[string]int{"N": i}, Timeout(5*time.Minute))
				if err == nil {
					_, err = fmt.Sscan(r.Text(), &n)
				}
				if err != nil || n != i {
					t.Errorf("call %d: %+v, %v", i, r, err)
				}
			})
		}
		running.Wait()
		if stats := c.Stats(); stats.Pending != 0 || stats.Completed < int64(calls) {
			t.Errorf("stats %+v", stats)
		}
	}
}
