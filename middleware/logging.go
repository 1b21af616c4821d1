package middleware

import (
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// Logging logs each message that the server handles, at info level when it is
// done: method, name of the tool or prompt, revision, duration in milliseconds
// ("ms"), the code of a JSON-RPC error ("code"), and whether a tool said that it
// failed ("failed"). Nothing of what messages and results hold is logged, and
// no URIs of resources.
func Logging(logger zerolog.Logger) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (result protocol.Result, err error) {
			begin := time.Now()
			err = errPanicked
			defer func() { logDone(logger, f, time.Since(begin), result, err) }()
			return next(f)
		}
	}
}

// errPanicked is the error of a handler that has not returned.
var errPanicked = &protocol.Error{Code: protocol.CodeInternal, Message: "the handler panicked"}

// maxName bounds the names that are logged, in bytes: those of tools that do
// not exist may have any length.
const maxName = 128

func logDone(logger zerolog.Logger, f *mcp.Frame, took time.Duration, result protocol.Result, err error) {
	req := f.Request()
	e := logger.Info().Str("method", req.Method)
	if req.Method == protocol.MethodToolsCall || req.Method == protocol.MethodPromptsGet {
		e = e.Str("name", req.Params.Name[:min(len(req.Params.Name), maxName)])
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
	if call, ok := unwrap(result).(*protocol.CallToolResult); ok && call.IsError {
		e = e.Bool("failed", true)
	}
	e.Msg("handled")
}

// Timing tells report how long each message took, when it is done. err is the
// handler's: nil for a tool that said itself that it failed. report must return
// soon, and is called by many goroutines.
func Timing(report func(f *mcp.Frame, took time.Duration, err error)) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (result protocol.Result, err error) {
			begin := time.Now()
			err = errPanicked
			defer func() { report(f, time.Since(begin), err) }()
			return next(f)
		}
	}
}
