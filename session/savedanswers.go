package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	answerTTL           = 15 * time.Minute // lifetime of the box of an answer after the last message
	answerBytes         = 2 << 20          // of messages in such a box that its reader does not have; twice that with an answer
	maxAnswerBytes      = 1<<20 - 4<<10    // of one message in it; leaves room for a header
	maxSavedAnswers     = 8                // answers of a session, from each replica
	savedAnswerOverhead = 512              // bytes that one counts in addition to its messages
	maxSavedAtShutdown  = 32 << 20         // bytes of them when the server shuts down
	deletedAtOnce       = 256              // boxes
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
	name, principal string
	stream          uint64
	size            int
	until           time.Time // the store has forgotten it then
	led             bool      // a leader writes it, or its follower reads it
	reader          string    // of the newest leader
	token           scale.Rev // the same
	answer          uint64    // number of the event that is the answer; 0 if the box does not have it
	unknown         bool      // nothing is known of the stream
	over            bool      // it is to be deleted
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

// reserve makes the box of a stream count n bytes more, and change is made to it; undo takes
// back what it counts. It is nil if there is no room. The oldest answer of the session makes
// room for a new one.
func (l *savedAnswers) reserve(session, principal string, stream uint64, n int, change func(b *answerBox)) (b *answerBox, undo func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.of[session]
	i := slices.IndexFunc(list, func(b *answerBox) bool { return b.stream == stream })
	found := i >= 0
	if found {
		b = list[i]
	} else {
		b = &answerBox{name: answerBoxName(session, l.node, stream), principal: principal, stream: stream}
	}
	if b.size == 0 && n > 0 {
		n += savedAnswerOverhead
	}
	n = max(0, min(n, 2*answerBytes-b.size)) // beyond that the store has dropped some
	if l.bytes.Take(b.principal, n) != nil {
		return nil, nil
	}
	undo = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if n = min(n, b.size); n > 0 {
			b.size -= n
			l.bytes.Give(b.principal, n)
		}
	}
	b.size, b.until = b.size+n, time.Now().Add(answerTTL)
	b.over = false
	change(b)
	if found {
		return b, undo
	}
	var idle []*answerBox
	for _, other := range list {
		if !other.led && !other.over && other.answer > 0 {
			idle = append(idle, other)
		}
	}
	if !b.led && len(idle) >= maxSavedAnswers {
		idle[0].over = true
	}
	l.of[session] = append(list, b)
	return b, undo
}

// has reports whether the stream has a box that counts here.
func (l *savedAnswers) has(session string, stream uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.of[session], func(b *answerBox) bool { return b.stream == stream })
}

// append adds a batch to a box, and returns who reads that. The error is scale.ErrFull if
// there is no room.
func (l *savedAnswers) append(ctx context.Context, box string, p scale.AppendOp, batch followBatch, messages ...[]byte) (rev scale.Rev, reader string, err error) {
	text, err := json.Marshal(batch)
	if err != nil {
		return 0, "", err
	}
	text = append(text, '\n')
	for _, m := range messages {
		text = append(text, m...)
	}
	p.Box, p.Data, p.TTL = box, l.m.config.Seal.Seal(nil, text, seal.Binding(box)), answerTTL
	err = l.m.callStore(ctx, func(ctx context.Context) (err error) {
		rev, reader, err = l.m.config.Store.Append(ctx, p)
		return err
	})
	return rev, reader, err
}

// save stores an answer whose client is disconnected, unless there is no room or it is too
// long.
func (l *savedAnswers) save(ctx context.Context, s *Session, a event) {
	l.expect() // a shutdown waits for it
	defer l.settle()
	if len(a.message) > maxAnswerBytes || s.Ended() && !l.m.resumer.isClosed() {
		return // the client cannot resume
	}
	b, _ := l.reserve(s.id, s.principal, a.stream, len(a.message), func(b *answerBox) { b.answer = a.event })
	if b == nil {
		return
	}
	batch := followBatch{Events: []followEvent{{ID: s.history.idOf(a.stream, a.event, a.request), Size: len(a.message), Answer: true}}, End: reasonDone}
	_, _, _ = l.append(ctx, b.name, scale.AppendOp{Keep: 2 * answerBytes}, batch, a.message) // callStore has reported it
}

// markEnded notes that a session has ended. It waits for nothing.
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
	for _, b := range l.of[session] {
		if b.stream == stream && b.reader == reader {
			l.bytes.Give(b.principal, b.size)
			b.size = 0
		}
	}
}

// release notes that nothing is added to the box of a stream for this reader any more, and
// that its client has left, if left, after the event got.
func (l *savedAnswers) release(session string, stream uint64, reader string, left bool, got uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.of[session] {
		if b.stream == stream && b.reader == reader {
			b.led = b.led && !left // until then its client may read it
			b.over = b.over || left && (b.unknown || b.answer > 0 && b.answer <= got)
		}
	}
}

// deleteEnded deletes the boxes that are over, and gives back what those count for, and
// those that the store has forgotten.
func (l *savedAnswers) deleteEnded() {
	for _, b := range l.ended(time.Now()) {
		err := l.m.callStore(l.m.ctx, func(ctx context.Context) error {
			_, err := l.m.config.Store.Take(ctx, scale.Take{Box: b.name, From: b.reader})
			return err
		})
		if err != nil && !errors.Is(err, scale.ErrNotReader) { // then its client has come back
			return // what is not deleted expires
		}
	}
}

// ended returns what deleteEnded deletes: a batch.
func (l *savedAnswers) ended(now time.Time) (over []*answerBox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, list := range l.of {
		list = slices.DeleteFunc(list, func(b *answerBox) bool {
			there := now.Before(b.until)
			if there && (!b.over || len(over) == deletedAtOnce) {
				return false
			}
			l.bytes.Give(b.principal, b.size)
			if b.size = 0; there {
				over = append(over, b)
			}
			return true
		})
		if l.of[id] = list; len(list) == 0 {
			delete(l.of, id)
		}
	}
	return over
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
		var list []scale.Message
		err = l.m.callStore(l.m.ctx, func(ctx context.Context) (err error) {
			list, _, err = l.m.config.Store.Read(ctx, box, pos, "")
			return err
		})
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
