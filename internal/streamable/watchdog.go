package streamable

import (
	"net/http"
	"sync"
	"time"
)

// watchdog limits how long bodies take to arrive. A deadline on every
// connection for every request would cost more than most requests do, and most
// bodies are there already: so bodies stand in a list while they are read, and
// one timer looks after the list while there is anybody in it.
type watchdog struct {
	limit time.Duration // 0 means none

	mu    sync.Mutex
	first *reading // the oldest
	last  *reading
	armed bool
}

// reading is a body on its way.
type reading struct {
	w          http.ResponseWriter
	since      time.Time
	prev, next *reading
}

// enter starts the time of r.
func (d *watchdog) enter(r *reading) {
	if d.limit == 0 {
		return
	}
	r.since = time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.prev = d.last; r.prev != nil {
		r.prev.next = r
	} else {
		d.first = r
	}
	d.last = r
	if !d.armed {
		d.armed = true
		time.AfterFunc(d.limit, d.check)
	}
}

// leave ends it and tells whether the time was up before.
func (d *watchdog) leave(r *reading) (late bool) {
	if d.limit == 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.prev == nil && d.first != r {
		return true
	}
	d.remove(r)
	return false
}

// remove takes r out of the list. d.mu is held.
func (d *watchdog) remove(r *reading) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		d.first = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		d.last = r.prev
	}
	r.prev, r.next = nil, nil
}

// check ends the bodies whose time is up and comes back for the next.
func (d *watchdog) check() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for d.first != nil {
		left := d.first.since.Add(d.limit).Sub(now)
		if left > 0 {
			time.AfterFunc(left, d.check)
			return
		}
		// The reader is inside Read; this makes it return. Writers without
		// deadlines are left to the server's own timeouts.
		_ = http.NewResponseController(d.first.w).SetReadDeadline(now)
		d.remove(d.first)
	}
	d.armed = false
}

// limitRest puts a deadline on what is left of a refused request's body, which
// net/http reads before it answers.
func (d *watchdog) limitRest(w http.ResponseWriter) {
	if d.limit > 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(d.limit))
	}
}
