package auth

import (
	"sync"
	"time"
)

// replays remembers what was seen within a window, in two generations: each
// thing is kept for one window at least and for two at most.
type replays struct {
	window time.Duration
	max    int // of a generation

	mu       sync.Mutex
	old, new map[[32]byte]struct{}
	since    time.Time // when new began
}

// first tells whether id is seen for the first time, and whether there is no
// room to remember it: nothing is forgotten early, or a flood would let an old
// proof in again.
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
