package redis

import (
	"context"
	"sync/atomic"
	"time"
)

// deadlines bounds the time of calls whose callers wait for as long as it takes. A
// timer for each would cost more than most calls do, so those share one that begin
// within a sixteenth of the time: a call has at least the rest of it, and never more
// than the whole. It is safe for concurrent use.
type deadlines struct {
	timeout time.Duration // must not be changed
	newest  atomic.Pointer[deadline]
}

// deadline is a context that ends at a time, for any number of calls. It needs no cancel.
type deadline struct {
	context.Context // which has no values and does not end
	begun, at       time.Time
	over            chan struct{}
}

// next returns the deadline of a call that begins now.
func (d *deadlines) next() *deadline {
	now, newest := time.Now(), d.newest.Load()
	if newest != nil && now.Sub(newest.begun) < d.timeout/16 {
		return newest
	}
	made := &deadline{context.Background(), now, now.Add(d.timeout), make(chan struct{})}
	time.AfterFunc(d.timeout, func() { close(made.over) })
	d.newest.CompareAndSwap(newest, made) // another goroutine has stored an equal one
	return made
}

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} { return d.over }

// Err implements context.Context.
func (d *deadline) Err() error {
	select {
	case <-d.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
