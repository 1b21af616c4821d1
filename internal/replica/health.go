// Package replica has the times on which the replicas of one server agree: how often they
// read the shared store, and when one of them counts as dead.
//
// A replica holds entries of the store for a lease and renews them. After the lease the
// holder is dead, or the store was unavailable and no replica could renew. A [Health] tells
// the two apart: if the store has answered this replica for a whole lease, others could
// renew as well.
package replica

import (
	"sync"
	"time"
)

// Health notes since when a store has answered one replica without a gap. It is safe for
// concurrent use. The zero value, with its Lease set, has no answers yet.
type Health struct {
	Lease time.Duration // must not be changed

	mu          sync.Mutex
	since, last time.Time // of answers; since is zero after a failure
}

// Record notes that the store answered, or failed to. A gap of half a lease without either
// counts as a failure: the process may have been stopped.
func (c *Health) Record(answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	switch {
	case !answered:
		c.since = time.Time{}
	case c.since.IsZero() || now.Sub(c.last) > c.Lease/2:
		c.since = now
	}
	c.last = now
}

// IsTrusted reports whether the store has answered for a lease, up to now.
func (c *Health) IsTrusted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.since.IsZero() && time.Since(c.last) <= c.Lease/2 && c.last.Sub(c.since) >= c.Lease
}
