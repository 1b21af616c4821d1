package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// Serve accepts connections from a listener for Unix or TCP sockets and serves
// each as ServeStdio serves its one: a message is a line, and each connection
// has a legacy session of its own, modern requests beside it. It adds no
// authentication and no encryption: the permissions of a Unix socket, or a TLS
// listener, are the caller's.
//
// It serves until ctx ends, whose cause it returns, Shutdown is called, for
// which it returns ErrServerClosed, or the listener fails. It closes the
// listener and returns when every connection has ended and every goroutine
// that it started has returned. Connections beyond Limits.Connections are
// told so and closed.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	if listener == nil {
		return errors.New("mcp: Serve: the listener is nil")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var closing sync.WaitGroup
	closing.Go(func() {
		select {
		case <-ctx.Done():
		case <-s.connections.down:
		}
		// Accept fails then; who closed the listener before has done the same.
		_ = safely.Try(listener.Close)
	})
	var serving sync.WaitGroup
	err := s.accept(ctx, listener, &serving)
	serving.Wait()
	cancel()
	closing.Wait()
	return err
}

// accept takes connections until it cannot, and returns why.
func (s *Server) accept(ctx context.Context, listener net.Listener, serving *sync.WaitGroup) error {
	for wait := minAcceptWait; ; {
		var conn net.Conn
		err := safely.Known(safely.Try(func() (err error) { conn, err = listener.Accept(); return err }))
		switch {
		case s.connections.isDown():
			closeAccepted(conn, err)
			return ErrServerClosed
		case ctx.Err() != nil:
			closeAccepted(conn, err)
			return context.Cause(ctx)
		case isTransient(err):
			// As net/http does: another try finds descriptors free again.
			safely.Log(s.logger.Warn().Err(visible.Error(err)), "accept failed; trying again")
			pause(ctx, s.connections.down, wait)
			wait = min(2*wait, maxAcceptWait)
			continue
		case err != nil:
			return fmt.Errorf("mcp: Serve cannot accept connections: %w", err)
		}
		wait = minAcceptWait
		serving.Go(func() { s.serveSocket(ctx, conn) })
	}
}

// closeAccepted closes a connection that came too late, if there is one.
func closeAccepted(conn net.Conn, err error) {
	if err == nil {
		_ = safely.Try(conn.Close) // it was never used
	}
}

// The time between two tries to accept.
const (
	minAcceptWait = 5 * time.Millisecond
	maxAcceptWait = time.Second
)

// isTransient tells whether accepting may work a little later.
func isTransient(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}

func pause(ctx context.Context, down <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-down:
	}
}

func (s *Server) serveSocket(ctx context.Context, conn net.Conn) {
	var remote string
	_ = safely.Try(func() error { remote = conn.RemoteAddr().String(); return nil }) // the connection lives without
	socket := transport.NewSocket(conn, s.opts.socket())
	leave, err := s.connections.enter("") // nobody has said who it is
	if err != nil {
		s.refuseConn(guardedConn{socket}, err)
		return
	}
	defer leave()
	via := frame.Transport{Kind: frame.Socket, Remote: remote}
	s.logEnd(via, s.serveConn(ctx, socket, linkOptions{via: via}))
}

// refuseConn says that there are too many connections, and closes this one.
func (s *Server) refuseConn(conn transport.Conn, why error) {
	fault := protocol.Errorf(protocol.CodeBusy, "%w", why)
	// Whether the client hears it does not matter to anybody else.
	_ = conn.Write(protocol.AppendErrorResponse(nil, protocol.ID{}, fault, protocol.Latest))
	_ = conn.Flush()
	_ = conn.Close()
}

// logEnd tells the log why a connection ended, unless that is as usual.
func (s *Server) logEnd(via frame.Transport, err error) {
	if err == nil || errors.Is(err, ErrServerClosed) {
		return
	}
	safely.Log(s.logger.Debug().Err(visible.Error(err)).Str("transport", string(via.Kind)).Str("remote", via.RemoteAddr()), "connection ended")
}
