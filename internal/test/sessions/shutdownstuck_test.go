package sessions_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// hangingStore is a store whose writes do not return once it is stuck.
type hangingStore struct {
	scale.Store
	stuck atomic.Bool
	never chan struct{}
}

func (s *hangingStore) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	if s.stuck.Load() {
		<-s.never
	}
	return s.Store.Put(ctx, writes...)
}

// Shutdown returns at the end of its context, whatever code of users does not return.
// Every session has ended then.
func TestShutdownStuck(t *testing.T) {
	const limit = time.Second
	for name, tt := range map[string]struct {
		call  string // a tool
		opts  func(never chan struct{}, ended *atomic.Int32) mcp.Options
		ends  int32 // calls of OnSessionEnd that return
		watch bool  // an observer does not return
	}{
		"a handler":           {call: "stuck", ends: 1},
		"a task":              {call: "task", ends: 1},
		"middleware":          {call: "through", ends: 1},
		"an observer":         {watch: true, ends: 1},
		"nothing of its call": {call: "quick", ends: 1},
		"OnSessionEnd": {opts: func(never chan struct{}, _ *atomic.Int32) mcp.Options {
			return mcp.Options{OnSessionEnd: func(*mcp.Frame, error) { <-never }}
		}},
		"a store": {opts: func(never chan struct{}, _ *atomic.Int32) mcp.Options {
			return mcp.Options{Store: &hangingStore{Store: scale.NewLocal(), never: never}, StateKeys: [][]byte{[]byte("a secret of 16 bytes or more")}}
		}},
		"all of these": {call: "stuck", watch: true, opts: func(never chan struct{}, _ *atomic.Int32) mcp.Options {
			return mcp.Options{
				OnSessionEnd: func(*mcp.Frame, error) { <-never },
				Store:        &hangingStore{Store: scale.NewLocal(), never: never}, StateKeys: [][]byte{[]byte("a secret of 16 bytes or more")},
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				never := make(chan struct{})
				var ended atomic.Int32
				opts := mcp.Options{}
				if tt.opts != nil {
					opts = tt.opts(never, &ended)
				}
				if opts.OnSessionEnd == nil {
					opts.OnSessionEnd = func(*mcp.Frame, error) { ended.Add(1) }
				}
				s := harness.Bare(opts)
				s.Use(func(next mcp.Handler) mcp.Handler {
					return func(f *mcp.Frame) (protocol.Result, error) {
						if f.Request().Params.Name == "through" {
							<-never
						}
						return next(f)
					}
				})
				forever := func(*mcp.Frame, struct{}) (string, error) { <-never; return "", nil }
				s.MustAdd(mcp.Tool("stuck", forever), mcp.Tool("through", forever), mcp.Tool("task", forever, mcp.AsTask(&mcp.TaskOptions{Wait: -1})),
					mcp.Tool("quick", func(*mcp.Frame, struct{}) (string, error) { return "", nil }))
				if tt.watch {
					s.Observe(mcp.Observer{Event: func(e mcp.Event) {
						if e.Kind == "draining" {
							<-never
						}
					}})
				}
				d := harness.Direct{T: t, S: s}
				id := d.Open("client")
				d.Do("POST", id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				if tt.call != "" {
					go d.Do("POST", id, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+tt.call+`","arguments":{}}}`)
				}
				synctest.Wait()
				if store, ok := opts.Store.(*hangingStore); ok {
					store.stuck.Store(true)
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				begin := time.Now()
				err := s.Shutdown(ctx)
				if took := time.Since(begin); took > limit+500*time.Millisecond {
					t.Errorf("it took %v of %v", took, limit)
				}
				if want := tt.call == "quick"; want != (err == nil) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Shutdown: %v", err)
				}
				if n := ended.Load(); n != tt.ends {
					t.Errorf("OnSessionEnd has run %d times, want %d", n, tt.ends)
				}
				close(never)
				synctest.Wait()
			})
		})
	}
}

// So it is over every transport.
func TestShutdownStuckTransports(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.LatestLegacy, protocol.Latest} {
		for _, tr := range harness.TransportsOf(rev) {
			t.Run(rev.String()+"/"+tr.Name, func(t *testing.T) {
				never, begun := make(chan struct{}), make(chan struct{})
				ended := make(chan error, 1)
				s := harness.Fixture(t, &mcp.Options{OnSessionEnd: func(_ *mcp.Frame, reason error) { ended <- reason }})
				s.MustAdd(mcp.Tool("stuck", func(*mcp.Frame, struct{}) (string, error) {
					close(begun)
					<-never
					return "", nil
				}))
				h := harness.Join(t, tr, rev, s).Hear()
				defer close(never) // before the client is waited for
				h.Send("1", "tools/call", `"name":"stuck"`)
				<-begun
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Shutdown: %v", err)
				}
				if !rev.Modern() {
					if reason := harness.Await(t, ended, "OnSessionEnd"); !errors.Is(reason, mcp.ErrServerClosed) {
						t.Errorf("OnSessionEnd: %v", reason)
					}
				}
			})
		}
	}
}

// Shutdown and Drain return at the end of their context: while a session begins, while a
// client does not read its stream, and while an observer of the drain does not return.
func TestShutdownStuckElsewhere(t *testing.T) {
	initialize := func(s *mcp.Server, web *harness.MemoryWeb) (io.Writer, *bufio.Reader) {
		conn := web.Dial()
		go func() {
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: "+strconv.Itoa(len(harness.InitLine))+"\r\n\r\n"+harness.InitLine)
		}()
		return conn, bufio.NewReader(conn)
	}
	for name, tt := range map[string]struct {
		opts func(never chan struct{}) *mcp.Options
		do   func(t *testing.T, s *mcp.Server, never chan struct{})
	}{
		"OnSessionStart": {func(never chan struct{}) *mcp.Options {
			return &mcp.Options{OnSessionStart: func(*mcp.Frame) error { <-never; return nil }}
		}, func(t *testing.T, s *mcp.Server, _ chan struct{}) { initialize(s, harness.OnWeb(t, s.Handler())) }},
		"OnSessionAttach": {func(never chan struct{}) *mcp.Options {
			return &mcp.Options{OnSessionAttach: func(*mcp.Frame) error { <-never; return nil }}
		}, func(t *testing.T, s *mcp.Server, _ chan struct{}) { initialize(s, harness.OnWeb(t, s.Handler())) }},
		"a stream": {nil, func(t *testing.T, s *mcp.Server, _ chan struct{}) {
			out, in := initialize(s, harness.OnWeb(t, s.Handler()))
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(res.Body); err != nil {
				t.Fatal(err)
			}
			harness.Write(t, out, "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: "+res.Header.Get("Mcp-Session-Id")+"\r\n\r\n")
			synctest.Wait()
			_ = s.NotifyAll("notifications/acme/row", map[string]any{"text": strings.Repeat("x", 1<<20)})
		}},
		"an observer": {nil, func(_ *testing.T, s *mcp.Server, never chan struct{}) {
			s.Observe(mcp.Observer{Event: func(mcp.Event) { <-never }})
		}},
	} {
		for end, stop := range map[string]func(s *mcp.Server, ctx context.Context) error{"Shutdown": (*mcp.Server).Shutdown, "Drain": (*mcp.Server).Drain} {
			t.Run(name+"/"+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					never := make(chan struct{})
					opts := &mcp.Options{}
					if tt.opts != nil {
						opts = tt.opts(never)
					}
					s := harness.Fixture(t, opts)
					tt.do(t, s, never)
					synctest.Wait()
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					defer cancel()
					begin, ended := time.Now(), make(chan struct{})
					go func() {
						defer close(ended)
						_ = stop(s, ctx)
					}()
					select {
					case <-ended:
						if took := time.Since(begin); took > 1500*time.Millisecond {
							t.Errorf("it took %v", took)
						}
					case <-time.After(time.Hour):
						t.Error("it does not return")
					}
					close(never)
					<-ended
					synctest.Wait()
				})
			})
		}
	}
}
