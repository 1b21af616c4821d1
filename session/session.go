// Package session keeps what legacy revisions share between requests: the
// negotiated revision, the client, its log level, values that handlers assign,
// the requests under way, and the stream for messages that no request asked
// for. Modern revisions have no sessions.
package session

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/peer"
	"github.com/talaria-go/mcp/protocol"
)

// ErrClosed is the cause of contexts that end with their session.
var ErrClosed = errors.New("session: closed")

// Session is one legacy session. It is safe for concurrent use. While idle it
// costs no goroutine.
type Session struct {
	id           string
	revision     protocol.Revision
	info         *protocol.Implementation
	capabilities *protocol.ClientCapabilities

	Inflight peer.Inflight // requests under way, for notifications/cancelled
	Pending  peer.Pending  // requests to the client

	initialized atomic.Bool
	level       atomic.Uint32
	assigns     frame.Assigns

	ctx   context.Context
	close context.CancelCauseFunc

	mu       sync.Mutex
	lastUsed time.Time
	busy     int      // requests and streams that keep the session alive
	stream   *Outbox  // where unasked messages go; nil if nobody listens
	waiting  [][]byte // messages for the next stream

	subscriptions map[string]struct{} // URIs of resources; nil if none
}

var _ frame.Session = (*Session)(nil)

// Client is what initialize tells of the client.
type Client struct {
	Revision     protocol.Revision
	Info         *protocol.Implementation
	Capabilities *protocol.ClientCapabilities // nil means none
}

// New returns a session that no Manager knows, as a stdio connection has it.
// Its context is a child of ctx.
func New(ctx context.Context, id string, c Client) *Session {
	s := &Session{id: id, revision: c.Revision, info: c.Info, capabilities: c.Capabilities, lastUsed: time.Now()}
	if s.capabilities == nil {
		s.capabilities = &protocol.ClientCapabilities{}
	}
	s.level.Store(uint32(protocol.LevelInfo))
	s.ctx, s.close = context.WithCancelCause(ctx)
	return s
}

// ID returns the session's id, "" on stdio.
func (s *Session) ID() string { return s.id }

// Revision returns the negotiated revision.
func (s *Session) Revision() protocol.Revision { return s.revision }

// ClientInfo returns what the client says of itself; nil if nothing.
func (s *Session) ClientInfo() *protocol.Implementation { return s.info }

// Capabilities returns what the client can do; never nil.
func (s *Session) Capabilities() *protocol.ClientCapabilities { return s.capabilities }

// Initialized tells whether notifications/initialized has come.
func (s *Session) Initialized() bool { return s.initialized.Load() }

// SetInitialized notes that it has, and tells whether it is the first time.
func (s *Session) SetInitialized() bool { return s.initialized.CompareAndSwap(false, true) }

// LogLevel returns the least level that the client wants; info until it says.
func (s *Session) LogLevel() protocol.Level { return protocol.Level(s.level.Load()) }

// SetLogLevel changes it.
func (s *Session) SetLogLevel(l protocol.Level) { s.level.Store(uint32(l)) }

// Assigns returns the values that handlers keep in the session.
func (s *Session) Assigns() *frame.Assigns { return &s.assigns }

// Context ends when the session does.
func (s *Session) Context() context.Context { return s.ctx }

// Close ends the session: its requests are cancelled and its stream ends.
func (s *Session) Close() {
	s.close(ErrClosed)
	s.Inflight.CancelAll(ErrClosed)
	s.Pending.Close(ErrClosed)
}

// Use keeps the session alive until release is called.
func (s *Session) Use() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy++
	return s.release
}

func (s *Session) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	s.lastUsed = time.Now()
}

// idleSince returns when the session was last used, or ok false while it is.
func (s *Session) idleSince() (t time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastUsed, s.busy == 0
}
