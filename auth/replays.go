package auth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/scale"
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

// Proofs in a store are spread over this number of partitions, so that
// engines of several machines share the work.
const proofParts = 64

// storeTimeout bounds how long a request waits for the store.
const storeTimeout = time.Second

// clockDifference is how far the clocks of replicas, and that of the store, may
// differ: a proof is remembered longer by this time than one clock accepts it.
const clockDifference = 30 * time.Second

// sharedReplays remembers what any of several replicas has seen, as entries of a
// store that last for a window. If the store does not answer, first returns an error: the
// proof may have been seen before. The number of entries that this process makes has the
// same bound as replays. mu guards the fields below it.
type sharedReplays struct {
	store  scale.Store
	window time.Duration
	max    int // in a window

	mu    sync.Mutex
	made  int
	since time.Time // when it was 0
}

// newSharedReplays returns sharedReplays over a store of users.
func newSharedReplays(store scale.Store, window time.Duration, max int) *sharedReplays {
	return &sharedReplays{store: bus.Guard(store), window: window + clockDifference, max: max}
}

// first records id for all replicas, and reports whether none of them has seen
// it. After an error it may be recorded or not.
func (r *sharedReplays) first(ctx context.Context, id string) (bool, error) {
	if !r.room(0) {
		return false, errTooManyProofs
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	// An entry has no content that could be sealed: that it exists is the record.
	// Its key is a digest without secrets, so new state keys do not change it.
	written, err := r.store.Put(ctx, scale.Write{Key: replica.StoreKey("proof", id, proofParts), Value: []byte{}, TTL: r.window})
	if err == nil {
		err = written[0].Err
	}
	switch {
	case errors.Is(err, scale.ErrChanged):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("auth: the store of DPoPOptions.Store cannot tell whether a proof was used before: %w", err)
	}
	r.room(1)
	return true, nil
}

// room adds n to what was made in this window, and reports whether there is
// place for more.
func (r *sharedReplays) room(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.since) >= r.window {
		r.made, r.since = 0, now
	}
	r.made += n
	return r.made < r.max
}
