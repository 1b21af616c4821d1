package pool_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/pool"
	"github.com/talaria-go/mcp/internal/test/backendtest"
	"github.com/talaria-go/mcp/internal/test/testdep"
)

func TestPoolRoundRobin(t *testing.T) {
	p := newPool(t, backendtest.New(t, "a", nil), pool.Options{Size: 3})
	for i := range 6 {
		backendtest.Echo(t, p, "echo", fmt.Sprint(i), fmt.Sprint("a ", i))
	}
	if got := requests(p); got != "2 2 2 " {
		t.Errorf("got %s, want 2 each", got)
	}
	stats := p.Stats()
	if stats.Size != 3 || stats.Ready != 3 || stats.InFlight != 0 || stats.Requests != 6 || stats.Failed != 0 {
		t.Errorf("got %+v", stats)
	}
}

func TestPoolRandom(t *testing.T) {
	p := newPool(t, backendtest.New(t, "a", nil), pool.Options{Size: 3, Strategy: pool.Random})
	for i := range 200 {
		backendtest.Echo(t, p, "echo", fmt.Sprint(i), fmt.Sprint("a ", i))
	}
	for _, c := range p.Stats().Connections { // (2/3)^200 says that none is left out
		if c.Requests == 0 {
			t.Errorf("connection %d had no call", c.ID)
		}
	}
}

// A connection with a call under way is never chosen while others have none.
func TestPoolLeastBusy(t *testing.T) {
	b := backendtest.New(t, "a", nil)
	g := b.AddGate("wait")
	p := newPool(t, b, pool.Options{Size: 3, Strategy: pool.LeastBusy})
	blocked := make(chan error)
	go func() {
		_, err := p.Call(t.Context(), "wait", nil)
		blocked <- err
	}()
	<-g.Entered
	var busy int
	for _, c := range p.Stats().Connections {
		if c.InFlight == 1 {
			busy = c.ID
		}
	}
	for i := range 6 {
		backendtest.Echo(t, p, "echo", fmt.Sprint(i), fmt.Sprint("a ", i))
	}
	for _, c := range p.Stats().Connections {
		if c.ID == busy && c.Requests != 1 || c.ID != busy && c.Requests < 2 {
			t.Errorf("connection %d had %d calls; %d is busy", c.ID, c.Requests, busy)
		}
	}
	close(g.Leave)
	if err := <-blocked; err != nil {
		t.Error(err)
	}
}

// Connections come and go while the pool is used; a call under way on one that
// is removed ends well.
func TestPoolAddRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backendtest.New(t, "a", nil)
		g := b.AddGate("wait")
		p := newPool(t, b, pool.Options{Size: 1})
		blocked := make(chan error)
		go func() {
			_, err := p.Call(t.Context(), "wait", nil)
			blocked <- err
		}()
		<-g.Entered
		id, err := p.Add(b.Transport(), nil)
		if err != nil || id != 2 {
			t.Fatalf("got %d, %v", id, err)
		}
		if err := p.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.Remove(1); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			backendtest.Echo(t, p, "echo", fmt.Sprint(i), fmt.Sprint("a ", i))
		}
		if got := requests(p); got != "3 " || b.Open() != 2 {
			t.Errorf("got %s, %d connections are open", got, b.Open())
		}
		close(g.Leave)
		if err := <-blocked; err != nil {
			t.Errorf("the call on the removed connection: %v", err)
		}
		synctest.Wait()
		if b.Open() != 1 {
			t.Errorf("%d connections are open, want 1", b.Open())
		}
		if err := p.Remove(1); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("removing it again: got %v", err)
		}
		if err := p.Remove(2); err != nil {
			t.Error(err)
		}
		if _, err := p.Call(t.Context(), "echo", backendtest.EchoIn{Text: "x"}); !errors.Is(err, pool.ErrNoConnections) {
			t.Errorf("an empty pool: got %v", err)
		}
		if _, err := p.Add(nil, nil); err == nil {
			t.Error("nil is no transport")
		}
	})
}

// Do keeps to one connection, and gives it back whatever happens.
func TestPoolDo(t *testing.T) {
	p := newPool(t, backendtest.New(t, "a", nil), pool.Options{Size: 3})
	for range 3 {
		err := p.Do(t.Context(), func(c *client.Client) error {
			for i := range 4 {
				backendtest.Echo(t, c, "echo", fmt.Sprint(i), fmt.Sprint("a ", i))
			}
			if stats := p.Stats(); stats.InFlight != 1 {
				t.Errorf("got %+v", stats)
			}
			if c.Stats().Requests < 4 {
				t.Errorf("the calls went elsewhere: %+v", c.Stats())
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if got := requests(p); got != "1 1 1 " {
		t.Errorf("got %s", got)
	}
	wrong := errors.New("wrong")
	if err := p.Do(t.Context(), func(*client.Client) error { return wrong }); err != wrong {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_ = p.Do(t.Context(), func(*client.Client) error { panic("x") })
	}()
	c, release, err := p.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	backendtest.Echo(t, c, "echo", "x", "a x")
	release()
	release() // does nothing
	if stats := p.Stats(); stats.InFlight != 0 || stats.Failed != 1 {
		t.Errorf("got %+v", stats)
	}
}

// Close ends calls that are under way, and those that wait for a connection.
func TestPoolClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backendtest.New(t, "a", nil)
		g := b.AddGate("wait")
		p := newPool(t, b, pool.Options{Size: 2, CheckoutTimeout: -1})
		under := make(chan error)
		go func() {
			_, err := p.Call(t.Context(), "wait", nil)
			under <- err
		}()
		<-g.Entered
		dead := backendtest.New(t, "dead", nil)
		dead.Cut(errors.New("nobody listens"))
		lonely := pool.New(dead.Transport(), &pool.Options{Size: 1, CheckoutTimeout: -1})
		waiting := make(chan error)
		go func() {
			_, err := lonely.Call(t.Context(), "echo", backendtest.EchoIn{Text: "x"})
			waiting <- err
		}()
		synctest.Wait()
		if stats := lonely.Stats(); stats.Waiting != 1 {
			t.Errorf("got %+v", stats)
		}
		for _, c := range []*pool.Pool{p, lonely} {
			for range 2 {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		if err := <-under; !errors.Is(err, client.ErrClosed) {
			t.Errorf("the call under way: got %v", err)
		}
		if err := <-waiting; !errors.Is(err, client.ErrClosed) {
			t.Errorf("the waiting call: got %v", err)
		}
		if _, err := p.Add(b.Transport(), nil); !errors.Is(err, client.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if err := p.Warm(t.Context()); err != nil && !errors.Is(err, client.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// A pool does whatever a client does.
func TestPoolCaller(t *testing.T) {
	p := newPool(t, backendtest.New(t, "a", nil), pool.Options{Size: 2})
	backendtest.UseCaller(t, p, "", "", "a")
}

// Ten thousand calls at once, each with its own answer; the bubble sees that no
// goroutine is left.
func TestPoolManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := testdep.Rounds(2000, 10_000)
		b := backendtest.New(t, "a", &mcp.Options{Limits: mcp.Limits{Concurrent: calls}})
		var inside atomic.Int64
		all := make(chan struct{})
		b.Server.MustAdd(mcp.Tool("meet", func(f *mcp.Frame, in backendtest.EchoIn) (string, error) {
			if inside.Add(1) == int64(calls) {
				close(all) // every one of them is under way
			}
			select {
			case <-all:
				return in.Text, nil
			case <-f.Done():
				return "", context.Cause(f)
			}
		}))
		p := newPool(t, b, pool.Options{Size: 4, Strategy: pool.LeastBusy})
		var wrong atomic.Int64
		var group sync.WaitGroup
		for i := range calls {
			group.Go(func() {
				text := fmt.Sprint("call ", i)
				result, err := p.Call(t.Context(), "meet", backendtest.EchoIn{Text: text}, client.Timeout(-1))
				if err != nil || result.Text() != text {
					if wrong.Add(1) == 1 {
						t.Errorf("got %+v, %v, want %s", result, err, text)
					}
				}
			})
		}
		group.Wait()
		if n := wrong.Load(); n > 0 {
			t.Errorf("%d of %d answers are wrong", n, calls)
		}
		stats := p.Stats()
		if stats.InFlight != 0 || stats.Requests != int64(calls) || stats.Failed != 0 {
			t.Errorf("got %+v", stats)
		}
		for _, c := range stats.Connections {
			if c.Requests < int64(calls)/8 {
				t.Errorf("connection %d had %d calls only", c.ID, c.Requests)
			}
		}
	})
}

// newPool makes a pool that is warm and closed at the end of the test.
func newPool(t *testing.T, b *backendtest.Backend, opts pool.Options) *pool.Pool {
	t.Helper()
	p := pool.New(b.Transport(), &opts)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := p.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// requests says how many calls each connection of a pool had.
func requests(p *pool.Pool) string {
	text := ""
	for _, c := range p.Stats().Connections {
		text += fmt.Sprint(c.Requests, " ")
	}
	return text
}
