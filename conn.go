package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/transport"
)

// ServeConn serves one client over conn, as ServeStdio does, and closes conn.
// When conn says that the client has left (transport.ErrPeerGone), it cancels
// what is under way and returns nil. It returns when every goroutine that it
// started has ended. Package transport says how to write a Conn, and
// transport/transporttest checks it.
func (s *Server) ServeConn(ctx context.Context, conn transport.Conn) error {
	if conn == nil {
		return errors.New("mcp: ServeConn: the conn is nil")
	}
	return s.serveConn(ctx, conn, linkOptions{via: frame.Transport{Kind: frame.Pipe}})
}

func (s *Server) serveConn(ctx context.Context, conn transport.Conn, opts linkOptions) error {
	conn = guardedConn{conn}
	l, err := s.serve(ctx, conn, opts)
	closeErr := conn.Close()
	return errors.Join(l.wait(err), closeErr)
}

// guardedConn is a connection in the guard: what panics becomes an error. Read
// and Write run where they are called, for speed; who calls them must be ready
// for a goroutine that ends.
type guardedConn struct{ conn transport.Conn }

func (g guardedConn) Read() (message []byte, err error) {
	if failed := safely.Call(func() { message, err = g.conn.Read() }); failed != nil {
		return nil, safely.Known(failed)
	}
	return message, err
}

func (g guardedConn) Write(message []byte) (err error) {
	safely.Do(func() { err = g.conn.Write(message) }, func(f *safely.Failure) {
		err = f.Detail()
		_ = g.Close() // here, for this goroutine may end
	})
	if _, failed := errors.AsType[*safely.Failure](err); failed {
		_ = g.Close() // what was to be written is lost: reading has to end, which the client sees
	}
	return err
}

func (g guardedConn) Flush() error { return safely.Known(safely.Try(g.conn.Flush)) }
func (g guardedConn) Close() error { return safely.Known(safely.Try(g.conn.Close)) }

// linkOptions shape the service of one connection.
type linkOptions struct {
	via frame.Transport
	// legacy refuses modern requests, for a transport that has none.
	legacy bool
	// by returns the request that brought the message that was read last; nil for
	// a connection that brings them itself.
	by func() *http.Request
}

// settleTime is how long calls that were cancelled may take to write their
// answers to a client that does not read, before the connection is closed over
// them, and how long that may take to free them.
const settleTime = time.Second

// ErrStillRunning is what ServeStdio returns when a call, or the writing of an
// answer, went on although its time was over.
var ErrStillRunning = errors.New("mcp: something under way ignored its end and was left behind")

// settle waits until the calls have ended and everything is written, and
// returns the error of the latter. Once limit has ended it does not wait for
// ever: a call that ignores its context, or a write that can neither be done
// nor be interrupted, is left behind. limit ends, too, when the client takes
// nothing for DefaultWriteTimeout, for which not every Conn has a time of its
// own. end ends the context of the connection.
func (l *link) settle(end func()) error {
	var err error
	go func() {
		defer close(l.settled)
		l.running.Wait()
		l.unasked.stop()
		l.detach()
		end()
		l.unasked.passing.Wait()
		err = l.replies.flush()
	}()
	late := time.NewTicker(transport.DefaultWriteTimeout)
	defer late.Stop()
	written, stuck := l.replies.stuck(-1)
	for !stuck && l.limit.Err() == nil {
		select {
		case <-l.settled:
			return err
		case <-l.limit.Done():
		case <-late.C:
			if written, stuck = l.replies.stuck(written); stuck {
				l.inflight.CancelAll(errUnread)
				l.cut()
			}
		}
	}
	for closed := false; ; closed = true {
		timer := time.NewTimer(settleTime)
		select {
		case <-l.settled:
			timer.Stop()
			return err
		case <-timer.C:
		}
		if closed {
			return ErrStillRunning
		}
		_ = l.conn.Close() // what it could not write has an error of its own
	}
}

// wait waits for every goroutine of the connection, which is closed. err is
// why it ended; nothing is left behind any more. l may be nil.
func (l *link) wait(err error) error {
	if l != nil {
		<-l.ended
		<-l.settled
		l.staff.Wait()
		l.replies.idle()
	}
	if errors.Is(err, ErrStillRunning) {
		return nil
	}
	return err
}

// endInput is told why there is no more input: who has left wants no answers,
// and who may still read does not wait for ever. stop must be called when
// nothing is under way any more.
func (l *link) endInput(err error) (stop func()) {
	defer close(l.over)
	l.unasked.stop()
	l.mu.Lock()
	l.inputErr = err
	l.mu.Unlock()
	if x := l.session.Load(); x != nil {
		x.Pending.Close(err) // no answer can come any more
	}
	if !errors.Is(err, io.EOF) {
		l.readErr = err
	}
	giveUp := func() {
		l.inflight.CancelAll(err)
		l.cut()
	}
	stop = func() {}
	switch grace := l.server.opts.Timeouts.Grace; {
	case l.readErr != nil || errors.Is(err, transport.ErrPeerGone):
		giveUp()
	case grace > 0:
		timer := time.AfterFunc(grace, giveUp)
		stop = func() { timer.Stop() }
	}
	return stop
}
