package session

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/share"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// msgFollow is the kind of messages between a follower and the replica that has the stream of
// its answer.
const msgFollow = "follow"

// followRequest asks for what follows an event, in the box of the stream, or says that the
// follower has ended. Or it is the reply to that: the reply to what needs no box.
type followRequest struct {
	Session string `json:"session"`
	After   string `json:"after"`           // id of the event that the client has
	Reader  string `json:"reader"`          // names the follower
	Left    bool   `json:"left,omitempty"`  // the follower has ended
	Reply   bool   `json:"reply,omitempty"` // to the follower
	End     string `json:"end,omitempty"`   // in a reply, why nothing follows; "" if something may
}

// followBatch is a message in the box of an answer: this, a newline, and the messages of its
// events.
type followBatch struct {
	For    string        `json:"for,omitempty"` // the Reader that asked; "" for a saved answer
	Events []followEvent `json:"events"`
	End    string        `json:"end,omitempty"` // as in a reply
}

// followEvent is one event, or tells the client when to come back.
type followEvent struct {
	ID      string        `json:"id,omitempty"`
	Size    int           `json:"size"` // of the message; -1 if there is none
	Answer  bool          `json:"answer,omitempty"`
	Retry   time.Duration `json:"retry,omitempty"`
	message []byte
}

// Why nothing follows.
const (
	reasonDone    = "over"    // the answer was sent, or another connection has the stream
	reasonUnknown = "unknown" // the replica knows nothing of the stream
	reasonTooLong = "long"    // what follows is too long to be kept, or to be handed on
	reasonSlow    = "behind"  // too much waits: the client has to come back
	reasonClosed  = "closed"  // the replica ends, or is gone
)

const (
	maxFollowers      = 16        // of a session, at each replica and from each
	maxFollowersTotal = 4096      // at a replica
	followQueueBytes  = 2 << 20   // bytes that wait for the store, and eventOverhead for each event
	followBatchBytes  = 256 << 10 // bytes of messages that are written at once
	maxFollowBatch    = 256       // events that are written at once
)

// resumer brings answers of calls to clients that resume at another replica, of a Manager
// with a Store. The replica of the client has a follower, and the replica of the stream a
// leader for it. The leader takes a box of the store for the follower, and writes what the
// follower reads there; see savedAnswers. So each read of an earlier follower fails. No other
// replica takes the box, or makes one for a stream that a client has invented.
//
// Its mu comes before those of a leader and of savedAnswers.
type resumer struct {
	m       *Manager
	answers *savedAnswers

	closed atomic.Bool

	mu        sync.Mutex
	begun     map[*follower]bool // followers here
	leaders   map[string]*leader // by the name of the reader
	following *share.Shares      // followers, by session
	leading   *share.Shares
}

// newResumer returns a resumer without followers.
func newResumer(m *Manager) *resumer {
	places := func() *share.Shares {
		return share.New("streams of other replicas", maxFollowersTotal, maxFollowers, share.Same)
	}
	return &resumer{m: m, answers: newSavedAnswers(m), begun: make(map[*follower]bool), leaders: make(map[string]*leader), following: places(), leading: places()}
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
	f := &follower{
		resumer: r, session: s, last: last, from: from, node: strconv.FormatUint(from.node, 36), to: to,
		box: answerBoxName(s.id, from.node, from.stream), word: make(chan struct{}, 1), wake: to.Waker(),
	}
	f.reader = readerName(r.m.config.ReplicaID, r.m.numbers.tokens.Add(1), "")
	switch {
	case r.closed.Load():
		return unavailable(errEnding)
	case r.following.Take(s.id, 1) != nil:
		return tooManyStreams()
	}
	defer r.following.Give(s.id, 1)
	r.mu.Lock()
	r.begun[f] = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.begun, f)
	}()
	return f.serve()
}

// followers returns the followers here, also those that still ask the store.
func (r *resumer) followers() []*follower {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.begun))
}

// checkReplicas ends the followers whose leader's replica is gone. It asks once for each
// replica.
func (r *resumer) checkReplicas() {
	of := make(map[string][]*follower)
	for _, f := range r.followers() {
		of[f.node] = append(of[f.node], f)
	}
	for node, followers := range of {
		lives, err := r.m.lives(r.m.ctx, node)
		switch {
		case err != nil:
			return
		case !lives:
			for _, f := range followers {
				f.stop(reasonClosed)
			}
		}
	}
}

// hasEnded reports whether a session has ended for all replicas; nil has not. A replica that
// ends leaves its sessions to others.
func (r *resumer) hasEnded(s *Session) bool { return s != nil && s.Ended() && !r.closed.Load() }

// close lets no follower and no leader begin. The answers of calls that have returned
// may be on their way to their streams, which leaders and clients that come back
// need before that.
func (r *resumer) close() {
	r.answers.wait()
	r.closed.Store(true)
}

// handleMessage handles what a follower of another replica asks for, and replies to those of
// this one. It does not wait. A follower for which there is no room asks again.
func (r *resumer) handleMessage(message bus.Message) {
	var a followRequest
	if err := json.Unmarshal(message.Body, &a); err != nil {
		r.m.reportError(err)
		return
	}
	from, ok := parseEventID(a.After)
	if a.Reply {
		reader, _ := r.m.inboxes.Load(answerBoxName(a.Session, from.node, from.stream))
		f, ok := reader.(*follower)
		switch {
		case !ok || f.reader != a.Reader:
		case a.End != "":
			f.stop(a.End)
		default:
			f.known.Store(true)
			f.signal()
		}
		return
	}
	if !ok || from.node != r.answers.node {
		return
	}
	s := r.m.Local(a.Session)
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.leaders[a.Reader]
	switch {
	case l != nil && a.Left:
		l.leave(from)
	case a.Left:
		r.answers.leave(a.Session, a.Reader, from)
	case l != nil:
		r.answers.acknowledge(a.Session, from.stream, a.Reader)
	case !r.closed.Load() && r.leading.Take(a.Session, 1) == nil:
		l = &leader{resumer: r, ask: a, from: from, session: s, news: make(chan struct{}, 1)}
		if s != nil {
			l.budget = s.history.budget
		}
		r.leaders[a.Reader] = l
		r.m.sweeping.Go(l.run)
	}
}

// send sends a message to a replica that was alive a moment ago.
func (r *resumer) send(ctx context.Context, node string, message followRequest) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return r.m.config.Bus.SendUnchecked(context.WithoutCancel(ctx), node, msgFollow, body)
}

// forget drops a leader.
func (r *resumer) forget(l *leader) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.leaders, l.ask.Reader)
	r.leading.Give(l.ask.Session, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left != nil {
		r.answers.leave(l.ask.Session, l.ask.Reader, *l.left)
	}
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
