package redis

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/talaria-go/mcp/scale"
)

const (
	echoEvery = 2 * time.Second
	// echoStride spreads consecutive echoes over the ranges of slots, of which a
	// machine has those that are next to each other. It is odd, so that all have
	// their turn.
	echoStride = 39
)

// echo makes a Watcher of a cluster check its connection. That goes to one machine, to
// which the others forward published messages. A machine that left the cluster, or cannot
// reach it, keeps the connection and sends nothing. A machine that dies loses what it has
// not forwarded. So echo publishes a message at one machine after the other, and expects
// each of them back.
type echo struct {
	watcher *watcher
	subject string // a name that no subject of a caller can have
	boxes   [ranges]string
	tell    func(ctx context.Context, box, subject, text string) error

	at      int          // range of the next echo
	refused [ranges]bool // the last echo of a range was refused
	sent    int          // number of the last echo

	// guarded by watcher.mu
	expected int // number of the echo that is to come back before the next, 0 for none
	received int // number of the last echo that came back
	missing  int // echoes of one range that did not come back
}

// newEcho returns the echo of a watcher.
func newEcho(w *watcher) *echo {
	e := &echo{watcher: w, subject: "{" + strconv.FormatUint(rand.Uint64(), 36) + "}", tell: w.engine.tell, at: rand.IntN(ranges)}
	for i, left := 0, ranges; left > 0; i++ {
		box := "echo" + strconv.Itoa(i)
		if place := &e.boxes[rangeOf(w.engine.base(box))]; *place == "" {
			*place = box
			left--
		}
	}
	return e
}

// run sends echoes until ctx ends.
func (e *echo) run(ctx context.Context) {
	ticker := time.NewTicker(echoEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if e.listens() && e.round(ctx) {
			e.watcher.suspect(false)
		}
	}
}

// listens notes whether the last echo has come back, and reports whether the watcher works.
// It does not after two lost ones of a range, even if its connection is open.
func (e *echo) listens() bool {
	w := e.watcher
	w.mu.Lock()
	s := w.subjects[e.subject]
	if s == nil || s.state != subscribed {
		e.expected, e.missing = 0, 0 // a new connection comes soon
		w.mu.Unlock()
		return false
	}
	if e.expected > e.received {
		e.missing++
	} else {
		e.missing, e.at = 0, (e.at+echoStride)%ranges
	}
	deaf := e.missing == 2
	w.mu.Unlock()
	if deaf {
		w.suspect(true)
	}
	return !deaf
}

// round sends an echo to the range that is next. Before, it sends echoes to the ranges
// that refused their last one, until one is refused again. It reports whether a range
// accepts echoes again: messages may have been lost until then.
func (e *echo) round(ctx context.Context) (again bool) {
	for i := 1; i < ranges; i++ {
		other := (e.at + i) % ranges
		if !e.refused[other] {
			continue
		}
		if _, err := e.send(ctx, other); err != nil {
			break
		}
		e.refused[other], again = false, true
	}
	n, err := e.send(ctx, e.at)
	again = again || err == nil && e.refused[e.at]
	e.refused[e.at] = err != nil
	w := e.watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.expected = n; err != nil {
		e.expected = 0
	}
	return again
}

// send sends an echo by the machine of a range, and returns its number.
func (e *echo) send(ctx context.Context, at int) (int, error) {
	e.sent++
	return e.sent, e.tell(ctx, e.boxes[at], e.subject, strconv.Itoa(e.sent))
}

// receive notes an echo that has come back. The lock of the watcher is held.
func (e *echo) receive(m scale.Message) {
	if n, err := strconv.Atoi(string(m.Data)); err == nil {
		e.received = max(e.received, n)
	}
}
