package session

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/scale"
)

// errFollowerSlow is the error of an event for which a leader has no room.
var errFollowerSlow = errors.New("session: too much waits for the replica that the client came back to")

// leader is the connection of the stream of an answer whose client has resumed at another
// replica: it writes the box that the follower there reads. What needs no box is a message to
// the replica of the follower. It ends after the answer, if its follower has left, or if
// another reader has the box.
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

	// Only the goroutine of run uses these.
	took     bool // the follower is the reader of the box
	told     bool // something was written, or replied
	live     bool // it was the connection of a stream that is not over
	attached func() bool

	mu    sync.Mutex
	queue []queuedEvent
	bytes int    // that these count for in the budget
	end   string // why nothing follows the queue; "" if something may
	left  bool   // the follower has ended
	got   uint64 // then, the number of the last event that its client has
	whole bool   // the queue has, or had, the answer
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
	l.attached = func() bool { return false }
	if l.session == nil {
		l.unknown()
	} else {
		defer l.session.retain()()
		defer context.AfterFunc(l.session.Context(), l.wake)()
		on, lost, err := l.session.history.resume(l.ask.After, l, l.wake)
		switch {
		case errors.Is(err, errNotKept):
			l.finish(reasonTooLong)
		case err != nil:
			l.unknown()
		default:
			l.attached = on
			defer lost()
		}
	}
	defer l.drop(reasonDone)
	ctx := l.resumer.m.ctx
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if !l.attached() {
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
			l.flushLast()
			return
		}
	}
}

// isOver reports whether the follower has left or the session has ended.
func (l *leader) isOver() bool {
	return l.resumer.hasEnded(l.session) || l.isLeft()
}

// flushLast writes the rest when the replica ends. A follower that is still attached gets no
// answer from here.
func (l *leader) flushLast() {
	if l.attached() {
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

// unknown ends a stream of which nothing is known here. The box may have its answer, which the
// follower reads then.
func (l *leader) unknown() {
	l.resumer.answers.lead(l.ask.Session, l.from.stream, l.ask.Reader)
	l.finish(reasonUnknown)
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
		l.end, l.whole = reasonDone, true
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
		batch, messages := l.next()
		reader, end := l.ask.Reader, batch.End != ""
		switch {
		case len(batch.Events) == 0 && l.told && !end:
			return false, nil
		case !l.took && (len(batch.Events) > 0 || !end):
			if err = l.take(ctx); errors.Is(err, errOvertaken) {
				l.finish(reasonDone)
				l.remove(len(batch.Events))
				continue
			}
			end = false
		case len(batch.Events) > 0:
			if reader, err = l.write(ctx, batch, messages); errors.Is(err, scale.ErrFull) {
				l.drop(reasonSlow)
				continue
			}
			l.told = l.told || err == nil
		default:
			err = l.reply(ctx, batch.End)
			l.told = l.told || err == nil
		}
		switch {
		case errors.Is(err, bus.ErrNoReplica):
			return true, nil
		case err != nil:
			return false, err
		case reader != l.ask.Reader || end:
			return true, nil
		}
	}
}

// errOvertaken is the error of a leader whose stream has another connection.
var errOvertaken = errors.New("session: the client has come back once more")

// isOvertaken reports whether another connection has the stream, which sends what this one has
// in its queue.
func (l *leader) isOvertaken() bool {
	l.mu.Lock()
	whole := l.whole
	l.mu.Unlock()
	return l.live && !whole && !l.attached()
}

// take makes the follower the reader of the box. Of several leaders of one stream, the last
// one that was attached takes it last.
func (l *leader) take(ctx context.Context) error {
	answers := l.resumer.answers
	b, undo := answers.reserve(l.session, l.from.stream, 0)
	if b == nil {
		return scale.ErrFull
	}
	defer b.lock()()
	if l.isOvertaken() {
		undo()
		return errOvertaken
	}
	if _, err := l.resumer.m.takeBox(ctx, scale.Take{Box: b.name, Reader: l.ask.Reader, After: scale.Unread, TTL: answerTTL}); err != nil {
		undo()
		return err
	}
	answers.note(l.session, b, l.ask.Reader, true, 0)
	l.took = true
	return nil
}

// reply sends the follower the reason why nothing follows, or "" if something may.
func (l *leader) reply(ctx context.Context, end string) error {
	reply := l.ask
	reply.Reply, reply.End = true, end
	return l.resumer.send(ctx, readerNode(l.ask.Reader), reply)
}

// write appends one batch to the box, and removes it from the queue.
func (l *leader) write(ctx context.Context, batch followBatch, messages [][]byte) (reader string, err error) {
	answers, n, answer := l.resumer.answers, 0, uint64(0)
	for _, m := range messages {
		n += len(m)
	}
	if last := batch.Events[len(batch.Events)-1]; last.Answer {
		at, _ := parseEventID(last.ID)
		answer = at.event
	}
	b, undo := answers.reserve(l.session, l.from.stream, n)
	if b == nil {
		return "", scale.ErrFull
	}
	defer b.lock()()
	p := scale.AppendOp{Keep: answerBytes, Recent: max(l.resumer.m.config.History, 1), Refuse: true}
	if reader, err = answers.append(ctx, b.name, p, batch, messages...); err != nil {
		undo()
		return "", err
	}
	l.remove(len(batch.Events))
	answers.note(l.session, b, l.ask.Reader, reader == l.ask.Reader, answer)
	return reader, nil
}

// next returns what to write now.
func (l *leader) next() (batch followBatch, messages [][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch.For = l.ask.Reader
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
	return batch, messages
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
