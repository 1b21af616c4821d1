package session

import (
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// storeClock knows what time it is for a Store, as the replies to this replica say. It is
// fast by as long as the last of them took at most, and as far off as the machines of
// an engine differ.
//
// A steady clock stands still while a machine is suspended, and the one on the wall can
// be set: the later of both counts, as who tells a Store too soon that a session is used
// tells it once more than needed.
type storeClock struct {
	zero  time.Time
	ahead atomic.Int64 // of the Store when it was zero here, in µs; 0 if not known
	wall  atomic.Int64 // by how much the Store is ahead of the clock on the wall, in µs
}

// set notes that what was asked for then, to be due after in, is due at.
func (c *storeClock) set(asked time.Time, at scale.Rev, in time.Duration) {
	if at > 0 && in > 0 {
		c.wall.Store(int64(at) - in.Microseconds() - asked.UnixMicro())
		c.ahead.Store(int64(at) - (in + asked.Sub(c.zero)).Microseconds())
	}
}

// at returns when t is for the Store; false if that is not known.
func (c *storeClock) at(t time.Time) (scale.Rev, bool) {
	ahead := c.ahead.Load()
	return scale.Rev(max(ahead+t.Sub(c.zero).Microseconds(), c.wall.Load()+t.UnixMicro())), ahead != 0
}
