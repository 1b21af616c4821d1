package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// poolKey names a connection of callers.
type poolKey struct {
	upstream *upstream
	key      connKey
}

// pool has the connections of callers, to all upstreams. One that is closed is not in it
// any more.
type pool struct {
	max int

	mu  sync.Mutex
	all map[poolKey]*connection
}

// get returns the connection under a key, which it opens with t if there is none. The
// caller gives it back with release.
func (p *pool) get(f *mcp.Frame, u *upstream, key connKey, t client.Transport) (*connection, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := poolKey{u, key}
	c := p.all[at]
	if c == nil {
		if u.ctx.Err() != nil {
			return nil, errClosed
		}
		if len(p.all) >= p.max && !p.evict() {
			return nil, refused("Too many callers use %q now; try again later.", u.name)
		}
		var caps protocol.ClientCapabilities
		if key.caps != "" {
			_ = jsonx.Unmarshal([]byte(key.caps), &caps) // it is of capabilitiesOf
		}
		c = newConnection(u, key, t, caps)
		p.all[at] = c
		if x, ok := internal.Session(f).(*session.Session); ok && key.session != "" {
			stay, cancel := context.AfterFunc(x.Context(), func() { p.drop(c) }), c.cancel
			c.cancel = func() { stay(); cancel() }
			c.level.Store(uint32(x.LogLevel()))
		}
	}
	c.busy++
	return c, nil
}

// hold is get for a connection that the caller has.
func (p *pool) hold(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.busy++
}

// find returns the connection under a key; nil if there is none.
func (p *pool) find(u *upstream, key connKey) *connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[poolKey{u, key}]
}

// release ends a use of a connection.
func (p *pool) release(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.busy--
	c.used = time.Now()
	if c.dropped && c.busy == 0 {
		c.cancel()
	}
}

// drop takes a connection out, and closes it when its requests have ended.
func (p *pool) drop(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := poolKey{c.upstream, c.key}
	if p.all[at] != c {
		return
	}
	delete(p.all, at)
	c.dropped = true
	if c.busy == 0 {
		c.cancel()
	}
}

// evict closes the connection that was unused for longest, and reports whether there was
// one. p.mu is held.
func (p *pool) evict() bool {
	var oldest *connection
	for _, c := range p.all {
		if c.busy == 0 && (oldest == nil || c.used.Before(oldest.used)) {
			oldest = c
		}
	}
	if oldest == nil {
		return false
	}
	delete(p.all, poolKey{oldest.upstream, oldest.key})
	oldest.cancel()
	return true
}

// sweep closes connections that were not used since a time. One whose session watches
// resources stays as long as that.
func (p *pool) sweep(since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, c := range p.all {
		if c.busy == 0 && c.used.Before(since) && (at.key.session == "" || len(c.watched.Wanted()) == 0) {
			delete(p.all, at)
			c.cancel()
		}
	}
}

// each calls fn with each connection to an upstream.
func (p *pool) each(u *upstream, fn func(*connection)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, c := range p.all {
		if at.upstream == u {
			fn(c)
		}
	}
}

// session calls fn with each connection of a session.
func (p *pool) session(id string, fn func(*connection)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, c := range p.all {
		if id != "" && at.key.session == id {
			fn(c)
		}
	}
}

// lists reports whether a connection of a caller lists something.
func (p *pool) lists(u *upstream, what place) (found bool) {
	p.each(u, func(c *connection) {
		if all := c.catalog.Load(); all != nil && all.items[what] != nil {
			found = true
		}
	})
	return found
}

// leave closes all connections to an upstream, and waits for that.
func (p *pool) leave(u *upstream) {
	p.mu.Lock()
	var all []*connection
	for at, c := range p.all {
		if at.upstream == u {
			delete(p.all, at)
			all = append(all, c)
		}
	}
	p.mu.Unlock()
	var closing sync.WaitGroup
	for _, c := range all {
		closing.Go(c.close)
	}
	closing.Wait()
}
