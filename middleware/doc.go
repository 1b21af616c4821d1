// Package middleware has what a server wants around its methods: a log, times,
// limits and a cache. Each func returns an
// mcp.Middleware for Server.Use, where the first is outermost:
//
//	s.Use(
//		middleware.Logging(logger),
//		middleware.RateLimit(&middleware.RateLimitOptions{Rate: 5}),
//		middleware.Cache(s, &middleware.CacheOptions{TTL: time.Minute}),
//	)
//
// What is refused for a limit is the JSON-RPC error 429, whose data say,
// where that is known, in how many milliseconds it is worth trying again:
// {"retryAfterMs":200}.
//
// All of it is safe for concurrent use. Nothing here starts a goroutine.
package middleware

import (
	"strings"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// own are the requests that the server answers by itself, without a handler of
// the user's.
var own = map[string]bool{
	protocol.MethodInitialize: true, protocol.MethodPing: true, protocol.MethodDiscover: true,
	protocol.MethodToolsList: true, protocol.MethodPromptsList: true, protocol.MethodResourcesList: true,
	protocol.MethodResourceTemplates: true, protocol.MethodListen: true, protocol.MethodSubscribe: true,
	protocol.MethodUnsubscribe: true, protocol.MethodSetLevel: true,
}

// runsHandler tells whether f is a request that a handler of the user's serves.
func runsHandler(f *mcp.Frame) bool {
	req := f.Request()
	return !req.ID.IsZero() && !own[req.Method] && !strings.HasPrefix(req.Method, "tasks/")
}

// busy is the error of a limit. after is when to try again; 0 if that is not
// known.
func busy(after time.Duration, format string, args ...any) error {
	fault := protocol.Errorf(protocol.CodeBusy, format, args...)
	fault.RetryAfter = after
	return fault
}

// failed is the result of a tool call that a model should read.
func failed(text string) *protocol.CallToolResult {
	return &protocol.CallToolResult{Content: []protocol.Content{protocol.TextContent{Text: text}}, IsError: true}
}
