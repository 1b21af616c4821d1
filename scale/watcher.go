package scale

import (
	"context"
	"errors"
	"sync"
)

// watcher is the Watcher of a local. The lock of the local guards it, so that an added
// subject receives everything that happens later.
type watcher struct {
	local *local
	fn    func(subject string, m Message)
	gap   func()
	wake  chan struct{} // has an element if there may be something to do
	ended sync.WaitGroup

	// guarded by local.mu
	waiting []hint
	size    int  // of waiting
	missed  bool // gap is to be called
	closed  bool
}

// hint is a message for fn.
type hint struct {
	subject string
	message Message
}

// maxWaiting is the bytes of hints that a watcher keeps for an fn that is slow.
const maxWaiting = 4 << 20

// Add implements Watcher.
func (w *watcher) Add(ctx context.Context, subjects ...string) error {
	l := w.local
	if _, err := l.lock(ctx); err != nil {
		return err
	}
	defer l.mu.Unlock()
	if w.closed {
		return errors.New("scale: the Watcher is closed")
	}
	for _, subject := range subjects {
		if l.watchers[subject] == nil {
			l.watchers[subject] = map[*watcher]int{}
		}
		l.watchers[subject][w]++
	}
	return nil
}

// Remove implements Watcher.
func (w *watcher) Remove(subjects ...string) {
	l := w.local
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, subject := range subjects {
		counts := l.watchers[subject]
		if counts[w] == 0 {
			continue
		}
		if counts[w]--; counts[w] == 0 {
			l.forget(subject, w)
		}
	}
}

// Close implements Watcher.
func (w *watcher) Close() {
	w.local.mu.Lock()
	w.closed, w.waiting = true, nil
	for subject := range w.local.watchers {
		w.local.forget(subject, w)
	}
	w.poke()
	w.local.mu.Unlock()
	w.ended.Wait()
}

// receive adds a message. If there is no room, it drops all that wait for one call of gap, so
// that gap is not called for each. The lock of the local is held.
func (w *watcher) receive(subject string, m Message) {
	if w.size+size(m.Data) > maxWaiting {
		w.waiting, w.size, w.missed = nil, 0, true
	} else {
		w.waiting = append(w.waiting, hint{subject, m})
		w.size += size(m.Data)
	}
	w.poke()
}

// poke wakes run, or keeps it awake.
func (w *watcher) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run calls fn and gap until the watcher is closed.
func (w *watcher) run() {
	for range w.wake {
		for next := w.next(); next != nil; next = w.next() {
			next()
		}
		if w.isClosed() {
			return
		}
	}
}

// next returns what is to be called next, nil if there is nothing now.
func (w *watcher) next() func() {
	w.local.mu.Lock()
	defer w.local.mu.Unlock()
	switch {
	case w.closed:
		return nil
	case w.missed:
		w.missed = false
		return w.gap
	case len(w.waiting) == 0:
		w.waiting = nil // what it had is not kept for a rainy day
		return nil
	}
	h := w.waiting[0]
	w.waiting[0] = hint{}
	w.waiting = w.waiting[1:]
	w.size -= size(h.message.Data)
	return func() { w.fn(h.subject, h.message) }
}

// isClosed reports whether the watcher has ended.
func (w *watcher) isClosed() bool {
	w.local.mu.Lock()
	defer w.local.mu.Unlock()
	return w.closed
}
