package proxy

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/clients/subscriptions"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// backend is a connection to the server behind, which another can replace.
type backend struct {
	session string
	ended   chan struct{} // closed by Close

	mu      sync.Mutex
	now     *connection
	closed  bool
	leaving sync.WaitGroup // connections that were replaced and are not closed yet
	level   *protocol.Level
	hello   client.Server // when it was there the last time
	offers  protocol.ServerCapabilities
	watched subscriptions.Recent // by clients without sessions; the subscriptions are those of the connection
}

// connection is a client of the server behind.
type connection struct {
	*client.Client
	subs subscriptions.Set
	lost atomic.Pointer[error] // why it is not there, nil while it is

	calls    int           // requests in progress; guarded by the mutex of the backend
	replaced bool          // guarded by the mutex of the backend
	idle     chan struct{} // closed when it is replaced and no request is in progress
}

// state keeps what became of the attempts to come back, and reports whether the server
// is there again.
func (c *connection) state(state client.State, err error) (again bool) {
	switch {
	case state == client.StateReady:
		return c.lost.Swap(nil) != nil
	case err != nil && !errors.Is(err, client.ErrClosed):
		c.lost.Store(&err)
	}
	return false
}

// backTime is how long a request waits for a connection that was lost.
const backTime = 10 * time.Second

// ready waits for a while if the connection is lost.
func (c *connection) ready(ctx context.Context) error {
	if c.Revision() != 0 {
		return nil
	}
	limited, stop := context.WithTimeout(ctx, backTime)
	defer stop()
	return c.explain(c.WaitReady(limited))
}

// explain returns why the connection is lost for an error that says that it
// does not come back in time, or that it was closed.
func (c *connection) explain(err error) error {
	why := c.lost.Load()
	if why == nil || !errors.Is(err, client.ErrTimeout) && !errors.Is(err, client.ErrClosed) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return *why
}

// use returns the connection for a request, which ends with done.
func (b *backend) use(ctx context.Context) (*connection, error) {
	for {
		c := b.current()
		err := c.ready(ctx)
		b.mu.Lock()
		if b.now == c {
			if err == nil {
				c.calls++
			}
			b.mu.Unlock()
			return c, err
		}
		b.mu.Unlock() // c was replaced in the meantime
	}
}

// done ends a use of a connection.
func (b *backend) done(c *connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.calls--
	c.leaveLocked()
}

// leaveLocked closes idle if the connection is replaced and no request is in progress.
func (c *connection) leaveLocked() {
	if c.replaced && c.calls == 0 {
		close(c.idle)
	}
}

func (b *backend) current() *connection {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// apply changes something that lasts longer than a request, again for a connection that
// has replaced the first one in the meantime.
func (b *backend) apply(ctx context.Context, change func(c *connection) error) error {
	for {
		c, err := b.use(ctx)
		if err != nil {
			return err
		}
		err = change(c)
		b.done(c)
		if b.current() == c {
			return err
		}
	}
}

// Grace is how long requests to a connection that was replaced may take to end.
const Grace = 10 * time.Second

// errReplaced is the error of a request that takes longer.
var errReplaced = errors.New("the server was replaced, and the request did not end within " + Grace.String())

// replace makes next the connection. The old one is closed as soon as its requests
// have ended, or after Grace. What failed and matters to no request goes to warn.
func (b *backend) replace(ctx context.Context, next *connection, warn func(err error, what string)) {
	old := b.current()
	b.restore(ctx, old, next, warn)
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		warn(next.Close(), "closing a connection")
		return
	}
	b.now = next
	old.replaced = true
	old.leaveLocked()
	b.leaving.Go(func() {
		late := time.NewTimer(Grace)
		defer late.Stop()
		select {
		case <-old.idle:
		case <-b.ended:
		case <-late.C:
			old.lost.Store(&errReplaced)
		}
		warn(old.Close(), "closing a connection")
	})
	b.mu.Unlock()
	b.restore(ctx, old, next, warn) // what came in the meantime
}

// restore gives next the log level and the subscriptions.
func (b *backend) restore(ctx context.Context, old, next *connection, warn func(err error, what string)) {
	b.mu.Lock()
	level := b.level
	b.mu.Unlock()
	if level != nil {
		if err := next.SetLevel(ctx, *level); !errors.Is(err, client.ErrUnsupported) {
			warn(err, "setting the log level")
		}
	}
	for _, uri := range old.subs.URIs() {
		_, err := next.subs.Add(ctx, next.Client, uri)
		warn(err, "subscribing")
	}
}

// setLevel sets the log level.
func (b *backend) setLevel(ctx context.Context, level protocol.Level) error {
	return b.apply(ctx, func(c *connection) error {
		b.mu.Lock()
		b.level = &level
		b.mu.Unlock()
		return c.SetLevel(ctx, level)
	})
}

// Close ends the connection, and those that it has replaced.
func (b *backend) Close() error {
	b.mu.Lock()
	c := b.now
	if !b.closed {
		b.closed = true
		close(b.ended)
	}
	b.mu.Unlock()
	err := c.Close()
	b.leaving.Wait()
	return err
}

// server is the description of the server behind, without capabilities that end here.
// Without a connection it is the description of the last one.
func (b *backend) server() (client.Server, protocol.ServerCapabilities) {
	var hello struct {
		Capabilities protocol.ServerCapabilities `json:"capabilities"`
	}
	now := b.current().Server()
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Raw != nil && jsonx.Unmarshal(now.Raw, &hello) == nil {
		b.hello, b.offers = now, hello.Capabilities
		b.offers.Extensions, b.offers.Experimental = nil, nil
	}
	return b.hello, b.offers
}

// maxWatched is how many resources clients without sessions can listen to at a
// time. When they stop is not told here, so that the oldest make room.
const maxWatched = 1000

// watch subscribes to a resource for a client without a session.
func (b *backend) watch(ctx context.Context, uri string) error {
	oldest := b.watched.Want(uri, "", maxWatched)
	return b.apply(ctx, func(c *connection) error {
		_, ended := c.subs.Remove(oldest)        // first, since the server may have the same limit
		_, err := c.subs.Add(ctx, c.Client, uri) // again if it has ended, or failed before
		return errors.Join(ended, err)
	})
}
