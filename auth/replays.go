package auth

import (
	"sync"
	"time"
)

// replays remembers what was seen within a window, in two generations, so that
// nothing has to be sorted by time: each entry is kept for at least one window
// and at most two. mu guards the fields below it.
type replays struct {
	window time.Duration
	max    int // of a generation

	mu       sync.Mutex
	old, new map[[32]byte]struct{}
	since    time.Time // when new began
}

// first records id. first reports whether it was seen for the first time, and
// full whether there is no room to record it. Nothing is dropped early, because
// a flood would then let an old proof in again.
func (r *replays) first(id [32]byte, now time.Time) (first, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch age := now.Sub(r.since); {
	case r.new == nil || age >= 2*r.window:
		r.old, r.new, r.since = nil, map[[32]byte]struct{}{}, now
	case age >= r.window:
		r.old, r.new, r.since = r.new, map[[32]byte]struct{}{}, now
	}
	_, seen := r.new[id]
	_, before := r.old[id]
	switch {
	case seen || before:
		return false, false
	case len(r.new) >= r.max:
		return true, true
	}
	r.new[id] = struct{}{}
	return true, false
}
