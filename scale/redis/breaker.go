package redis

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/talaria-go/mcp/scale"
)

const (
	ranges      = 64                     // of slots
	maxFailures = 3                      // in a row
	probeEvery  = 200 * time.Millisecond // while the engine does not answer
)

// breaker keeps calls from an engine that does not answer. It is closed (0 to 2
// failures in a row), or open: then a goroutine asks the engine, and closes it
// when there is an answer.
type breaker struct{ failures atomic.Int32 }

// errOpen is the error of calls that are not made.
var errOpen = fmt.Errorf("%w: it has not answered for a while", scale.ErrUnavailable)

// allows reports whether a call may be made.
func (b *breaker) allows() bool {
	return b.failures.Load() < maxFailures
}

// note notes whether a call was answered, and reports whether the breaker has
// opened by it. An open one stays so, whatever comes late.
func (b *breaker) note(answered bool) (opened bool) {
	for {
		before := b.failures.Load()
		after := before + 1
		if answered {
			after = 0
		}
		switch {
		case before >= maxFailures || before == after:
			return false
		case b.failures.CompareAndSwap(before, after):
			return after == maxFailures
		}
	}
}

// close lets calls through again.
func (b *breaker) close() { b.failures.Store(0) }

// answers reports whether an error, or none, is the answer of an engine that
// works, though it may refuse something.
func answers(err error) bool {
	if err == nil || rueidis.IsRedisNil(err) {
		return true
	}
	e, ok := rueidis.IsRedisErr(err)
	return ok && !e.IsLoading() && !e.IsClusterDown() && !e.IsTryAgain() && !isOf(e, "MASTERDOWN")
}

// slots is how many a cluster has.
const slots = 16384

// rangeOf returns the range of slots of a key.
func rangeOf(key string) int { return slot(key) * ranges / slots }

// slot returns the slot of a key, which is that of what is in its first braces.
func slot(key string) int {
	from := 0
	for from < len(key) && key[from] != '{' {
		from++
	}
	to := from + 1
	for to < len(key) && key[to] != '}' {
		to++
	}
	if to < len(key) && to > from+1 {
		key = key[from+1 : to]
	}
	crc := uint16(0) // CRC-16/XMODEM
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slots
}
