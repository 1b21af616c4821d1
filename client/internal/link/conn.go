package link

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/transport"
)

// lastWrites is how long Close waits for pending writes.
const lastWrites = time.Second

// While a peer does not read, at most maxUnwritten bytes, and one message more,
// are with the connection; later ones wait in Send, and are not sent if their
// context ends. A message counts for eachUnwritten bytes more than it has: the
// goroutine that writes it.
const (
	maxUnwritten  = 4 << 20
	eachUnwritten = 8 << 10
)

// dialer is a Transport that opens connections with a function.
type dialer struct {
	dial   func(ctx context.Context) (transport.Conn, error)
	option string
}

// OverConn returns a Transport over a transport.Conn: a child process, a socket, a
// WebSocket, a pipe. dial makes a connection; its ctx bounds the making only. option names
// the setting that raises the message limit; errors mention it.
//
// One goroutine reads. Each Send writes on a goroutine of its own, since a
// Write cannot be interrupted; Send returns when the message is written or its
// context ends. A peer that does not read can so hold up at most maxUnwritten
// bytes, beyond which Send waits.
//
// The Conn may be users' code: all of its methods run in the guard.
func OverConn(option string, dial func(ctx context.Context) (transport.Conn, error)) Transport {
	return &dialer{dial, option}
}

// Open implements Transport.
func (t *dialer) Open(ctx context.Context, to Receiver) (Link, error) {
	var conn transport.Conn
	// Like the connection, what dials may be users' code.
	if err := safely.Known(safely.Try(func() (err error) { conn, err = t.dial(ctx); return err })); err != nil {
		return nil, err
	}
	l := &connLink{conn: conn, option: t.option, to: to, closing: make(chan struct{}), ended: make(chan struct{})}
	l.goroutines.Go(func() {
		safely.Do(l.read, func(f *safely.Failure) {
			if !l.isClosed() {
				l.to.Lost(f.Detail())
			}
		})
	})
	return l, nil
}

// connLink is a Link over a connection. mu guards the fields below it; err is
// read after ended is closed.
type connLink struct {
	conn       transport.Conn
	option     string // dialer.option
	to         Receiver
	goroutines sync.WaitGroup

	mu        sync.Mutex
	unwritten int           // what the connection has not taken yet, see maxUnwritten
	room      chan struct{} // closed when there is room again; nil if no caller waits for it
	closed    bool
	shut      bool          // the connection is closed
	closing   chan struct{} // closed when Close begins
	ended     chan struct{} // closed when Close is done
	err       error         // of Close
}

// read gives what comes to the receiver until the connection ends. It is the
// link's goroutine. After Close has begun nothing is passed on, and the end is
// not a loss. It is still read, since a server may write before it ends.
func (l *connLink) read() {
	for {
		message, err := l.conn.Read()
		l.mu.Lock()
		closed, shut := l.closed, l.shut
		l.mu.Unlock()
		long, tooLong := errors.AsType[*transport.TooLongError](err)
		switch {
		case shut:
			return
		case err != nil && !tooLong:
			if !closed {
				l.to.Lost(err)
			}
			return
		case closed:
		case tooLong:
			if long.Option == "" {
				long.Option = l.option
			}
			TooLong(l.to, long)
		default:
			l.to.Receive(message, nil)
		}
	}
}

// isClosed reports whether Close has been called.
func (l *connLink) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// Send implements Link. A peer that does not read may keep a message
// waiting for longer than ctx; if it is with the connection already, it still
// leaves, should the peer read on.
func (l *connLink) Send(ctx context.Context, m *Message) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	size := len(m.Body) + eachUnwritten
	l.mu.Lock()
	for !l.closed && l.unwritten >= maxUnwritten {
		if err := l.waitRoom(ctx); err != nil {
			l.mu.Unlock()
			return err
		}
	}
	if l.closed {
		l.mu.Unlock()
		return transport.ErrClosed
	}
	l.unwritten += size
	written := make(chan error, 1)
	// A Write cannot be interrupted.
	l.goroutines.Go(func() {
		defer l.wrote(size)
		safely.Do(func() { written <- l.conn.Write(m.Body) }, func(f *safely.Failure) { written <- f.Detail() })
	})
	l.mu.Unlock()
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitRoom waits until the connection has taken much of what it has, the link
// is closed, or ctx ends, whose cause it returns. l.mu is held when it is
// called and when it returns, but not in between.
func (l *connLink) waitRoom(ctx context.Context) error {
	if l.room == nil {
		l.room = make(chan struct{})
	}
	room := l.room
	l.mu.Unlock()
	defer l.mu.Lock()
	select {
	case <-room:
	case <-l.closing:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// wrote notes that the connection has taken a message or never will. Those who
// wait for room are woken when there is room for several.
func (l *connLink) wrote(size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unwritten -= size; l.room != nil && l.unwritten <= maxUnwritten/2 {
		close(l.room)
		l.room = nil
	}
}

// process is a Conn to a child process; *transport.Command implements it.
type process interface {
	Stderr() string
	Withheld() []string
}

// Silence implements Silent.
func (l *connLink) Silence() (stderr string, withheld []string, ok bool) {
	p, ok := l.conn.(process)
	if !ok {
		return "", nil, false
	}
	return p.Stderr(), p.Withheld(), true
}

// shutdowner is a Conn whose closing takes time that ctx bounds.
type shutdowner interface {
	Shutdown(ctx context.Context) error
}

// Close implements Link. It waits up to lastWrites for pending writes,
// closes the connection, and waits as long again for the goroutines. Later
// calls wait for the first and return what it returned.
func (l *connLink) Close(ctx context.Context) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		<-l.ended
		return l.err
	}
	l.closed = true
	close(l.closing)
	l.mu.Unlock()
	l.flush(ctx)
	if conn, ok := l.conn.(shutdowner); ok {
		l.err = safely.Known(safely.Try(func() error { return conn.Shutdown(ctx) }))
	} else {
		l.err = safely.Known(safely.Try(l.conn.Close))
	}
	l.mu.Lock()
	l.shut = true
	l.mu.Unlock()
	l.leave()
	close(l.ended)
	return l.err
}

// leave waits for the goroutines for a limited time: a Read of a stream that
// cannot be closed, such as a terminal, returns when it likes. Its result is
// dropped.
func (l *connLink) leave() {
	done := make(chan struct{})
	go func() {
		l.goroutines.Wait()
		close(done)
	}()
	timer := time.NewTimer(lastWrites)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// flush waits for a limited time until everything written has been sent.
func (l *connLink) flush(ctx context.Context) {
	done := make(chan struct{})
	l.goroutines.Go(func() {
		defer close(done)
		_ = safely.Call(func() { _ = l.conn.Flush() }) // Close says whether the connection is in order
	})
	timer := time.NewTimer(lastWrites)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
}
