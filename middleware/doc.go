// Package middleware has what servers often want around their methods: a log,
// times, limits and a cache. Each function returns an mcp.Middleware for
// Server.Use, where the first is outermost:
//
//	s.Use(
//		middleware.Logging(logger),
//		middleware.RateLimit(&middleware.RateLimitOptions{Rate: 5}),
//		middleware.Cache(s, &middleware.CacheOptions{TTL: time.Minute}),
//	)
//
// A request that is refused because of a limit is answered with the JSON-RPC
// error 429. Its data say, where that is known, after how many milliseconds
// another attempt is worthwhile: {"retryAfterMs":200}.
//
// Middleware sees requests and notifications of every revision and transport
// after they have been decoded. The order matters: a limit in front of the
// cache counts calls that the cache answers, one behind it does not; a log in
// front of a limit also shows what was refused.
//
// Everything is safe for concurrent use and bounded in memory. Nothing here
// starts a goroutine.
package middleware

import (
	"strings"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// own are the requests that the server answers without a handler of the user.
var own = map[string]bool{
	protocol.MethodInitialize: true, protocol.MethodPing: true, protocol.MethodDiscover: true,
	protocol.MethodToolsList: true, protocol.MethodPromptsList: true, protocol.MethodResourcesList: true,
	protocol.MethodResourceTemplates: true, protocol.MethodListen: true, protocol.MethodSubscribe: true,
	protocol.MethodUnsubscribe: true, protocol.MethodSetLevel: true, wire.MethodEventsList: true,
	wire.MethodEventsStream: true,
}

// runsHandler reports whether f is a request that is served by a handler of the
// user.
func runsHandler(f *mcp.Frame) bool {
	req := f.Request()
	return !req.ID.IsZero() && !own[req.Method] && !strings.HasPrefix(req.Method, "tasks/")
}

// busy returns the error of a limit. after is when another attempt is
// worthwhile, or 0 if that is not known.
func busy(after time.Duration, format string, args ...any) error {
	fault := protocol.Errorf(protocol.CodeBusy, format, args...)
	fault.RetryAfter = after
	return fault
}

// failed returns the result of a tool call that tells the model what went
// wrong.
func failed(text string) *protocol.CallToolResult {
	return &protocol.CallToolResult{Content: []protocol.Content{protocol.TextContent{Text: text}}, IsError: true}
}
