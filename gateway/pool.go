package gateway

import (
	"context"
	"maps"
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

	mu   sync.Mutex
	all  map[poolKey]*connection
	left map[poolKey]*connection // closed ones that watch resources, max at most: the next one takes these over
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
		if !p.room(key.caller) {
			return nil, refused("Too many callers use %q now; try again later.", u.name)
		}
		var caps protocol.ClientCapabilities
		if key.caps != "" {
			_ = jsonx.Unmarshal([]byte(key.caps), &caps) // it is of capabilitiesOf
		}
		x, ok := internal.Session(f).(*session.Session)
		var level protocol.Level
		if ok = ok && key.session != ""; ok {
			level = x.LogLevel()
		}
		c = newConnection(u, key, t, caps, level)
		p.all[at] = c
		if old := p.left[at]; old != nil {
			delete(p.left, at)
			c.watched.Follow(&old.watched, maxWatched)
		}
		if ok {
			ended := func() {
				if c.key().session != "" {
					p.drop(c, false)
				}
			}
			stay, cancel := context.AfterFunc(x.Context(), ended), c.cancel
			c.cancel = func() { stay(); cancel() }
		}
	}
	c.busy++
	return c, nil
}

// share takes a connection, which is to a modern upstream, for all whose key names it by now: it
// was opened before the era was known, or for a session of a legacy upstream. If there is such a
// connection already, it is not taken.
func (p *pool) share(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := c.key()
	before := poolKey{c.upstream, key}
	key.modern, key.session, key.stdio = true, "", false
	if c.upstream.For == nil { // as upstream.key has it
		key.caller = ""
	}
	if after := (poolKey{c.upstream, key}); p.all[before] == c && p.all[after] == nil {
		delete(p.all, before)
		p.all[after] = c
		c.is.Store(&key)
	}
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

// drop takes a connection out, and closes it when its requests have ended. If it may be
// followed, the next one under its key watches the resources that it watches.
func (p *pool) drop(c *connection, followed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[poolKey{c.upstream, c.key()}] != c {
		return
	}
	p.take(c, followed)
	c.dropped = true
	if c.busy == 0 {
		c.cancel()
	}
}

// take takes a connection out. p.mu is held.
func (p *pool) take(c *connection, followed bool) {
	at := poolKey{c.upstream, c.key()}
	delete(p.all, at)
	if followed && !c.watched.Empty() && len(p.left) < p.max {
		p.left[at] = c
	}
}

// room makes room for a connection of a caller, and reports whether there is any. A caller
// with a name has half of all at most, and closes none that watches for one with fewer.
// p.mu is held.
func (p *pool) room(caller string) bool {
	of := map[string]int{}
	for at := range p.all {
		of[at.key.caller]++
	}
	switch {
	case caller != "" && of[caller] >= max(1, p.max/2):
		return p.evict(func(c *connection) bool { return c.key().caller == caller })
	case len(p.all) >= p.max:
		return p.evict(func(c *connection) bool { return c.watched.Empty() || of[c.key().caller] >= of[caller] })
	}
	return true
}

// evict closes the connection that was unused for longest of those that may go, and reports
// whether there was one. Those that watch resources come last. p.mu is held.
func (p *pool) evict(may func(*connection) bool) bool {
	var oldest *connection
	watches := false
	for _, c := range p.all {
		if c.busy > 0 || !may(c) {
			continue
		}
		also := !c.watched.Empty()
		if oldest == nil || watches && !also || watches == also && c.used.Before(oldest.used) {
			oldest, watches = c, also
		}
	}
	if oldest == nil {
		return false
	}
	p.take(oldest, true)
	oldest.cancel()
	return true
}

// sweep closes connections that were not used since a time. One that watches resources
// stays until its session ends, or it has to make room.
func (p *pool) sweep(since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, c := range p.all {
		if c.busy == 0 && c.used.Before(since) && c.watched.Empty() {
			delete(p.all, at)
			c.cancel()
		}
	}
	maps.DeleteFunc(p.left, func(_ poolKey, c *connection) bool { return c.busy == 0 && c.used.Before(since) })
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
	maps.DeleteFunc(p.left, func(at poolKey, _ *connection) bool { return at.upstream == u })
	p.mu.Unlock()
	var closing sync.WaitGroup
	for _, c := range all {
		closing.Go(c.close)
	}
	closing.Wait()
}
