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

// listens notes whether the last echo has come back, and reports whether the watcher works.
// It does not after two lost ones, even if its connection is open.
func (e *echo) listens() bool {
	w := e.watcher
	w.mu.Lock()
	s := w.subjects[e.subject]
	if s == nil || s.state != subscribed {
		e.heard, e.missing = e.sent, 0 // a new connection comes soon
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

// receive notes an echo that has come back. The lock of the watcher is held.
func (e *echo) receive(m scale.Message) {
	if n, err := strconv.Atoi(string(m.Data)); err == nil {
		e.heard = max(e.heard, n)
	}
}
