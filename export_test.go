package mcp

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/talaria-go/mcp/internal/streamable"
)

// The defaults of limits.
const (
	DefaultMaxSubscriptions         = defaultMaxSubscriptions
	DefaultSubscriptionsPerConn     = defaultSubscriptionsPerConn
	DefaultResourcesPerSubscription = defaultResourcesPerSubscription
	DefaultMaxConcurrent            = defaultMaxConcurrent
	DefaultSessions                 = defaultSessions
	DefaultEvent                    = defaultEvent
	DefaultSessionMemory            = defaultSessionMemory
)

// SSEHandler returns Handler with the HTTP+SSE transport, whatever the options
// of s say, so that tests can run any server over it.
func (s *Server) SSEHandler() http.Handler {
	opts := s.opts.streamable()
	opts.SSE = true
	return streamable.New(s.connections.Endpoint(), opts)
}

// WithRetry returns o with another time after which clients come back.
func (o HTTPOptions) WithRetry(after time.Duration) HTTPOptions {
	o.retry = after
	return o
}

// ServeStdioOver is ServeStdio over other streams.
func (s *Server) ServeStdioOver(ctx context.Context, in io.Reader, out io.Writer) error {
	return s.serveStdio(ctx, in, out)
}

// LogForPeople is the default log of a server whose standard error is a
// terminal.
func LogForPeople(out io.Writer) io.Writer { return forPeople(out) }
