package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
)

func TestPoolRoundRobin(t *testing.T) {
	p := newPool(t, newBackend(t, "a", nil), client.PoolOptions{Size: 3})
	for i := range 6 {
		echo(t, p, "echo", fmt.Sprint(i), fmt.Sprint("a ", i))
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
	p := newPool(t, newBackend(t, "a", nil), client.PoolOptions{Size: 3, Strategy: client.Random})
	for i := range 200 {
		echo(t, p, "echo", fmt.Sprint(i), fmt.Sprint("a ", i))
	}
	for _, c := range p.Stats().Connections { // (2/3)^200 says that none is left out
		if c.Requests == 0 {
			t.Errorf("connection %d had no call", c.ID)
		}
	}
}

// A connection with a call under way is never chosen while others have none.
func TestPoolLeastBusy(t *testing.T) {
	b := newBackend(t, "a", nil)
	g := b.addGate("wait")
	p := newPool(t, b, client.PoolOptions{Size: 3, Strategy: client.LeastBusy})
	blocked := make(chan error)
	go func() {
		_, err := p.Call(t.Context(), "wait", nil)
		blocked <- err
	}()
	<-g.entered
	var busy int
	for _, c := range p.Stats().Connections {
		if c.InFlight == 1 {
			busy = c.ID
		}
	}
	for i := range 6 {
		echo(t, p, "echo", fmt.Sprint(i), fmt.Sprint("a ", i))
	}
	for _, c := range p.Stats().Connections {
		if c.ID == busy && c.Requests != 1 || c.ID != busy && c.Requests < 2 {
			t.Errorf("connection %d had %d calls; %d is busy", c.ID, c.Requests, busy)
		}
	}
	close(g.leave)
	if err := <-blocked; err != nil {
		t.Error(err)
	}
}

// Connections come and go while the pool is used; a call under way on one that
// is removed ends well.
func TestPoolAddRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(t, "a", nil)
		g := b.addGate("wait")
		p := newPool(t, b, client.PoolOptions{Size: 1})
		blocked := make(chan error)
		go func() {
			_, err := p.Call(t.Context(), "wait", nil)
			blocked <- err
		}()
		<-g.entered
		id, err := p.Add(b.transport())
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
			echo(t, p, "echo", fmt.Sprint(i), fmt.Sprint("a ", i))
		}
		if got := requests(p); got != "3 " || b.open() != 2 {
			t.Errorf("got %s, %d connections are open", got, b.open())
		}
		close(g.leave)
		if err := <-blocked; err != nil {
			t.Errorf("the call on the removed connection: %v", err)
		}
		synctest.Wait()
		if b.open() != 1 {
			t.Errorf("%d connections are open, want 1", b.open())
		}
		if err := p.Remove(1); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("removing it again: got %v", err)
		}
		if err := p.Remove(2); err != nil {
			t.Error(err)
		}
		if _, err := p.Call(t.Context(), "echo", echoIn{"x"}); !errors.Is(err, client.ErrNoConnections) {
			t.Errorf("an empty pool: got %v", err)
		}
		if _, err := p.Add(nil); err == nil {
			t.Error("nil is no transport")
		}
	})
}

// Do keeps to one connection, and gives it back whatever happens.
func TestPoolDo(t *testing.T) {
	p := newPool(t, newBackend(t, "a", nil), client.PoolOptions{Size: 3})
	for range 3 {
		err := p.Do(t.Context(), func(c *client.Client) error {
			for i := range 4 {
				echo(t, c, "echo", fmt.Sprint(i), fmt.Sprint("a ", i))
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
	echo(t, c, "echo", "x", "a x")
	release()
	release() // does nothing
	if stats := p.Stats(); stats.InFlight != 0 || stats.Failed != 1 {
		t.Errorf("got %+v", stats)
	}
}

// Close ends calls that are under way, and those that wait for a connection.
func TestPoolClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(t, "a", nil)
		g := b.addGate("wait")
		p := newPool(t, b, client.PoolOptions{Size: 2, CheckoutTimeout: -1})
		under := make(chan error)
		go func() {
			_, err := p.Call(t.Context(), "wait", nil)
			under <- err
		}()
		<-g.entered
		dead := newBackend(t, "dead", nil)
		dead.cut(errors.New("nobody listens"))
		lonely := client.NewPool(dead.transport(), &client.PoolOptions{Size: 1, CheckoutTimeout: -1})
		waiting := make(chan error)
		go func() {
			_, err := lonely.Call(t.Context(), "echo", echoIn{"x"})
			waiting <- err
		}()
		synctest.Wait()
		if stats := lonely.Stats(); stats.Waiting != 1 {
			t.Errorf("got %+v", stats)
		}
		for _, c := range []*client.Pool{p, lonely} {
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
		if _, err := p.Add(b.transport()); !errors.Is(err, client.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if err := p.Warm(t.Context()); err != nil && !errors.Is(err, client.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// A pool does whatever a client does.
func TestPoolCaller(t *testing.T) {
	p := newPool(t, newBackend(t, "a", nil), client.PoolOptions{Size: 2})
	useCaller(t, p, "", "a")
}

// useCaller makes every call of the interface, of a server with that name.
func useCaller(t *testing.T, c client.Caller, prefix, name string) {
	t.Helper()
	ctx := t.Context()
	if err := c.Ping(ctx); err != nil {
		t.Error(err)
	}
	type sum struct{ Sum int }
	if got, err := client.Call[sum](ctx, c, prefix+"sum", map[string]int{"A": 2, "B": 3}); err != nil || got.Sum != 5 {
		t.Errorf("got %+v, %v", got, err)
	}
	read, err := c.Read(ctx, prefix+"notes://1")
	if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != "a note of "+name || read.Contents[0].URI != prefix+"notes://1" {
		t.Errorf("got %+v, %v", read, err)
	}
	if read, err = c.Read(ctx, prefix+"notes://two/text"); err != nil || read.Contents[0].Text != name+" has two" {
		t.Errorf("got %+v, %v", read, err)
	}
	prompt, err := c.GetPrompt(ctx, prefix+"greet", map[string]string{"style": "formal"})
	if err != nil || len(prompt.Messages) != 2 || prompt.Messages[0].Content.(mcp.TextContent).Text != "formal greetings from "+name ||
		prompt.Messages[1].Content.(mcp.ResourceLink).URI != prefix+"notes://1" {
		t.Errorf("got %+v, %v", prompt, err)
	}
	for _, q := range []client.Completion{
		{Prompt: prefix + "greet", Argument: "style", Value: "cas"},
		{Template: prefix + "notes://{id}/text", Argument: "id", Value: "tw"},
	} {
		if got, err := c.Complete(ctx, q); err != nil || len(got.Values) != 1 {
			t.Errorf("%+v: got %+v, %v", q, got, err)
		}
	}
	var names []string
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			t.Error(err)
		}
		if strings.HasPrefix(tool.Name, prefix) {
			names = append(names, tool.Name)
		}
	}
	for prompt, err := range c.Prompts(ctx) {
		if err == nil && strings.HasPrefix(prompt.Name, prefix) {
			names = append(names, prompt.Name)
		}
	}
	for resource, err := range c.Resources(ctx) {
		if err == nil && strings.HasPrefix(resource.URI, prefix) {
			names = append(names, resource.URI)
		}
	}
	for template, err := range c.Templates(ctx) {
		if err == nil && strings.HasPrefix(template.URITemplate, prefix) {
			names = append(names, template.URITemplate)
		}
	}
	want := strings.ReplaceAll("Pecho Psum Pgreet Pnotes://1 Pnotes://{id}/text", "P", prefix)
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for range c.Tools(ctx) {
		break // early
	}
	if _, err := c.Call(ctx, prefix+"none", nil); err == nil {
		t.Error("a tool that is not there was called")
	}
	if _, err := c.Read(ctx, prefix+"notes://9"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// Ten thousand calls at once, each with its own answer; the bubble sees that no
// goroutine is left.
func TestPoolTenThousand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 10_000
		b := newBackend(t, "a", &mcp.Options{MaxConcurrent: calls})
		var inside atomic.Int64
		all := make(chan struct{})
		b.server.MustAdd(mcp.Tool("meet", func(f *mcp.Frame, in echoIn) (string, error) {
			if inside.Add(1) == calls {
				close(all) // every one of them is under way
			}
			select {
			case <-all:
				return in.Text, nil
			case <-f.Done():
				return "", context.Cause(f)
			}
		}))
		p := newPool(t, b, client.PoolOptions{Size: 4, Strategy: client.LeastBusy})
		var wrong atomic.Int64
		var group sync.WaitGroup
		for i := range calls {
			group.Go(func() {
				text := fmt.Sprint("call ", i)
				result, err := p.Call(t.Context(), "meet", echoIn{text}, client.Timeout(-1))
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
		if stats.InFlight != 0 || stats.Requests != calls || stats.Failed != 0 {
			t.Errorf("got %+v", stats)
		}
		for _, c := range stats.Connections {
			if c.Requests < calls/8 {
				t.Errorf("connection %d had %d calls only", c.ID, c.Requests)
			}
		}
	})
}
