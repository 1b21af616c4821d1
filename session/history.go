package session

import (
	"bytes"
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/inflight"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// maxRecords is how many events a session keeps at most: those without a
// message have no bytes that count.
const maxRecords = 1024

// The errors of coming back for a stream.
var (
	// errUnknownStream: the session keeps nothing of the stream. It may never
	// have been, or be too long ago, or have made room for others.
	errUnknownStream = errors.New("session: the id names no stream of this session, or one that is too long ago")
	// errNotKept: an event that followed is longer than Config.MaxEvent.
	errNotKept = errors.New("session: what followed is too long to be sent again")
	// errLost is the error of a question that did not reach its client, and is
	// not kept.
	errLost = errors.New("the connection to the client broke, and the question is too long, or too old, to be sent again")
)

// history is what a session has sent as events, in case the client did not get
// it. It holds the newest events of all streams. Its lock may be taken while
// that of a stream is held, and is never held while the budget drops others.
type history struct {
	pending  *inflight.Pending // of the session: questions that are lost fail
	revision protocol.Revision
	maxEvent int      // bytes of an event that is kept
	budget   *account // of the principal; nil without a Manager
	node     uint64   // of this replica, for the ids of events; 0 without a Store
	numbers  *counters
	saved    *savedAnswers      // nil without a Store
	save     func(answer event) // stores an answer while its client is disconnected; nil without a Store

	mu      sync.Mutex
	limit   int // bytes of messages; 0 disables the history, and is set at the end of the session
	size    int
	cost    int                      // in the budget
	place   *place                   // there; nil if nothing is kept
	records []event                  // oldest first
	lost    []event                  // questions that are kept no more
	open    map[uint64]*answerStream // streams that are not over; nil until there is one
}

// counters count what events are named after. With a Store they are those of the
// Manager, as a session may leave a replica and come back to it: no id of an
// event is given twice.
type counters struct {
	answers atomic.Uint64 // streams of answers
	own     atomic.Uint64 // streams of sessions themselves
	unasked atomic.Uint64 // events on those
	copies  atomic.Uint64 // of sessions, for the ids of questions
	tokens  atomic.Uint64 // of listeners
}

// event is one event. A record without a message ended or primed its stream,
// or, if it is long, is of an event too long to be kept.
type event struct {
	stream, event uint64
	message       []byte
	long          bool
	answer        bool        // the message is the one that the stream was for
	question      protocol.ID // of the request to the client that the message is; zero for others
	request       protocol.ID // that the stream answers, if its id goes into those of events
}

// questionOf returns the id of a message that is a request, of those that the
// server has made itself. It reads no further than the method, so that it does
// not matter how deep the params are.
func questionOf(message []byte) (id protocol.ID) {
	rest, ok := bytes.CutPrefix(message, []byte(`{"jsonrpc":"2.0","id":`))
	if !ok {
		return id
	}
	s := jsonx.Scanner{Buf: rest}
	text, err := s.Skip()
	if err == nil && bytes.HasPrefix(rest[s.Pos:], []byte(`,"method":`)) {
		_ = id.UnmarshalJSON(text) // the server makes valid ids
	}
	return id
}

// eventOverhead is what an event counts in addition to its message, in bytes: the event
// itself, and the spare room of its list.
const eventOverhead = 160

// cost returns what an event counts in the budget of all sessions.
func (r *event) cost() int { return eventOverhead + len(r.message) }

// add adds an event, and drops the oldest ones for it. The newest stays: it
// may be the answer that the client comes back for. It returns what the dropped
// ones cost. h.mu is held.
func (h *history) add(r event) (freed int) {
	h.records = append(h.records, r)
	h.size += len(r.message)
	h.cost += r.cost()
	drop := 0
	for (h.size > h.limit || len(h.records)-drop > maxRecords) && drop < len(h.records)-1 {
		h.size -= len(h.records[drop].message)
		freed += h.records[drop].cost()
		drop++
	}
	if drop > 0 {
		h.noteLost(h.records[:drop])
		clear(h.records[:drop])
		h.records = h.records[drop:]
	}
	h.cost -= freed
	return freed
}

// noteLost notes the questions among dropped events, so that failLost can fail them when
// the client resumes without them. h.mu is held.
func (h *history) noteLost(records []event) {
	for _, r := range records {
		if !r.question.IsZero() {
			h.lost = append(h.lost, event{stream: r.stream, event: r.event, question: r.question})
		}
	}
}

// failLost fails the questions that a client which resumes a stream after an event
// does not get. h.mu is held.
func (h *history) failLost(stream, number uint64) {
	for _, list := range [][]event{h.lost, h.records} {
		for _, r := range list {
			if r.stream == stream && r.event > number && r.message == nil && !r.question.IsZero() {
				h.pending.Fail(r.question, errLost)
			}
		}
	}
}

// restoreUnsent notes that a connection broke over a message of the session's own
// stream. If that is a question that is not kept, it fails: it would wait for
// nothing.
func (h *history) restoreUnsent(message []byte) {
	if id := questionOf(message); !id.IsZero() && (len(message) > h.maxEvent || !h.resumable()) {
		h.pending.Fail(id, errLost)
	}
}

// reserve takes the room for a record of message out of the budget. The
// record has the message unless it is too long, or others leave no room. It is
// not ok if there is none for the record itself.
func (h *history) reserve(stream uint64, message []byte) (r event, ok bool) {
	r = event{stream: stream, message: message}
	if len(message) <= h.maxEvent && h.budget.reserve(r.cost()) {
		return r, true
	}
	r.message, r.long = nil, message != nil
	return r, h.budget.reserve(r.cost())
}

// append adds a record whose room is reserved; if there was none, what the
// session keeps is incomplete, and goes.
func (h *history) append(r event, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.limit == 0: // the session has ended
		if ok {
			h.budget.release(r.cost())
		}
	case ok:
		if len(h.lost) > 64 {
			h.lost = slices.DeleteFunc(h.lost, func(r event) bool { return !h.pending.Waits(r.question) })
		}
		h.budget.release(h.add(r))
		h.place = h.budget.newest(h, h.place)
	default:
		h.drop()
	}
}

// drop forgets all events, but not the streams that are open. h.mu is held.
func (h *history) drop() {
	h.budget.drop(h.place, h.cost)
	h.noteLost(h.records)
	h.records, h.size, h.cost, h.place = nil, 0, 0, nil
}

// close forgets everything, and lets nothing be kept any more.
func (h *history) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop()
	h.limit, h.lost, h.open = 0, nil, nil
}

// since returns the events of a stream that follow one. errUnknownStream means
// that nothing is known of the stream, errNotKept that missed has gaps. h.mu is
// held.
func (h *history) since(stream, event uint64) (missed []event, err error) {
	err = errUnknownStream
	for _, r := range h.records {
		if r.stream != stream {
			continue
		}
		if errors.Is(err, errUnknownStream) {
			err = nil
		}
		switch {
		case r.event <= event:
		case r.long:
			err = errNotKept
		default:
			missed = append(missed, r)
		}
	}
	return missed, err
}

// eventID names an event. An id is unique in the session, whichever replica
// serves it.
type eventID struct {
	node   uint64 // of the replica that sent it; 0 without a Store
	stream uint64 // with the bit unsolicitedStream if it is one of the session itself
	event  uint64 // its number in the stream; for unsolicited streams, over all streams
	// local, if it is not 0, makes an event of the session itself unique that is not in
	// its inbox: the at is the replica that numbered it.
	local uint64
	at    string
	// request is what the stream answers, so that an error can be when the replica
	// is gone. It is zero without a Store, for streams of the session itself, and if
	// it is longer than maxNamed.
	request protocol.ID
}

// maxEventID is longer, in bytes, than any id of an event: three numbers, and the
// id of a request in base64.
const maxEventID = 256

// maxRequestIDLen is how many bytes the id of a request may have that is to be in the
// ids of events: clients choose it, and each event carries it.
const maxRequestIDLen = 64

// unsolicitedStream is a bit in the number of each stream that no request has opened. Its
// text in an id begins with a zero, unlike other numbers.
const unsolicitedStream = 1 << 63

// precedes reports whether text is the id of a later event of the same stream.
func (id eventID) precedes(text string) bool {
	later, ok := parseEventID(text)
	return ok && later.node == id.node && later.stream == id.stream && later.event > id.event
}

// String returns the id as it is sent: the stream and the number of the event
// in base 36, and behind points the replica, and the request in base64url.
func (id eventID) String() string {
	text := ""
	if id.stream&unsolicitedStream != 0 {
		text = "0"
	}
	if number := id.stream &^ unsolicitedStream; number > 0 {
		text += strconv.FormatUint(number, 36)
	}
	text += "-" + strconv.FormatUint(id.event, 36)
	if id.node != 0 {
		text += "." + strconv.FormatUint(id.node, 36)
	}
	if id.local != 0 {
		text += "." + id.at + "-" + strconv.FormatUint(id.local, 36)
	}
	if !id.request.IsZero() {
		text += "." + base64.RawURLEncoding.EncodeToString([]byte(id.request.String()))
	}
	return text
}

// parseEventID parses the result of String. Clients send the text, so it may be anything;
// ok is false for an invalid id.
func parseEventID(text string) (id eventID, ok bool) {
	if len(text) > maxEventID {
		return eventID{}, false
	}
	var err error
	text, node, shared := strings.Cut(text, ".")
	node, request, named := strings.Cut(node, ".")
	if named && strings.HasPrefix(text, "0") { // what makes it unique says nothing of where it is
		var local string
		named = false
		id.at, local, _ = strings.Cut(request, "-")
		if id.local, err = strconv.ParseUint(local, 36, 64); err != nil || !bus.IsReplicaID(id.at) {
			return eventID{}, false
		}
	}
	stream, event, _ := strings.Cut(text, "-")
	var errs [4]error
	id.stream, errs[0] = strconv.ParseUint(stream, 36, 63)
	if strings.HasPrefix(stream, "0") {
		id.stream |= unsolicitedStream
	}
	id.event, errs[1] = strconv.ParseUint(event, 36, 64)
	if shared {
		id.node, errs[2] = strconv.ParseUint(node, 36, 64)
	}
	if named {
		id.request, errs[3] = parseNamed(request)
	}
	if errors.Join(errs[:]...) != nil || shared && id.node == 0 || named && id.stream&unsolicitedStream != 0 {
		return eventID{}, false
	}
	return id, true
}

// errNotNamed is the error of what cannot be a request in the id of an event.
var errNotNamed = errors.New("session: the id of an event names no request")

// parseNamed reads the id of a request in that of an event.
func parseNamed(text string) (id protocol.ID, err error) {
	if len(text) > base64.RawURLEncoding.EncodedLen(maxRequestIDLen) {
		return id, errNotNamed
	}
	request, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = id.UnmarshalJSON(request)
	}
	if err == nil && base64.RawURLEncoding.EncodeToString([]byte(id.String())) != text { // written otherwise
		return protocol.ID{}, errNotNamed
	}
	return id, err
}

// idOf names an event of the session. No lock is needed: node does not change.
func (h *history) idOf(stream, event uint64, request protocol.ID) string {
	return eventID{node: h.node, stream: stream, event: event, request: request}.String()
}

// answerStream is the answer to one request, as events that a client may come back
// for when its connection is lost (basic/transports of 2025-03-26 to
// 2025-11-25, "Resumability and Redelivery"). It is safe for concurrent use.
//
// It is attached to a connection (to is not nil), or it waits for its client,
// after the connection has broken or was paused; from both it goes to over,
// with the answer. While it waits, events are only kept. A client that comes
// back takes it over from the connection before, which may not yet know that it
// has lost its client.
type answerStream struct {
	history *history
	number  uint64
	request protocol.ID // for the ids of events

	mu     sync.Mutex // held while sending, so that events keep their order
	event  uint64
	to     core.EventWriter // nil while there is no connection
	left   func()           // called when to no longer has this stream; may be nil
	leader *leader          // to, now or when it was resumed last; nil for others
	over   bool
	kept   bool // the answer is; the shutdown does not wait for it any more
}

// begin begins the stream of an answer on the connection to; see
// Session.OpenStream.
func (h *history) begin(to core.EventWriter, request protocol.ID) core.AnswerStream {
	if h.node == 0 || len(request.String()) > maxRequestIDLen {
		request = protocol.ID{}
	}
	h.mu.Lock()
	if !h.keeps() {
		h.mu.Unlock()
		return nil
	}
	st := &answerStream{history: h, number: h.numbers.answers.Add(1), request: request, to: to, kept: h.saved == nil}
	h.saved.expect()
	if h.open == nil {
		h.open = make(map[uint64]*answerStream)
	}
	h.open[st.number] = st
	h.mu.Unlock()
	if h.revision.Has(protocol.FeaturePrimedStreams) {
		st.mu.Lock()
		defer st.mu.Unlock()
		st.put(event{})
	}
	return st
}

// keeps reports whether events are kept: the Config allows it, the session has
// not ended, and its revision lets clients come back. h.mu is held.
func (h *history) keeps() bool {
	return h.limit > 0 && h.revision.Has(protocol.FeatureResumableStreams)
}

// resumable is keeps without h.mu.
func (h *history) resumable() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keeps()
}

// Send sends a message ahead of the answer. A disconnected client is not an error: it may
// resume.
func (st *answerStream) Send(message []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over {
		return wire.ErrAnswered
	}
	st.put(event{message: message, question: questionOf(message)})
	return nil
}

// End sends the answer, if there is one, and ends the stream. It stores the answer if the
// client is disconnected.
func (st *answerStream) End(answer []byte) {
	h := st.history
	if away := st.end(answer); away && answer != nil && h.save != nil {
		h.save(event{stream: st.number, event: st.event, message: answer, request: st.request})
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.markSaved()
}

// markSaved notes that the answer is kept, as far as it will be. st.mu is held.
func (st *answerStream) markSaved() {
	if !st.kept {
		st.kept = true
		st.history.saved.settle()
	}
}

// end is End, and reports whether there is no connection.
func (st *answerStream) end(answer []byte) (away bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.over {
		return false
	}
	if answer != nil {
		st.put(event{message: answer, answer: true})
	}
	st.over, away = true, st.to == nil
	st.releaseConn()
	st.history.mu.Lock()
	defer st.history.mu.Unlock()
	delete(st.history.open, st.number)
	return away
}

// put keeps an event and sends it if there is a connection. st.mu is held.
func (st *answerStream) put(e event) {
	st.event++
	h := st.history
	r, room := h.reserve(st.number, e.message)
	r.event, r.message = st.event, bytes.Clone(r.message)
	r.answer, r.question, r.request = e.answer, e.question, st.request
	h.append(r, room)
	if r.answer && r.message != nil {
		st.markSaved() // also if the client keeps the connection waiting
	}
	if st.to != nil && h.send(st.to, event{stream: st.number, event: st.event, request: st.request, message: e.message, answer: e.answer}) != nil {
		st.releaseConn()
	}
	if st.to == nil && r.message == nil && !r.question.IsZero() {
		h.pending.Fail(r.question, errLost)
	}
}

// send sends an event. A leader also receives that an event is the answer: nothing follows it.
func (h *history) send(to core.EventWriter, r event) error {
	id := h.idOf(r.stream, r.event, r.request)
	if l, ok := to.(*leader); ok && r.answer {
		return l.enqueue(followEvent{ID: id, message: r.message, Answer: true})
	}
	return to.Event(id, r.message)
}

// releaseConn releases the connection and wakes its goroutine, if the client has resumed on
// it. st.mu is held.
func (st *answerStream) releaseConn() {
	if st.to == nil {
		return
	}
	st.to = nil
	if st.left != nil {
		st.left()
	}
}

// isConn reports whether to is the connection of the stream.
func (st *answerStream) isConn(to core.EventWriter) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.to == to
}

// Pause ends the connection but not the stream: the client is to come back
// after retry. It returns false if there is none.
func (st *answerStream) Pause(retry time.Duration) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.to == nil {
		return false
	}
	if st.event == 0 {
		st.put(event{}) // or the client has nothing to come back with
	}
	if st.to == nil {
		return false
	}
	// A connection that fails is over as well.
	_ = st.to.Pause(retry)
	st.releaseConn()
	return true
}

// detach forgets the connection to, which is lost.
func (st *answerStream) detach(to core.EventWriter) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.to == to {
		st.releaseConn()
	}
}

// resume sends the events after id on their stream, and makes to the connection of later
// events.
//
// attached reports whether to still is that connection: not if the stream is over. resume calls wake when it no longer
// is; wake must not block or use h. The caller calls lost if to breaks before that.
//
// The error is errUnknownStream if id is not of a known answer, and errNotKept if some
// events are gone. Then it has sent nothing.
func (h *history) resume(id string, to core.EventWriter, wake func()) (attached func() bool, lost func(), err error) {
	from, ok := parseEventID(id)
	if !ok || from.stream&unsolicitedStream != 0 || from.node != h.node {
		return nil, nil, errUnknownStream
	}
	h.mu.Lock()
	st := h.open[from.stream]
	h.mu.Unlock()
	if st == nil {
		st = &answerStream{over: true}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	attached, lost = func() bool { return st.isConn(to) }, func() { st.detach(to) }
	if l, ok := to.(*leader); ok && !st.over && l.isLeft() {
		return attached, lost, nil // another connection may have come while this one waited
	}
	missed, err := h.missed(from.stream, from.event)
	switch {
	case errors.Is(err, errNotKept), st.over && err != nil:
		return nil, nil, err
	case !st.over:
		if st.leader != nil {
			st.leader.overtaken.Store(true)
		}
		st.leader, _ = to.(*leader)
		st.releaseConn()
		st.to, st.left = to, wake
	}
	for _, r := range missed {
		if h.send(to, r) != nil {
			st.releaseConn()
			break
		}
	}
	return attached, lost, nil
}

// missed returns the events of a stream after one; see history.since.
func (h *history) missed(number, after uint64) (missed []event, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failLost(number, after)
	return h.since(number, after)
}

// answers returns up to max answers, the newest first.
func (h *history) answers(max int) (newest []event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range slices.Backward(h.records) {
		if r.answer && r.message != nil && len(newest) < max {
			newest = append(newest, r)
		}
	}
	return newest
}

// parseUnsolicited reads the id of an event on one of the session's own streams. ok is false
// for those of other streams, and of another process.
func (h *history) parseUnsolicited(id string) (from eventID, ok bool) {
	from, ok = parseEventID(id)
	return from, ok && from.stream&unsolicitedStream != 0 && from.node == h.node
}

// sendMissed sends the events after id, if id is of one of the session's own streams.
// Otherwise it does nothing. The error is errNotKept, before it sends anything, if some
// event was too long. It returns that error once, so that a client that retries continues
// without the event.
func (h *history) sendMissed(id string, to core.EventWriter) error {
	from, ok := h.parseUnsolicited(id)
	if !ok {
		return nil
	}
	missed, err := h.missed(from.stream, from.event)
	if errors.Is(err, errNotKept) {
		h.markTooLong(from.stream)
		return err
	}
	for _, r := range missed {
		if err := to.Event(h.idOf(r.stream, r.event, r.request), r.message); err != nil {
			return err
		}
	}
	return nil
}

// markTooLong forgets that there was what is too long to be kept on a stream.
func (h *history) markTooLong(stream uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, r := range h.records {
		if r.stream == stream {
			h.records[i].long = false
		}
	}
}

// isUnsolicited reports whether id is an event of a session's own streams, or invalid. A
// client with an invalid id gets a new stream of that kind.
func isUnsolicited(id string) bool {
	from, ok := parseEventID(id)
	return !ok || from.stream&unsolicitedStream != 0
}

// dropFinished drops the events of answers that are over, when the session has not
// been used for a while.
func (h *history) dropFinished() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.open) == 0 {
		h.drop()
		h.open = nil
	}
}

// sendFirst sends the first event of one of the session's own streams, which has no
// message. With its id the client can resume before the first message. A resumed stream has
// no such event. The history does not keep it. The error is that of the connection.
func (h *history) sendFirst(number *uint64, to core.StreamConn) error {
	if *number != 0 || !h.revision.Has(protocol.FeaturePrimedStreams) {
		return nil
	}
	event, ok := h.nextUnsolicited(number)
	if !ok {
		return nil
	}
	return to.Event(h.idOf(*number, event, protocol.ID{}), nil)
}

// nextUnsolicited returns the number of the next event on one of the session's own streams,
// and gives the stream one unless it has; not ok if nothing is kept. The goroutine
// that carries the stream calls.
func (h *history) nextUnsolicited(number *uint64) (event uint64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.keeps() {
		return 0, false
	}
	if *number == 0 {
		*number = unsolicitedStream | (h.numbers.own.Add(1) - 1)
	}
	return h.numbers.unasked.Add(1), true
}

// addUnsolicited keeps a message of one of the session's own streams under the id
// that it returns, "" if nothing is kept. number is that of the stream; see nextOwn.
func (h *history) addUnsolicited(number *uint64, message []byte) (id string) {
	event, ok := h.nextUnsolicited(number)
	if !ok {
		return ""
	}
	r, room := h.reserve(*number, message)
	r.event, r.question = event, questionOf(message)
	h.append(r, room)
	return h.idOf(*number, event, protocol.ID{})
}
