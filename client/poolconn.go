package client

import (
	"context"
	"sync/atomic"
)

// pooled is one place of a pool: a connection, and after its loss another.
type pooled struct {
	keeper
	pool   *Pool
	id     int
	cancel context.CancelFunc // ends the keeper

	inFlight atomic.Int64
	requests atomic.Int64
	failed   atomic.Int64
	removed  atomic.Bool
}

// onChange is the keeper's.
func (m *pooled) onChange(c *Client, err error) {
	p := m.pool
	p.mu.Lock()
	p.settle()
	p.mu.Unlock()
	if p.opts.OnChange != nil && (c != nil || err != nil) {
		p.opts.OnChange(m.id, err)
	}
}

// lease counts a call on the connection and returns it; nil if there is none.
func (m *pooled) lease() *Client {
	m.inFlight.Add(1)
	c := m.client.Load()
	if c == nil || m.removed.Load() || c.conn.Load() == nil {
		m.release()
		return nil
	}
	m.requests.Add(1)
	return c
}

// release ends what lease began.
func (m *pooled) release() {
	if m.inFlight.Add(-1) == 0 && m.removed.Load() {
		m.cancel()
	}
}

// remove ends the keeper once nothing is under way on the connection.
func (m *pooled) remove() {
	m.inFlight.Add(1) // so that there is a last release, if only this one
	m.removed.Store(true)
	m.release()
}

// count counts what became of a call.
func (m *pooled) count(err error) error {
	if err != nil {
		m.failed.Add(1)
	} else {
		m.answered.Add(1)
	}
	return err
}
