package mcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// logTo returns what the default log writes to: for people, if out is a
// terminal, with the stack of a panic as lines; otherwise a line of JSON for
// each entry.
func logTo(out *os.File) io.Writer {
	if info, err := out.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return out
	}
	return forPeople(out)
}

// forPeople returns what writes the entries of a log as lines for people.
// Stacks, which are one long string in an entry, become lines of their own.
func forPeople(out io.Writer) io.Writer {
	return zerolog.ConsoleWriter{
		Out: out, NoColor: true, FieldsExclude: []string{"stack"},
		FormatExtra: func(entry map[string]any, line *bytes.Buffer) error {
			if stack, ok := entry["stack"].(string); ok {
				line.WriteString("\n" + visible.Text(stack, maxStack))
			}
			return nil
		},
	}
}

// maxStack is how much of a stack people are shown, in bytes.
const maxStack = 8 << 10

// logRequests returns the middleware that logs each message at debug level: its
// method, how long it took, the code of its error; nothing of its content.
func logRequests(logger *zerolog.Logger) Middleware {
	return func(next frame.Handler) frame.Handler {
		return func(f *frame.Frame) (protocol.Result, error) {
			begin := time.Now()
			var result protocol.Result
			var err error
			// Also after a panic, and with the error of making the answer.
			frame.Internal(facts.Private{}).AtEnd(f, func(failed error) {
				logRequest(logger.Debug(), f, time.Since(begin), result, cmp.Or(err, failed))
			})
			result, err = next(f)
			return result, err
		}
	}
}

// logRequest writes the line of a message whose answer has been made: of result, or of the
// error of its handler or of making the answer.
func logRequest(e *zerolog.Event, f *frame.Frame, took time.Duration, result protocol.Result, err error) {
	e = e.Str("method", visible.Line(f.Request().Method, visible.Name)).Str("revision", f.Revision().String()).Dur("ms", took)
	if f.Request().Method == protocol.MethodToolsCall {
		e = e.Str("name", visible.Line(f.Request().Params.Name, visible.Name))
	}
	switch fault, ok := errors.AsType[*protocol.Error](err); {
	case errors.Is(err, ErrInputRequired):
		e = e.Bool("asked", true)
	case ok && fault.Code != 0:
		e = e.Int("code", int(fault.Code))
	case err != nil:
		e = e.Int("code", int(protocol.CodeInternal))
	}
	if called, ok := wire.Unwrap(result).(*protocol.CallToolResult); ok && err == nil && called.IsError {
		e = e.Bool("failed", true)
	}
	safely.Log(e, "request")
}

// logPanic returns what logs, with its stack, how a handler ended that did not
// return.
func logPanic(logger *zerolog.Logger) func(*frame.Frame, *safely.Failure) {
	return func(f *frame.Frame, failure *safely.Failure) {
		e := logger.Error()
		if f != nil {
			e = e.Str("method", visible.Line(f.Request().Method, visible.Name)).Str("name", visible.Line(f.Request().Params.Name, visible.Name))
		}
		safely.Log(withFailure(e, failure), "handler panicked")
	}
}

// logUnasked returns what logs, once for each handler, that it dropped the error of a
// question. All resources count as one handler, since a client makes up their URIs.
func logUnasked(logger *zerolog.Logger) func(*frame.Frame, []string) {
	var mu sync.Mutex
	seen := make(map[string]bool)
	first := func(handler string) bool {
		mu.Lock()
		defer mu.Unlock()
		defer func() { seen[handler] = true }()
		return !seen[handler]
	}
	return func(f *frame.Frame, keys []string) {
		method, name := f.Request().Method, f.Request().Params.Name
		handler := method
		if method != protocol.MethodResourcesRead {
			handler += " " + name
		}
		if first(handler) {
			safely.Log(logger.Warn().Str("method", method).Str("name", visible.Line(name, visible.Name)).Strs("questions", keys),
				"the user is not asked: the handler drops the error of Ask or Elicit, and has to return it")
		}
	}
}

// logInvalid returns what logs a result that cannot be sent.
func logInvalid(logger *zerolog.Logger) func(*frame.Frame, error) {
	return func(f *frame.Frame, err error) {
		r := f.Request()
		safely.Log(logger.Error().Err(visible.Error(err)).Str("method", visible.Line(r.Method, visible.Name)).Str("name", visible.Line(r.Params.Name, visible.Name)),
			"the result is invalid")
	}
}

// logRefused returns what logs why an observer has refused a message.
func logRefused(logger *zerolog.Logger) func(*frame.Frame, error) {
	return func(f *frame.Frame, err error) {
		safely.Log(logger.Error().Str("method", visible.Line(f.Request().Method, visible.Name)).Err(visible.Error(err)), "an observer refused a message")
	}
}

// logStore returns what logs the errors of a store, with the stack if it
// panicked. which says whose store it is. While a store is unavailable, or takes too
// long, every request may find that out, so that lines about it are seldom.
func logStore(logger *zerolog.Logger, which string) func(error) {
	var seldom safely.Seldom
	return func(err error) {
		var skipped safely.Skipped
		if errors.Is(err, scale.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			var due bool
			if skipped, due = seldom.Due(which, ""); !due {
				return
			}
		}
		e := logger.Error()
		if failure, ok := errors.AsType[*safely.Failure](err); ok {
			e = withFailure(e, failure)
		} else {
			e = e.Err(visible.Error(err))
		}
		if skipped.Lines > 0 {
			e = e.Int("skipped", skipped.Lines)
		}
		safely.Log(e, which)
	}
}

// withFailure adds to e how users' code ended: what it panicked with, made
// harmless for a terminal and cut, and the whole stack.
func withFailure(e *zerolog.Event, failure *safely.Failure) *zerolog.Event {
	return e.Str("panic", visible.Text(failure.Value, visible.Sentence)).Bytes("stack", failure.Stack)
}
