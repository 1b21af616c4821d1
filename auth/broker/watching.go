package broker

import (
	"context"
	"sync"

	"github.com/talaria-go/mcp/scale"
)

// watching wakes calls that wait for a change of an entry. They share one Watcher,
// which is there while a call waits: each has connections and goroutines of its own.
type watching struct {
	store scale.Store

	mu      sync.Mutex
	begun   bool          // a call has begun to watch
	watcher scale.Watcher // nil until it has
	calls   map[chan struct{}]string
}

// join returns a channel that receives after writes for a subject, until leave is
// called. Some may be missed: callers look at the entry from time to time, too.
func (w *watching) join(ctx context.Context, subject string) (wake <-chan struct{}, leave func()) {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	if w.calls == nil {
		w.calls = map[chan struct{}]string{}
	}
	w.calls[c] = subject
	first, watcher := !w.begun, w.watcher
	w.begun = true
	w.mu.Unlock()
	if first { // outside the lock, since it is users' code
		watcher = w.store.Watch(func(subject string, _ scale.Message) { w.wake(subject) }, func() { w.wake("") })
		w.mu.Lock()
		w.watcher = watcher
		w.mu.Unlock()
	}
	added := watcher != nil && watcher.Add(ctx, subject) == nil
	return c, func() {
		if added {
			watcher.Remove(subject)
		}
		w.mu.Lock()
		delete(w.calls, c)
		last := w.watcher
		if len(w.calls) == 0 {
			w.watcher, w.begun = nil, false
		} else {
			last = nil
		}
		w.mu.Unlock()
		if last != nil {
			last.Close() // waits for wake, which takes the lock
		}
	}
}

// wake wakes the calls that wait for a subject, "" for all.
func (w *watching) wake(subject string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, of := range w.calls {
		if subject == "" || subject == of {
			select {
			case c <- struct{}{}:
			default: // it is awake already
			}
		}
	}
}
