package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/talaria-go/mcp/frame"
)

// Failures notifies observers of errors of the store. An error occurs while a session
// or a task is locked, and observers may use the same one: so a separate goroutine
// notifies them, one error after the other. Only Close waits for it, and it exists
// only while there are errors. The zero value is ready.
type Failures struct {
	mu      sync.Mutex
	waiting []frame.Event
	telling chan struct{} // closed when nothing waits; nil while there is no goroutine
	closed  bool
	since   time.Time // a second began, in which
	came    int       // number that was taken
}

// maxFailures limits the waiting errors, and those taken in a second. The rest is
// dropped. It also ends the loop of an observer that uses the store for each
// notification that the store is unavailable.
const maxFailures = 64

// Add makes tell be called with e, soon. It does not wait.
func (q *Failures) Add(e frame.Event, tell func(frame.Event)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := time.Now(); now.Sub(q.since) >= time.Second {
		q.since, q.came = now, 0
	}
	if q.closed || q.came >= maxFailures || len(q.waiting) >= maxFailures {
		return
	}
	q.came++
	q.waiting = append(q.waiting, e)
	if q.telling == nil {
		q.telling = make(chan struct{})
		go q.run(tell)
	}
}

// run notifies what waits, and ends. tell recovers from panics.
func (q *Failures) run(tell func(frame.Event)) {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.waiting = nil
			close(q.telling)
			q.telling = nil
			q.mu.Unlock()
			return
		}
		e := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		tell(e)
	}
}

// Close takes no more, and waits until the taken ones are delivered, or ctx
// ends.
func (q *Failures) Close(ctx context.Context) {
	q.mu.Lock()
	q.closed = true
	telling := q.telling
	q.mu.Unlock()
	if telling == nil {
		return
	}
	select {
	case <-telling:
	case <-ctx.Done():
	}
}
