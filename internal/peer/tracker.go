package peer

import (
	"context"
	"errors"
	"sync"
)

// ErrShutdown is the cause of contexts that a shutdown cancelled.
var ErrShutdown = errors.New("the server shuts down")

// Tracker knows the work that a server has under way, so that a shutdown can
// refuse more, wait for it, and cancel what does not end in time. The zero
// value is ready; it is safe for concurrent use.
type Tracker struct {
	mu      sync.Mutex
	stopped bool
	work    map[*task]struct{}
	idle    chan struct{} // closed when work is empty; made by Wait
}

type task struct{ cancel context.CancelCauseFunc }

// Start enters a piece of work. It fails after Stop. done must be called when
// the work has ended.
func (t *Tracker) Start(ctx context.Context) (_ context.Context, done func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := &task{cancel}
	if t.work == nil {
		t.work = make(map[*task]struct{})
	}
	t.work[w] = struct{}{}
	return ctx, func() { t.finish(w) }, true
}

// Go runs fn on a goroutine that Wait waits for, even after Stop: it is part of
// work that was let in before.
func (t *Tracker) Go(fn func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &task{func(error) {}}
	if t.work == nil {
		t.work = make(map[*task]struct{})
	}
	t.work[w] = struct{}{}
	go func() {
		defer t.finish(w)
		fn()
	}()
}

func (t *Tracker) finish(w *task) {
	w.cancel(nil)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.work, w)
	if len(t.work) == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// Stop makes Start fail from now on.
func (t *Tracker) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
}

// Wait returns when nothing is under way. When ctx ends before, it cancels
// what is left, waits for that, and returns ctx's error.
func (t *Tracker) Wait(ctx context.Context) error {
	idle := t.wait()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-idle: // both at once: nothing had to be cancelled
		return nil
	default:
	}
	t.mu.Lock()
	for w := range t.work {
		w.cancel(ErrShutdown)
	}
	t.mu.Unlock()
	<-idle
	return ctx.Err()
}

func (t *Tracker) wait() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.work) == 0 {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	return t.idle
}
