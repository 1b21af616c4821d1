package session

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/post"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// tail is a connection on which the stream of an answer goes on that another
// replica has. It asks that one for what follows, and again when it has heard
// nothing for a while; what comes has numbers, so that nothing is sent twice or
// left out.
//
// It is new until the first word of the other replica, or for two seconds: what
// is wrong until then is the status of the response. Then it is open, and what is
// wrong is an event that answers the request. It ends with the answer, when
// another connection has taken the stream over, when its client leaves, or when
// the other replica is gone; only the last needs the store for more than
// messages.
//
// The goroutine of the request serves it. What comes is put into its queue by the
// one that brings messages, which waits for nothing; so a client that reads
// slowly holds up nobody else, and the other replica sends no more than
// tailWindow ahead.
type tail struct {
	relay   *relay
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
	fresh  int    // bytes that it got since the last ask, and recordSize for each event
	silent int    // asks since something came
	tried  bool   // an ask may have arrived
	asked  time.Time
	wait   time.Duration // until it asks again
	due    atomic.Bool   // the time to ask again has come
	timer  *time.Timer

	mu     sync.Mutex
	queue  []tailed
	came   uint64 // number of the last event that came
	heard  bool   // something has come since next was called
	known  bool   // something has come at all
	gap    bool   // not all of it could be taken
	end    string
	closed bool
}

// tailed is an event on its way to the client.
type tailed struct {
	tailEvent
	message []byte // nil if Size is negative
	answer  bool   // it is what the stream was for; only a source knows
}

// serve carries the stream until it ends, or the client is gone. An error comes
// before the connection is open.
func (t *tail) serve() error {
	if err := t.begin(); err != nil || t.opened {
		return err
	}
	t.wait = firstWord
	t.timer = time.AfterFunc(t.wait, func() { t.due.Store(true); t.wake() })
	defer t.timer.Stop()
	defer context.AfterFunc(t.session.Context(), t.wake)()
	for {
		over, err := t.deliver()
		if over {
			return err
		}
		t.open()
		switch err := t.askAgain(); {
		case errors.Is(err, post.ErrNobody):
			return t.instead()
		case t.session.Ended() || !t.to.Wait():
			return nil
		}
	}
}

// begin asks, and waits a moment for the first word, so that a client that asks
// for what nobody has hears it by the status. When the replica is gone, it serves
// what there is instead.
func (t *tail) begin() error {
	for range 2 {
		switch err := t.ask(true); {
		case errors.Is(err, post.ErrNobody):
			return t.instead()
		case err != nil:
			return unavailable(err)
		}
		timer := time.NewTimer(firstWord)
		select {
		case <-t.word:
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
	return nil
}

// ask asks for what follows. again says that what was sent may be lost.
func (t *tail) ask(again bool) error {
	a := tailAsk{Session: t.session.id, Tail: t.number, Got: t.got, Again: again}
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
	if err == nil || errors.Is(err, post.ErrUnsure) {
		t.tried = true
	}
	return err
}

// send sends an ask.
func (t *tail) send(ctx context.Context, a *tailAsk) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return t.relay.m.config.Post.Send(ctx, t.node, letterTail, body)
}

// askAgain asks if it is time to. The error is post.ErrNobody if the replica
// that has the stream is gone, or has said nothing for long.
func (t *tail) askAgain() error {
	switch {
	case t.due.Swap(false):
		if t.silent >= int(sourceLife/firstWord) {
			return post.ErrNobody
		}
		if t.silent == 0 {
			t.wait = min(2*t.wait, seldom) // it answers, and has nothing to say
		} else {
			t.wait = firstWord
		}
		err := t.ask(true)
		t.timer.Reset(t.wait)
		return err
	case t.fresh >= tailWindow/2:
		return t.ask(false)
	}
	return nil
}

// deliver sends what has come to the client. It tells when the stream is over
// here.
func (t *tail) deliver() (over bool, err error) {
	events, heard, gap, end := t.next()
	if heard {
		t.silent = 0
	}
	for _, e := range events {
		t.opened = true
		t.fresh += recordSize + len(e.message)
		t.relay.m.budget.release(len(e.message))
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
	case len(events) > 0 && !gap && time.Since(t.asked) < seldom: // or it would be taken for gone
		t.wait = firstWord
		t.timer.Reset(t.wait)
	}
	return false, nil
}

// next takes what has come.
func (t *tail) next() (events []tailed, heard, gap bool, end string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	events, heard, gap, end = t.queue, t.heard, t.gap, t.end
	t.queue, t.heard = nil, false
	return events, heard, gap, end
}

// finish ends the stream for a reason that came.
func (t *tail) finish(end string) error {
	switch {
	case end == endClosed:
		return t.instead()
	case end == endUnknown:
		if over, err := t.sendLate(); over {
			return err
		}
		if !t.opened {
			return unknownStream(t.last)
		}
		return t.fail(errReplicaGone)
	case end == endLong && !t.opened:
		return longStream(t.last)
	case end == endLong:
		return t.fail(errTooLong)
	case end == endBusy && !t.opened:
		return crowdedTails()
	}
	t.open()
	return nil
}

// open opens the connection if it is not open. A client that is gone has nothing
// to hear.
func (t *tail) open() {
	if !t.opened {
		t.opened = true
		_ = t.to.Open() // it comes back
	}
}

// sendLate sends the answer that the store has. It tells whether that was all
// that can be done.
func (t *tail) sendLate() (over bool, err error) {
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

// instead serves a client whose stream was at a replica that is gone: the answer
// from the store, or an error for the request.
func (t *tail) instead() error {
	if over, err := t.sendLate(); over {
		return err
	}
	return t.fail(errReplicaGone)
}

// fail answers the request with an error. If its id is not known, being too long
// for those of events, the client hears of it by the status, if it can yet.
func (t *tail) fail(fault *protocol.Error) error {
	if t.from.request.IsZero() && !t.opened {
		return fault
	}
	t.opened = true
	// The client may be gone.
	_ = t.to.Event("", wire.AppendErrorResponse(nil, t.from.request, fault, t.session.revision))
	return nil
}

// take takes what the other replica has sent. The goroutine that brings messages
// calls it.
func (t *tail) take(e *tailEvents, messages []byte) {
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
		if !t.relay.m.budget.reserve(size) {
			t.gap = true
			break
		}
		t.queue = append(t.queue, tailed{tailEvent: event, message: message})
		t.came++
	}
	if e.End != "" && e.First+uint64(len(e.Events)) <= t.came+1 { // less, of a source that knows nothing of the one before
		t.end = e.End
	}
	select {
	case t.word <- struct{}{}:
	default:
	}
	t.wake()
}

// stop ends the stream once it has sent what has come.
func (t *tail) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end == "" {
		t.end = endOver
	}
	t.wake()
}

// close tells the other replica that nobody wants more. It finds out by itself
// if it does not hear of that.
func (t *tail) close() {
	t.mu.Lock()
	t.closed = true
	for _, e := range t.queue {
		t.relay.m.budget.release(len(e.message))
	}
	t.queue = nil
	t.mu.Unlock()
	if t.tried {
		// The other replica finds out.
		_ = t.send(context.WithoutCancel(t.relay.m.ctx), &tailAsk{Session: t.session.id, Tail: t.number, Got: t.got, Left: true})
	}
}
