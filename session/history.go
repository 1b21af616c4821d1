package session

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// DefaultHistory is how many bytes of events a session keeps for clients that
// come back.
const DefaultHistory = 16 << 10

// history is what a session has sent as events, in case the client did not get
// it. It holds the newest events of all streams. The session's mu guards it.
type history struct {
	limit   int // bytes
	size    int
	records []record           // oldest first
	open    map[uint64]*Stream // streams that are not over; nil until there is one
	last    uint64             // number of the last stream of an answer
	unasked uint64             // number of the last event on the session's own stream
}

// record is one event. A record without a message ended or primed its stream.
type record struct {
	stream, event uint64
	message       []byte
}

// keep adds an event, and drops the oldest ones for it. The newest stays
// whatever its size: it may be the answer that the client comes back for.
func (h *history) keep(r record) {
	h.records = append(h.records, r)
	h.size += len(r.message)
	drop := 0
	for h.size > h.limit && drop < len(h.records)-1 {
		h.size -= len(h.records[drop].message)
		drop++
	}
	if drop > 0 {
		clear(h.records[:drop])
		h.records = h.records[drop:]
	}
}

// after returns the events of a stream that follow one, and whether anything is
// known of the stream.
func (h *history) after(stream, event uint64) (missed []record, known bool) {
	for _, r := range h.records {
		if r.stream != stream {
			continue
		}
		known = true
		if r.event > event {
			missed = append(missed, r)
		}
	}
	return missed, known
}

// eventID names an event. An id must be unique in the session, whatever
// process serves it.
type eventID struct {
	life   uint32 // of the Session; 0 in the process that began it
	stream uint64 // 0 is the session's own
	event  uint64 // its number in the stream
}

func (id eventID) String() string {
	text := strconv.FormatUint(id.stream, 36) + "-" + strconv.FormatUint(id.event, 36)
	if id.life != 0 {
		text += "." + strconv.FormatUint(uint64(id.life), 36)
	}
	return text
}

func parseEventID(text string) (id eventID, ok bool) {
	text, life, moved := strings.Cut(text, ".")
	stream, event, _ := strings.Cut(text, "-")
	if !moved {
		life = "0"
	}
	var errs [3]error
	id.stream, errs[0] = strconv.ParseUint(stream, 36, 64)
	id.event, errs[1] = strconv.ParseUint(event, 36, 64)
	number, err := strconv.ParseUint(life, 36, 32)
	id.life, errs[2] = uint32(number), err
	return id, errors.Join(errs[:]...) == nil
}

// idOf names an event of the session.
func (s *Session) idOf(stream, event uint64) string { return eventID{s.life, stream, event}.String() }

// Sink is a connection that takes events.
type Sink interface {
	// Event sends a message, or for a nil one nothing but the id: that gives
	// the client something to come back with.
	Event(id string, message []byte) error
	// Pause tells the client when to come back; nothing follows on this
	// connection.
	Pause(retry time.Duration) error
}

// Stream is the answer to one request, as events that a client may come back
// for when its connection is lost (basic/transports of 2025-03-26 to
// 2025-11-25, "Resumability and Redelivery"). It is safe for concurrent use.
type Stream struct {
	session *Session
	number  uint64

	mu    sync.Mutex // held while sending, so that events keep their order
	event uint64
	to    Sink          // nil while there is no connection
	left  chan struct{} // closed when to is no longer this stream's
	over  bool
}

// OpenStream begins the stream of an answer on the connection to. It returns
// nil if the session keeps no events, or its revision has no way to come back.
func (s *Session) OpenStream(to Sink) *Stream {
	s.mu.Lock()
	h := s.kept()
	if h == nil {
		s.mu.Unlock()
		return nil
	}
	h.last++
	st := &Stream{session: s, number: h.last, to: to, left: make(chan struct{})}
	if h.open == nil {
		h.open = make(map[uint64]*Stream)
	}
	h.open[st.number] = st
	s.mu.Unlock()
	if s.revision.Has(protocol.PrimedStreams) {
		st.mu.Lock()
		defer st.mu.Unlock()
		st.put(nil)
	}
	return st
}

// kept returns the history, made when it is first needed; nil if there is to
// be none. s.mu is held.
func (s *Session) kept() *history {
	if s.history == nil && s.limit > 0 && s.revision.Has(protocol.ResumableStreams) {
		s.history = &history{limit: s.limit}
	}
	return s.history
}

// Send sends a message ahead of the answer. That the client is away is no
// error: it may come back for the message.
func (st *Stream) Send(message []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over {
		return protocol.ErrAnswered
	}
	st.put(message)
	return nil
}

// End sends the answer, if there is one, and ends the stream.
func (st *Stream) End(answer []byte) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over {
		return
	}
	if answer != nil {
		st.put(answer)
	}
	st.over = true
	st.leave()
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.history != nil { // the session lives
		delete(s.history.open, st.number)
	}
}

// put keeps an event and sends it if there is a connection. st.mu is held.
func (st *Stream) put(message []byte) {
	st.event++
	s := st.session
	s.mu.Lock()
	if s.history != nil {
		s.history.keep(record{st.number, st.event, bytes.Clone(message)})
	}
	s.mu.Unlock()
	if st.to != nil && st.to.Event(s.idOf(st.number, st.event), message) != nil {
		st.leave()
	}
}

// leave lets the connection go. st.mu is held.
func (st *Stream) leave() {
	if st.to != nil {
		st.to = nil
		close(st.left)
	}
}

// Pause ends the connection but not the stream: the client is to come back
// after retry. It returns false if there is none.
func (st *Stream) Pause(retry time.Duration) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.to == nil {
		return false
	}
	if st.event == 0 {
		st.put(nil) // or the client has nothing to come back with
	}
	if st.to == nil {
		return false
	}
	// A connection that fails is over as well.
	_ = st.to.Pause(retry)
	st.leave()
	return true
}

// Detach forgets the connection to, which is lost.
func (st *Stream) Detach(to Sink) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.to == to {
		st.leave()
	}
}

// Resume sends what followed the event of that id, on its very stream, and
// makes to the connection of what is still to come. left is closed when there
// is no more for it; lost must be called when to breaks before that.
//
// ok is false if id names none of the session's answers, or one that is too
// long ago.
func (s *Session) Resume(id string, to Sink) (left <-chan struct{}, lost func(), ok bool) {
	from, ok := parseEventID(id)
	if !ok || from.stream == 0 || from.life != s.life {
		return nil, nil, false
	}
	number, event := from.stream, from.event
	s.mu.Lock()
	if s.history == nil {
		s.mu.Unlock()
		return nil, nil, false
	}
	st := s.history.open[number]
	s.mu.Unlock()
	if st == nil {
		return s.replay(number, event, to)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over {
		return s.replay(number, event, to)
	}
	st.leave()
	st.to, st.left = to, make(chan struct{})
	left = st.left
	missed, _ := s.missed(number, event)
	for _, r := range missed {
		if to.Event(s.idOf(r.stream, r.event), r.message) != nil {
			st.leave()
			break
		}
	}
	return left, func() { st.Detach(to) }, true
}

// replay sends what is kept of a stream that is over.
func (s *Session) replay(number, event uint64, to Sink) (left <-chan struct{}, lost func(), ok bool) {
	missed, known := s.missed(number, event)
	if !known {
		return nil, nil, false
	}
	for _, r := range missed {
		if to.Event(s.idOf(r.stream, r.event), r.message) != nil {
			break
		}
	}
	over := make(chan struct{})
	close(over)
	return over, func() {}, true
}

// missed returns the events of a stream after one, and whether any of the
// stream is known.
func (s *Session) missed(number, event uint64) (missed []record, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.history == nil {
		return nil, false
	}
	return s.history.after(number, event)
}

// Claim numbers a message that was taken from out, and keeps it. ok is false
// if another connection has become the session's stream: the message then goes
// there. The id is empty if the session keeps no events.
func (s *Session) Claim(out *Outbox, message []byte) (id string, ok bool) {
	s.mu.Lock()
	if s.stream != out {
		s.mu.Unlock()
		s.Send(message)
		return "", false
	}
	defer s.mu.Unlock()
	h := s.kept()
	if h == nil {
		return "", true
	}
	h.unasked++
	h.keep(record{0, h.unasked, message})
	return s.idOf(0, h.unasked), true
}

// Missed sends to a connection that continues the session's own stream what
// followed the event of that id. It does nothing for the id of another stream,
// or of another process.
func (s *Session) Missed(id string, to Sink) error {
	from, ok := parseEventID(id)
	if !ok || from.stream != 0 || from.life != s.life {
		return nil
	}
	missed, _ := s.missed(0, from.event)
	for _, r := range missed {
		if err := to.Event(s.idOf(0, r.event), r.message); err != nil {
			return err
		}
	}
	return nil
}

// Resumable tells whether a client can come back for events of the session.
func (s *Session) Resumable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept() != nil
}

// Unasked tells whether id names an event of the session's own stream, or none
// at all: a client that comes back with something else than an id that it was
// given gets that stream from now on.
func Unasked(id string) bool {
	from, ok := parseEventID(id)
	return !ok || from.stream == 0
}

// forget drops the events of answers that are over, when the session has not
// been used for a while.
func (s *Session) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.history; h != nil && len(h.open) == 0 {
		h.records, h.size, h.open = nil, 0, nil
	}
}
