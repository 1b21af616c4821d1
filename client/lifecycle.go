package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/internal/clients/attend"
	"github.com/talaria-go/mcp/internal/inflight"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
)

// settled is how long a connection must have lived for its loss not to count as
// a failed attempt.
const settled = 15 * time.Second

// stateChange is a change that was not yet passed to Options.OnState.
type stateChange struct {
	state State
	err   error
}

// lifecycle is the state of a client's connection, and the goroutines that live
// as long as the client.
//
//	connecting -> initializing -> ready -> disconnected -> connecting …
//
// A client that is disconnected either returns by itself, in which case
// returning is set, or stays so until Reconnect. Close sets closed, after which
// no goroutine is started. mu guards the fields below it; conn is atomic as
// well, because each call reads it.
type lifecycle struct {
	client *Client
	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc

	closing   context.Context // ends when Close begins
	stopWaits context.CancelCauseFunc

	tasks sync.WaitGroup // goroutines of the client
	notes sync.WaitGroup // those of them that send what no caller waits for

	conn    atomic.Pointer[connection] // nil while there is none
	renewal turn                       // held while a session is renewed

	mu        sync.Mutex
	state     State
	stateErr  error
	changed   chan struct{} // closed when the state changes
	closed    bool
	returning bool // a goroutine reconnects
	early     int  // connections in a row that did not live until they had settled
	queue     []stateChange
	telling   bool // a goroutine gives the queue to Options.OnState
}

// spawn runs fn on a goroutine that Close waits for. It returns false, without
// running fn, once the client is closed.
func (l *lifecycle) spawn(fn func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.tasks.Go(fn)
	return true
}

// note is spawn for sending a message whose answer no caller waits for. Close
// gives it notesTimeout to be sent. It returns false, without running fn, once
// the client is closed.
func (l *lifecycle) note(fn func(ctx context.Context)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.notes.Add(1)
	l.tasks.Go(func() {
		defer l.notes.Done()
		ctx, stop := context.WithTimeout(l.ctx, notifyTimeout)
		defer stop()
		fn(ctx)
	})
	return true
}

// during returns a context that ends with Close, too. Close gives the work in it
// notesTimeout to end, such as to cancel a task. done must be called.
func (l *lifecycle) during(ctx context.Context) (limited context.Context, done func()) {
	limited, cancel := context.WithCancelCause(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		cancel(context.Cause(l.closing))
		return limited, func() {}
	}
	l.notes.Add(1)
	stop := context.AfterFunc(l.closing, func() { cancel(context.Cause(l.closing)) })
	return limited, func() {
		stop()
		cancel(nil)
		l.notes.Done()
	}
}

// sendNotes waits, for a limited time, until the messages of note have been
// sent.
func (l *lifecycle) sendNotes(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, notesTimeout)
	defer stop()
	waitFor(ctx, &l.notes)
}

// waitFor waits for goroutines until ctx ends.
func waitFor(ctx context.Context, goroutines *sync.WaitGroup) {
	inflight.Within(ctx, 0, goroutines.Wait)
}

// current returns the connection. While the client reconnects it waits, up to
// Options.ReconnectWait.
func (l *lifecycle) current(ctx context.Context) (*connection, error) {
	if conn := l.conn.Load(); conn != nil {
		return conn, nil
	}
	if wait := cmp.Or(l.client.opts.ReconnectWait, l.client.opts.Timeout); wait > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, wait)
		defer stop()
	}
	for {
		l.mu.Lock()
		conn, closed, idle, err, changed := l.conn.Load(), l.closed, l.state == StateDisconnected && !l.returning, l.stateErr, l.changed
		l.mu.Unlock()
		switch {
		case conn != nil:
			return conn, nil
		case closed:
			return nil, &Error{kind: ErrClosed, Err: errClientClosed}
		case idle:
			return nil, unconnected("", err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, notReady(ctx, err)
		}
	}
}

// waitReady waits until the client is ready. It fails when ctx ends, when the
// client is closed, and when it is disconnected and will not come back.
func (l *lifecycle) waitReady(ctx context.Context) error {
	for {
		l.mu.Lock()
		state, err, closed, returning, changed := l.state, l.stateErr, l.closed, l.returning, l.changed
		l.mu.Unlock()
		switch {
		case closed:
			return &Error{Op: "wait", kind: ErrClosed, Err: errClientClosed}
		case state == StateReady:
			return nil
		case state == StateDisconnected && !returning:
			return unconnected("wait", err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return wrap("wait", "", notReady(ctx, err))
		}
	}
}

// notReady returns the error of a wait for a connection that ctx has ended. lost is why
// there is none, or nil.
func notReady(ctx context.Context, lost error) error {
	if lost == nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w while the client reconnects after: %v", context.Cause(ctx), lost)
}

// now returns the state.
func (l *lifecycle) now() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// close makes spawn and note refuse. It returns false if it was called before.
func (l *lifecycle) close() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.closed
	l.closed = true
	l.stopWaits(&Error{kind: ErrClosed, Err: errClientClosed})
	return !was
}

// setState changes the state and reports the change to those who wait and to
// Options.OnState.
func (l *lifecycle) setState(state State, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setStateLocked(state, err)
}

// setStateLocked is setState for callers that hold l.mu.
func (l *lifecycle) setStateLocked(state State, err error) {
	if l.state == state && l.stateErr == err {
		return
	}
	l.state, l.stateErr = state, err
	close(l.changed)
	l.changed = make(chan struct{})
	if l.client.opts.OnState == nil && l.client.opts.Logger.GetLevel() > zerolog.DebugLevel {
		return
	}
	l.queue = append(l.queue, stateChange{state, err})
	if !l.telling {
		l.telling = true
		l.tasks.Go(l.tellStates)
	}
}

// tellStates logs changes and calls Options.OnState until all changes have been reported. One
// goroutine does so at a time.
func (l *lifecycle) tellStates() {
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.telling = false
			l.mu.Unlock()
			return
		}
		change := l.queue[0]
		l.queue = l.queue[1:]
		l.mu.Unlock()
		safely.Log(l.client.opts.Logger.Debug().Err(visible.Error(change.err)).Str("server", l.client.server).Stringer("state", change.state), "the state of the connection")
		if l.client.opts.OnState == nil {
			continue
		}
		_ = l.client.guard("OnState", func() { l.client.opts.OnState(change.state, change.err) })
	}
}

// install makes conn the connection of the client. again says that it replaces
// one that was lost, which is counted before the client is reported as ready.
func (l *lifecycle) install(conn *connection, again bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return &Error{kind: ErrClosed, Err: errClientClosed}
	}
	if err := conn.lostErr(); err != nil {
		return err
	}
	conn.ready = time.Now()
	l.client.pin.renewed()
	l.conn.Store(conn)
	if l.client.opts.HealthCheck > 0 {
		l.tasks.Go(func() { l.checkHealth(conn) })
	}
	if again {
		l.client.calls.count(func(s *Stats) *int64 { return &s.Reconnects })
	}
	l.setStateLocked(StateReady, nil)
	return nil
}

// checkHealth pings the server while nothing comes from it, until conn is
// replaced or the client is closed. The user is not asked to log in for it.
func (l *lifecycle) checkHealth(conn *connection) {
	c := l.client
	ctx := attend.Never(l.ctx)
	for seen := int64(-1); ; {
		if pause.For(ctx, c.opts.HealthCheck) != nil || l.conn.Load() != conn {
			return
		}
		if now := c.calls.received.messages.Load(); now != seen {
			seen = now
			continue
		}
		err := c.Ping(ctx, Timeout(c.opts.HealthTimeout), Retry(1))
		if _, answered := errors.AsType[*protocol.Error](err); err == nil || answered || errors.Is(err, ErrUnsupported) || ctx.Err() != nil {
			continue
		}
		if l.conn.Load() == conn {
			conn.Lost(fmt.Errorf("the health check failed: %w", err))
		}
		return
	}
}

// lost is called when a connection has ended by itself. It ends the calls on
// it, and starts reconnecting unless Options.NoReconnect is set.
func (l *lifecycle) lost(conn *connection, err error) {
	if err == nil {
		err = errors.New("the server ended the connection")
	}
	l.mu.Lock()
	was := l.conn.CompareAndSwap(conn, nil)
	back := was && !l.closed && !l.client.opts.NoReconnect && !final(err)
	if was {
		if l.early++; time.Since(conn.ready) >= settled {
			l.early = 0
		}
		l.returning = back
		l.setStateLocked(StateDisconnected, err)
		if !l.closed {
			l.tasks.Go(func() { l.replace(conn, back) })
		}
	}
	l.mu.Unlock()
	// The waiting comes after the state, so that who waits finds it changed.
	l.client.calls.failAll(conn, unconnected("", err))
	conn.asked.CancelAll(err)
	if was {
		safely.Log(l.client.opts.Logger.Warn().Err(visible.Error(err)).Str("server", l.client.server).Bool("reconnect", back), "connection lost")
		if !back {
			l.client.subs.end(unconnected("listen", err))
		}
	}
}

// replace closes the lost connection and, if back is set, makes a new one. It
// runs on a goroutine of its own.
func (l *lifecycle) replace(old *connection, back bool) {
	ctx, stop := context.WithTimeout(l.ctx, l.client.opts.CloseTimeout)
	_ = old.close(ctx) // it is lost anyway
	stop()
	if !back {
		return
	}
	l.reconnectLoop()
}

// reconnectLoop reconnects, and reports if that was in vain.
func (l *lifecycle) reconnectLoop() {
	err := l.reconnect()
	l.mu.Lock()
	l.returning = false
	if err != nil && !l.closed {
		// Not the state changed, but that it will stay so.
		l.state = StateConnecting
		l.setStateLocked(StateDisconnected, err)
	}
	l.mu.Unlock()
	if err != nil {
		l.client.subs.end(unconnected("listen", err))
		return
	}
	l.client.subs.reopen()
}

// reconnect tries as often as Options.Reconnect says. The waits grow with the
// number of connections that were lost soon after they were made, so that a
// server which accepts connections and drops them is not asked all the time. It
// ends where only other credentials help: the user is asked once.
func (l *lifecycle) reconnect() error {
	l.mu.Lock()
	early := l.early
	l.mu.Unlock()
	last := errors.New("no attempt was made")
	for n := 1; ; n++ {
		wait, ok := l.client.opts.Reconnect.wait(n)
		if !ok {
			return last
		}
		if early > n {
			wait = l.client.opts.Reconnect.pause(early)
		}
		if err := pause.For(l.ctx, wait); err != nil {
			return err
		}
		conn, err := handshake{l.client}.open(l.ctx)
		if err == nil {
			if err = l.install(conn, true); err == nil {
				return nil
			}
			l.client.discard(conn) // it was lost at once
		}
		last = err
		if final(err) {
			return err
		}
		l.setState(StateDisconnected, err)
		safely.Log(l.client.opts.Logger.Warn().Err(visible.Error(err)).Str("server", l.client.server).Int("attempt", n), "reconnecting failed")
	}
}

// renew replaces a connection whose session has expired, once for all callers
// that notice. It continues when a caller stops waiting.
func (l *lifecycle) renew(ctx context.Context, old *connection) error {
	done := make(chan error, 1)
	if !l.spawn(func() { done <- l.renewNow(old) }) {
		return &Error{kind: ErrClosed, Err: errClientClosed}
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// renewNow is renew on a goroutine of the client. Of those that find the
// session expired one replaces the connection; the others wait for their turn
// and find the new one.
func (l *lifecycle) renewNow(old *connection) error {
	if err := l.renewal.take(l.ctx); err != nil {
		return err
	}
	defer l.renewal.give()
	if l.conn.Load() != old {
		_, err := l.current(l.ctx)
		return err
	}
	l.mu.Lock()
	l.conn.CompareAndSwap(old, nil)
	l.returning = true
	l.setStateLocked(StateConnecting, nil)
	l.mu.Unlock()
	conn, err := handshake{l.client}.open(l.ctx)
	if err == nil {
		err = l.install(conn, false)
	}
	back := err != nil && !l.client.opts.NoReconnect && !final(err)
	l.mu.Lock()
	l.returning = back
	if err != nil {
		l.setStateLocked(StateDisconnected, err)
	}
	l.mu.Unlock()
	l.spawn(func() {
		ctx, stop := context.WithTimeout(l.ctx, l.client.opts.CloseTimeout)
		_ = old.close(ctx) // its session is gone
		stop()
		switch {
		case err == nil:
			l.client.subs.reopen()
		case back:
			l.reconnectLoop()
		default:
			l.client.subs.end(unconnected("listen", err))
		}
	})
	return err
}

// reconnectNow connects now, if the client is disconnected and does not
// reconnect by itself; otherwise it waits until the client is ready.
func (l *lifecycle) reconnectNow(ctx context.Context) error {
	if err := l.renewal.take(ctx); err != nil {
		return wrap("reconnect", "", err)
	}
	defer l.renewal.give()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return &Error{Op: "reconnect", kind: ErrClosed, Err: errClientClosed}
	}
	if l.returning || l.conn.Load() != nil {
		l.mu.Unlock()
		return l.waitReady(ctx)
	}
	l.returning = true
	l.mu.Unlock()
	conn, err := handshake{l.client}.open(ctx)
	if err == nil {
		err = l.install(conn, false)
	}
	l.mu.Lock()
	l.returning = false
	if err != nil {
		l.setStateLocked(StateDisconnected, err)
	}
	l.mu.Unlock()
	if err == nil {
		l.spawn(l.client.subs.reopen)
	}
	return wrap("reconnect", "", err)
}

// turn is a lock for which waiting can be given up. Make one with newTurn.
type turn chan struct{}

// newTurn returns a free turn.
func newTurn() turn { return make(turn, 1) }

// take waits for the turn, or for the end of ctx.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// give releases the turn.
func (t turn) give() { <-t }
