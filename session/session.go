// Package session keeps what legacy revisions share between requests: the
// negotiated revision, the client, its log level, values that handlers assign,
// the requests under way, and the stream for messages that no request asked
// for. Modern revisions have no sessions.
package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/peer"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/protocol"
)

// The reasons for which sessions end. All of them are ErrClosed to errors.Is.
var (
	ErrClosed  = errors.New("session: closed")
	ErrDeleted = fmt.Errorf("%w by its client", ErrClosed)
	ErrIdle    = fmt.Errorf("%w because it was not used", ErrClosed)
	ErrCrowded = fmt.Errorf("%w to make room for others", ErrClosed)
)

// Session is one legacy session. It is safe for concurrent use. While idle it
// costs no goroutine.
type Session struct {
	id           string
	principal    string
	revision     protocol.Revision
	info         *protocol.Implementation
	capabilities *protocol.ClientCapabilities
	cost         int // of the client, in bytes, beyond freeCost

	Inflight peer.Inflight // requests under way, for notifications/cancelled
	Pending  peer.Pending  // requests to the client

	initialized atomic.Bool
	changed     atomic.Bool // there is something to save
	unclaimed   atomic.Bool // another process saved it last, and may take it for its own
	level       atomic.Uint32
	identity    atomic.Pointer[frame.Identity] // of the newest request; nil for an anonymous client
	assigns     frame.Assigns
	save        func(*Session) // keeps the state elsewhere; nil if nothing does
	saving      sync.Mutex     // held while the Store saves the session, or deletes it

	parent   context.Context
	limit    int     // bytes of history
	maxEvent int     // bytes of an event that the history keeps
	budget   *budget // of all sessions; nil without a Manager
	uris     *budget // the same, of what they subscribed to
	life     uint64  // for the ids of events and questions, if several processes may serve it; else 0

	mu       sync.Mutex
	ctx      context.Context // nil until asked for
	cancel   context.CancelCauseFunc
	reason   error              // why the session ended; nil while it lives
	onEnd    func(reason error) // called once, when the last request is over
	lastUsed time.Time
	saved    time.Time // when the Store last got the state
	calls    int       // requests under way
	uses     int       // requests so far; initialize is the first
	streams  int       // held open, which keep the session alive as calls do
	open     []*Outbox // streams, oldest first; the last gets unasked messages
	waiting  [][]byte  // messages for the next stream
	queued   int       // bytes of these, or of what the stream holds
	history  *history  // nil until an event is kept

	subscriptions map[string]struct{} // URIs of resources; nil if none
	subscribed    int                 // bytes of these
}

var _ frame.Session = (*Session)(nil)

// Client is what initialize tells of the client.
type Client struct {
	Revision     protocol.Revision
	Info         *protocol.Implementation
	Capabilities *protocol.ClientCapabilities // nil means none
	Principal    string                       // who opened the session; "" for an anonymous client
	// Cost is what Info and Capabilities take, in bytes, as ClientCost tells; see
	// Config.Memory.
	Cost int
}

// ClientCost returns about how many bytes the parts of initialize take when they
// are decoded.
func ClientCost(parts ...[]byte) (bytes int) {
	for _, text := range parts {
		bytes += len(text)
		for _, c := range text {
			if c == ',' { // it parts members and items
				bytes += 112
			}
		}
	}
	return bytes
}

// freeCost is what a client may take that does not count.
const freeCost = 2 << 10

// New returns a session that no Manager knows, as a stdio connection has it.
// Its context is a child of ctx.
func New(ctx context.Context, id string, c Client) *Session {
	s := &Session{
		id: id, principal: c.Principal, revision: c.Revision, info: c.Info, capabilities: c.Capabilities,
		cost: max(0, c.Cost-freeCost), parent: ctx, lastUsed: time.Now(),
	}
	if s.capabilities == nil {
		s.capabilities = &noCapabilities
	}
	s.level.Store(uint32(protocol.LevelInfo))
	return s
}

// noCapabilities are those of every client that declares none. Nobody may
// change them.
var noCapabilities protocol.ClientCapabilities

// ID returns the session's id, "" on stdio.
func (s *Session) ID() string { return s.id }

// Principal returns who opened the session: nobody else may use it.
func (s *Session) Principal() string { return s.principal }

// Identity returns who the newest request came from, and with which scopes; nil
// for an anonymous client.
func (s *Session) Identity() *frame.Identity { return s.identity.Load() }

// SetIdentity notes it.
func (s *Session) SetIdentity(id *frame.Identity) {
	if s.identity.Load() != id {
		s.identity.Store(id)
	}
}

// Revision returns the negotiated revision.
func (s *Session) Revision() protocol.Revision { return s.revision }

// ClientInfo returns what the client says of itself; nil if nothing.
func (s *Session) ClientInfo() *protocol.Implementation { return s.info }

// Capabilities returns what the client can do; never nil.
func (s *Session) Capabilities() *protocol.ClientCapabilities { return s.capabilities }

// Initialized tells whether notifications/initialized has come.
func (s *Session) Initialized() bool { return s.initialized.Load() }

// SetInitialized notes that it has, and tells whether it is the first time.
func (s *Session) SetInitialized() bool {
	first := s.initialized.CompareAndSwap(false, true)
	if first {
		s.changed.Store(true)
	}
	return first
}

// LogLevel returns the least level that the client wants; info until it says.
func (s *Session) LogLevel() protocol.Level { return protocol.Level(s.level.Load()) }

// SetLogLevel changes it.
func (s *Session) SetLogLevel(l protocol.Level) {
	if s.level.Swap(uint32(l)) != uint32(l) {
		s.changed.Store(true)
	}
}

// Assigns returns the values that handlers keep in the session.
func (s *Session) Assigns() *frame.Assigns { return &s.assigns }

// Context ends when the session does, with the reason as its cause.
func (s *Session) Context() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil {
		s.ctx, s.cancel = context.WithCancelCause(s.parent)
		if s.reason != nil {
			s.cancel(s.reason)
		}
	}
	return s.ctx
}

// OnEnd makes fn be called once, with the reason, when the session has ended
// and its last request is over.
func (s *Session) OnEnd(fn func(reason error)) {
	s.mu.Lock()
	s.onEnd = fn
	ended := s.takeEnd()
	s.mu.Unlock()
	ended()
}

// takeEnd returns what is left to do at the end of the session, when it is
// due. s.mu is held; the func that it returns needs it free.
func (s *Session) takeEnd() func() {
	fn, reason := s.onEnd, s.reason
	if reason == nil || s.calls > 0 || fn == nil {
		return func() {}
	}
	s.onEnd = nil
	// It is users' code, and whoever ends a session, or its last request, has more
	// to do.
	return func() { _ = safely.Apart(func() { fn(reason) }) } // the server logs what panics in it
}

// Close ends the session for that reason: its requests are cancelled and its
// streams end. Only the first call counts.
func (s *Session) Close(reason error) {
	s.mu.Lock()
	if s.reason != nil {
		s.mu.Unlock()
		return
	}
	s.reason = reason
	if s.cancel != nil {
		s.cancel(reason)
	}
	s.dropHistory()
	s.history = nil
	s.unsubscribeAll()
	s.limit = 0
	s.budget.release(s.queued)
	s.waiting, s.queued = nil, 0
	s.endOpen()
	ended := s.takeEnd()
	s.mu.Unlock()
	s.Inflight.CancelAll(reason)
	s.Pending.Close(reason)
	ended()
}

// claim tells the Store whose session it is.
func (s *Session) claim() {
	if s.save != nil && s.unclaimed.Swap(false) {
		s.save(s)
	}
}

// Use keeps the session alive for a request, until Release is called.
func (s *Session) Use() {
	s.claim()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.uses++
}

// Ended tells whether the session was closed.
func (s *Session) Ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason != nil
}

// used tells whether there was more than initialize.
func (s *Session) used() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uses > 1
}

// unused tells whether there was nothing but initialize, which is over.
func (s *Session) unused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uses == 1 && s.calls == 0
}

// Release takes back one Use.
func (s *Session) Release() {
	if s.save != nil {
		s.save(s)
	}
	s.mu.Lock()
	s.calls--
	s.lastUsed = time.Now()
	ended := s.takeEnd()
	s.mu.Unlock()
	ended()
}

// Hold keeps the session alive for a stream, until release is called.
func (s *Session) Hold() (release func()) {
	s.claim()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams++
	s.uses += 2 // more than initialize
	return func() {
		if s.save != nil {
			s.save(s)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.streams--
		s.lastUsed = time.Now()
	}
}

// idleSince returns when the session was last used, or ok false while it is.
func (s *Session) idleSince() (t time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastUsed, s.calls == 0 && s.streams == 0
}
