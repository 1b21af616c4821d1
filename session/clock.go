package session

import (
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// clock knows what time it is for a Store, as the replies to this replica say. It is
// fast by as long as the last of them took at most, and as far off as the machines of
// an engine differ.
type clock struct {
	zero  time.Time
	ahead atomic.Int64 // of the Store when it was zero here, in µs; 0 if not known
}

// set notes that what was asked for then, to be due after in, is due at.
func (c *clock) set(asked time.Time, at scale.Rev, in time.Duration) {
	if at > 0 && in > 0 {
		c.ahead.Store(int64(at) - (in + asked.Sub(c.zero)).Microseconds())
	}
}

// at returns when t is for the Store; false if that is not known.
func (c *clock) at(t time.Time) (scale.Rev, bool) {
	ahead := c.ahead.Load()
	return scale.Rev(ahead + t.Sub(c.zero).Microseconds()), ahead != 0
}
