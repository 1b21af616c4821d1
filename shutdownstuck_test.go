package mcp_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
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
				s := bare(opts)
				s.Use(func(next mcp.Handler) mcp.Handler {
					return func(f *mcp.Frame) (protocol.Result, error) {
						if f.Request().Params.Name == "through" {
							<-never
						}
						return next(f)
					}
				})
				forever := func(*mcp.Frame, empty) (string, error) { <-never; return "", nil }
				s.MustAdd(mcp.Tool("stuck", forever), mcp.Tool("through", forever), mcp.Tool("task", forever, mcp.AsTask(&mcp.TaskOptions{Wait: -1})),
					mcp.Tool("quick", func(*mcp.Frame, empty) (string, error) { return "", nil }))
				if tt.watch {
					s.Observe(mcp.Observer{Event: func(e mcp.Event) {
						if e.Kind == "draining" {
							<-never
						}
					}})
				}
				d := direct{t: t, s: s}
				id := d.open("client")
				d.do("POST", id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				if tt.call != "" {
					go d.do("POST", id, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+tt.call+`","arguments":{}}}`)
				}
				synctest.Wait()
				if store, ok := opts.Store.(*hangingStore); ok {
					store.stuck.Store(true)
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				begin := time.Now()
				err := s.Shutdown(ctx)
				if took := time.Since(begin); took > limit+3*time.Second {
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
		for _, tr := range transportsOf(rev) {
			t.Run(rev.String()+"/"+tr.name, func(t *testing.T) {
				never, begun := make(chan struct{}), make(chan struct{})
				ended := make(chan error, 1)
				s := fixture(t, &mcp.Options{OnSessionEnd: func(_ *mcp.Frame, reason error) { ended <- reason }})
				s.MustAdd(mcp.Tool("stuck", func(*mcp.Frame, empty) (string, error) {
					close(begun)
					<-never
					return "", nil
				}))
				h := join(t, tr, rev, s).hear()
				defer close(never) // before the client is waited for
				h.send("1", "tools/call", `"name":"stuck"`)
				<-begun
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Shutdown: %v", err)
				}
				if !rev.Modern() {
					if reason := await(t, ended, "OnSessionEnd"); !errors.Is(reason, mcp.ErrServerClosed) {
						t.Errorf("OnSessionEnd: %v", reason)
					}
				}
			})
		}
	}
}
