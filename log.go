package mcp

import (
	"errors"
	"fmt"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/protocol"
)

// logRequests is the middleware that logs each message at debug level: its
// method, how long it took, the code of its error; nothing of its content.
func (s *Server) logRequests(next dispatch.Handler) dispatch.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		begin := time.Now()
		result, err := next(f)
		e := s.logger.Debug().Str("method", f.Request().Method).Str("revision", f.Revision().String()).Dur("ms", time.Since(begin))
		if f.Request().Method == protocol.MethodToolsCall {
			e = e.Str("name", f.Request().Params.Name)
		}
		if fault, ok := errors.AsType[*protocol.Error](err); ok {
			e = e.Int("code", int(fault.Code))
		}
		e.Msg("request")
		return result, err
	}
}

// logPanic logs a panic of a handler with its stack.
func (s *Server) logPanic(f *frame.Frame, value any, stack []byte) {
	s.logger.Error().Str("method", f.Request().Method).Str("name", f.Request().Params.Name).
		Str("panic", fmt.Sprint(value)).Bytes("stack", stack).Msg("handler panicked")
}

// notify serves a notification; nobody hears of its error but the log.
func (s *Server) notify(f *frame.Frame) {
	if err := s.dispatch().Notify(f); err != nil {
		s.logger.Debug().Str("method", f.Request().Method).Err(err).Msg("notification")
		s.stopIfAsked(s.findSession(f.SessionID()), err)
	}
}
