package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/post"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// The kinds of messages between replicas about the streams of answers.
const (
	letterTail   = "tail"   // to the replica that has a stream: asks for what follows on it
	letterEvents = "events" // to the one that has asked
)

// tailAsk asks for what follows an event, and says how far its sender is.
type tailAsk struct {
	Session string `json:"session"`
	Tail    uint64 `json:"tail"`            // of the sender, who chooses a new one each time
	After   string `json:"after,omitempty"` // id of the event; left out when something has come
	Got     uint64 `json:"got,omitempty"`   // how many events the client has got
	Again   bool   `json:"again,omitempty"` // what was sent after these may be lost
	Left    bool   `json:"left,omitempty"`  // nobody wants more
}

// tailEvents is what comes back: this, a newline, and the messages.
type tailEvents struct {
	Tail   uint64      `json:"tail"`
	First  uint64      `json:"first"` // the number of the first of Events, counting from 1
	Events []tailEvent `json:"events,omitempty"`
	End    string      `json:"end,omitempty"` // why nothing follows Events; "" if something may
}

// tailEvent is one event, or tells the client when to come back.
type tailEvent struct {
	ID    string        `json:"id,omitempty"`
	Size  int           `json:"size"` // of the message; -1 is none
	Retry time.Duration `json:"retry,omitempty"`
}

// Why nothing follows.
const (
	endOver    = "over"    // the answer was sent, or another connection has the stream
	endUnknown = "unknown" // the replica knows nothing of the stream
	endLong    = "long"    // what follows is too long to be kept, or to be handed on
	endBehind  = "behind"  // too much waits: the client has to come back
	endBusy    = "busy"    // there are too many tails
	endClosed  = "closed"  // the replica ends
)

const (
	maxTails   = 16               // of a session, at each replica and from each
	allTails   = 4096             // at a replica
	maxTailed  = 1<<20 - 4<<10    // bytes of a message that can be handed on; a header fits beside it
	tailWindow = 256 << 10        // bytes of messages that are on the way to a client
	tailQueue  = 2 << 20          // bytes that wait for a tail, and recordSize for each event
	tailBatch  = 256              // events that are handed on at once
	askTimeout = 2 * time.Second  // bounds how long a tail is asked for
	firstWord  = time.Second      // is waited for an answer to that, twice
	seldom     = 8 * time.Second  // a tail of which nothing comes asks so often
	sourceLife = 30 * time.Second // a tail of which nothing was heard for so long is left
)

// relay brings the answers of calls to clients that come back at another
// replica, of a Manager with a Store. The replica where a client has come back
// has a tail, the one that has the stream a source for it. When the latter is
// gone, what is left is an answer that it kept in the store because nobody was
// there for it; see lates.
//
// Its mu is taken before that of a source, and is held with no other lock.
type relay struct {
	m    *Manager
	late *lates

	mu        sync.Mutex
	closed    bool
	last      uint64 // number of the last tail
	tails     map[uint64]*tail
	sources   map[sourceKey]*source
	tailsOf   map[string]int // how many, by session
	sourcesOf map[string]int
	refused   map[sourceKey]bool // who is to hear that there is no room
}

// sourceKey is a tail of another replica.
type sourceKey struct {
	node string
	tail uint64
}

// newRelay returns a relay without tails.
func newRelay(m *Manager) *relay {
	return &relay{m: m, late: newLates(m), tails: make(map[uint64]*tail), sources: make(map[sourceKey]*source), tailsOf: make(map[string]int), sourcesOf: make(map[string]int), refused: make(map[sourceKey]bool)}
}

// crowdedTails is the error of a client that has come back for too many streams
// at once.
func crowdedTails() *protocol.Error {
	fault := protocol.Errorf(protocol.CodeBusy, "the session has %d streams of other replicas open, or a replica has %d, which is the limit", maxTails, allTails)
	fault.RetryAfter = again
	return fault
}

// errEnds is why no stream goes on at a replica that ends.
var errEnds = errors.New("this replica ends")

// serve goes on, on the connection to, with a stream that another replica has.
// last is from as the client has sent it.
func (r *relay) serve(s *Session, last string, from eventID, to core.StreamConn) error {
	if r.m.config.Post == nil {
		return unknownStream(last)
	}
	t := &tail{
		relay: r, session: s, last: last, from: from, node: strconv.FormatUint(from.node, 36), to: to,
		word: make(chan struct{}, 1), wake: to.Waker(),
	}
	if fault := r.enter(t); fault != nil {
		return fault
	}
	defer r.leave(t)
	return t.serve()
}

// enter gives a tail its number. The error says that there is to be none.
func (r *relay) enter(t *tail) *protocol.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return unavailable(errEnds)
	case len(r.tails) >= allTails || r.tailsOf[t.session.id] >= maxTails:
		return crowdedTails()
	}
	r.last++
	t.number = r.last
	r.tails[t.number] = t
	r.tailsOf[t.session.id]++
	return nil
}

// leave forgets a tail, and tells the replica that has the stream.
func (r *relay) leave(t *tail) {
	r.mu.Lock()
	delete(r.tails, t.number)
	drop(r.tailsOf, t.session.id)
	r.mu.Unlock()
	t.close()
}

// drop takes one off a count.
func drop(counts map[string]int, id string) {
	if counts[id]--; counts[id] == 0 {
		delete(counts, id)
	}
}

// endTails ends the tails: their clients come back, at another replica.
func (r *relay) endTails() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tails {
		t.stop()
	}
}

// isClosed tells whether close was called.
func (r *relay) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// close lets no tail and no source begin. The answers of calls that have returned
// may be on their way to their streams, which sources and clients that come back
// need before that.
func (r *relay) close() {
	r.late.wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// delivered handles a message of another replica, and reports whether it is one
// about streams. It waits for nothing.
func (r *relay) delivered(message post.Message) bool {
	switch message.Kind {
	case letterTail:
		var a tailAsk
		if err := json.Unmarshal(message.Body, &a); err != nil {
			r.m.failed(err)
			return true
		}
		r.asked(message.From, &a)
	case letterEvents:
		header, messages, _ := bytes.Cut(message.Body, []byte("\n"))
		var e tailEvents
		if err := json.Unmarshal(header, &e); err != nil {
			r.m.failed(err)
			return true
		}
		r.mu.Lock()
		t := r.tails[e.Tail]
		r.mu.Unlock()
		if t != nil && t.node == message.From {
			t.take(&e, messages)
		}
	default:
		return false
	}
	return true
}

// asked handles what a tail of another replica asks for.
func (r *relay) asked(from string, a *tailAsk) {
	key := sourceKey{from, a.Tail}
	s := r.m.Here(a.Session)
	r.mu.Lock()
	defer r.mu.Unlock()
	src := r.sources[key]
	switch {
	case src != nil:
		src.asked(a)
		return
	case a.Left || r.closed: // then the tail finds out that nobody is here
		return
	}
	src = &source{relay: r, key: key, session: s, id: a.Session, after: a.After, news: make(chan struct{}, 1), reply: true, heardOf: time.Now()}
	switch {
	case len(r.sources) >= 2*allTails:
		r.refuse(key)
		return
	case len(r.sources) >= allTails || r.sourcesOf[a.Session] >= maxTails:
		src.end = endBusy
	case a.After == "": // its source was given up
		src.end = endBehind
	case s == nil:
		src.end = endUnknown
	}
	r.sources[key] = src
	r.sourcesOf[a.Session]++
	r.m.sweeping.Go(src.run)
}

// refuse tells a tail that there is no room for a source. There is one goroutine
// for that, and who finds no room with it either asks again. r.mu is held.
func (r *relay) refuse(key sourceKey) {
	if len(r.refused) >= allTails || r.refused[key] {
		return
	}
	if r.refused[key] = true; len(r.refused) > 1 {
		return // it runs
	}
	r.m.sweeping.Go(func() {
		for more := true; more; {
			src := &source{relay: r, key: key, end: endBusy}
			_ = src.send(r.m.ctx) // it asks again
			key, more = r.nextRefused(key)
		}
	})
}

// nextRefused returns who is refused after one that has heard of it.
func (r *relay) nextRefused(done sourceKey) (key sourceKey, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.refused, done)
	for key = range r.refused {
		return key, true
	}
	return key, false
}

// forget drops a source.
func (r *relay) forget(src *source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sources, src.key)
	drop(r.sourcesOf, src.id)
}

// errReplicaGone answers a call whose replica is gone.
var errReplicaGone = &protocol.Error{
	Code: protocol.CodeInternal, Message: "the replica that served this call is gone", Data: map[string]string{"executed": "unknown"},
}

// errTooLong answers a call when what followed cannot be handed on.
var errTooLong = &protocol.Error{
	Code: protocol.CodeInternal, Message: "what followed is too long to be handed to the replica that the client came back to", Data: map[string]string{"executed": "unknown"},
}

// unknownStream is the error of coming back for a stream of which nothing is
// known.
func unknownStream(last string) *protocol.Error {
	return wire.Refused("last_event", protocol.CodeInvalidRequest, "Last-Event-ID %q names no stream of this session, or one that is too long ago", last)
}

// longStream is the error of coming back for what was too long to be kept.
func longStream(last string) *protocol.Error {
	return wire.Refused("last_event", protocol.CodeInvalidRequest,
		"what followed Last-Event-ID %q was too long to be kept, and cannot be sent again: send the request again", last)
}

// unavailable is the error of a stream that cannot go on while the store is away.
func unavailable(err error) *protocol.Error {
	return wire.Unavailable("the stream cannot be opened", errors.Join(scale.ErrUnavailable, err))
}
