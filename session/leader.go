package session

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
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
	budget  *account // of the session
	news    chan struct{}

	// Only the goroutine of run uses these.
	took     bool // the follower is the reader of the box
	told     bool // something was written, or replied
	attached func() bool

	overtaken atomic.Bool // another connection has the stream, which sends what this one has in its queue

	mu    sync.Mutex
	queue []followEvent
	bytes int      // that these count for in the budget
	end   string   // why nothing follows the queue; "" if something may
	left  *eventID // the last event that the client has whose follower has ended; nil before
}

var _ core.EventWriter = (*leader)(nil)

// run serves the follower. It runs on a goroutine of its own.
func (l *leader) run() {
	defer l.resumer.forget(l)
	l.attached = func() bool { return false }
	err := errUnknownStream
	if l.session != nil {
		defer l.session.retain()()
		defer context.AfterFunc(l.session.Context(), l.wake)()
		var attached func() bool
		var lost func()
		if attached, lost, err = l.session.history.resume(l.ask.After, l, l.wake); err == nil {
			defer lost()
			l.attached = attached
		}
	}
	switch {
	case errors.Is(err, errNotKept):
		l.finish(reasonTooLong)
	case err != nil: // the box may have the answer, which the follower reads then
		l.resumer.answers.lead(l.ask.Session, l.from.stream, l.ask.Reader)
		l.finish(reasonUnknown)
	}
	defer l.drop(reasonDone)
	ctx := l.resumer.m.ctx
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if !l.attached() {
			l.finish(reasonDone)
		}
		if l.resumer.hasEnded(l.session) || l.isLeft() { // after the end of a session, the store deletes the box
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

// leave notes that the follower has ended, whose client has the event last.
func (l *leader) leave(last eventID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = &last
	l.wake()
}

// isLeft reports whether the follower has ended.
func (l *leader) isLeft() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left != nil
}

// wake makes the goroutine look.
func (l *leader) wake() {
	select {
	case l.news <- struct{}{}:
	default: // it will look anyway
	}
}

// Event implements core.EventWriter. It waits for nothing.
func (l *leader) Event(id string, message []byte) error {
	return l.enqueue(followEvent{ID: id, message: message})
}

// Pause implements core.EventWriter.
func (l *leader) Pause(retry time.Duration) error { return l.enqueue(followEvent{Retry: retry}) }

// enqueue adds an event to the queue. Nothing follows the answer.
func (l *leader) enqueue(e followEvent) error {
	defer l.wake()
	l.mu.Lock()
	defer l.mu.Unlock()
	size := eventOverhead + len(e.message)
	switch {
	case l.end != "" || l.left != nil:
		return errFollowerSlow
	case len(e.message) > maxAnswerBytes:
		l.end = reasonTooLong
		return errFollowerSlow
	case l.bytes+size > followQueueBytes || !l.budget.reserve(size):
		l.end = reasonSlow
		return errFollowerSlow
	case e.message == nil:
		e.Size = -1
	default:
		e.Size, e.message = len(e.message), bytes.Clone(e.message)
	}
	l.queue, l.bytes = append(l.queue, e), l.bytes+size
	if e.Answer {
		l.end = reasonDone
	}
	return nil
}

// flush writes what waits. over reports that this was the end, or that another reader has
// the box. After an error some of it may be in the box: the follower ignores what comes
// twice.
func (l *leader) flush(ctx context.Context) (over bool, err error) {
	for {
		batch := l.next()
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
			if reader, err = l.write(ctx, batch); errors.Is(err, scale.ErrFull) {
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

// take makes the follower the reader of the box. Of several leaders of one stream, the last
// one that was attached takes it last.
func (l *leader) take(ctx context.Context) error {
	answers := l.resumer.answers
	return answers.use(l.session, l.from.stream, 0, 0, func(b *answerBox) error {
		if l.overtaken.Load() {
			return errOvertaken
		}
		_, err := l.resumer.m.takeBox(ctx, scale.Take{Box: b.name, Reader: l.ask.Reader, After: scale.Unread, TTL: answerTTL})
		if l.took = err == nil; l.took {
			answers.lead(l.ask.Session, l.from.stream, l.ask.Reader)
		}
		return err
	})
}

// reply sends the follower the reason why nothing follows, or "" if something may.
func (l *leader) reply(ctx context.Context, end string) error {
	reply := l.ask
	reply.Reply, reply.End = true, end
	return l.resumer.send(ctx, readerNode(l.ask.Reader), reply)
}

// write appends one batch to the box, and removes it from the queue.
func (l *leader) write(ctx context.Context, batch followBatch) (reader string, err error) {
	answers, n, answer := l.resumer.answers, 0, eventID{}
	for _, e := range batch.Events {
		if n += len(e.message); e.Answer {
			answer, _ = parseEventID(e.ID)
		}
	}
	err = answers.use(l.session, l.from.stream, n, answer.event, func(b *answerBox) (err error) {
		p := scale.AppendOp{Keep: answerBytes, Recent: max(l.resumer.m.config.History, 1), Refuse: true}
		reader, err = answers.append(ctx, b.name, p, batch)
		return err
	})
	if err == nil {
		l.remove(len(batch.Events))
	}
	return reader, err
}

// next returns what to write now.
func (l *leader) next() followBatch {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, size := 0, 0
	for ; n < min(len(l.queue), maxFollowBatch) && (n == 0 || size+len(l.queue[n].message) <= followBatchBytes); n++ {
		size += len(l.queue[n].message)
	}
	batch := followBatch{For: l.ask.Reader, Events: l.queue[:n:n]}
	if n == len(l.queue) {
		batch.End = l.end
	}
	return batch
}

// remove removes the first n events of the queue.
func (l *leader) remove(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.queue[:n] {
		l.bytes -= eventOverhead + len(q.message)
		l.budget.release(eventOverhead + len(q.message))
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
	for _, e := range rest {
		if at, _ := parseEventID(e.ID); e.Answer {
			l.resumer.answers.save(context.WithoutCancel(l.resumer.m.ctx), l.session, event{stream: at.stream, event: at.event, request: at.request, message: e.message})
		}
	}
	l.remove(len(rest))
}
