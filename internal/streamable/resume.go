package streamable

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// Sink is a connection that takes events.
type Sink interface {
	// Event sends a message under an id, or for a nil message the id alone.
	Event(id string, message []byte) error
	// Pause tells the client to come back after retry. Nothing may follow.
	Pause(retry time.Duration) error
}

// Stream is an answer that a client can come back for when its connection is
// lost: it keeps what is sent, and sends it to the connection that it has.
type Stream interface {
	// Send sends a message ahead of the answer.
	Send(message []byte) error
	// End sends the answer, nil for none, and ends the stream.
	End(answer []byte)
	// Pause ends the connection but not the stream. It returns false if there
	// is no connection.
	Pause(retry time.Duration) bool
}

// Resumable makes the answer to c a stream that the client can come back for,
// if there is a message before the answer. open begins it, with to as its
// connection, and may return nil for a stream that is like others. The answers
// to a batch have one connection, and cannot be come back for.
func (c *Call) Resumable(open func(to Sink) Stream) {
	if !c.batch {
		c.out.resuming = &resuming{open: open}
	}
}

// Pausable lets CloseStream end the connection of c. What it returns is closed
// then: Serve must return an Answer with Later, since the connection lasts as
// long as Serve does. It must be called before the handler of c.
func (c *Call) Pausable() (paused <-chan struct{}) {
	c.paused = make(chan struct{})
	return c.paused
}

// CloseStream ends the connection of c but not the stream of its answer, for
// which the client is to come back. It returns false if that is not possible,
// or has been done.
func (c *Call) CloseStream() bool {
	if c.paused == nil || c.out.resuming == nil || c.out.writable() != nil {
		return false
	}
	stream := c.out.resuming.stream(c.out)
	if stream == nil || !stream.Pause(c.retry) {
		return false
	}
	// The stream may have another connection by now, and be paused again.
	c.pause.Do(func() { close(c.paused) })
	return true
}

// Finish sends the answer of a call whose Serve has returned one with Later.
func (c *Call) Finish(answer []byte) { c.out.answer(0, answer) }

// writable tells why no message can be sent ahead of the answer.
func (e *exchange) writable() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.ended:
		return protocol.ErrAnswered
	case !e.events:
		return protocol.ErrNoStream
	}
	return nil
}

// resuming is what an exchange has for a client that may come back.
type resuming struct {
	mu     sync.Mutex
	open   func(to Sink) Stream // nil once it was called
	opened Stream
}

// stream returns the stream that keeps what is sent, begun when it is first
// needed; nil if there is none.
func (r *resuming) stream(e *exchange) Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open != nil {
		r.opened, r.open = r.open(e), nil
	}
	return r.opened
}

// begun returns the stream, if it was begun, and lets none begin later.
func (r *resuming) begun() Stream {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = nil
	return r.opened
}

// Event implements Sink.
func (e *exchange) Event(id string, message []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return protocol.ErrAnswered
	}
	e.start()
	return e.event(id, message)
}

// Pause implements Sink.
func (e *exchange) Pause(retry time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.raw(appendRetry(nil, retry))
	e.gone = true
	return err
}

// Events is a stream that a client has opened with GET. One goroutine uses it
// at a time.
type Events struct {
	// Last is the id of the last event that the client has, if it comes back.
	Last string

	out    *exchange
	every  time.Duration   // how long it may be quiet before it needs a sign of life; 0 means for ever
	quiet  *time.Timer     // of that time; nil until Wait was called
	due    atomic.Bool     // it is over
	ctx    context.Context // of the request
	noted  func() bool     // takes back that the end of ctx wakes the stream
	opened bool
}

// Open begins the response.
func (e *Events) Open() error {
	e.opened = true
	return e.out.begin()
}

// Waker returns the func that makes Wait return. It does not block.
func (e *Events) Waker() func() { return e.out.line.Wake }

// Wait returns true when the Waker was called since it returned last, or now and
// then, and false when the stream is over: the client is gone, does not read, or
// the context of its request has ended. Meanwhile it keeps the connection open.
func (e *Events) Wait() bool {
	if e.quiet == nil && e.every > 0 {
		e.quiet = time.AfterFunc(e.every, func() {
			e.due.Store(true)
			e.out.line.Wake()
		})
	}
	if e.noted == nil {
		e.noted = context.AfterFunc(e.ctx, e.out.line.Wake)
	}
	if !e.out.Wait() || e.ctx.Err() != nil {
		return false
	}
	if e.due.Swap(false) {
		e.quiet.Reset(e.every)
		return e.out.comment() == nil
	}
	return true
}

// end lets go of the connection.
func (e *Events) end() {
	if e.quiet != nil {
		e.quiet.Stop()
	}
	if e.noted != nil {
		e.noted()
	}
	e.out.hangUp()
}

// Event implements Sink. An empty id makes an event without.
func (e *Events) Event(id string, message []byte) error { return e.out.Event(id, message) }

// Pause implements Sink.
func (e *Events) Pause(retry time.Duration) error { return e.out.Pause(retry) }

// appendRetry appends the field that says how long to wait before coming back.
func appendRetry(dst []byte, retry time.Duration) []byte {
	return fmt.Appendf(dst, "retry: %d\n\n", retry.Milliseconds())
}
