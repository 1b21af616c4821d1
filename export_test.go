package mcp

import (
	"context"
	"io"
	"net/http"

	"github.com/talaria-go/mcp/transport/streamable"
)

// SSEHandler returns Handler with the HTTP+SSE transport, whatever the options
// of s say, so that tests can run any server over it.
func (s *Server) SSEHandler() http.Handler {
	opts := s.opts.HTTP
	opts.SSE = true
	return streamable.New((*endpoint)(s), opts)
}

// ServeStdioOver is ServeStdio over other streams.
func (s *Server) ServeStdioOver(ctx context.Context, in io.Reader, out io.Writer) error {
	return s.serveStdio(ctx, in, out)
}
