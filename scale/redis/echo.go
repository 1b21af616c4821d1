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

// echo has a Watcher of a cluster listen to itself. Its connection is to one
// machine, which hears from the others what is published there; one that they
// have left out, or cannot reach, keeps the connection and is silent. And a
// machine that dies takes along what it has not told the others yet. So a message
// goes to one machine after the other, and has to come back.
type echo struct {
	watcher *watcher
	subject string // a name that no subject of a caller can have
	boxes   [ranges]string

	// guarded by watcher.mu
	sent, heard int
	missing     int // in a row
}

// newEcho returns the echo of a watcher.
func newEcho(w *watcher) *echo {
	e := &echo{watcher: w, subject: "{" + strconv.FormatUint(rand.Uint64(), 36) + "}"}
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
	failing := false
	for at := rand.IntN(ranges); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !e.listens() {
			continue
		}
		if e.send(ctx, at) != nil {
			failing = true // and it is tried again there
			continue
		}
		if failing {
			e.watcher.suspect(false)
		}
		failing, at = false, (at+echoStride)%ranges
	}
}

// listens notes whether the echo before has come back, and reports whether the
// watcher can hear another one. If two have not, it cannot, though it seems to.
func (e *echo) listens() bool {
	w := e.watcher
	w.mu.Lock()
	s := w.subjects[e.subject]
	if s == nil || s.state != subscribed {
		e.heard, e.missing = e.sent, 0 // there is another connection soon
		w.mu.Unlock()
		return false
	}
	if e.missing++; e.heard == e.sent {
		e.missing = 0
	}
	e.heard = e.sent
	deaf := e.missing == 2
	w.mu.Unlock()
	if deaf {
		w.suspect(true)
	}
	return !deaf
}

// send sends an echo by the machine of a range.
func (e *echo) send(ctx context.Context, at int) error {
	w := e.watcher
	w.mu.Lock()
	e.sent++
	text := strconv.Itoa(e.sent)
	w.mu.Unlock()
	err := w.engine.tell(ctx, e.boxes[at], e.subject, text)
	if err != nil {
		w.mu.Lock()
		e.heard = e.sent // it need not come
		w.mu.Unlock()
	}
	return err
}

// hear notes what has come back. The lock of the watcher is held.
func (e *echo) hear(m scale.Message) {
	if n, err := strconv.Atoi(string(m.Data)); err == nil {
		e.heard = max(e.heard, n)
	}
}
