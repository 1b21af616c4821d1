package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/post"
	"github.com/talaria-go/mcp/internal/replica"
)

// errTailBehind is the error of an event for which a source has no room.
var errTailBehind = errors.New("session: too much waits for the replica that the client came back to")

// source is the connection of the stream of an answer whose client has come back
// at another replica: it keeps the events until that one has got them. It lives
// until its tail leaves, or is not heard of for sourceLife; after the end of the
// stream it only repeats what it has.
//
// Whoever sends on the stream holds the lock of that, and a store may be slow: so
// Event only puts into the queue, and the goroutine of run sends. An event stays
// in the queue until the tail says that its client has it, since the history may
// have dropped it by then. Where the queue is full the stream loses this
// connection, as it would one whose client does not read.
type source struct {
	relay   *relay
	key     sourceKey
	session *Session // nil if it is not here
	id      string   // of the session
	after   string   // the event that the client has
	news    chan struct{}

	// What only the goroutine of run uses, or that of resume meanwhile.
	sent uint64 // number of the last event that was sent
	told bool   // the end was

	mu      sync.Mutex
	queue   []tailed  // what the client has not got
	got     uint64    // number of the event before these
	bytes   int       // that these count for in the budget
	reply   bool      // the tail wants to hear something
	again   bool      // and what was sent after got
	left    bool      // it is gone
	heardOf time.Time // when it was heard of
	end     string    // why nothing follows the queue; "" if something may
}

var _ core.EventWriter = (*source)(nil)

// run serves the tail. It runs on a goroutine of its own.
func (src *source) run() {
	defer src.relay.forget(src)
	attached := func() bool { return false }
	if src.end == "" {
		defer src.session.hold()()
		defer src.close()
		defer context.AfterFunc(src.session.Context(), src.wake)()
		on, lost, err := src.resume()
		switch {
		case errors.Is(err, errNotKept):
			src.finish(endLong)
		case err != nil:
			src.finish(endUnknown)
		default:
			attached = on
			defer lost()
		}
	}
	ctx := src.relay.m.ctx
	timer := time.NewTimer(sourceLife)
	defer timer.Stop()
	for {
		if !attached() || src.session.Ended() && !src.relay.isClosed() {
			src.finish(endOver) // of a session that has ended the client hears when it comes back
		}
		err := src.send(ctx)
		life := src.life()
		if life <= 0 || errors.Is(err, post.ErrNobody) { // its replica has left, too
			return
		}
		if err != nil {
			life = min(life, firstWord) // it tries again
		}
		timer.Reset(life)
		select {
		case <-src.news:
		case <-timer.C:
		case <-ctx.Done():
			src.last(attached)
			return
		}
	}
}

// resume attaches src to the stream. The connection before may hold that for as
// long as a write may take, when it has lost its client: the tail hears meanwhile
// that the stream is here.
func (src *source) resume() (attached func() bool, lost func(), err error) {
	done := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		timer := time.NewTimer(firstWord / 2)
		defer timer.Stop()
		for {
			select {
			case <-done:
				return
			case <-timer.C:
				_ = src.send(src.relay.m.ctx) // it asks again
				timer.Reset(firstWord)
			}
		}
	})
	defer waiting.Wait()
	defer close(done)
	return src.session.history.resume(src.after, src, src.wake)
}

// last sends the rest when the replica ends. Who is attached yet gets no answer
// from here.
func (src *source) last(attached func() bool) {
	if attached() {
		src.finish(endClosed)
	}
	src.finish(endOver)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(src.relay.m.ctx), askTimeout)
	defer cancel()
	_ = src.send(ctx) // the tail finds out by itself
}

// finish says that nothing follows what waits, unless that was said before.
func (src *source) finish(end string) {
	src.mu.Lock()
	defer src.mu.Unlock()
	if src.end == "" {
		src.end = end
	}
}

// life returns how long the tail may yet be silent, 0 or less if it is gone.
func (src *source) life() time.Duration {
	src.mu.Lock()
	defer src.mu.Unlock()
	if src.left {
		return 0
	}
	return sourceLife - time.Since(src.heardOf)
}

// asked notes what the tail has, and wants.
func (src *source) asked(a *tailAsk) {
	src.mu.Lock()
	defer src.mu.Unlock()
	for src.got < a.Got && len(src.queue) > 0 {
		src.release(src.queue[0])
		src.queue[0] = tailed{}
		src.queue = src.queue[1:]
		src.got++
	}
	src.heardOf = time.Now()
	src.reply, src.again = src.reply || a.Again, src.again || a.Again
	src.left = src.left || a.Left
	src.wake()
}

// release gives back what an event counts for. src.mu is held.
func (src *source) release(e tailed) {
	src.bytes -= recordSize + len(e.message)
	src.relay.m.budget.release(recordSize + len(e.message))
}

// wake makes the goroutine look.
func (src *source) wake() {
	select {
	case src.news <- struct{}{}:
	default: // it will look anyway
	}
}

// Event implements core.EventWriter. It waits for nothing.
func (src *source) Event(id string, message []byte) error {
	src.mu.Lock()
	defer src.mu.Unlock()
	return src.event(id, message)
}

// answered is Event for the answer. That nothing follows it goes with it: of two
// messages the second might be lost with this replica, and the call would seem to
// be.
func (src *source) answered(id string, message []byte) error {
	src.mu.Lock()
	defer src.mu.Unlock()
	if err := src.event(id, message); err != nil {
		return err
	}
	src.queue[len(src.queue)-1].answer = true
	src.end = endOver
	return nil
}

// isLeft reports whether the tail is gone.
func (src *source) isLeft() bool {
	src.mu.Lock()
	defer src.mu.Unlock()
	return src.left
}

// event is Event while src.mu is held.
func (src *source) event(id string, message []byte) error {
	switch {
	case src.end != "":
		return errTailBehind
	case len(message) > maxTailed:
		src.end = endLong
		return errTailBehind
	}
	size := len(message)
	if message == nil {
		size = -1
	}
	return src.add(tailed{tailEvent: tailEvent{ID: id, Size: size}, message: bytes.Clone(message)})
}

// add puts an event into the queue. src.mu is held.
func (src *source) add(e tailed) error {
	size := recordSize + len(e.message)
	if src.bytes+size > tailQueue || !src.relay.m.budget.reserve(size) {
		src.end = endBehind
		return errTailBehind
	}
	src.queue = append(src.queue, e)
	src.bytes += size
	src.wake()
	return nil
}

// Pause implements core.EventWriter.
func (src *source) Pause(retry time.Duration) error {
	src.mu.Lock()
	defer src.mu.Unlock()
	if src.end != "" {
		return errTailBehind
	}
	return src.add(tailed{tailEvent: tailEvent{Size: -1, Retry: retry}})
}

// send sends to the tail what it does not have. After an error it is as before.
func (src *source) send(ctx context.Context) error {
	for {
		e, messages := src.next()
		if e == nil {
			return nil
		}
		body, err := json.Marshal(e)
		if err != nil {
			return err
		}
		body = append(body, '\n')
		for _, m := range messages {
			body = append(body, m...)
		}
		sending, cancel := context.WithTimeout(ctx, replica.StoreTimeout)
		err = src.relay.m.config.Post.Reply(sending, src.key.node, letterEvents, body) // it has asked
		cancel()
		if err != nil {
			src.mu.Lock()
			src.reply = true
			src.mu.Unlock()
			return err
		}
		src.sent += uint64(len(e.Events))
		src.told = src.told || e.End != ""
	}
}

// next returns what to send now; nil if there is nothing. Of what the client has
// not got, no more than tailWindow is on its way.
func (src *source) next() (e *tailEvents, messages [][]byte) {
	src.mu.Lock()
	defer src.mu.Unlock()
	if src.again || src.sent < src.got {
		src.sent, src.again = src.got, false
	}
	away := 0 // bytes on the way
	for _, q := range src.queue[:src.sent-src.got] {
		away += len(q.message)
	}
	e = &tailEvents{Tail: src.key.tail, First: src.sent + 1}
	waiting := src.queue[src.sent-src.got:]
	for _, q := range waiting {
		if len(e.Events) == tailBatch || away > 0 && away+len(q.message) > tailWindow {
			break
		}
		away += len(q.message)
		e.Events, messages = append(e.Events, q.tailEvent), append(messages, q.message)
	}
	if len(e.Events) == len(waiting) {
		e.End = src.end
	}
	if len(e.Events) == 0 && !src.reply && (e.End == "" || src.told) {
		return nil, nil
	}
	src.reply = false
	return e, messages
}

// close drops what the client has not got. If that is the answer, the client is
// away, and the store keeps it.
func (src *source) close() {
	src.mu.Lock()
	src.end, src.left = endOver, true
	var last tailed
	for _, last = range src.queue {
		src.release(last)
	}
	src.queue = nil
	src.mu.Unlock()
	if at, ok := parseEventID(last.ID); ok && last.answer {
		src.relay.late.keep(src.session, record{stream: at.stream, event: at.event, request: at.request, message: last.message})
	}
}
