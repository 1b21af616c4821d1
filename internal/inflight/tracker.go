package inflight

import (
	"context"
	"errors"
	"sync"
)

// ErrShutdown is the cause of contexts that a shutdown cancelled, and
// mcp.ErrServerClosed.
var ErrShutdown = errors.New("mcp: the server shuts down")

// Tracker knows the work that a server has in progress, so that a shutdown
// can refuse more, wait for it, and cancel what does not end in time. The
// zero value is ready; it is safe for concurrent use.
//
// The tasks are a doubly linked list through the Tasks themselves, so that a
// request enters and leaves without an allocation for the list. mu guards it.
type Tracker struct {
	mu      sync.Mutex
	stopped bool
	first   *Task
	idle    chan struct{} // closed when there are no tasks; made by Wait
}

// Begin enters a piece of work, whose context is the Task. It fails after
// Stop. Task.End must be called when the work has ended.
func (t *Tracker) Begin(ctx context.Context) (*Task, bool) {
	return t.admit(newTask(ctx))
}

// admit enters task, unless Stop was called.
func (t *Tracker) admit(task *Task) (*Task, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return nil, false
	}
	t.enter(task)
	return task, true
}

// BeginDetached is Begin for work that continues when ctx ends; ctx only
// provides its values.
func (t *Tracker) BeginDetached(ctx context.Context) (*Task, bool) {
	task := newTask(ctx)
	task.detached = true
	return t.admit(task)
}

// Start is Begin, with a context and a function that ends it.
func (t *Tracker) Start(ctx context.Context) (_ context.Context, done func(), ok bool) {
	task, ok := t.Begin(ctx)
	if !ok {
		return nil, nil, false
	}
	return task, task.End, true
}

// Go runs fn on a goroutine that Wait waits for, even after Stop: it is part of
// work that was let in before.
func (t *Tracker) Go(fn func()) {
	task := newTask(context.Background())
	t.mu.Lock()
	t.enter(task)
	t.mu.Unlock()
	go func() {
		defer task.End()
		fn()
	}()
}

// enter puts task into the list. t.mu is held.
func (t *Tracker) enter(task *Task) {
	task.tracker, task.next = t, t.first
	if t.first != nil {
		t.first.prev = task
	}
	t.first = task
}

// leave takes task out of the list, and wakes Wait if it was the last. Task.End
// calls it, with no lock of the Task held.
func (t *Tracker) leave(task *Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if task.prev != nil {
		task.prev.next = task.next
	} else {
		t.first = task.next
	}
	if task.next != nil {
		task.next.prev = task.prev
	}
	if t.first == nil && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// Stop makes Begin fail from now on.
func (t *Tracker) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
}

// Wait returns when nothing is in progress. When the time of e is over before, it cancels
// what is left, gives it the next share of the grace, and returns the error of e's context.
func (t *Tracker) Wait(e *Ending) error {
	idle := t.wait()
	select {
	case <-idle:
		return nil
	case <-e.ctx.Done():
	}
	select {
	case <-idle: // both at once: nothing had to be cancelled
		return nil
	default:
	}
	t.mu.Lock()
	for task := t.first; task != nil; task = task.next {
		task.Cancel(ErrShutdown)
	}
	t.mu.Unlock()
	within(e.ctx, e.share, idle)
	return e.ctx.Err()
}

// wait returns a channel that is closed when nothing is in progress, which may
// be so already. It also covers work that begins before it is closed.
func (t *Tracker) wait() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first == nil {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	return t.idle
}
