package pool

import (
	"context"
	"sync/atomic"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/client/internal/reconnector"
	"github.com/talaria-go/mcp/protocol"
)

// member is one place of a pool: a connection, and after its loss another one.
// Calls on it are counted, so that a removed member is closed after the last.
//
// The counts are atomic, as calls take no lock. lease counts before it looks at
// removed, and remove sets removed before it counts down: whichever comes
// first, either the lease fails or the member is closed after it.
type member struct {
	reconnector.Reconnector
	pool   *Pool
	id     int
	cancel context.CancelFunc // ends the Reconnector

	inFlight atomic.Int64
	requests atomic.Int64
	failed   atomic.Int64
	removed  atomic.Bool
}

// changed is called by the Reconnector when there is a connection or none any
// more.
func (m *member) changed(c *client.Client, err error) {
	p := m.pool
	if level := protocol.Level(p.level.Load()); c != nil && level != 0 {
		_ = c.SetLevel(p.ctx, level) // the server need not have levels
	}
	p.mu.Lock()
	p.settle()
	p.mu.Unlock()
	if p.opts.OnChange != nil && (c != nil || err != nil) {
		_ = link.Callback(p.client.Logger, "OnChange", func() { p.opts.OnChange(m.id, err) }) // a panic is in the log
	}
}

// lease counts a call on the connection and returns it, or nil if there is
// none. release must be called after the call.
func (m *member) lease() *client.Client {
	m.inFlight.Add(1)
	c := m.Client()
	if c == nil || m.removed.Load() || c.Revision() == 0 { // it is lost, and that is not yet known here
		m.release()
		return nil
	}
	m.requests.Add(1)
	return c
}

// release ends what lease began.
func (m *member) release() {
	if m.inFlight.Add(-1) == 0 && m.removed.Load() {
		m.cancel()
	}
}

// remove ends the Reconnector once no call is in progress on the connection.
func (m *member) remove() {
	m.inFlight.Add(1) // so that there is a last release, if only this one
	m.removed.Store(true)
	m.release()
}

// count counts the outcome of a call, and returns it.
func (m *member) count(err error) error {
	if err != nil {
		m.failed.Add(1)
	}
	return err
}

// stats returns what the connection did so far.
func (m *member) stats() ConnStats {
	c, opened, fault := m.Now()
	return ConnStats{
		ID: m.id, Server: m.Transport.String(), Ready: c != nil, InFlight: m.inFlight.Load(), Requests: m.requests.Load(),
		Failed: m.failed.Load(), Opened: opened, Err: fault,
	}
}
