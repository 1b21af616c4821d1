package streamable

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Events is a stream that a client has opened with GET. It is new, open from
// Open or the first Event on, and over when Wait has returned false. One
// goroutine uses it at a time, except for the Waker.
type Events struct {
	// Last is the id of the last event that the client has, if it comes back.
	Last string

	out    *exchange
	every  time.Duration   // how long it may be quiet before it needs a sign of life; 0 means forever
	quiet  *time.Timer     // of that time; nil until Wait was called
	due    atomic.Bool     // it is over
	ctx    context.Context // of the request
	noted  func() bool     // takes back that the end of ctx wakes the stream
	opened bool
}

// Open begins the response and sends its header and a comment, before there is an
// event: some clients and proxies wait for the first byte of the body. From then on a
// fault can no longer be answered.
func (e *Events) Open() error {
	e.opened = true
	return e.out.begin()
}

// Waker returns the function that makes Wait return. It does not block and may
// be called at any time.
func (e *Events) Waker() func() { return e.out.line.Wake }

// Wait waits until the Waker is called, or returns at once if it was called
// since Wait has last returned. It also returns true now and then for no
// reason. It returns false when the stream is over: the client is gone or does
// not read, or the context of its request has ended. While it waits it sends
// comments on a quiet stream, so that proxies keep the connection open.
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

// end releases the connection and the timers. No other method may be called
// after it.
func (e *Events) end() {
	if e.quiet != nil {
		e.quiet.Stop()
	}
	if e.noted != nil {
		e.noted()
	}
	e.out.hangUp()
}

// Event implements core.EventWriter.
func (e *Events) Event(id string, message []byte) error { return e.out.Event(id, message) }

// Pause implements core.EventWriter.
func (e *Events) Pause(retry time.Duration) error { return e.out.Pause(retry) }

// appendRetry appends the field retry, in milliseconds, which tells the client
// how long to wait before it comes back.
func appendRetry(dst []byte, retry time.Duration) []byte {
	return fmt.Appendf(dst, "retry: %d\n\n", retry.Milliseconds())
}
