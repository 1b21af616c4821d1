package mcp

import (
	"context"
	"io"
)

// ServeStdioOver is ServeStdio over other streams.
func (s *Server) ServeStdioOver(ctx context.Context, in io.Reader, out io.Writer) error {
	return s.serveStdio(ctx, in, out)
}

// LogForPeople is the default log of a server whose standard error is a
// terminal.
func LogForPeople(out io.Writer) io.Writer { return forPeople(out) }
