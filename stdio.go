package mcp

import (
	"context"
	"io"
	"os"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/transport"
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
	_, err := s.serve(ctx, transport.NewStream(in, out, s.opts.stream()), linkOptions{via: frame.Transport{Kind: frame.Stdio}})
	return err
}
