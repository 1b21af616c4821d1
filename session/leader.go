package session

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/scale"
)

// errFollowerSlow is the error of an event for which a leader has no room.
var errFollowerSlow = errors.New("session: too much waits for the replica that the client came back to")

// leader is the connection of the stream of an answer whose client has resumed at another
// replica: it writes the box that the follower there reads. It ends after the answer, if
// its follower has left, or if another reader has the box.
//
// A sender on the stream holds the lock of the stream, and a store may be slow. So Event
// adds to the queue, and the goroutine of run writes. If the queue is full, the stream loses
// this connection, as it does with a client that does not read.
type leader struct {
	resumer *resumer
	ask     followRequest
	from    eventID  // of After in ask
	session *Session // nil if it is not here
	news    chan struct{}

	told bool // the box has something of this; only the goroutine of run uses it

	mu    sync.Mutex
	queue []queuedEvent
	bytes int    // that these count for in the budget
	end   string // why nothing follows the queue; "" if something may
	left  bool   // the follower has ended
	got   uint64 // then, the number of the last event that its client has
}

// queuedEvent is an event on its way to the box.
type queuedEvent struct {
	followEvent
	message []byte // nil if Size is negative
}

var _ core.EventWriter = (*leader)(nil)

// run serves the follower. It runs on a goroutine of its own.
func (l *leader) run() {
	defer l.resumer.forget(l)
	attached := func() bool { return false }
	if l.session == nil {
		l.finish(reasonUnknown)
	} else {
		defer l.session.retain()()
		defer context.AfterFunc(l.session.Context(), l.wake)()
		on, lost, err := l.session.history.resume(l.ask.After, l, l.wake)
		switch {
		case errors.Is(err, errNotKept):
			l.finish(reasonTooLong)
		case err != nil:
			l.finish(reasonUnknown)
		default:
			attached = on
			defer lost()
		}
	}
	defer l.drop(reasonDone)
	ctx := l.resumer.m.ctx
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if !attached() {
			l.finish(reasonDone)
		}
		if l.isOver() { // after the end of a session, the store deletes the box
			return
		}
		over, err := l.flush(ctx)
		switch {
		case over:
			return
		case err != nil:
			timer.Reset(retryInterval)
		}
		select {
		case <-l.news:
		case <-timer.C:
		case <-ctx.Done():
			l.flushLast(attached)
			return
		}
	}
}

// isOver reports whether the follower has left or the session has ended.
func (l *leader) isOver() bool {
	// The lock of the resumer comes before that of the leader.
	ended := l.session != nil && l.session.Ended() && !l.resumer.isClosed()
	return ended || l.isLeft()
}

// flushLast writes the rest when the replica ends. A follower that is still attached gets no
// answer from here.
func (l *leader) flushLast(attached func() bool) {
	if attached() {
		l.finish(reasonClosed)
	}
	l.finish(reasonDone)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.resumer.m.ctx), replica.StoreTimeout)
	defer cancel()
	_, _ = l.flush(ctx) // the follower finds out by itself
}

// finish says that nothing follows what waits, unless that was said before.
func (l *leader) finish(end string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == "" {
		l.end = end
	}
}

// leave notes that the follower has ended, whose client has the event got.
func (l *leader) leave(got uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.got = true, got
	l.wake()
}

// isLeft reports whether the follower has ended.
func (l *leader) isLeft() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}

// wake makes the goroutine look.
func (l *leader) wake() {
	select {
	case l.news <- struct{}{}:
	default: // it will look anyway
	}
}

// Event implements core.EventWriter. It waits for nothing.
func (l *leader) Event(id string, message []byte) error { return l.enqueue(id, message, false) }

// enqueue is Event, which may be the answer. That nothing follows this goes with it.
func (l *leader) enqueue(id string, message []byte, answer bool) error {
	size := len(message)
	if message == nil {
		size = -1
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == "" && len(message) > maxAnswerBytes {
		l.end = reasonTooLong
		l.wake()
	}
	err := l.add(queuedEvent{followEvent: followEvent{ID: id, Size: size, Answer: answer}, message: bytes.Clone(message)})
	if err == nil && answer {
		l.end = reasonDone
	}
	return err
}

// Pause implements core.EventWriter.
func (l *leader) Pause(retry time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(queuedEvent{followEvent: followEvent{Size: -1, Retry: retry}})
}

// add puts an event into the queue. l.mu is held.
func (l *leader) add(e queuedEvent) error {
	if l.end != "" || l.left {
		return errFollowerSlow
	}
	size := eventOverhead + len(e.message)
	l.wake()
	if l.bytes+size > followQueueBytes || !l.account().reserve(size) {
		l.end = reasonSlow
		return errFollowerSlow
	}
	l.queue = append(l.queue, e)
	l.bytes += size
	return nil
}

// account is that of the session, for the events of the queue; nil without a session.
func (l *leader) account() *account {
	if l.session == nil {
		return nil
	}
	return l.session.history.budget
}

// flush writes what waits. over reports that this was the end, or that another reader has
// the box. After an error some of it may be in the box: the follower ignores what comes
// twice.
func (l *leader) flush(ctx context.Context) (over bool, err error) {
	for {
		batch, messages, ok := l.next()
		if !ok {
			return false, nil
		}
		reader, err := l.write(ctx, batch, messages)
		switch {
		case errors.Is(err, scale.ErrFull) && len(batch.Events) > 0:
			l.drop(reasonSlow)
			continue
		case err != nil:
			return false, err
		}
		l.told = true
		l.remove(len(batch.Events))
		if reader != l.ask.Reader || batch.End != "" {
			return true, nil
		}
	}
}

// write appends one batch to the box. A batch without an event finds room in a full box, and
// the box keeps its messages: they may have the answer of a stream that is not known here.
func (l *leader) write(ctx context.Context, batch followBatch, messages [][]byte) (reader string, err error) {
	n := 0
	for _, m := range messages {
		n += len(m)
	}
	principal, answer := "", uint64(0)
	if l.session != nil {
		principal = l.session.principal
	}
	p := scale.AppendOp{Keep: answerBytes, Recent: max(l.resumer.m.config.History, 1), Refuse: true}
	if len(batch.Events) == 0 {
		p.Keep, p.Recent = 2*answerBytes, 0
	} else if last := batch.Events[len(batch.Events)-1]; last.Answer {
		at, _ := parseEventID(last.ID)
		answer = at.event
	}
	name := answerBoxName(l.ask.Session, l.from.node, l.from.stream)
	if batch.End == reasonUnknown && len(batch.Events) == 0 && !l.resumer.answers.has(l.ask.Session, l.from.stream) {
		// A client may invent streams, so nothing is kept here. The follower deletes the box.
		_, reader, err = l.resumer.answers.append(ctx, name, p, batch)
		return reader, err
	}
	b, undo := l.resumer.answers.reserve(l.ask.Session, principal, l.from.stream, n, func(b *answerBox) {
		if b.answer = max(b.answer, answer); l.ask.Token >= b.token {
			b.led, b.reader, b.token, b.unknown = true, l.ask.Reader, l.ask.Token, batch.End == reasonUnknown && b.answer == 0
		}
	})
	if b == nil {
		return "", scale.ErrFull
	}
	if _, reader, err = l.resumer.answers.append(ctx, b.name, p, batch, messages...); err != nil {
		undo()
	}
	return reader, err
}

// next returns what to write now; not ok if that is nothing.
func (l *leader) next() (batch followBatch, messages [][]byte, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch.For = l.ask.Token
	size := 0
	for _, q := range l.queue {
		if len(batch.Events) == maxFollowBatch || size > 0 && size+len(q.message) > followBatchBytes {
			break
		}
		size += len(q.message)
		batch.Events, messages = append(batch.Events, q.followEvent), append(messages, q.message)
	}
	if len(batch.Events) == len(l.queue) {
		batch.End = l.end
	}
	return batch, messages, !l.told || len(batch.Events) > 0 || batch.End != ""
}

// remove removes the first n events of the queue.
func (l *leader) remove(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.queue[:n] {
		l.bytes -= eventOverhead + len(q.message)
		l.account().release(eventOverhead + len(q.message))
	}
	clear(l.queue[:n])
	l.queue = l.queue[n:]
}

// drop ends the queue for that reason, and drops what is not in the box. If the answer is
// there, it is saved.
func (l *leader) drop(end string) {
	l.mu.Lock()
	l.end = end
	rest := l.queue
	l.mu.Unlock()
	if n := len(rest); n > 0 && rest[n-1].Answer {
		at, _ := parseEventID(rest[n-1].ID)
		l.resumer.answers.save(context.WithoutCancel(l.resumer.m.ctx), l.session, event{stream: at.stream, event: at.event, request: at.request, message: rest[n-1].message})
	}
	l.remove(len(rest))
}
