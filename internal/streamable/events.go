package streamable

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

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
