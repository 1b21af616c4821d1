package pool_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/pool"
	"github.com/talaria-go/mcp/internal/test/backendtest"
	"github.com/talaria-go/mcp/protocol"
)

// While no connection is ready, calls wait for one, but not for ever.
func TestPoolNoConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backendtest.New(t, "a", nil)
		b.Cut(errors.New("nobody listens"))
		p := pool.New(b.Transport(), &pool.Options{Size: 3})
		defer p.Close()
		if err := p.Warm(t.Context()); err == nil || strings.Count(err.Error(), "nobody listens") != 3 {
			t.Errorf("warming up: got %v, want the reason of all three", err)
		}
		start := time.Now()
		_, err := p.Call(t.Context(), "echo", backendtest.EchoIn{Text: "x"})
		if !errors.Is(err, pool.ErrNoConnections) || !strings.Contains(err.Error(), "nobody listens") || !client.Retriable(err) {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(start); waited != 5*time.Second {
			t.Errorf("waited %v, want 5 s", waited)
		}
		if stats := p.Stats(); stats.Size != 3 || stats.Ready != 0 || stats.Connections[0].Err == nil {
			t.Errorf("got %+v", stats)
		}

		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, _, err := p.Get(ctx); !errors.Is(err, client.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) ||
			!errors.Is(err, pool.ErrNoConnections) || !strings.Contains(err.Error(), "nobody listens") {
			t.Errorf("a context that ends before: got %v", err)
		}

		// One that waits is served when a connection is ready.
		b.Accept()
		time.Sleep(6 * time.Second) // the fourth attempt is due within this and the next wait
		backendtest.Echo(t, p, "echo", "late", "a late")
	})
}

// A connection that is lost is skipped, and replaced by and by.
func TestPoolReplaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backendtest.New(t, "a", nil)
		var mu sync.Mutex
		var changes []string
		p := newPool(t, b, pool.Options{Size: 3, OnChange: func(id int, err error) {
			mu.Lock()
			defer mu.Unlock()
			changes = append(changes, fmt.Sprint(err == nil))
		}})
		b.Refuse(errors.New("not now"))
		b.CutOne(2)
		synctest.Wait()
		if stats := p.Stats(); stats.Ready != 2 {
			t.Errorf("got %+v", stats)
		}
		before := p.Stats().Requests
		for i := range 6 {
			backendtest.Echo(t, p, "echo", fmt.Sprint(i), fmt.Sprint("a ", i))
		}
		for _, c := range p.Stats().Connections {
			if !c.Ready && c.Requests > 0 {
				t.Errorf("a lost connection got calls: %+v", c)
			}
		}
		if got := p.Stats().Requests - before; got != 6 {
			t.Errorf("got %d calls, want 6", got)
		}
		b.Accept()
		time.Sleep(time.Minute)
		stats := p.Stats()
		var opened int64
		for _, c := range stats.Connections {
			opened += c.Opened
		}
		if stats.Ready != 3 || opened != 4 {
			t.Errorf("got %+v, want one replaced", stats)
		}
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(changes, " "); !strings.HasPrefix(got, "true true true false") || !strings.HasSuffix(got, "false true") {
			t.Errorf("heard %s", got)
		}
	})
}

// A server that lets connect and hangs up at once is not bothered all the time.
func TestPoolBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backendtest.New(t, "a", nil)
		p := pool.New(b.Transport(), &pool.Options{Size: 1, OnChange: func(_ int, err error) {
			if err == nil {
				b.Cut(nil)
			}
		}})
		defer p.Close()
		time.Sleep(time.Minute)
		opened := b.Count()
		if opened < 4 || opened > 10 {
			t.Errorf("connected %d times within a minute", opened)
		}
		if stats := p.Stats(); stats.Size != 1 {
			t.Errorf("got %+v", stats)
		}
	})
}

// A connection whose server does not answer any more is replaced.
func TestPoolHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backendtest.New(t, "a", nil)
		var deaf atomic.Bool
		var pings atomic.Int64
		b.Server.Use(func(next mcp.Handler) mcp.Handler {
			return func(f *mcp.Frame) (protocol.Result, error) {
				if method := f.Request().Method; deaf.Load() && (method == "ping" || method == "server/discover") && pings.Add(1) == 1 {
					<-f.Done() // the first one only
				}
				return next(f)
			}
		})
		p := newPool(t, b, pool.Options{Size: 2, HealthCheck: 10 * time.Second, HealthTimeout: time.Second})
		time.Sleep(55 * time.Second) // between two checks
		if stats := p.Stats(); stats.Ready != 2 || stats.Connections[0].Opened+stats.Connections[1].Opened != 2 {
			t.Errorf("healthy connections were replaced: %+v", stats)
		}
		deaf.Store(true)
		time.Sleep(11500 * time.Millisecond)
		if stats := p.Stats(); stats.Ready == 2 && stats.Connections[0].Opened+stats.Connections[1].Opened == 2 {
			t.Errorf("a deaf connection is still there: %+v", stats)
		}
		time.Sleep(time.Minute)
		if stats := p.Stats(); stats.Ready != 2 || stats.Connections[0].Opened+stats.Connections[1].Opened != 3 {
			t.Errorf("got %+v, want one replaced", stats)
		}
	})
}

// What is safe to send again goes to another connection when one is lost; what
// is not fails.
func TestPoolSendsAgain(t *testing.T) {
	for _, test := range []struct {
		name    string
		options []client.CallOption
		again   bool
	}{
		{"not safe", nil, false},
		{"idempotent", []client.CallOption{client.Idempotent()}, true},
		{"idempotent, but once", []client.CallOption{client.Idempotent(), client.Retry(1)}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			one, two := backendtest.New(t, "one", nil), backendtest.New(t, "two", nil)
			gates := [2]*backendtest.Gate{one.AddGate("wait"), two.AddGate("wait")}
			p := newPool(t, one, pool.Options{Size: 1})
			if _, err := p.Add(two.Transport(), nil); err != nil {
				t.Fatal(err)
			}
			if err := p.Warm(t.Context()); err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() {
				_, err := p.Call(t.Context(), "wait", nil, test.options...)
				done <- err
			}()
			<-gates[0].Entered // round robin begins with the first
			one.Cut(errors.New("gone"))
			if test.again {
				<-gates[1].Entered
				close(gates[1].Leave)
			}
			err := <-done
			if (err == nil) != test.again || err != nil && (!errors.Is(err, client.ErrConnection) || !client.Retriable(err)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Whatever happens to connections, an answer is that of its call.
func TestPoolNeverCrosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backends := []*backendtest.Backend{backendtest.New(t, "x", nil), backendtest.New(t, "x", nil)}
		fast := &client.Options{Reconnect: &client.Backoff{Base: time.Millisecond, Max: time.Millisecond}}
		for _, strategy := range []pool.Strategy{pool.RoundRobin, pool.Random, pool.LeastBusy} {
			p := pool.New(backends[0].Transport(), &pool.Options{Size: 3, Strategy: strategy, Client: fast})
			var right, lost atomic.Int64
			var group sync.WaitGroup
			for worker := range 16 {
				group.Go(func() {
					for i := range 100 {
						text := fmt.Sprint(worker, "/", i)
						result, err := p.Call(t.Context(), "echo", backendtest.EchoIn{Text: text})
						switch {
						case err == nil && result.Text() == "x "+text:
							right.Add(1)
						case err != nil && client.Retriable(err):
							lost.Add(1)
						default:
							t.Errorf("%s: got %+v, %v", text, result, err)
						}
					}
				})
			}
			group.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(strategy)))
				var ids []int
				for range 60 {
					b := backends[random.IntN(2)]
					switch random.IntN(3) {
					case 0:
						if id, err := p.Add(b.Transport(), nil); err == nil {
							ids = append(ids, id)
						}
					case 1:
						if len(ids) > 0 {
							if err := p.Remove(ids[0]); err != nil {
								t.Error(err)
							}
							ids = ids[1:]
						}
					case 2:
						b.CutAny()
					}
					echo := make(chan struct{})
					go func() { // between two changes there is time for a call
						_, _ = p.Call(t.Context(), "echo", backendtest.EchoIn{Text: "between"})
						close(echo)
					}()
					<-echo
				}
			})
			group.Wait()
			if right.Load() == 0 {
				t.Errorf("%v: no call ended well, %d were lost", strategy, lost.Load())
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
