package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// The kinds of messages between replicas about the streams of answers.
const (
	msgFollow = "tail"   // to the replica that has a stream: asks for what follows on it
	msgEvents = "events" // to the one that has asked
)

// followRequest asks for what follows an event, and says how far its sender is.
type followRequest struct {
	Session string `json:"session"`
	Tail    uint64 `json:"tail"`            // of the sender, who chooses a new one each time
	After   string `json:"after,omitempty"` // id of the event; left out when something has come
	Got     uint64 `json:"got,omitempty"`   // how many events the client has got
	Again   bool   `json:"again,omitempty"` // what was sent after these may be lost
	Left    bool   `json:"left,omitempty"`  // the follower has ended
}

// followBatch is what comes back: this, a newline, and the messages.
type followBatch struct {
	Tail   uint64        `json:"tail"`
	First  uint64        `json:"first"` // the number of the first of Events, counting from 1
	Events []followEvent `json:"events,omitempty"`
	End    string        `json:"end,omitempty"` // why nothing follows Events; "" if something may
}

// followEvent is one event, or tells the client when to come back.
type followEvent struct {
	ID    string        `json:"id,omitempty"`
	Size  int           `json:"size"` // of the message; -1 if there is none
	Retry time.Duration `json:"retry,omitempty"`
}

// Why nothing follows.
const (
	reasonDone    = "over"    // the answer was sent, or another connection has the stream
	reasonUnknown = "unknown" // the replica knows nothing of the stream
	reasonTooLong = "long"    // what follows is too long to be kept, or to be handed on
	reasonSlow    = "behind"  // too much waits: the client has to come back
	reasonBusy    = "busy"    // there are too many followers
	reasonClosed  = "closed"  // the replica ends
)

const (
	maxFollowers      = 16               // of a session, at each replica and from each
	maxFollowersTotal = 4096             // at a replica
	maxFollowBytes    = 1<<20 - 4<<10    // bytes of a message that can be forwarded; leaves room for a header
	followWindow      = 256 << 10        // bytes of messages that are on the way to a client
	followQueueBytes  = 2 << 20          // bytes that wait for a follower, and eventOverhead for each event
	maxFollowBatch    = 256              // events that are handed on at once
	requestTimeout    = 2 * time.Second  // bounds how long a follower is asked for
	firstReplyTimeout = time.Second      // time until the first reply, twice
	idlePollInterval  = 8 * time.Second  // a follower of which nothing comes asks so often
	leaderTTL         = 30 * time.Second // a leader ends after this time without a request
)

// resumer brings answers of calls to clients that resume at another replica, of a Manager
// with a Store. The replica of the client has a follower, and the replica of the stream a
// leader for it. If the latter is gone, the store may have the answer; see savedAnswers.
//
// Its mu comes before that of a leader, and no other lock is held with it.
type resumer struct {
	m    *Manager
	late *savedAnswers

	mu        sync.Mutex
	closed    bool
	last      uint64 // number of the last follower
	tails     map[uint64]*follower
	sources   map[followerKey]*leader
	tailsOf   map[string]int // how many, by session
	sourcesOf map[string]int
	refused   map[followerKey]bool // followers to reject, because there is no room
}

// followerKey is a follower of another replica.
type followerKey struct {
	node string
	tail uint64
}

// newResumer returns a resumer without followers.
func newResumer(m *Manager) *resumer {
	return &resumer{m: m, late: newSavedAnswers(m), tails: make(map[uint64]*follower), sources: make(map[followerKey]*leader), tailsOf: make(map[string]int), sourcesOf: make(map[string]int), refused: make(map[followerKey]bool)}
}

// tooManyStreams is the error of a client that has come back for too many streams
// at once.
func tooManyStreams() *protocol.Error {
	fault := protocol.Errorf(protocol.CodeBusy, "the session has %d streams of other replicas open, or a replica has %d, which is the limit", maxFollowers, maxFollowersTotal)
	fault.RetryAfter = retryInterval
	return fault
}

// errEnding is why no stream resumes at a replica that ends.
var errEnding = errors.New("this replica ends")

// serve resumes a stream of another replica on the connection to. last is from as the
// client has sent it.
func (r *resumer) serve(s *Session, last string, from eventID, to core.StreamConn) error {
	if r.m.config.Bus == nil {
		return unknownStream(last)
	}
	t := &follower{
		relay: r, session: s, last: last, from: from, node: strconv.FormatUint(from.node, 36), to: to,
		word: make(chan struct{}, 1), wake: to.Waker(),
	}
	if fault := r.register(t); fault != nil {
		return fault
	}
	defer r.unregister(t)
	return t.serve()
}

// register gives a follower its number. The error rejects it.
func (r *resumer) register(t *follower) *protocol.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return unavailable(errEnding)
	case len(r.tails) >= maxFollowersTotal || r.tailsOf[t.session.id] >= maxFollowers:
		return tooManyStreams()
	}
	r.last++
	t.number = r.last
	r.tails[t.number] = t
	r.tailsOf[t.session.id]++
	return nil
}

// unregister forgets a follower, and tells the replica that has the stream.
func (r *resumer) unregister(t *follower) {
	r.mu.Lock()
	delete(r.tails, t.number)
	decrement(r.tailsOf, t.session.id)
	r.mu.Unlock()
	t.close()
}

// decrement takes one off a count.
func decrement(counts map[string]int, id string) {
	if counts[id]--; counts[id] == 0 {
		delete(counts, id)
	}
}

// endFollowers ends the followers: their clients come back, at another replica.
func (r *resumer) endFollowers() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tails {
		t.stop()
	}
}

// isClosed reports whether close was called.
func (r *resumer) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// close lets no follower and no leader begin. The answers of calls that have returned
// may be on their way to their streams, which leaders and clients that come back
// need before that.
func (r *resumer) close() {
	r.late.wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// handleMessage handles a message of another replica about streams. It does not wait.
func (r *resumer) handleMessage(message bus.Message) {
	switch message.Kind {
	case msgFollow:
		var a followRequest
		if err := json.Unmarshal(message.Body, &a); err != nil {
			r.m.reportError(err)
			return
		}
		r.handleRequest(message.From, &a)
	case msgEvents:
		header, messages, _ := bytes.Cut(message.Body, []byte("\n"))
		var e followBatch
		if err := json.Unmarshal(header, &e); err != nil {
			r.m.reportError(err)
			return
		}
		r.mu.Lock()
		t := r.tails[e.Tail]
		r.mu.Unlock()
		if t != nil && t.node == message.From {
			t.receive(&e, messages)
		}
	}
}

// handleRequest handles what a follower of another replica asks for.
func (r *resumer) handleRequest(from string, a *followRequest) {
	key := followerKey{from, a.Tail}
	s := r.m.Local(a.Session)
	r.mu.Lock()
	defer r.mu.Unlock()
	src := r.sources[key]
	switch {
	case src != nil:
		src.handleRequest(a)
		return
	case a.Left || r.closed: // then the follower detects that the leader is gone
		return
	}
	src = &leader{relay: r, key: key, session: s, id: a.Session, after: a.After, news: make(chan struct{}, 1), reply: true, heardOf: time.Now()}
	switch {
	case len(r.sources) >= 2*maxFollowersTotal:
		r.reject(key)
		return
	case len(r.sources) >= maxFollowersTotal || r.sourcesOf[a.Session] >= maxFollowers:
		src.end = reasonBusy
	case a.After == "": // its leader was given up
		src.end = reasonSlow
	case s == nil:
		src.end = reasonUnknown
	}
	r.sources[key] = src
	r.sourcesOf[a.Session]++
	r.m.sweeping.Go(src.run)
}

// reject tells a follower that there is no room for a leader. There is one goroutine
// for that, and who finds no room with it either asks again. r.mu is held.
func (r *resumer) reject(key followerKey) {
	if len(r.refused) >= maxFollowersTotal || r.refused[key] {
		return
	}
	if r.refused[key] = true; len(r.refused) > 1 {
		return // it runs
	}
	r.m.sweeping.Go(func() {
		for more := true; more; {
			src := &leader{relay: r, key: key, end: reasonBusy}
			_ = src.send(r.m.ctx) // it asks again
			key, more = r.nextRejected(key)
		}
	})
}

// nextRejected returns the next follower to reject after one that has its reply.
func (r *resumer) nextRejected(done followerKey) (key followerKey, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.refused, done)
	for key = range r.refused {
		return key, true
	}
	return key, false
}

// forget drops a leader.
func (r *resumer) forget(src *leader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sources, src.key)
	decrement(r.sourcesOf, src.id)
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

// streamTooLong is the error of coming back for what was too long to be kept.
func streamTooLong(last string) *protocol.Error {
	return wire.Refused("last_event", protocol.CodeInvalidRequest,
		"what followed Last-Event-ID %q was too long to be kept, and cannot be sent again: send the request again", last)
}

// unavailable is the error of a stream that cannot open while the store is unavailable.
func unavailable(err error) *protocol.Error {
	return wire.Unavailable("the stream cannot be opened", errors.Join(scale.ErrUnavailable, err))
}
