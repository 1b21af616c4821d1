package session

import (
	"context"
	"errors"
	"testing"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/protocol"
)

func TestSession(t *testing.T) {
	info := &protocol.Implementation{Name: "tester", Version: "1"}
	s := New(t.Context(), "id", core.ClientInfo{Revision: protocol.V20250618, Info: info})
	if s.ID() != "id" || s.Revision() != protocol.V20250618 || s.ClientInfo() != info {
		t.Errorf("got %q %v %v", s.ID(), s.Revision(), s.ClientInfo())
	}
	if s.Capabilities() == nil {
		t.Error("Capabilities() is nil")
	}
	if s.Initialized() || !s.SetInitialized() || s.SetInitialized() || !s.Initialized() {
		t.Error("SetInitialized must be true the first time, and then false")
	}
	if got := s.LogLevel(); got != protocol.LevelInfo {
		t.Errorf("log level %v before the client says, want info", got)
	}
	s.SetLogLevel(protocol.LevelError)
	if got := s.LogLevel(); got != protocol.LevelError {
		t.Errorf("log level %v, want error", got)
	}
	s.Assigns().Set("k", 1)
	if v, _ := s.Assigns().Get("k"); v != 1 {
		t.Errorf("assign %v, want 1", v)
	}
}

// A session ends by Close or with its parent.
func TestSessionContext(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	closed, orphan := New(parent, "", core.ClientInfo{}), New(parent, "", core.ClientInfo{})
	closed.Close(core.ErrSessionClosed)
	closed.Close(core.ErrSessionClosed)
	if got := context.Cause(closed.Context()); !errors.Is(got, core.ErrSessionClosed) {
		t.Errorf("closed: %v, want core.ErrSessionClosed", got)
	}
	if orphan.Context().Err() != nil {
		t.Error("another session ended, too")
	}
	cancel()
	if orphan.Context().Err() == nil {
		t.Error("the session outlived its parent")
	}
}
