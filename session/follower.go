package session

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// follower is a connection that resumes the stream of an answer at another replica. It
// requests the next events there, and repeats the request if no reply comes. Events have
// numbers, so that none is repeated or left out.
//
// A follower is new until the first reply, or for two seconds; an error then is the status
// of the response. After that it is open, and an error is an event that answers the
// request. It ends with the answer, if another connection resumes the stream, if its client
// leaves, or if the other replica is gone. Only the last needs the store for more than
// messages.
//
// The goroutine of the request serves it. The goroutine of the bus adds events to its queue
// without waiting. So a slow client does not delay others, and the other replica sends at
// most followWindow ahead.
type follower struct {
	relay   *resumer
	session *Session
	number  uint64
	node    string  // has the stream
	from    eventID // the last event that the client has; the goroutine of serve changes it
	last    string  // where it came back
	to      core.StreamConn
	wake    func()
	word    chan struct{} // has room for one: something has come

	// What only the goroutine of serve uses.
	opened bool
	got    uint64 // number of the last event that the client has got
	fresh  int    // bytes that it got since the last ask, and eventOverhead for each event
	silent int    // asks since something came
	tried  bool   // an ask may have arrived
	asked  time.Time
	wait   time.Duration // until it asks again
	due    atomic.Bool   // the time to ask again has come
	timer  *time.Timer

	mu     sync.Mutex
	queue  []queuedEvent
	came   uint64 // number of the last event that came
	heard  bool   // something has come since next was called
	known  bool   // something has come at all
	gap    bool   // not all of it could be taken
	end    string
	closed bool
}

// queuedEvent is an event on its way to the client.
type queuedEvent struct {
	followEvent
	message []byte // nil if Size is negative
	answer  bool   // it is what the stream was for; only a leader knows
}

// serve carries the stream until it ends, or the client is gone. An error comes
// before the connection is open.
func (t *follower) serve() error {
	if err := t.connect(); err != nil || t.opened {
		return err
	}
	t.wait = firstReplyTimeout
	t.timer = time.AfterFunc(t.wait, func() { t.due.Store(true); t.wake() })
	defer t.timer.Stop()
	defer context.AfterFunc(t.session.Context(), t.wake)()
	for {
		over, err := t.flush()
		if over {
			return err
		}
		t.open()
		switch err := t.poll(); {
		case errors.Is(err, bus.ErrNoReplica):
			return t.recover()
		case t.session.Ended() || !t.to.Wait():
			return nil
		}
	}
}

// connect sends the request and waits for the first reply, so that a client without a
// stream to resume receives a status. If the replica is gone, it serves the saved answer.
func (t *follower) connect() error {
	for range 2 {
		switch err := t.request(true); {
		case errors.Is(err, bus.ErrNoReplica):
			return t.recover()
		case err != nil:
			return unavailable(err)
		}
		timer := time.NewTimer(firstReplyTimeout)
		select {
		case <-t.word:
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
	return nil
}

// request asks for what follows. again says that what was sent may be lost.
func (t *follower) request(again bool) error {
	a := followRequest{Session: t.session.id, Tail: t.number, Got: t.got, Again: again}
	t.mu.Lock()
	if !t.known {
		a.After = t.last
	}
	t.mu.Unlock()
	t.fresh, t.asked = 0, time.Now()
	err := t.send(t.relay.m.ctx, &a)
	if err == nil {
		t.silent++ // what was not sent is not answered
	}
	if err == nil || errors.Is(err, bus.ErrMaybeDelivered) {
		t.tried = true
	}
	return err
}

// send sends an ask.
func (t *follower) send(ctx context.Context, a *followRequest) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return t.relay.m.config.Bus.Send(ctx, t.node, msgFollow, body)
}

// poll asks if it is time to. The error is bus.ErrNoReplica if the replica
// that has the stream is gone, or has said nothing for long.
func (t *follower) poll() error {
	switch {
	case t.due.Swap(false):
		if t.silent >= int(leaderTTL/firstReplyTimeout) {
			return bus.ErrNoReplica
		}
		if t.silent == 0 {
			t.wait = min(2*t.wait, idlePollInterval) // it answers, and has nothing to say
		} else {
			t.wait = firstReplyTimeout
		}
		err := t.request(true)
		t.timer.Reset(t.wait)
		return err
	case t.fresh >= followWindow/2:
		return t.request(false)
	}
	return nil
}

// flush sends what has come to the client. It tells when the stream is over
// here.
func (t *follower) flush() (over bool, err error) {
	events, heard, gap, end := t.drain()
	if heard {
		t.silent = 0
	}
	for _, e := range events {
		t.opened = true
		t.fresh += eventOverhead + len(e.message)
		t.session.history.budget.release(len(e.message))
		if err != nil || over {
			continue // what it counts for is given back
		}
		if e.Retry != 0 {
			err, over = t.to.Pause(e.Retry), true
		} else if err = t.to.Event(e.ID, e.message); err == nil {
			t.got++
			if id, ok := parseEventID(e.ID); ok {
				t.from = id
			}
		}
	}
	switch {
	case over, err != nil:
		return true, nil
	case end != "":
		return true, t.finish(end)
	case len(events) > 0 && !gap && time.Since(t.asked) < idlePollInterval: // or the leader would count it as gone
		t.wait = firstReplyTimeout
		t.timer.Reset(t.wait)
	}
	return false, nil
}

// drain takes what has come.
func (t *follower) drain() (events []queuedEvent, heard, gap bool, end string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	events, heard, gap, end = t.queue, t.heard, t.gap, t.end
	t.queue, t.heard = nil, false
	return events, heard, gap, end
}

// finish ends the stream for a reason that came.
func (t *follower) finish(end string) error {
	switch {
	case end == reasonClosed:
		return t.recover()
	case end == reasonUnknown:
		if over, err := t.sendSaved(); over {
			return err
		}
		if !t.opened {
			return unknownStream(t.last)
		}
		return t.fail(errReplicaGone)
	case end == reasonTooLong && !t.opened:
		return streamTooLong(t.last)
	case end == reasonTooLong:
		return t.fail(errTooLong)
	case end == reasonBusy && !t.opened:
		return tooManyStreams()
	}
	t.open()
	return nil
}

// open opens the connection if it is not open. It does nothing for a disconnected client.
func (t *follower) open() {
	if !t.opened {
		t.opened = true
		_ = t.to.Open() // it comes back
	}
}

// sendSaved sends the answer that the store has. It tells whether that was all
// that can be done.
func (t *follower) sendSaved() (over bool, err error) {
	found, err := t.relay.late.send(t.session, t.from, t.to)
	switch {
	case err != nil && !t.opened:
		return true, unavailable(err)
	case err != nil: // it comes back
		return true, nil
	case found:
		t.open()
	}
	return found, nil
}

// recover serves a client whose stream was at a replica that is gone: the answer
// from the store, or an error for the request.
func (t *follower) recover() error {
	if over, err := t.sendSaved(); over {
		return err
	}
	return t.fail(errReplicaGone)
}

// fail answers the request with an error. If its id is not known, the client receives the
// error as a status, if it still can.
func (t *follower) fail(fault *protocol.Error) error {
	if t.from.request.IsZero() && !t.opened {
		return fault
	}
	t.opened = true
	// The client may be gone.
	_ = t.to.Event("", wire.AppendErrorResponse(nil, t.from.request, fault, t.session.revision))
	return nil
}

// receive takes what the other replica has sent. The goroutine that brings messages
// calls it.
func (t *follower) receive(e *followBatch, messages []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.known, t.heard, t.gap = true, true, e.First > t.came+1
	for i, event := range e.Events {
		size := max(event.Size, 0)
		if size > len(messages) {
			break
		}
		var message []byte
		if event.Size >= 0 {
			message = messages[:size:size]
		}
		messages = messages[size:]
		if e.First+uint64(i) != t.came+1 {
			continue // it has come, or what is before it has not
		}
		if !t.session.history.budget.reserve(size) {
			t.gap = true
			break
		}
		t.queue = append(t.queue, queuedEvent{followEvent: event, message: message})
		t.came++
	}
	if e.End != "" && e.First+uint64(len(e.Events)) <= t.came+1 { // less, of a leader that knows nothing of the one before
		t.end = e.End
	}
	select {
	case t.word <- struct{}{}:
	default:
	}
	t.wake()
}

// stop ends the stream once it has sent what has come.
func (t *follower) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end == "" {
		t.end = reasonDone
	}
	t.wake()
}

// close notifies the other replica that the follower has ended. The leader also detects
// that by itself.
func (t *follower) close() {
	t.mu.Lock()
	t.closed = true
	for _, e := range t.queue {
		t.session.history.budget.release(len(e.message))
	}
	t.queue = nil
	t.mu.Unlock()
	if t.tried {
		// The other replica finds out.
		_ = t.send(context.WithoutCancel(t.relay.m.ctx), &followRequest{Session: t.session.id, Tail: t.number, Got: t.got, Left: true})
	}
}
