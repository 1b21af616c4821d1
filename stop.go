package mcp

import (
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/session"
)

// Stop returns an error with which Options.OnEvent, or the func of an
// OnNotification, ends the legacy session of its Frame: what the session has
// under way is cancelled, its streams end, Options.Terminate runs with reason,
// and a connection that has the session is closed once its calls have ended:
// ServeStdio and ServeConn return reason. Post returns the error as it is. A nil reason means ErrSessionClosed. Where
// there is no session, and from any other handler, it is an ordinary error.
func Stop(reason error) error {
	if reason == nil {
		reason = ErrSessionClosed
	}
	return &stopError{reason}
}

type stopError struct{ reason error }

func (e *stopError) Error() string { return fmt.Sprintf("mcp: the session is to end: %v", e.reason) }

// Unwrap makes errors.Is find the reason.
func (e *stopError) Unwrap() error { return e.reason }

// stopIfAsked ends a session if a handler has returned Stop.
func (s *Server) stopIfAsked(x *session.Session, err error) {
	if stop, ok := errors.AsType[*stopError](err); ok && x != nil {
		s.sessions.Stop(x, stop.reason)
	}
}
