package mcp

import (
	"context"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// methodSessionEnd is what Frames of Options.OnSessionEnd have for a method. No
// client can ask for it.
const methodSessionEnd = "session/terminate"

// The reasons for which sessions end, for errors.Is in Options.OnSessionEnd.
var (
	ErrSessionClosed  = session.ErrClosed  // its connection ended, or any of the others
	ErrSessionDeleted = session.ErrDeleted // the client ended it with DELETE
	ErrSessionIdle    = session.ErrIdle    // it was not used for Timeouts.Session
)

// newSessions makes the table of HTTP sessions.
func (s *Server) newSessions() *session.Manager {
	m := session.NewManager(s.opts.sessions(func(err error) { s.logStore("session store", err) }))
	m.OnRestore(s.sessionEnded)
	return m
}

// startSession runs Options.OnSessionStart.
func (s *Server) startSession(f *frame.Frame) error {
	if s.opts.OnSessionStart == nil {
		return nil
	}
	return s.opts.OnSessionStart(f)
}

// greetsSlowly tells whether users' code, which may take its time, has a part in
// serving initialize.
func (s *Server) greetsSlowly() bool {
	return s.opts.OnSessionStart != nil || s.opts.Discover != nil || len(s.middleware) > 0
}

// watchEnd makes Options.OnSessionEnd run when x, which is initialized, ends.
func (s *Server) watchEnd(x *session.Session) {
	if s.opts.OnSessionEnd != nil {
		x.OnEnd(func(reason error) { s.sessionEnded(x, reason) })
	}
}

// sessionEnded runs Options.OnSessionEnd.
func (s *Server) sessionEnded(x *session.Session, reason error) {
	if s.opts.OnSessionEnd == nil {
		return
	}
	f := frame.New(frame.WithPrincipal(context.Background(), x.Principal()), frame.Config{
		Request: frame.Request{Method: methodSessionEnd}, Revision: x.Revision(), Session: x,
	})
	_, err := s.dispatch().Guard(f, func(f *frame.Frame) (protocol.Result, error) {
		s.opts.OnSessionEnd(f, reason)
		return nil, nil
	})
	if err != nil { // it panicked, which is in the log
		safely.Log(s.logger.Debug().Err(visible.Error(err)), "OnSessionEnd")
	}
}
