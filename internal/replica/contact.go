// Package replica has what the replicas of one server agree on: how often they look at
// the store that they share, and when one of them counts as gone.
//
// A replica that renews what it has in a store holds it for a lease. When that is over,
// the holder is gone, or the store was away and no replica could renew anything. A
// [Contact] tells the two apart: a replica that was in touch with the store for a whole
// lease has seen that there was time to renew.
package replica

import (
	"sync"
	"time"
)

// Contact notes since when a store has answered one replica without a gap. It is
// safe for concurrent use; the zero value, with its Lease set, has heard nothing.
type Contact struct {
	Lease time.Duration // must not be changed

	mu          sync.Mutex
	since, last time.Time // of answers; since is zero after a failure
}

// Note notes that the store answered, or failed to, just now. What one does not
// hear for half a lease is a gap, too: the process may have been stopped, and who
// was not there cannot say that the store was.
func (c *Contact) Note(answered bool) {
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

// Held reports whether the store has answered for a lease, up to now.
func (c *Contact) Held() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.since.IsZero() && time.Since(c.last) <= c.Lease/2 && c.last.Sub(c.since) >= c.Lease
}
