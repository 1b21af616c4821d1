package conn

import (
	"sync/atomic"
	"testing"
)

// Queues that are full leave room for others: a queue has no more than is free.
func TestFullQueuesLeaveRoom(t *testing.T) {
	var all atomic.Int64
	fill := func() int {
		q := &requestQueue{all: &all}
		for n := 0; ; n++ {
			if _, ok := q.put(&request{size: 63 << 10}); !ok {
				return n
			}
		}
	}
	if n := fill(); n != maxWaiting/(64<<10) {
		t.Errorf("the first queue has %d requests", n)
	}
	for range 17 {
		fill()
	}
	if n, free := fill(), MaxWaiting-all.Load(); n < 8 || free < int64(n)<<16 {
		t.Errorf("a queue after 18 full ones has %d requests, and leaves %d bytes", n, free)
	}
}
