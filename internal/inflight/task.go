package inflight

import (
	"context"
	"sync"
	"time"
)

// Task is the context of one request. It can be cancelled from the tables that
// it is in, and costs little until it is waited on: the parts of a context that
// do are made when they are first asked for.
//
// parent, detached and tracker are set before the Task is shared; parent is
// replaced once, by values, while mu is held. prev and next are guarded by the
// mu of the tracker, the rest by that of the Task. The mu of a Requests or of a
// Tracker may be held while that of a Task is taken, never the other way round:
// End frees it before it leaves the tracker.
type Task struct {
	parent     context.Context
	detached   bool     // parent only provides values
	wrapped    bool     // parent is made so already
	tracker    *Tracker // nil if none counts it
	prev, next *Task    // in the tracker's list

	mu sync.Mutex
	// inner and cancel are set together, by context. ended is set by End; a
	// context that is made after that has ended from the start.
	inner  context.Context // nil until needed
	cancel context.CancelCauseFunc
	ended  bool
}

// newTask returns a Task that ends with parent.
func newTask(parent context.Context) *Task { return &Task{parent: parent} }

// Deadline implements context.Context.
func (t *Task) Deadline() (time.Time, bool) {
	if t.detached {
		return time.Time{}, false
	}
	return t.parent.Deadline()
}

// Done implements context.Context.
func (t *Task) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.context().Done()
}

// Err implements context.Context. It makes no inner context: handlers call it
// in loops, and most requests are never cancelled.
func (t *Task) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.inner != nil:
		return t.inner.Err()
	case t.ended:
		return context.Canceled
	case t.detached:
		return nil
	}
	return t.parent.Err()
}

// Value implements context.Context.
func (t *Task) Value(key any) any {
	t.mu.Lock()
	from := t.values()
	t.mu.Unlock()
	return from.Value(key)
}

// values returns where values are searched. Package context finds its own there,
// which know of cancellation. t.mu is held.
func (t *Task) values() context.Context {
	switch {
	case t.inner != nil:
		return t.inner
	case t.detached && !t.wrapped:
		t.parent, t.wrapped = context.WithoutCancel(t.parent), true
	}
	return t.parent
}

// Cancelled is Cancelled for a task, and costs nothing if it was not.
func (t *Task) Cancelled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inner != nil && Cancelled(t.inner)
}

// context returns the cancellable context. t.mu is held.
func (t *Task) context() context.Context {
	if t.inner == nil {
		t.inner, t.cancel = context.WithCancelCause(t.values())
		if t.ended {
			t.cancel(nil)
		}
	}
	return t.inner
}

// Cancel ends the context with that cause.
func (t *Task) Cancel(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.context()
	t.cancel(cause)
}

// End must be called once, when the request has been served: the context ends
// and the tracker counts it no more.
func (t *Task) End() {
	t.mu.Lock()
	t.ended = true
	if t.inner != nil {
		t.cancel(nil)
	}
	t.mu.Unlock()
	if t.tracker != nil {
		t.tracker.leave(t)
	}
}
