package replicas_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// replicaKey is the context key of the number of the server.
type replicaKey struct{}

// numbered tells requests the number of their server.
func numbered(i int, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), replicaKey{}, i)))
	})
}

// Wherever the requests of a session go, it is one session.
func TestReplicas(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		if rev.Modern() {
			continue
		}
		t.Run(rev.String(), func(t *testing.T) {
			t.Parallel()
			var ends atomic.Int64
			running := make(chan int, 1)
			ended := make(chan error, 1)
			var served [4]atomic.Int64
			r := harness.NewReplicas(t, len(served), mcp.Options{OnSessionEnd: func(f *mcp.Frame, reason error) {
				if n, _ := harness.Visits.Get(f); n != 12 || !errors.Is(reason, mcp.ErrSessionDeleted) {
					t.Errorf("ended after %d visits: %v", n, reason)
				}
				ends.Add(1)
			}}, func(i int, s *mcp.Server) {
				s.MustAdd(
					mcp.Tool("visit", func(f *mcp.Frame, _ struct{}) (int, error) {
						served[i].Add(1)
						return harness.Visits.Update(f, func(n int) int { return n + 1 }), nil
					}),
					mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
						roots, err := frame.Roots(f, "roots")
						return fmt.Sprint(len(roots)), err
					}),
					mcp.Tool("wait", func(f *mcp.Frame, _ struct{}) (string, error) {
						running <- i
						<-f.Done()
						ended <- context.Cause(f)
						return "", nil
					}),
				)
			})
			c := r.Connect(t, rev)
			for want := range 12 {
				n, err := client.Call[int](t.Context(), c, "visit", nil)
				if err != nil || n != want+1 {
					t.Fatalf("visit %d: %d, %v", want+1, n, err)
				}
			}
			for i := range served {
				if served[i].Load() == 0 {
					t.Errorf("replica %d has served nothing", i)
				}
			}
			var asking sync.WaitGroup
			for range 20 {
				asking.Go(func() {
					result, err := c.Call(t.Context(), "ask", nil)
					if err != nil || result.Text() != "2" {
						t.Errorf("ask: %v, %v", result, err)
					}
				})
			}
			asking.Wait()

			ctx, cancel := context.WithCancel(t.Context())
			called := make(chan error, 1)
			go func() {
				_, err := c.Call(ctx, "wait", nil)
				called <- err
			}()
			<-running
			cancel()
			if err := <-called; !errors.Is(err, client.ErrCancelled) {
				t.Errorf("a call that was cancelled: %v", err)
			}
			if cause := <-ended; cause == nil {
				t.Error("the handler of a cancelled call was not told")
			}

			go func() { _, _ = c.Call(t.Context(), "wait", nil) }()
			<-running
			if err := c.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if cause := <-ended; !errors.Is(cause, mcp.ErrSessionClosed) && cause == nil {
				t.Errorf("a handler of the session that was deleted: %v", cause)
			}
			for _, s := range r.Servers {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				if err := s.Shutdown(ctx); err != nil {
					t.Errorf("Shutdown: %v", err)
				}
				cancel()
			}
			if n := ends.Load(); n != 1 {
				t.Errorf("the session ended %d times", n)
			}
		})
	}
}

// tickets counts calls, for clients that are told the number.
var tickets = mcp.NewStoredKey[int]("example.com/tickets")

// No two calls that run at the same time at different replicas get the same
// ticket.
func TestTicketsOfReplicas(t *testing.T) {
	r := harness.NewReplicas(t, 4, mcp.Options{}, func(_ int, s *mcp.Server) {
		s.MustAdd(mcp.Tool("ticket", func(f *mcp.Frame, _ struct{}) (int, error) {
			return tickets.Update(f, func(n int) int { return n + 1 }), nil
		}))
	})
	c := r.Connect(t, protocol.LatestLegacy)
	var got [200]atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 10 {
				n, err := client.Call[int](t.Context(), c, "ticket", nil)
				if err != nil || n < 1 || n > len(got) {
					t.Errorf("ticket %d: %v", n, err)
					return
				}
				got[n-1].Add(1)
			}
		})
	}
	all.Wait()
	for i := range got {
		if n := got[i].Load(); n != 1 {
			t.Errorf("ticket %d was given %d times", i+1, n)
		}
	}
}

// A call whose value is not kept has run: it must not look as if it might be sent
// again.
func TestUpdateIsNotKept(t *testing.T) {
	store := &harness.ReadOnly{Store: scale.NewLocal()}
	s := harness.Fixture(t, &mcp.Options{Store: store, StateKeys: harness.SharedKeys})
	runs := 0
	s.MustAdd(mcp.Tool("ticket", func(f *mcp.Frame, _ struct{}) (int, error) {
		runs++
		_ = f.Progress(1, 2)
		tickets.Update(f, func(n int) int { return n + 1 })
		return tickets.Update(f, func(n int) int { return n + 1 }), nil
	}))
	d := &harness.BareClient{T: t, H: s.Handler(), Rev: protocol.LatestLegacy}
	d.Initialize()
	call := func(meta string) *httptest.ResponseRecorder {
		return d.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ticket"`+meta+`}}`)
	}
	d.Want(call(""), http.StatusOK, `"text":"2"`)
	store.Refuses.Store(true)
	for _, part := range []string{`"code":-32603`, `"data":{"executed":true}`} {
		d.Want(call(""), http.StatusOK, part)
		d.Want(call(`,"_meta":{"progressToken":1}`), http.StatusOK, part)
	}
	if res := call(""); strings.Contains(res.Body.String(), "10.1.2.3") || res.Header().Get("Retry-After") != "" {
		t.Errorf("%v, %s", res.Header(), res.Body)
	}
	store.Refuses.Store(false)
	d.Want(call(""), http.StatusOK, `"text":"4"`)
	if runs != 7 {
		t.Errorf("it ran %d times", runs)
	}
}

// An observer that hears that the store has failed may use the session that could not
// be saved, and the store. Shutdown waits until it has returned.
func TestObserverOfFailureUsesSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &harness.ReadOnly{Store: scale.NewLocal()}
		s := harness.Fixture(t, &mcp.Options{Store: store, StateKeys: harness.SharedKeys})
		var f atomic.Pointer[mcp.Frame]
		s.MustAdd(mcp.Tool("ticket", func(now *mcp.Frame, _ struct{}) (int, error) {
			f.Store(now)
			return tickets.Update(now, func(n int) int { return n + 1 }), nil
		}))
		var told atomic.Int64
		s.Observe(mcp.Observer{Event: func(e mcp.Event) {
			if e.Kind != "store.failed" {
				return
			}
			tickets.Update(f.Load(), func(n int) int { return n + 1 }) // which fails as well, and is told
			_ = s.NotifyAll("notifications/x", nil)
			time.Sleep(time.Second)
			told.Add(1)
		}})
		d := &harness.BareClient{T: t, H: s.Handler(), Rev: protocol.LatestLegacy}
		d.Initialize()
		store.Refuses.Store(true)
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ticket"}}`
		d.Want(d.Do(http.MethodPost, call), http.StatusOK, `"code":-32603`)
		time.Sleep(time.Minute)
		store.Refuses.Store(false)
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		before := told.Load()
		time.Sleep(time.Minute)
		if after := told.Load(); before == 0 || after != before {
			t.Errorf("told %d times before the shutdown had returned, %d times in all", before, after)
		}
	})
}

// A batch looks at its session once, and saves it once.
func TestBatchInAStore(t *testing.T) {
	store := &harness.ReadOnly{Store: scale.NewLocal()}
	var first *harness.BareClient
	serve := func() *harness.BareClient {
		s := harness.Fixture(t, &mcp.Options{Store: store, StateKeys: harness.SharedKeys})
		s.MustAdd(mcp.Tool("keep", func(f *mcp.Frame, in struct {
			Name string `json:"name"`
		}) (string, error) {
			f.Set(in.Name, true)
			return "kept", nil
		}), mcp.Tool("sum", func(f *mcp.Frame, _ struct{}) (int, error) {
			n := 0
			for i := range 50 {
				if _, ok := f.Get(fmt.Sprint(i)); ok {
					n++
				}
			}
			return n, nil
		}))
		d := &harness.BareClient{T: t, H: s.Handler(), Rev: protocol.V20250326}
		if first != nil {
			d.Session = first.Session
		}
		return d
	}
	first = serve()
	first.Initialize()
	second := serve()
	second.Want(second.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`), http.StatusOK, `"result":{}`)
	batch := func(from, to int) string {
		var lines []string
		for i := from; i < to; i++ {
			lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"keep","arguments":{"name":"%[1]d"}}}`, i))
		}
		return "[" + strings.Join(lines, ",") + `,{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":"x","method":"nothing"}]`
	}
	looks, puts := store.Looks.Load(), store.Puts.Load()
	first.Want(first.Do(http.MethodPost, batch(0, 25)), http.StatusOK, `"id":24,"result"`)
	if looks, puts := store.Looks.Load()-looks, store.Puts.Load()-puts; looks != 1 || puts != 1 {
		t.Errorf("a batch took %d looks and %d writes, want one each", looks, puts)
	}
	// Two batches at a time at two replicas are kept both.
	var both sync.WaitGroup
	both.Go(func() { first.Want(first.Do(http.MethodPost, batch(25, 35)), http.StatusOK, `"text":"kept"`) })
	both.Go(func() { second.Want(second.Do(http.MethodPost, batch(35, 49)), http.StatusOK, `"text":"kept"`) })
	both.Wait()
	count := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sum"}}`
	for _, d := range []*harness.BareClient{first, second} {
		d.Want(d.Do(http.MethodPost, count), http.StatusOK, `"text":"49"`)
	}
	// Where the store fails, all that have run say so.
	store.Refuses.Store(true)
	res := first.Do(http.MethodPost, batch(49, 50))
	for _, part := range []string{`"id":49,"error":{"code":-32603`, `"data":{"executed":true}`} {
		first.Want(res, http.StatusOK, part)
	}
	store.Refuses.Store(false)
	first.Want(first.Do(http.MethodPost, count), http.StatusOK, `"text":"50"`)
	second.Want(second.Do(http.MethodPost, count), http.StatusOK, `"text":"50"`)
}

// Whatever replica a change happens at, and whichever has the stream of a client,
// the client is told, in every revision.
func TestReplicasTellOfChanges(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		t.Run(rev.String(), func(t *testing.T) {
			t.Parallel()
			r := harness.NewReplicas(t, 3, mcp.Options{}, func(int, *mcp.Server) {})
			c := r.Connect(t, rev)
			for range r.Servers { // each has served something
				if _, err := c.Call(t.Context(), "nothing", nil); err != nil {
					t.Fatal(err)
				}
			}
			told := make(chan string, 100)
			filter := client.Filter{ToolsListChanged: true, ResourceSubscriptions: []string{"config://app"}}
			if _, err := c.Listen(t.Context(), filter, func(n client.Notification) { told <- n.Method }); err != nil {
				t.Fatal(err)
			}
			for i, s := range r.Servers {
				s.ResourceUpdated("config://app")
				for method := ""; method != protocol.MethodResourceUpdated; {
					select {
					case method = <-told:
					case <-time.After(time.Minute):
						t.Fatalf("the client was not told of a change at replica %d", i)
					}
				}
			}
		})
	}
}

// What any replica tells a session, and asks its client, reaches the client on the
// one stream that it has, wherever that is.
func TestReplicasReachStream(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		if rev.Modern() {
			continue
		}
		t.Run(rev.String(), func(t *testing.T) {
			t.Parallel()
			r := harness.NewReplicas(t, 4, mcp.Options{}, func(_ int, s *mcp.Server) {
				s.MustAdd(mcp.Tool("id", func(f *mcp.Frame, _ struct{}) (string, error) { return f.SessionID(), nil }))
			})
			heard := make(chan string, 100)
			c, err := client.Connect(t.Context(), client.HTTP(r.URL, nil), &client.Options{
				Revisions: []protocol.Revision{rev}, Timeout: time.Minute, Roots: []client.Root{{URI: "file:///a"}, {URI: "file:///b"}},
				OnNotification: func(n client.Notification) { heard <- n.Method },
			})
			if err != nil {
				t.Fatal(err)
			}
			id, err := client.Call[string](t.Context(), c, "id", nil)
			if err != nil {
				t.Fatal(err)
			}
			for round := range 3 {
				left := map[string]bool{}
				for i, s := range r.Servers {
					method := fmt.Sprintf("notifications/example/%d/%d", round, i)
					if err := s.Notify(id, method, nil); err != nil {
						t.Fatalf("%s: %v", method, err)
					}
					left[method] = true
				}
				for len(left) > 0 {
					method := <-heard
					if !left[method] {
						t.Errorf("heard %s, which was not sent, or twice", method)
					}
					delete(left, method)
				}
			}
			var asking sync.WaitGroup
			for i, s := range r.Servers {
				asking.Go(func() {
					err := s.WithSession(t.Context(), id, func(f *mcp.Frame) error {
						roots, err := frame.Roots(f, "roots")
						if len(roots) != 2 {
							t.Errorf("replica %d: roots %v", i, roots)
						}
						return err
					})
					if err != nil {
						t.Errorf("replica %d asks: %v", i, err)
					}
				})
			}
			asking.Wait()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			for i, s := range r.Servers {
				if err := s.Notify(id, "notifications/example", nil); !errors.Is(err, mcp.ErrSessionNotFound) {
					t.Errorf("replica %d tells a session that has ended: %v", i, err)
				}
			}
		})
	}
}
