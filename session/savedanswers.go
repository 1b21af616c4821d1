package session

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/share"
	"github.com/talaria-go/mcp/scale"
)

const (
	answerBytes         = 2 << 20       // of messages in such a box that its reader does not have; twice that with an answer
	maxAnswerBytes      = 1<<20 - 4<<10 // of one message in it; leaves room for a header
	maxSavedAnswers     = 8             // answers of a session that no client reads, from each replica; and boxes without an answer
	maxAnswerBoxes      = 64            // boxes of a session from each replica, with those that are read, written or deleted
	savedAnswerOverhead = 512           // bytes that one counts in addition to its messages
	maxSavedAtShutdown  = 32 << 20      // bytes of them when the server shuts down
	deletedAtOnce       = 256           // boxes
)

// savedAnswers has the boxes of the store in which the answers of calls are for clients
// that resume elsewhere. Each stream has a box of its own. A leader writes what follows an
// event of a stream. If no client is connected when the answer is made, only the answer is
// saved. A box stays until its client has the answer, its session ends, or answerTTL is
// over.
//
// The bytes have two limits: one for all sessions and one for each principal. Beyond these
// nothing is added. A box counts at the replica that writes it for as long as the store may
// have it. Its lock is the last in the order.
type savedAnswers struct {
	m     *Manager
	node  uint64 // of m
	bytes *share.Shares

	mu   sync.Mutex
	of   map[string][]*answerBox // by session, the oldest first
	to   int                     // how many answers are to come, or on their way into the store
	none chan struct{}           // closed when there are none; nil unless wait was called
}

// answerBox is what the store has of a stream, from this replica.
type answerBox struct {
	name, session, principal string
	stream                   uint64
	size                     int
	until                    time.Time // the store has forgotten it then
	led                      bool      // a leader writes it, or its follower reads it
	reader                   string    // of the newest leader
	answer                   uint64    // number of the event that is the answer; 0 if the box does not have it
	over                     bool      // it is to be deleted
	deleting                 bool
	storing                  chan struct{} // has an element while the store takes, writes or deletes it
	writing                  int           // how often reserve was called without note or undo
}

// lock makes others wait that use the box of the store. savedAnswers.mu is not held.
func (b *answerBox) lock() (unlock func()) {
	b.storing <- struct{}{}
	return func() { <-b.storing }
}

// newSavedAnswers returns savedAnswers without an answer.
func newSavedAnswers(m *Manager) *savedAnswers {
	own := min(m.config.MaxPerPrincipal, 0)
	node, _ := strconv.ParseUint(m.config.ReplicaID, 36, 64)
	return &savedAnswers{m: m, node: node, bytes: share.New("bytes of answers whose clients are away", m.config.AnswerMemory, own, share.Half), of: make(map[string][]*answerBox)}
}

// expect notes that there will be an answer, which the end of this replica waits for.
// settle must be called when it is kept: in the history, from which saveAll takes it, or in
// the store. l may be nil, without a Store.
func (l *savedAnswers) expect() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to++
}

// settle takes back one expect.
func (l *savedAnswers) settle() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to--; l.to == 0 && l.none != nil {
		close(l.none)
		l.none = nil
	}
}

// wait waits until no answer is to come, since all calls have returned, but no
// longer than the store may need for one: between the return of a call and its
// answer the session is saved.
func (l *savedAnswers) wait() {
	l.mu.Lock()
	if l.to == 0 {
		l.mu.Unlock()
		return
	}
	if l.none == nil {
		l.none = make(chan struct{})
	}
	none := l.none
	l.mu.Unlock()
	timer := time.NewTimer(replica.StoreTimeout)
	defer timer.Stop()
	select {
	case <-none:
	case <-timer.C:
	}
}

// answerBoxName returns the name of the box of a stream.
func answerBoxName(session string, node, stream uint64) string {
	return "answer:" + replica.StoreKey("answer", session+" "+eventID{node: node, stream: stream}.String(), partitions).Name
}

// find returns the box of a stream, nil if there is none. l.mu is held.
func (l *savedAnswers) find(session string, stream uint64) *answerBox {
	for _, b := range l.of[session] {
		if b.stream == stream {
			return b
		}
	}
	return nil
}

// reserve makes the box of a stream count n bytes more; undo takes that back. b is nil if
// there is no room. note must follow once the store has them.
func (l *savedAnswers) reserve(s *Session, stream uint64, n int) (b *answerBox, undo func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.of[s.id]
	if b = l.find(s.id, stream); b == nil {
		if len(list) >= maxAnswerBoxes {
			return nil, nil
		}
		b = &answerBox{name: answerBoxName(s.id, l.node, stream), session: s.id, principal: s.principal, stream: stream, storing: make(chan struct{}, 1)}
	}
	if b.size == 0 {
		n += savedAnswerOverhead
	}
	n = max(0, min(n, 2*answerBytes-b.size)) // beyond that the store has dropped some
	if l.bytes.Take(b.principal, n) != nil {
		return nil, nil
	}
	if b.until.IsZero() {
		l.of[s.id] = append(list, b)
	}
	b.size, b.until, b.over = b.size+n, time.Now().Add(answerTTL), false
	b.writing++
	return b, func() {
		over := l.m.resumer.hasEnded(s) // perhaps after markEnded
		l.mu.Lock()
		defer l.mu.Unlock()
		b.writing--
		b.over = b.over || over
		l.free(b, n)
	}
}

// free gives back up to n bytes of a box. l.mu is held.
func (l *savedAnswers) free(b *answerBox, n int) {
	n = min(n, b.size)
	b.size -= n
	l.bytes.Give(b.principal, n)
}

// note notes what was added to a box, or may have been: for a reader that still reads it, if
// reads, and the number of the event that is the answer, if that is not 0.
func (l *savedAnswers) note(s *Session, b *answerBox, reader string, reads bool, answer uint64) {
	over := l.m.resumer.hasEnded(s) // perhaps after markEnded
	l.mu.Lock()
	defer l.mu.Unlock()
	b.writing--
	b.answer, b.over = max(b.answer, answer), b.over || over
	if reads {
		b.led, b.reader = true, reader
	}
}

// lead notes that a client reads the box of a stream, which has no other leader.
func (l *savedAnswers) lead(session string, stream uint64, reader string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.find(session, stream); b != nil {
		b.led, b.reader = true, reader
	}
}

// append adds a batch to a box, and returns who reads that. The error is scale.ErrFull if
// there is no room.
func (l *savedAnswers) append(ctx context.Context, box string, p scale.AppendOp, batch followBatch, messages ...[]byte) (reader string, err error) {
	text, err := json.Marshal(batch)
	if err != nil {
		return "", err
	}
	text = append(text, '\n')
	for _, m := range messages {
		text = append(text, m...)
	}
	p.Box, p.Data, p.TTL = box, l.m.config.Seal.Seal(nil, text, seal.Binding(box)), answerTTL
	_, reader, err = l.m.appendBox(ctx, p)
	return reader, err
}

// save stores an answer whose client is disconnected, unless there is no room or it is too
// long. Beyond maxSavedAnswers, it deletes the oldest one of the session.
func (l *savedAnswers) save(ctx context.Context, s *Session, a event) {
	l.expect() // a shutdown waits for it
	defer l.settle()
	if len(a.message) > maxAnswerBytes || l.m.resumer.hasEnded(s) {
		return // the client cannot resume
	}
	b, _ := l.reserve(s, a.stream, len(a.message))
	if b == nil {
		return
	}
	batch := followBatch{Events: []followEvent{{ID: s.history.idOf(a.stream, a.event, a.request), Size: len(a.message), Answer: true}}, End: reasonDone}
	unlock := b.lock()
	_, err := l.append(ctx, b.name, scale.AppendOp{Keep: 2 * answerBytes}, batch, a.message)
	unlock()
	if l.note(s, b, "", false, a.event); err == nil { // after an error it may be there as well
		l.sweep(ctx, l.overdue(s.id))
	}
}

// markEnded notes that a session has ended. It waits for nothing. It comes after the end of
// the copy here: what is written later, note marks.
func (l *savedAnswers) markEnded(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.of[id] {
		b.over = true
	}
}

// acknowledge notes that the reader of a box has what is there, or soon reads it: it makes
// room.
func (l *savedAnswers) acknowledge(session string, stream uint64, reader string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.find(session, stream); b != nil && b.reader == reader {
		l.free(b, b.size)
	}
}

// release notes that nothing is added to the box of a stream for this reader any more, and
// that its client has left, if left, after the event got.
func (l *savedAnswers) release(session string, stream uint64, reader string, left bool, got uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.find(session, stream)
	switch {
	case b == nil:
	case b.reader == reader && left:
		b.led = false // until then its client may read it
		b.over = b.over || b.answer > 0 && b.answer <= got
	case b.size == 0 && b.answer == 0 && !b.led && b.writing == 0: // there is nothing in it
		b.over = true
	}
}

// overdue returns boxes that are to be deleted, a batch: of one session, or of all for "".
// Those without an answer have what a client has not read of a call that runs. It forgets
// those that the store has forgotten.
func (l *savedAnswers) overdue(session string) (over []*answerBox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	lists := l.of
	if session != "" {
		lists = map[string][]*answerBox{session: l.of[session]}
	}
	for _, list := range lists {
		answers, others := 0, 0
		for _, b := range slices.Backward(slices.Clone(list)) { // the newest first
			n := &others
			if b.answer > 0 {
				n = &answers
			}
			if !b.led && !b.over && b.writing == 0 {
				*n++
				b.over = *n > maxSavedAnswers
			}
			switch {
			case !now.Before(b.until):
				l.forget(b)
			case b.over && !b.deleting && b.writing == 0 && len(over) < deletedAtOnce:
				b.deleting, over = true, append(over, b)
			}
		}
	}
	return over
}

// sweep deletes boxes. What fails is tried again until the store has forgotten them.
func (l *savedAnswers) sweep(ctx context.Context, over []*answerBox) {
	var err error
	for _, b := range over {
		unlock := b.lock()
		l.mu.Lock()
		deleted := err == nil && b.over // otherwise it was written again
		l.mu.Unlock()
		if deleted {
			_, err = l.m.takeBox(ctx, scale.Take{Box: b.name})
		}
		l.mu.Lock()
		if b.deleting = false; deleted && err == nil && b.over && b.writing == 0 {
			l.forget(b)
		}
		l.mu.Unlock()
		unlock()
	}
}

// forget takes a box out of the list of its session. l.mu is held.
func (l *savedAnswers) forget(b *answerBox) {
	l.free(b, b.size)
	l.of[b.session] = slices.DeleteFunc(l.of[b.session], func(other *answerBox) bool { return other == b })
	if len(l.of[b.session]) == 0 {
		delete(l.of, b.session)
	}
}

// open reads what a box has: a batch of events in each message, and their messages.
func (l *savedAnswers) open(box string, data []byte) (batch followBatch, messages []byte, err error) {
	text, _, err := l.m.config.Seal.Open(data, seal.Binding(box))
	if err != nil {
		return batch, nil, err
	}
	header, messages, _ := bytes.Cut(text, []byte("\n"))
	return batch, messages, json.Unmarshal(header, &batch)
}

// send sends what the store has of a stream to a client that has got what comes up to from,
// which it moves on. found is false if the answer is not there; answers that the client has
// count as sent. The client of a failed write comes back, so that also counts as found.
func (l *savedAnswers) send(s *Session, from *eventID, to core.EventWriter) (found bool, err error) {
	box := answerBoxName(s.id, from.node, from.stream)
	var pos scale.Rev
	for {
		list, _, err := l.m.readBox(l.m.ctx, box, pos, "")
		if err != nil || len(list) == 0 {
			return found, err
		}
		for _, m := range list {
			pos = m.Rev
			batch, messages, err := l.open(box, m.Data)
			if err != nil {
				l.m.reportError(err)
				return found, err // another replica may have the key
			}
			for event, message := range batch.all(messages) {
				found = found || event.Answer
				if from.precedes(event.ID) {
					if to.Event(event.ID, message) != nil { // a client that is gone may come back
						return true, nil
					}
					*from, _ = parseEventID(event.ID)
				}
			}
		}
	}
}

// saveAll keeps, when the server shuts down, the answers that the clients of
// sessions may not have got, the newest of each session first, as far as there
// is room and time.
func (l *savedAnswers) saveAll(sessions map[string]*Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.m.ctx), replica.StoreTimeout)
	defer cancel()
	room := maxSavedAtShutdown
	var saved sync.WaitGroup
	defer saved.Wait()
	for _, s := range sessions {
		for _, a := range s.history.answers(maxSavedAnswers) {
			if room -= len(a.message); room < 0 || ctx.Err() != nil {
				return
			}
			select {
			case l.m.besides <- struct{}{}:
			case <-ctx.Done():
				return
			}
			saved.Go(func() {
				defer func() { <-l.m.besides }()
				if ctx.Err() == nil {
					l.save(ctx, s, a)
				}
			})
		}
	}
}
