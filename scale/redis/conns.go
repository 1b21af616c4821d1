package redis

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// conns are the connections to the engine, so that they can be closed: the
// library of the client keeps one for as long as it works, though the machine at
// its other end has been made a replica.
type conns struct {
	mu   sync.Mutex
	open map[*conn]bool
}

// conn is a connection that is noted while it is open.
type conn struct {
	net.Conn
	in *conns
}

// dialFunc is how the library of the client dials.
type dialFunc = func(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error)

// dialer returns what dials and notes the connection. dial is nil for TCP.
func (c *conns) dialer(dial dialFunc) dialFunc {
	return func(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
		var made net.Conn
		var err error
		// It serves all that wait for it, in any order; d has a time limit.
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
		noted := &conn{made, c}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.open == nil {
			c.open = map[*conn]bool{}
		}
		c.open[noted] = true
		return noted, nil
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.in.mu.Lock()
	delete(c.in.open, c)
	c.in.mu.Unlock()
	return c.Conn.Close()
}

// closeAll closes the connections. The client dials again when it needs one.
func (c *conns) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		_ = conn.Conn.Close()
	}
}
