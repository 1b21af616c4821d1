package middleware

import (
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Logging logs each message that the server handles, at info level when it is done:
// method, name of the tool or prompt, revision, duration in milliseconds ("ms"), the
// code of a JSON-RPC error ("code"), and whether a tool said that it failed
// ("failed"). A subscription is logged when it is open ("opened"), with the time
// that opening took: it continues for as long as its client stays. Nothing of what
// messages and results hold is logged, and no URIs of resources.
func Logging(logger zerolog.Logger) mcp.Middleware {
	return watched(func(f *mcp.Frame, took time.Duration, result protocol.Result, err error) {
		logDone(logger, f, took, result, err)
	})
}

// watched calls done when the answer to a message has been made, with the time that next
// took, and with the error that the client gets even if it arose after next: of a result
// that cannot be encoded, or of a middleware before this one.
func watched(done func(f *mcp.Frame, took time.Duration, result protocol.Result, err error)) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			begin, returned := time.Now(), false
			defer func() {
				if !returned {
					done(f, time.Since(begin), nil, errPanicked)
				}
			}()
			result, err := next(f)
			returned = true
			took := time.Since(begin)
			frame.Internal(facts.Private{}).AtEnd(f, func(failed error) {
				if err == nil && failed != nil {
					done(f, took, nil, failed)
				} else {
					done(f, took, result, err)
				}
			})
			return result, err
		}
	}
}

// errPanicked is what is logged for a handler that has not returned.
var errPanicked = &protocol.Error{Code: protocol.CodeInternal, Message: "the handler panicked"}

// logDone writes the line for one message.
func logDone(logger zerolog.Logger, f *mcp.Frame, took time.Duration, result protocol.Result, err error) {
	req := f.Request()
	e := logger.Info().Str("method", visible.Line(req.Method, visible.Name))
	if req.Method == protocol.MethodToolsCall || req.Method == protocol.MethodPromptsGet {
		e = e.Str("name", visible.Line(req.Params.Name, visible.Name))
	}
	e = e.Str("revision", f.Revision().String()).Dur("ms", took)
	switch fault, ok := errors.AsType[*protocol.Error](err); {
	case errors.Is(err, mcp.ErrInputRequired):
		e = e.Bool("asked", true)
	case ok && fault.Code != 0:
		e = e.Int("code", int(fault.Code))
	case err != nil:
		e = e.Int("code", int(protocol.CodeInternal))
	}
	if call, ok := wire.Unwrap(result).(*protocol.CallToolResult); ok && call.IsError {
		e = e.Bool("failed", true)
	}
	if _, ok := wire.Unwrap(result).(wire.ListenResult); ok && err == nil {
		e = e.Bool("opened", true)
	}
	safely.Log(e, "handled")
}

// Timing tells report how long each message took, when it is done, and how long
// opening a subscription did. err is the
// handler's: nil for a tool that said itself that it failed. report must return
// soon, and is called by many goroutines.
func Timing(report func(f *mcp.Frame, took time.Duration, err error)) mcp.Middleware {
	return watched(func(f *mcp.Frame, took time.Duration, _ protocol.Result, err error) { report(f, took, err) })
}
