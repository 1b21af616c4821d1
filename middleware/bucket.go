package middleware

import (
	"math"
	"math/bits"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// instant is a time in nanoseconds; from when, the clients say.
type instant int64

// add returns the time that is later by d.
func (i instant) add(d time.Duration) instant { return i + instant(d) }

// bucket is what is left of one limit, in the terms of the generic cell rate
// algorithm: each call uses up the time between two calls at the rate, and due is
// when all that was taken will be used up. Nothing has to be counted while time
// passes, and what replicas have to agree about is one number, which only grows.
// The zero value is full. Its clients guard it.
type bucket struct {
	due instant

	// The rest is for a bucket of a store: rev is what due was read or written as.
	// held calls were taken from it and not made yet, which is possible until until.
	rev     scale.Rev
	until   instant
	held    int
	waiting int           // for asking
	ahead   int           // how often in a row those that were held were all made
	asking  chan struct{} // closed when the store has answered; nil if it is not asked
}

// pace is a limit: how fast buckets fill, and how much is in a full one.
type pace struct {
	interval time.Duration // between two calls at the rate; 0 has no limit
	burst    time.Duration // as many intervals as there may be calls at once
	ahead    int           // how many calls are taken ahead at most: those of a tenth of a second
	steps    int           // how often ahead can be halved
}

// newPace returns the pace of n calls a second.
func newPace(rate float64, burst int) pace {
	// Beyond that times cannot be added any more.
	longest := float64(math.MaxInt64/8) / float64(burst)
	interval := time.Duration(min(float64(time.Second)/rate, longest))
	ahead := int(max(1, min(rate/10, math.MaxInt32)))
	return pace{interval, time.Duration(burst) * interval, ahead, bits.Len(uint(ahead)) - 1}
}

// wait returns how long to wait for the next call, 0 if it may be made now.
func (p pace) wait(due, now instant) time.Duration {
	return max(0, time.Duration(max(due, now)-now)+p.interval-p.burst)
}

// room returns how many calls may be made now, of want.
func (p pace) room(due, now instant, want int) int {
	if p.interval == 0 {
		return want
	}
	return int(min(int64(want), max(0, int64((p.burst-time.Duration(max(due, now)-now))/p.interval))))
}

// after returns what due is once n calls were made now.
func (p pace) after(due, now instant, n int) instant {
	return max(due, now).add(time.Duration(n) * p.interval)
}
