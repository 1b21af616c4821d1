package mcp

import (
	"context"
	"errors"
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
	return s.serveConn(ctx, conn, linkOptions{via: frame.Transport{Kind: frame.Pipe}})
}

func (s *Server) serveConn(ctx context.Context, conn transport.Conn, opts linkOptions) error {
	read, err := s.serve(ctx, conn, opts)
	err = errors.Join(err, conn.Close())
	if read != nil {
		<-read
	}
	return err
}

// linkOptions shape the service of one connection.
type linkOptions struct {
	via frame.Transport
	// grace is how long requests may go on after the end of the input; 0
	// means as long as they like.
	grace time.Duration
	// legacy refuses modern requests, for a transport that has none.
	legacy bool
}

// settleTime is how long calls that were cancelled may take to write their
// answers to a client that does not read, before the connection is closed over
// them, and how long that may take to free them.
const settleTime = time.Second

// settle waits until the calls have ended and everything is written, and
// returns the error of the latter. Once ctx has ended it does not wait for
// ever: ok is false when a write, as that to standard output, can neither be
// done nor be interrupted, and is left behind. end ends the context of the
// connection, with which its session ends.
func (l *link) settle(ctx context.Context, end func()) (ok bool, err error) {
	settled := make(chan error, 1)
	go func() {
		l.running.Wait()
		end()
		l.endUnasked()
		settled <- l.conn.Flush()
	}()
	select {
	case err = <-settled:
		return true, err
	case <-ctx.Done():
	}
	for closed := false; ; closed = true {
		timer := time.NewTimer(settleTime)
		select {
		case err = <-settled:
			timer.Stop()
			return true, err
		case <-timer.C:
		}
		if closed {
			return false, nil
		}
		_ = l.conn.Close() // what it could not write has an error of its own
	}
}

// ended is told that the input ended: who has left wants no answers, and who
// may still read does not wait for ever.
func (l *link) ended(err error) {
	l.unasked.stop()
	if l.session != nil {
		l.session.Pending.Close(err) // no answer can come any more
	}
	switch {
	case errors.Is(err, transport.ErrPeerGone):
		l.inflight.CancelAll(err)
	case l.opts.grace > 0:
		timer := time.AfterFunc(l.opts.grace, func() { l.inflight.CancelAll(err) })
		l.running.Wait()
		timer.Stop()
	}
}
