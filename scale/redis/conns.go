package redis

import (
	"context"
	"crypto/tls"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// conns are the connections to the engine, so that they can be closed: the
// library of the client keeps one for as long as it works, though the machine at
// its other end has been made a replica.
type conns struct {
	calls <-chan struct{} // has an element for each call that waits
	mu    sync.Mutex
	open  map[*conn]bool
}

const (
	few  = 8                // calls wait where each is sent at once
	turn = time.Millisecond // is long for all that have something to ask
)

// conn is a connection that is noted while it is open.
type conn struct {
	net.Conn
	in    *conns
	hurry atomic.Int64 // until then, in ns, a write gives nobody else a turn
}

// dialFunc is how the library of the client dials.
type dialFunc = func(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error)

// dialer returns what dials and notes the connection. dial is nil for TCP.
func (c *conns) dialer(dial dialFunc) dialFunc {
	return func(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
		var made net.Conn
		var err error
		// It is for all who wait for it, whoever asked first; d has a time limit.
		ctx = context.WithoutCancel(ctx)
		switch {
		case dial != nil:
			made, err = dial(ctx, address, d, config)
		case config != nil:
			made, err = (&tls.Dialer{NetDialer: d, Config: config}).DialContext(ctx, "tcp", address)
		default:
			made, err = d.DialContext(ctx, "tcp", address)
		}
		if err != nil {
			return nil, err
		}
		noted := &conn{Conn: made, in: c}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.open == nil {
			c.open = map[*conn]bool{}
		}
		c.open[noted] = true
		return noted, nil
	}
}

// Write implements net.Conn. The client writes as soon as it has anything to send, so
// that many calls at a time would be as many writes here and reads at the engine. While
// many wait, those that are about to ask get their turn first, and are in the next
// write: that takes a third of the engine's processor time for a look and a sixth of the
// replica's. Where the turn comes back late, since the processors have other work, what
// is written later does not wait for it.
func (c *conn) Write(b []byte) (int, error) {
	if len(c.in.calls) > few {
		if begun := time.Now(); begun.UnixNano() > c.hurry.Load() {
			runtime.Gosched()
			if now := time.Now(); now.Sub(begun) > turn {
				c.hurry.Store(now.Add(100 * now.Sub(begun)).UnixNano())
			}
		}
	}
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.in.mu.Lock()
	delete(c.in.open, c)
	c.in.mu.Unlock()
	return c.Conn.Close()
}

// closeAll closes the connections. The client dials anew when it needs one.
func (c *conns) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		_ = conn.Conn.Close()
	}
}
