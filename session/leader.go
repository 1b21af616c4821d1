package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/replica"
)

// errFollowerSlow is the error of an event for which a leader has no room.
var errFollowerSlow = errors.New("session: too much waits for the replica that the client came back to")

// leader is the connection of the stream of an answer whose client has resumed at another
// replica. It keeps the events until that replica has them. It lives until its follower
// leaves, or sends no request for leaderTTL. After the end of the stream it only repeats
// events.
//
// A sender on the stream holds the lock of the stream, and a store may be slow. So Event
// adds to the queue, and the goroutine of run sends. An event stays in the queue until the
// follower confirms it, since the history may have dropped it. If the queue is full, the
// stream loses this connection, as it does with a client that does not read.
type leader struct {
	relay   *resumer
	key     followerKey
	session *Session // nil if it is not here
	id      string   // of the session
	after   string   // the event that the client has
	news    chan struct{}

	// Only the goroutine of run uses these, and that of attach before it ends.
	sent uint64 // number of the last event that was sent
	told bool   // the end was

	mu      sync.Mutex
	queue   []queuedEvent // what the client has not got
	got     uint64        // number of the event before these
	bytes   int           // that these count for in the budget
	reply   bool          // the follower waits for a reply
	again   bool          // and what was sent after got
	left    bool          // it is gone
	heardOf time.Time     // time of the last request
	end     string        // why nothing follows the queue; "" if something may
}

var _ core.EventWriter = (*leader)(nil)

// run serves the follower. It runs on a goroutine of its own.
func (src *leader) run() {
	defer src.relay.forget(src)
	attached := func() bool { return false }
	if src.end == "" {
		defer src.session.retain()()
		defer src.drop()
		defer context.AfterFunc(src.session.Context(), src.wake)()
		on, lost, err := src.attach()
		switch {
		case errors.Is(err, errNotKept):
			src.finish(reasonTooLong)
		case err != nil:
			src.finish(reasonUnknown)
		default:
			attached = on
			defer lost()
		}
	}
	ctx := src.relay.m.ctx
	timer := time.NewTimer(leaderTTL)
	defer timer.Stop()
	for {
		if !attached() || src.session.Ended() && !src.relay.isClosed() {
			src.finish(reasonDone) // after the end of a session, the client receives it when it resumes
		}
		err := src.send(ctx)
		life := src.remaining()
		if life <= 0 || errors.Is(err, bus.ErrNoReplica) { // its replica has left, too
			return
		}
		if err != nil {
			life = min(life, firstReplyTimeout) // it tries again
		}
		timer.Reset(life)
		select {
		case <-src.news:
		case <-timer.C:
		case <-ctx.Done():
			src.finalSend(attached)
			return
		}
	}
}

// attach connects src to the stream. The old connection may hold the lock of the stream
// until its write times out. Until then the follower learns that the stream is here.
func (src *leader) attach() (attached func() bool, lost func(), err error) {
	done := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		timer := time.NewTimer(firstReplyTimeout / 2)
		defer timer.Stop()
		for {
			select {
			case <-done:
				return
			case <-timer.C:
				_ = src.send(src.relay.m.ctx) // it asks again
				timer.Reset(firstReplyTimeout)
			}
		}
	})
	defer waiting.Wait()
	defer close(done)
	return src.session.history.resume(src.after, src, src.wake)
}

// finalSend sends the rest when the replica ends. A follower that is still attached gets no
// answer from here.
func (src *leader) finalSend(attached func() bool) {
	if attached() {
		src.finish(reasonClosed)
	}
	src.finish(reasonDone)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(src.relay.m.ctx), requestTimeout)
	defer cancel()
	_ = src.send(ctx) // the follower finds out by itself
}

// finish says that nothing follows what waits, unless that was said before.
func (src *leader) finish(end string) {
	src.mu.Lock()
	defer src.mu.Unlock()
	if src.end == "" {
		src.end = end
	}
}

// remaining returns the time until the follower counts as gone, 0 or less if it does.
func (src *leader) remaining() time.Duration {
	src.mu.Lock()
	defer src.mu.Unlock()
	if src.left {
		return 0
	}
	return leaderTTL - time.Since(src.heardOf)
}

// handleRequest notes what the follower has, and wants.
func (src *leader) handleRequest(a *followRequest) {
	src.mu.Lock()
	defer src.mu.Unlock()
	for src.got < a.Got && len(src.queue) > 0 {
		src.release(src.queue[0])
		src.queue[0] = queuedEvent{}
		src.queue = src.queue[1:]
		src.got++
	}
	src.heardOf = time.Now()
	src.reply, src.again = src.reply || a.Again, src.again || a.Again
	src.left = src.left || a.Left
	src.wake()
}

// account returns what events count for; nil if the session is not here, and has none.
func (src *leader) account() *account {
	if src.session == nil {
		return nil
	}
	return src.session.history.budget
}

// release gives back what an event counts for. src.mu is held.
func (src *leader) release(e queuedEvent) {
	src.bytes -= eventOverhead + len(e.message)
	src.account().release(eventOverhead + len(e.message))
}

// wake makes the goroutine look.
func (src *leader) wake() {
	select {
	case src.news <- struct{}{}:
	default: // it will look anyway
	}
}

// Event implements core.EventWriter. It waits for nothing.
func (src *leader) Event(id string, message []byte) error {
	src.mu.Lock()
	defer src.mu.Unlock()
	return src.enqueue(id, message)
}

// answer is Event for the answer. That nothing follows it goes with it: of two
// messages the second might be lost with this replica, and the call would seem to
// be.
func (src *leader) answer(id string, message []byte) error {
	src.mu.Lock()
	defer src.mu.Unlock()
	if err := src.enqueue(id, message); err != nil {
		return err
	}
	src.queue[len(src.queue)-1].answer = true
	src.end = reasonDone
	return nil
}

// isGone reports whether the follower is gone.
func (src *leader) isGone() bool {
	src.mu.Lock()
	defer src.mu.Unlock()
	return src.left
}

// enqueue is Event while src.mu is held.
func (src *leader) enqueue(id string, message []byte) error {
	switch {
	case src.end != "":
		return errFollowerSlow
	case len(message) > maxFollowBytes:
		src.end = reasonTooLong
		return errFollowerSlow
	}
	size := len(message)
	if message == nil {
		size = -1
	}
	return src.add(queuedEvent{followEvent: followEvent{ID: id, Size: size}, message: bytes.Clone(message)})
}

// add puts an event into the queue. src.mu is held.
func (src *leader) add(e queuedEvent) error {
	size := eventOverhead + len(e.message)
	if src.bytes+size > followQueueBytes || !src.account().reserve(size) {
		src.end = reasonSlow
		return errFollowerSlow
	}
	src.queue = append(src.queue, e)
	src.bytes += size
	src.wake()
	return nil
}

// Pause implements core.EventWriter.
func (src *leader) Pause(retry time.Duration) error {
	src.mu.Lock()
	defer src.mu.Unlock()
	if src.end != "" {
		return errFollowerSlow
	}
	return src.add(queuedEvent{followEvent: followEvent{Size: -1, Retry: retry}})
}

// send sends to the follower what it does not have. After an error it is as before.
func (src *leader) send(ctx context.Context) error {
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
		err = src.relay.m.config.Bus.SendUnchecked(sending, src.key.node, msgEvents, body) // it has asked
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
func (src *leader) next() (e *followBatch, messages [][]byte) {
	src.mu.Lock()
	defer src.mu.Unlock()
	if src.again || src.sent < src.got {
		src.sent, src.again = src.got, false
	}
	away := 0 // bytes on the way
	for _, q := range src.queue[:src.sent-src.got] {
		away += len(q.message)
	}
	e = &followBatch{Tail: src.key.tail, First: src.sent + 1}
	waiting := src.queue[src.sent-src.got:]
	for _, q := range waiting {
		if len(e.Events) == maxFollowBatch || away > 0 && away+len(q.message) > followWindow {
			break
		}
		away += len(q.message)
		e.Events, messages = append(e.Events, q.followEvent), append(messages, q.message)
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

// drop drops the events that the client does not have. If the answer is among them, the
// store keeps it.
func (src *leader) drop() {
	src.mu.Lock()
	src.end, src.left = reasonDone, true
	var last queuedEvent
	for _, last = range src.queue {
		src.release(last)
	}
	src.queue = nil
	src.mu.Unlock()
	if at, ok := parseEventID(last.ID); ok && last.answer {
		src.relay.late.save(src.session, event{stream: at.stream, event: at.event, request: at.request, message: last.message})
	}
}
