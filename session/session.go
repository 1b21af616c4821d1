// Package session keeps what legacy revisions share between requests: the negotiated
// revision, the client, its log level, values of handlers, requests in progress, and the
// stream of unsolicited messages. Modern revisions have no sessions. Package mcp makes the
// sessions; programs do not need this package, and their handlers use a session through its
// Frames.
//
//   - [Session] is one session. That of a connection ends with the connection. That of
//     HTTP ends when its client deletes it or it is idle. It keeps sent events, so that
//     a client can resume a broken stream.
//   - [Manager] has the sessions of HTTP: it bounds them, ends idle ones, and makes
//     room. Sessions of connections are attached to it, so that it reaches all
//     sessions. [Config] configures it. With a scale.Store, all replicas of a server
//     share the sessions, and a client can resume at any of them.
//
// internal/streamable and internal/conn carry the messages.
//
// The order of locks is: Manager, Session, history, budget. The lock of a stream comes
// before that of a history; no Session's lock is held there. Session.saving is held while
// the Store works, and no other lock is. Users' code (a Store, OnEnd, values that encode
// themselves) runs with at most saving held, on goroutines of its own.
//
// An idle session uses about 1.3 KB after a call, and no goroutine. One timer of the
// Manager ends all idle sessions.
//
// Specification: basic/lifecycle and basic/transports of 2024-11-05 to 2025-11-25.
package session

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/inflight"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// errEndedForRoom is the reason for which sessions end to make room.
var errEndedForRoom = fmt.Errorf("%w to make room for others", core.ErrSessionClosed)

// Session is one legacy session. It is safe for concurrent use. While idle it
// costs no goroutine.
type Session struct {
	// The fields before Inflight do not change after New. mu guards those below it. A
	// session is idle while calls and streams are 0, since lastUsed. uses is 1 after
	// initialize; more means that the session was used.

	id           string
	principal    string
	revision     protocol.Revision
	info         *protocol.Implementation
	capabilities *protocol.ClientCapabilities
	cost         int // of the client, in bytes, beyond freeCost

	Inflight inflight.Requests // requests in progress, for notifications/cancelled
	Pending  inflight.Pending  // requests to the client

	initialized atomic.Bool
	changed     atomic.Bool           // there is something to save
	unsaved     atomic.Pointer[error] // of values that do not encode; saidUnsaved once that is reported
	saidUnsaved atomic.Bool
	level       atomic.Uint32
	// resubscribed means that the next save changes the subscriptions, and that the other
	// replicas need a notification.
	resubscribed atomic.Bool
	refreshes    atomic.Int32                   // how often Manager.reload was called, until that is done
	identity     atomic.Pointer[frame.Identity] // of the newest request; nil for an anonymous client
	assigns      core.Values
	save         func(*Session) error // keeps the state in the Store; nil if there is none
	resumer      *resumer             // of the Manager; nil without a Store
	key          scale.Key            // of the state in the Store; set before the session is shared

	// What the Store has: rev and base are its state when it was last read or
	// written here. saving is held while the Store writes.
	saving  sync.Mutex
	rev     atomic.Int64 // a scale.Rev; written with saving held
	base    []byte
	reseal  atomic.Bool  // base was sealed with a key that goes
	over    atomic.Bool  // its end is over, and the Store has it still
	claimed atomic.Bool  // this replica ends it for all replicas
	ending  string       // why the session ends, once this replica ends it; see endedClosed
	due     atomic.Int64 // when the Store ends it, as it last said: a scale.Rev
	kept    atomic.Int64 // time of the last extension of its TTL in the Store, in nanoseconds since 1970

	parent  context.Context
	fresh   *list.Element // in Manager.fresh, whose mu guards it
	history history
	inbox   *inbox // nil without a Store

	mu            sync.Mutex
	ctx           context.Context // nil until asked for
	cancel        context.CancelCauseFunc
	reason        error              // why the session ended; nil while it lives
	onEnd         func(reason error) // called once, when the last request is over
	afterEnd      func()             // called once, after onEnd
	lastUsed      time.Time
	calls         int // requests in progress
	uses          int // requests so far; initialize is the first
	streams       int // held open, which keep the session alive as calls do
	outbox        streamQueue
	subscriptions subscriptions
}

var _ core.Session = (*Session)(nil)

// freeClientBytes is what a client may take that does not count.
const freeClientBytes = 2 << 10

// New returns a session that no Manager knows, as a stdio connection has it.
// Its context is a child of ctx.
func New(ctx context.Context, id string, c core.ClientInfo) *Session {
	s := &Session{
		id: id, principal: c.Principal, revision: c.Revision, info: c.Info, capabilities: c.Capabilities,
		cost: max(0, c.Cost-freeClientBytes), parent: ctx, lastUsed: time.Now(),
	}
	if s.capabilities == nil {
		s.capabilities = &noCapabilities
	}
	s.history.pending, s.history.revision, s.history.numbers = &s.Pending, c.Revision, &counters{}
	s.level.Store(uint32(protocol.LevelInfo))
	return s
}

// noCapabilities are those of every client that declares none. They must not be changed.
var noCapabilities protocol.ClientCapabilities

// ID returns the session's id, "" on stdio.
func (s *Session) ID() string { return s.id }

// Principal returns the principal that opened the session. No other principal may use it.
func (s *Session) Principal() string { return s.principal }

// Identity returns who the newest request came from, and with which scopes; nil
// for an anonymous client.
func (s *Session) Identity() *frame.Identity { return s.identity.Load() }

// SetIdentity sets the identity of the newest request. It writes only a different one, as
// requests of one session come from many goroutines.
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

// Initialized reports whether the client has sent notifications/initialized.
func (s *Session) Initialized() bool { return s.initialized.Load() }

// SetInitialized notes that notifications/initialized has come, and tells
// whether it is the first one.
func (s *Session) SetInitialized() bool {
	first := s.initialized.CompareAndSwap(false, true)
	if first {
		s.changed.Store(true)
	}
	return first
}

// LogLevel returns the least level that the client wants; info until it says.
func (s *Session) LogLevel() protocol.Level { return protocol.Level(s.level.Load()) }

// SetLogLevel sets the least level of log messages that the client gets.
func (s *Session) SetLogLevel(l protocol.Level) {
	if s.level.Swap(uint32(l)) != uint32(l) {
		s.changed.Store(true)
	}
}

// Assigns returns the values that handlers keep in the session.
func (s *Session) Assigns() *core.Values { return &s.assigns }

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
	ended := s.endCallbacks(false)
	s.mu.Unlock()
	ended()
}

// endCallbacks returns what to call at the end of the session: nothing until the last
// request has returned, unless atOnce is set. s.mu is held, and must not be during the call
// of the result.
func (s *Session) endCallbacks(atOnce bool) func() {
	fn, after, reason := s.onEnd, s.afterEnd, s.reason
	if reason == nil || s.calls > 0 && !atOnce || fn == nil && after == nil {
		return func() {}
	}
	s.onEnd, s.afterEnd = nil, nil
	return func() {
		if fn != nil {
			// It is users' code, and the goroutine that ends a session or its last request
			// has more to do.
			_ = safely.Apart(func() { fn(reason) }) // the server logs what panics in it
		}
		if after != nil {
			after()
		}
	}
}

// Close ends the session for that reason: its requests are cancelled and its
// streams end. Only the first call counts.
func (s *Session) Close(reason error) { s.end(reason, false)() }

// end is Close without what is left to do then: it returns that. atOnce is for a
// shutdown that waits for requests no longer.
func (s *Session) end(reason error, atOnce bool) func() {
	s.mu.Lock()
	if s.reason != nil {
		ended := s.endCallbacks(atOnce)
		s.mu.Unlock()
		return ended
	}
	s.reason = reason
	if s.cancel != nil {
		s.cancel(reason)
	}
	s.history.close()
	s.subscriptions.clear(s)
	s.outbox.close()
	s.outbox.budget.close()
	ended := s.endCallbacks(atOnce)
	s.mu.Unlock()
	s.Inflight.CancelAll(reason)
	s.Pending.Close(reason)
	return ended
}

// countIn makes a session count in the limits of a Manager. The session is not shared yet.
func (s *Session) countIn(m *Manager) {
	budget := m.budget.open(s.principal)
	s.history.limit, s.history.maxEvent, s.history.budget = m.config.History, m.config.MaxEvent, budget
	s.outbox.session, s.outbox.budget, s.outbox.dropped = s, budget, m.config.Dropped
	s.subscriptions.topics = m.config.Topics
	s.subscriptions.countIn(m.uris, s.principal)
}

// Use keeps the session alive for a request, until Release is called.
func (s *Session) Use() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.uses++
}

// Ended reports whether the session was closed.
func (s *Session) Ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason != nil
}

// wasUsed reports whether there was a request after initialize.
func (s *Session) wasUsed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uses > 1
}

// neverUsed reports whether initialize has returned and was the only request.
func (s *Session) neverUsed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uses == 1 && s.calls == 0
}

// Release ends one Use. With a Store, it saves a changed session first, so that a request
// returns after its changes are stored. The error is that of the Store: changes of the
// request may be lost. If the session was closed and this was its last request, the
// function of OnEnd runs.
func (s *Session) Release() (err error) {
	if s.save != nil {
		err = s.save(s)
	}
	s.mu.Lock()
	s.calls--
	s.lastUsed = time.Now()
	ended := s.endCallbacks(false)
	s.mu.Unlock()
	ended()
	return err
}

// retain keeps the session alive for a stream, until release is called. A stream is not a
// request: the end of the session does not wait for it.
func (s *Session) retain() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams++
	s.uses += 2 // more than initialize
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.streams--
		s.lastUsed = time.Now()
	}
}

// touch notes that the session is about to be used.
func (s *Session) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastUsed = time.Now()
}

// hasStream reports whether a stream is open.
func (s *Session) hasStream() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams > 0
}

// idleSince returns when the session was last used, or ok false while it is.
func (s *Session) idleSince() (t time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastUsed, s.calls == 0 && s.streams == 0
}

// Subscribe subscribes the client to changes of the resource at uri. It returns false if
// the session has max subscriptions, its URIs exceed 256 KiB, or those of all sessions
// exceed Config.Memory.
func (s *Session) Subscribe(uri string, max int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason != nil {
		return false
	}
	added, ok := s.subscriptions.add(s, uri, max, 0)
	if added {
		s.changed.Store(true)
		s.resubscribed.Store(true)
	}
	return ok
}

// Unsubscribe ends the subscription of the client to the resource at uri, if there is one.
func (s *Session) Unsubscribe(uri string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subscriptions.remove(uri) {
		s.changed.Store(true)
		s.resubscribed.Store(true)
	}
}

// Subscribed reports whether the client has subscribed to the resource at uri.
func (s *Session) Subscribed(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.subscriptions.uris[uri]
	return ok
}

// listen opens a stream of s. last is the id of the event from which the client resumes, or
// ""; see ServeStream. wake is called when next has something new: it must not block or use
// s.
//
// A client may have several streams open, of which one gets each message (basic/transports
// of 2025-03-26 to 2025-11-25, "Multiple Connections"). The newest gets it. The others stay
// open, because a client may open a new stream whenever one ends. The new stream takes over
// the queue of the stream before, and returns it at its end. If more than maxStreams are
// open, the oldest ends. The caller calls leave at the end of the stream.
func (s *Session) listen(last string, wake func()) (out *outStream, leave func()) {
	out = &outStream{wake: wake}
	if from, ok := s.history.parseUnsolicited(last); ok && s.inbox == nil {
		out.number = from.stream
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reason != nil {
		out.over = true
		return out, func() {}
	}
	s.outbox.openStream(out)
	return out, func() {
		s.mu.Lock()
		newest := s.outbox.newest() == out
		s.outbox.closeStream(out)
		if len(s.outbox.open) == 0 && s.subscriptions.unsubscribeAll(s, s.isFlushed() && !out.broken) {
			s.changed.Store(true)
		}
		left := len(s.outbox.open) == 0
		if q := s.inbox; q != nil && q.state == standby && left {
			q.state = closed
		} else if q != nil && newest && !left {
			q.ended = q.state == reading
			q.hint(0) // for the stream before
		}
		s.mu.Unlock()
		if left && s.inbox != nil {
			s.inbox.manager.runInBackground(func() {
				_ = s.save(s)                                             // what has changed, or the next request does
				_ = s.inbox.leave(context.WithoutCancel(s.parent), false) // reconcile tries again
			})
		}
	}
}

// subscribeTopics makes what other replicas raise reach a stream that is open.
func (s *Session) subscribeTopics() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.outbox.open) > 0 {
		s.subscriptions.subscribeAll(s, max(s.subscriptions.mark, 1))
	}
}

// receivesChanges reports whether this replica notifies the client of changes.
func (s *Session) receivesChanges() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subscriptions.topics == nil || s.subscriptions.joined
}

// EndStreams ends all streams after they have sent their queues. Clients receive retry as
// the time until they reconnect, unless it is 0.
func (s *Session) EndStreams(retry time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subscriptions.unsubscribeAll(s, s.isFlushed()) {
		s.changed.Store(true) // the stream saves it
	}
	s.outbox.endStreams(retry)
}

// isFlushed reports whether no message waits for a stream, and a stream here has sent all
// notifications. s.mu is held.
func (s *Session) isFlushed() bool {
	return s.outbox.empty() && (s.inbox == nil || s.inbox.state == reading)
}

// Send puts a message that belongs to no request on the session's stream, or
// keeps it for the next one. It never blocks: it returns false when the client
// is too far behind and the message is dropped. A message that waits already
// is not queued a second time. One that says that a list has changed is never
// dropped. Others that wait may be dropped later, when Config.Memory is used up by
// clients that read: see Config.Dropped.
//
// It is for what each replica tells the sessions that it has: if another replica
// has the stream, nothing is sent. See Post.
func (s *Session) Send(message []byte) bool {
	return s.enqueue(message)
}

// Route is Send for what only this replica has to tell: the message goes to the
// stream of the session at whichever replica that is, or waits in the Store. The
// client is not waited for, but the Store may be; the error is that of the Store.
func (s *Session) Route(ctx context.Context, message []byte) (sent bool, err error) {
	if s.inbox == nil || s.Ended() {
		return s.enqueue(message), nil
	}
	defer s.inbox.manager.waitRetries()
	return s.inbox.post(ctx, message)
}

// enqueue is Send. Without a stream here, the message waits for the next one here.
func (s *Session) enqueue(message []byte) (sent bool) {
	budget, n := s.outbox.budget, cost(message)
	room := budget.queue(n, s)
	s.mu.Lock()
	queued, say := false, func() {}
	if s.inbox != nil && s.inbox.state == standby && s.reason == nil { // another replica may have the stream
		sent = true
	} else {
		if room {
			sent, queued = s.outbox.enqueue(message)
		}
		if change := bareChange(message); !sent && change != nil {
			sent, _ = s.outbox.enqueue(change)
		}
		if !sent {
			say = s.outbox.lose(1)
		}
	}
	if room && !queued {
		budget.unqueue(n)
	}
	s.mu.Unlock()
	say()
	return sent
}

// dropUnread drops what waits for the client, for clients that read.
func (s *Session) dropUnread() {
	s.mu.Lock()
	say := s.outbox.lose(s.outbox.drop())
	s.mu.Unlock()
	say()
}

// ServeStream sends unsolicited messages of the session to a connection, or resumes the
// stream of the event last, unless it is "". It returns at the end of the session, the
// stream or the connection. An error comes before to is open: core.ErrSessionClosed, or a
// *protocol.Error that says which events are gone.
func (s *Session) ServeStream(last string, to core.StreamConn) error {
	defer s.retain()()
	if s.Ended() {
		return core.ErrSessionClosed
	}
	if s.inbox != nil {
		defer s.inbox.manager.waitRetries()
	}
	if last != "" && s.resumable() && !isUnsolicited(last) {
		return s.resumeAnswer(last, to)
	}
	out, leave := s.listen(last, to.Waker())
	defer leave()
	if s.inbox != nil {
		if err := s.inbox.take(s.parent, out, last); err != nil {
			return unavailable(err)
		}
	}
	s.subscribeTopics()
	if s.inbox != nil && s.subscriptions.topics != nil {
		s.inbox.manager.reload(s) // another replica may have changed it since it was loaded
	}
	switch err := s.begin(out, last, to); {
	case errors.Is(err, errNotKept):
		return wire.Refused("last_event", protocol.CodeInvalidRequest,
			"some of what followed Last-Event-ID %q was too long to be kept, and cannot be sent again: open the stream once more to go on without it", last)
	case err != nil, to.Open() != nil:
		return nil // the client is gone
	}
	for {
		id, message, over := s.next(out)
		if message == nil {
			if over {
				s.sendRetry(out, to)
				return nil
			}
			if s.inbox != nil && s.inbox.fetch(out) {
				continue
			}
			if !to.Wait() {
				return nil
			}
			continue
		}
		if to.Event(id, message) != nil {
			s.restoreUnsent(out, message)
			return nil
		}
	}
}

// restoreUnsent notes that the connection of out broke over a message: it counts as not sent,
// or as lost.
func (s *Session) restoreUnsent(out *outStream, message []byte) {
	s.mu.Lock()
	out.broken = true
	waits := s.inbox != nil && s.inbox.restoreUnsent(out, message)
	s.mu.Unlock()
	if !waits {
		s.history.restoreUnsent(message)
	}
}

// sendRetry tells the client of a stream that is over when to come back, if that is
// known.
func (s *Session) sendRetry(out *outStream, to core.StreamConn) {
	s.mu.Lock()
	retry := out.retry
	s.mu.Unlock()
	if retry > 0 {
		_ = to.Pause(retry) // a client that is gone comes back anyway
	}
}

// resumeAnswer continues the stream of an answer for a client that comes back. The
// stream itself sends the events; this holds the connection open until it has
// ended or another connection has taken it over.
func (s *Session) resumeAnswer(last string, to core.StreamConn) error {
	from, _ := parseEventID(last)
	if s.resumer != nil && from.node != 0 && from.node != s.history.node {
		return s.resumer.serve(s, last, from, to)
	}
	attached, lost, err := s.history.resume(last, to, to.Waker())
	if errors.Is(err, errUnknownStream) && s.resumer != nil {
		found, failed := s.resumer.answers.send(s, &from, to)
		switch {
		case failed != nil:
			return unavailable(failed)
		case found:
			attached, lost, err = func() bool { return false }, func() {}, nil
		}
	}
	switch {
	case errors.Is(err, errNotKept):
		return streamTooLong(last)
	case err != nil:
		return unknownStream(last)
	}
	defer lost()
	if to.Open() != nil {
		return nil
	}
	defer context.AfterFunc(s.Context(), to.Waker())()
	for attached() && !s.Ended() && to.Wait() {
	}
	return nil
}

// next takes the next message from out, and keeps it under the id that it
// returns, which is empty if the session keeps no events. The message is nil if
// none waits; over says then that none will come. One goroutine at a time may
// call it for a stream.
func (s *Session) next(out *outStream) (id string, message []byte, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock() // a message is in one of both, for a hand-off to another replica
	message, out.reader = s.outbox.dequeue(out), ""
	if s.inbox != nil {
		s.inbox.wrote(out)
	}
	switch b := s.inbox; {
	case message == nil && b != nil:
		id, message = b.next(out)
		return id, message, out.over
	case message == nil:
		return "", nil, out.over
	case b != nil:
		return b.own(), message, false
	}
	return s.history.addUnsolicited(&out.number, message), message, false
}

// OpenStream begins the stream of the answer to a request on the connection to.
// It returns nil if the session keeps no events, or its revision has no way to
// come back.
func (s *Session) OpenStream(to core.EventWriter, request protocol.ID) core.AnswerStream {
	return s.history.begin(to, request)
}

// resumable reports whether a client can resume streams of the session.
func (s *Session) resumable() bool { return s.history.resumable() }

// Asker implements core.Askers: questions go out through of.Send, and their
// answers come back to s.Pending.
func (s *Session) Asker(of core.AskerRequest) core.Asker { return &asker{s, of} }

// assignIDs gives what the session sends ids that no other replica gives, which may
// serve the same session, nor an earlier copy of it here. Those of questions begin
// with the name of this replica.
func (s *Session) assignIDs(node string, n *counters) {
	s.history.numbers = n
	s.history.node, _ = strconv.ParseUint(node, 36, 64)
	s.Pending.Name(node + "-" + strconv.FormatUint(n.copies.Add(1), 36))
}

// begin sends a stream what followed the event last, where the history of the session has that,
// and otherwise its first event. Where replicas share the session, the inbox has what followed.
func (s *Session) begin(out *outStream, last string, to core.StreamConn) error {
	if s.inbox != nil {
		if id := s.inbox.prime(last); id != "" {
			return to.Event(id, nil)
		}
		return nil
	}
	if err := s.history.sendMissed(last, to); err != nil {
		return err
	}
	return s.history.sendFirst(&out.number, to)
}

// hint makes the stream that reads look.
func (s *Session) hint(rev scale.Rev) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inbox.hint(rev)
}

// isDeleted reports whether the session has ended for all replicas, as far as is known here.
// s.mu is held.
func (s *Session) isDeleted() bool { return errors.Is(s.reason, core.ErrSessionDeleted) }
