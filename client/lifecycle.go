package client

import (
	"context"
	"errors"

	"github.com/talaria-go/mcp/internal/pause"
)

// stateLine gives changes of state to the callbacks one after the other.
type stateLine struct {
	queue   []stateChange
	running bool
}

type stateChange struct {
	state State
	err   error
}

// State returns the state of the connection.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// WaitReady waits until the client is ready. It fails when ctx ends, when the
// client is closed, and when it is disconnected and will not come back.
func (c *Client) WaitReady(ctx context.Context) error {
	for {
		c.mu.Lock()
		state, err, closed, returning, changed := c.state, c.stateErr, c.closed, c.returning, c.changed
		c.mu.Unlock()
		switch {
		case closed:
			return &Error{Op: "wait", kind: ErrClosed, Err: errClientClosed}
		case state == StateReady:
			return nil
		case state == StateDisconnected && !returning:
			return &Error{Op: "wait", kind: ErrClosed, Err: err}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return wrap("wait", "", "", context.Cause(ctx))
		}
	}
}

// OnState calls fn at every change of state from now on, as Options.OnState
// does, until remove is called.
func (c *Client) OnState(fn func(state State, err error)) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastFn++
	id := c.lastFn
	c.stateFns[id] = fn
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.stateFns, id)
	}
}

// setState changes the state and tells of it.
func (c *Client) setState(state State, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setStateLocked(state, err)
}

func (c *Client) setStateLocked(state State, err error) {
	if c.state == state && c.stateErr == err {
		return
	}
	c.state, c.stateErr = state, err
	close(c.changed)
	c.changed = make(chan struct{})
	if len(c.stateFns) == 0 {
		return
	}
	c.stateLine.queue = append(c.stateLine.queue, stateChange{state, err})
	if !c.stateLine.running {
		c.stateLine.running = true
		c.tasks.Go(c.tellStates)
	}
}

// tellStates runs the callbacks until all changes are told.
func (c *Client) tellStates() {
	for {
		c.mu.Lock()
		if len(c.stateLine.queue) == 0 {
			c.stateLine.running = false
			c.mu.Unlock()
			return
		}
		change := c.stateLine.queue[0]
		c.stateLine.queue = c.stateLine.queue[1:]
		fns := make([]func(State, error), 0, len(c.stateFns))
		for id := 0; id <= c.lastFn; id++ {
			if fn := c.stateFns[id]; fn != nil {
				fns = append(fns, fn)
			}
		}
		c.mu.Unlock()
		for _, fn := range fns {
			c.guard("state", func() { fn(change.state, change.err) })
		}
	}
}

// guard runs a callback of the user; a panic is logged and costs nothing else.
func (c *Client) guard(what string, fn func()) {
	defer func() {
		if p := recover(); p != nil {
			c.opts.Logger.Error().Str("callback", what).Interface("panic", p).Msg("a callback panicked")
		}
	}()
	fn()
}

// install makes conn the connection of the client.
func (c *Client) install(conn *connection) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return &Error{kind: ErrClosed, Err: errClientClosed}
	}
	if err := conn.lostErr(); err != nil {
		return err
	}
	c.opening = nil
	c.conn.Store(conn)
	c.setStateLocked(StateReady, nil)
	return nil
}

// lost is called when a connection ended by itself.
func (c *Client) lost(conn *connection, err error) {
	if err == nil {
		err = errors.New("the server ended the connection")
	}
	c.mu.Lock()
	was := c.conn.CompareAndSwap(conn, nil)
	back := was && !c.closed && !c.opts.NoReconnect
	if was {
		c.returning = back
		c.setStateLocked(StateDisconnected, err)
		if !c.closed {
			c.tasks.Go(func() { c.comeBack(conn, back) })
		}
	}
	c.mu.Unlock()
	// The waiting comes after the state, so that who waits finds it changed.
	c.calls.failAll(conn, &Error{kind: ErrClosed, Err: err, lost: true})
	conn.asked.CancelAll(err)
	if was {
		c.opts.Logger.Warn().Err(err).Str("server", c.server).Bool("reconnect", back).Msg("connection lost")
		c.pauseSubscriptions(err, back)
	}
}

// comeBack clears the lost connection away and makes a new one.
func (c *Client) comeBack(old *connection, back bool) {
	ctx, stop := context.WithTimeout(c.ctx, c.opts.CloseTimeout)
	_ = old.close(ctx) // it is lost anyway
	stop()
	if !back {
		return
	}
	c.returnLoop()
}

// returnLoop reconnects, and tells what became of it.
func (c *Client) returnLoop() {
	err := c.reconnect()
	c.mu.Lock()
	c.returning = false
	if err != nil && !c.closed {
		// Not the state changed, but that it will stay so.
		c.state = StateConnecting
		c.setStateLocked(StateDisconnected, err)
	}
	c.mu.Unlock()
	if err != nil {
		c.endSubscriptions(&Error{kind: ErrClosed, Err: err})
		return
	}
	c.resubscribe()
}

// reconnect tries as often as Options.Reconnect says.
func (c *Client) reconnect() error {
	last := errors.New("no attempt was made")
	for n := 1; ; n++ {
		wait, ok := c.opts.Reconnect.wait(n)
		if !ok {
			return last
		}
		if err := pause.For(c.ctx, wait); err != nil {
			return err
		}
		conn, err := c.open(c.ctx)
		if err == nil {
			if err = c.install(conn); err == nil {
				c.calls.count(func(s *Stats) *int64 { return &s.Reconnects })
				return nil
			}
			_ = conn.close(c.ctx) // it was lost at once
		}
		last = err
		c.setState(StateDisconnected, err)
		c.opts.Logger.Warn().Err(err).Str("server", c.server).Int("attempt", n).Msg("reconnecting failed")
	}
}

// renew replaces a connection whose session has expired, once for all who find
// that out.
func (c *Client) renew(ctx context.Context, old *connection) error {
	c.renewal.Lock()
	defer c.renewal.Unlock()
	if c.conn.Load() != old {
		_, err := c.current(ctx)
		return err
	}
	c.mu.Lock()
	c.conn.CompareAndSwap(old, nil)
	c.returning = true
	c.setStateLocked(StateConnecting, nil)
	c.mu.Unlock()
	conn, err := c.open(c.ctx)
	if err == nil {
		err = c.install(conn)
	}
	back := err != nil && !c.opts.NoReconnect
	c.mu.Lock()
	c.returning = back
	if err != nil {
		c.setStateLocked(StateDisconnected, err)
	}
	c.mu.Unlock()
	c.spawn(func() {
		ctx, stop := context.WithTimeout(c.ctx, c.opts.CloseTimeout)
		_ = old.close(ctx) // its session is gone
		stop()
		switch {
		case err == nil:
			c.resubscribe()
		case back:
			c.returnLoop()
		default:
			c.endSubscriptions(&Error{Op: "listen", kind: ErrClosed, Err: err})
		}
	})
	return err
}

// Reconnect connects again now, if the client is disconnected and does not come
// back by itself.
func (c *Client) Reconnect(ctx context.Context) error {
	c.renewal.Lock()
	defer c.renewal.Unlock()
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return &Error{Op: "reconnect", kind: ErrClosed, Err: errClientClosed}
	}
	if c.returning || c.conn.Load() != nil {
		c.mu.Unlock()
		return c.WaitReady(ctx)
	}
	c.returning = true
	c.mu.Unlock()
	conn, err := c.open(ctx)
	if err == nil {
		err = c.install(conn)
	}
	c.mu.Lock()
	c.returning = false
	if err != nil {
		c.setStateLocked(StateDisconnected, err)
	}
	c.mu.Unlock()
	if err == nil {
		c.spawn(c.resubscribe)
	}
	return wrap("reconnect", "", "", err)
}
