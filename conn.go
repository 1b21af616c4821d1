package mcp

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/talaria-go/mcp/frame"
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
	l, err := s.serve(ctx, conn, opts)
	closeErr := conn.Close()
	return errors.Join(l.wait(err), closeErr)
}

// linkOptions shape the service of one connection.
type linkOptions struct {
	via frame.Transport
	// legacy refuses modern requests, for a transport that has none.
	legacy bool
}

// DefaultGrace is how long requests of a connection may go on after the end of
// their input if Options name no time.
const DefaultGrace = 10 * time.Second

// settleTime is how long calls that were cancelled may take to write their
// answers to a client that does not read, before the connection is closed over
// them, and how long that may take to free them.
const settleTime = time.Second

// ErrLeftBehind is what ServeStdio returns when a call, or the writing of an
// answer, went on although its time was over.
var ErrLeftBehind = errors.New("mcp: something under way ignored its end and was left behind")

// settle waits until the calls have ended and everything is written, and
// returns the error of the latter. Once limit has ended it does not wait for
// ever: a call that ignores its context, or a write that can neither be done
// nor be interrupted, is left behind. end ends the context of the connection.
func (l *link) settle(end func()) error {
	var err error
	go func() {
		defer close(l.settled)
		l.running.Wait()
		l.unasked.stop()
		l.detach()
		end()
		l.unasked.passing.Wait()
		l.replies.idle()
		err = l.conn.Flush()
	}()
	select {
	case <-l.settled:
		return err
	case <-l.limit.Done():
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
			return ErrLeftBehind
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
	if errors.Is(err, ErrLeftBehind) {
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
	if l.session != nil {
		l.session.Pending.Close(err) // no answer can come any more
	}
	if !errors.Is(err, io.EOF) {
		l.readErr = err
	}
	giveUp := func() {
		l.inflight.CancelAll(err)
		l.cut()
	}
	stop = func() {}
	switch grace := l.server.opts.Grace; {
	case l.readErr != nil || errors.Is(err, transport.ErrPeerGone):
		giveUp()
	case grace > 0:
		timer := time.AfterFunc(grace, giveUp)
		stop = func() { timer.Stop() }
	}
	return stop
}
