package mcp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/conn"
	"github.com/talaria-go/mcp/transport"
)

// The errors with which serving ends.
var (
	ErrServerClosed = conn.ErrServerClosed // Shutdown was called
	ErrStillRunning = conn.ErrStillRunning // of ServeStdio: a call, or the writing of an answer, went on although its time was over
)

// ServeStdio serves one client over standard input and output, until the
// client closes standard input or ctx ends. Nothing else may write to standard
// output meanwhile.
//
// At the end of input it answers what is under way, for which Timeouts.Grace
// is the time, and returns nil. When ctx ends it cancels what is under way and
// returns ctx's cause; the goroutine that waits for standard input may stay
// until the process ends, because such a read cannot be interrupted. A tool
// that ignores its end does not keep the process: two seconds after it was
// cancelled ServeStdio goes without it, and returns ErrStillRunning where it would
// return nil.
//
// A client that does not read standard output is waited for while the server
// serves, as one that was suspended may go on: 1 MiB and the answers of
// Limits.Concurrent calls gather meanwhile, and messages that no call asked
// for are dropped. From Shutdown, or the end of input, on it is given up when it
// has taken nothing for transport.DefaultWriteTimeout.
func (s *Server) ServeStdio(ctx context.Context) error { return s.serveStdio(ctx, os.Stdin, os.Stdout) }

func (s *Server) serveStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	return s.connections.ServeStdio(ctx, transport.NewStream(in, out, s.opts.stream()))
}

// ServeConn serves one client over conn, as ServeStdio does, and closes conn.
// When conn says that the client has left (transport.ErrPeerGone), it cancels
// what is under way and returns nil. It returns when every goroutine that it
// started has ended. Package transport says how to write a Conn, and
// transport/transporttest checks it.
func (s *Server) ServeConn(ctx context.Context, conn transport.Conn) error {
	if conn == nil {
		return errors.New("mcp: ServeConn: the conn is nil")
	}
	return s.connections.ServeConn(ctx, conn, frame.Transport{Kind: frame.Pipe})
}

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
	return s.connections.ServeListener(ctx, listener, func(c net.Conn) transport.Conn { return transport.NewSocket(c, s.opts.socket()) })
}

// ServeUpgrade implements websocket.Server: see websocket.Handler.
func (s *Server) ServeUpgrade(w http.ResponseWriter, r *http.Request, upgrade func(max int) (transport.Conn, error)) {
	s.connections.ServeUpgrade(w, r, func() (transport.Conn, error) { return upgrade(s.opts.Limits.Message) })
}
