package mcp

import (
	"context"
	"net/http"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// methodTerminate is what Frames of Options.Terminate have for a method. No
// client can ask for it.
const methodTerminate = "session/terminate"

// The reasons for which sessions end, for errors.Is in Options.Terminate.
var (
	ErrSessionClosed  = session.ErrClosed  // its connection ended, or any of the others
	ErrSessionDeleted = session.ErrDeleted // the client ended it with DELETE
	ErrSessionIdle    = session.ErrIdle    // it was not used for Options.Sessions.Idle
)

// newSessions makes the table of HTTP sessions.
func (s *Server) newSessions() *session.Manager {
	config := s.opts.Sessions
	if config.StoreFailed == nil {
		config.StoreFailed = func(err error) { s.logger.Error().Err(err).Msg("session store") }
	}
	m := session.NewManager(config)
	m.OnRestore(s.terminate)
	return m
}

// initSession runs Options.Init.
func (s *Server) initSession(f *frame.Frame) error {
	if s.opts.Init == nil {
		return nil
	}
	return s.opts.Init(f)
}

// watchEnd makes Options.Terminate run when x, which is initialized, ends.
func (s *Server) watchEnd(x *session.Session) {
	if s.opts.Terminate != nil {
		x.OnEnd(func(reason error) { s.terminate(x, reason) })
	}
}

// terminate runs Options.Terminate.
func (s *Server) terminate(x *session.Session, reason error) {
	if s.opts.Terminate == nil {
		return
	}
	f := frame.New(frame.WithPrincipal(context.Background(), x.Principal()), frame.Config{
		Request: frame.Request{Method: methodTerminate}, Revision: x.Revision(), Session: x,
	})
	_, err := s.dispatch().Guard(f, func(f *frame.Frame) (protocol.Result, error) {
		s.opts.Terminate(f, reason)
		return nil, nil
	})
	if err != nil { // it panicked, which is in the log
		s.logger.Debug().Err(err).Msg("Terminate")
	}
}

// sessionOf finds the session of that id, if it belongs to whoever sends r. A
// session of somebody else is like one that does not exist.
func (s *Server) sessionOf(id string, r *http.Request) (*session.Session, bool) {
	x, ok := s.sessions.Get(id)
	if !ok || x.Principal() != frame.PrincipalOf(r.Context()) {
		return nil, false
	}
	return x, true
}

// NewStoredKey returns a Key whose value moves with its session to another
// process; see frame.NewStoredKey.
func NewStoredKey[T any](name string) Key[T] { return frame.NewStoredKey[T](name) }
