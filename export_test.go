package mcp

import (
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
