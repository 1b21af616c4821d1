package mcp

import (
	"context"
	"os"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/transport"
)

// ServeStdio serves one client over standard input and output, until the
// client closes standard input or ctx ends. Nothing else may write to standard
// output meanwhile.
//
// At the end of input it answers what is under way and returns nil. When ctx
// ends it cancels what is under way and returns ctx's cause; the goroutine
// that waits for standard input may stay until the process ends, because such
// a read cannot be interrupted.
func (s *Server) ServeStdio(ctx context.Context) error {
	_, err := s.serve(ctx, transport.NewStream(os.Stdin, os.Stdout, nil), linkOptions{via: frame.Transport{Kind: frame.Stdio}})
	return err
}
