package session

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/share"
	"github.com/talaria-go/mcp/scale"
)

const (
	answerBytes         = 2 << 20       // of messages in such a box that its reader does not have; twice that with an answer
	maxAnswerBytes      = 1<<20 - 4<<10 // of one message in it; leaves room for a header
	maxSavedAnswers     = 16            // boxes of a session from each replica that no client reads
	maxAnswerBoxes      = 64            // the same, with those that are read, written or deleted
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

	to atomic.Int64 // how many answers are to come, or on their way into the store

	mu sync.Mutex
	of map[string][]*answerBox // by session, the oldest first
}

// answerBox is what the store has of a stream, from this replica.
type answerBox struct {
	name, session, principal string
	stream                   uint64
	size                     int
	until                    time.Time     // the store has forgotten it then
	led                      bool          // a leader writes it, or its follower reads it
	reader                   string        // that follower
	answer                   uint64        // number of the event that is the answer; 0 if the box does not have it
	filled                   bool          // it may have a message
	over                     bool          // it is to be deleted
	storing                  chan struct{} // has an element while the store takes, writes or deletes it
	writing                  int           // calls of use
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
	if l != nil {
		l.to.Add(1)
	}
}

// settle takes back one expect.
func (l *savedAnswers) settle() {
	if l != nil {
		l.to.Add(-1)
	}
}

// wait waits until no answer is to come, since all calls have returned, but no
// longer than the store may need for one: between the return of a call and its
// answer the session is saved.
func (l *savedAnswers) wait() {
	for begun := time.Now(); l.to.Load() > 0 && time.Since(begun) < replica.StoreTimeout; {
		_ = pause.For(context.Background(), waitStep) // whose context does not end
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

// use calls write, which takes or writes the box of a stream as the only one here that does,
// and counts n bytes more for the box unless that fails. answer is the number of the event
// that is the answer, if it is among what is written. The error is that of write, or
// scale.ErrFull if there is no room.
func (l *savedAnswers) use(s *Session, stream uint64, n int, answer uint64, write func(b *answerBox) error) error {
	b, n := l.reserve(s, stream, n)
	if b == nil {
		return scale.ErrFull
	}
	b.storing <- struct{}{}
	err := write(b)
	<-b.storing
	over := l.m.resumer.hasEnded(s) // perhaps after markEnded
	l.mu.Lock()
	defer l.mu.Unlock()
	b.writing--
	if b.over = b.over || over; err != nil {
		l.free(b, n)
		return err
	}
	b.answer = max(b.answer, answer)
	return nil
}

// reserve makes the box of a stream count up to n bytes of messages more, and returns how many
// count. b is nil if there is no room.
func (l *savedAnswers) reserve(s *Session, stream uint64, messages int) (b *answerBox, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.of[s.id]
	if b = l.find(s.id, stream); b == nil {
		if len(list) >= maxAnswerBoxes {
			return nil, 0
		}
		b = &answerBox{name: answerBoxName(s.id, l.node, stream), session: s.id, principal: s.principal, stream: stream, storing: make(chan struct{}, 1)}
	}
	if n = messages; b.size == 0 {
		n += savedAnswerOverhead
	}
	n = max(0, min(n, 2*answerBytes-b.size)) // beyond that the store has dropped some
	if l.bytes.Take(b.principal, n) != nil {
		return nil, 0
	}
	if b.until.IsZero() {
		l.of[s.id] = append(list, b)
	}
	b.size, b.until, b.over, b.filled = b.size+n, time.Now().Add(answerTTL), false, b.filled || messages > 0
	b.writing++
	return b, n
}

// free gives back up to n bytes of a box. l.mu is held.
func (l *savedAnswers) free(b *answerBox, n int) {
	n = min(n, b.size)
	b.size -= n
	l.bytes.Give(b.principal, n)
}

// update changes what is known of the box of a stream, if there is one.
func (l *savedAnswers) update(session string, stream uint64, change func(b *answerBox)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.find(session, stream); b != nil {
		change(b)
	}
}

// lead notes who reads the box of a stream.
func (l *savedAnswers) lead(session string, stream uint64, reader string) {
	l.update(session, stream, func(b *answerBox) { b.led, b.reader = true, reader })
}

// acknowledge notes that the reader of a box, if it is that one, has what is there, or soon
// reads it: it makes room.
func (l *savedAnswers) acknowledge(session string, stream uint64, reader string) {
	l.update(session, stream, func(b *answerBox) {
		if b.reader == reader {
			l.free(b, b.size)
		}
	})
}

// leave notes that a reader has left whose client has the event last. A box without a message,
// or with an answer that the client has, is deleted.
func (l *savedAnswers) leave(session, reader string, last eventID) {
	l.update(session, last.stream, func(b *answerBox) {
		if b.reader == reader {
			b.led = false
			b.over = b.over || !b.filled || b.answer > 0 && b.answer <= last.event
		}
	})
}

// append adds a batch to a box, and returns who reads that. The error is scale.ErrFull if
// there is no room.
func (l *savedAnswers) append(ctx context.Context, box string, p scale.AppendOp, batch followBatch) (reader string, err error) {
	text, err := json.Marshal(batch)
	if err != nil {
		return "", err
	}
	text = append(text, '\n')
	for _, e := range batch.Events {
		text = append(text, e.message...)
	}
	p.Box, p.Data, p.TTL = box, l.m.config.Seal.Seal(nil, text, seal.Binding(box)), answerTTL
	_, reader, err = l.m.appendBox(ctx, p)
	return reader, err
}

// save stores an answer whose client is disconnected, unless there is no room or it is too
// long. Beyond maxSavedAnswers, it deletes the oldest box of the session.
func (l *savedAnswers) save(ctx context.Context, s *Session, a event) {
	l.expect() // a shutdown waits for it
	defer l.settle()
	if len(a.message) > maxAnswerBytes || l.m.resumer.hasEnded(s) {
		return // the client cannot resume
	}
	batch := followBatch{Events: []followEvent{{ID: s.history.idOf(a.stream, a.event, a.request), Size: len(a.message), Answer: true, message: a.message}}, End: reasonDone}
	var err error
	full := l.use(s, a.stream, len(a.message), a.event, func(b *answerBox) error {
		_, err = l.append(ctx, b.name, scale.AppendOp{Keep: 2 * answerBytes}, batch)
		return nil // after an error it may be there as well
	})
	if err == nil && full == nil {
		l.sweep(ctx, l.overdue(s.id))
	}
}

// markEnded notes that a session has ended. It waits for nothing. It comes after the end of
// the copy here: what is written later, use marks.
func (l *savedAnswers) markEnded(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.of[id] {
		b.over = true
	}
}

// overdue returns boxes that are to be deleted, a batch: of one session, or of all for "". It
// forgets those that the store has forgotten.
func (l *savedAnswers) overdue(session string) (over []*answerBox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	lists := l.of
	if session != "" {
		lists = map[string][]*answerBox{session: l.of[session]}
	}
	for _, list := range lists {
		unread := 0
		for _, b := range slices.Backward(slices.Clone(list)) { // the newest first
			if !b.led && !b.over && b.writing == 0 {
				unread++
				b.over = unread > maxSavedAnswers
			}
			switch {
			case !now.Before(b.until):
				l.forget(b)
			case b.over && b.writing == 0 && len(over) < deletedAtOnce:
				over = append(over, b)
			}
		}
	}
	return over
}

// sweep deletes boxes. What fails is tried again until the store has forgotten them.
func (l *savedAnswers) sweep(ctx context.Context, over []*answerBox) {
	var err error
	for _, b := range over {
		b.storing <- struct{}{}
		l.mu.Lock()
		deleted := err == nil && b.over && l.find(b.session, b.stream) == b // otherwise it was written again, or is deleted
		l.mu.Unlock()
		if deleted {
			_, err = l.m.takeBox(ctx, scale.Take{Box: b.name})
		}
		l.mu.Lock()
		if deleted && err == nil && b.over && b.writing == 0 {
			l.forget(b)
		}
		l.mu.Unlock()
		<-b.storing
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

// open reads a message of a box.
func (l *savedAnswers) open(box string, data []byte) (batch followBatch, err error) {
	text, _, err := l.m.config.Seal.Open(data, seal.Binding(box))
	if err != nil {
		return batch, err
	}
	header, messages, _ := bytes.Cut(text, []byte("\n"))
	err = json.Unmarshal(header, &batch)
	for i := range batch.Events {
		if e := &batch.Events[i]; e.Size >= 0 {
			n := min(e.Size, len(messages))
			e.message, messages = messages[:n:n], messages[n:]
		}
	}
	return batch, err
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
			batch, err := l.open(box, m.Data)
			if err != nil {
				l.m.reportError(err)
				return found, err // another replica may have the key
			}
			for _, e := range batch.Events {
				found = found || e.Answer
				if from.precedes(e.ID) {
					if to.Event(e.ID, e.message) != nil { // a client that is gone may come back
						return true, nil
					}
					*from, _ = parseEventID(e.ID)
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
