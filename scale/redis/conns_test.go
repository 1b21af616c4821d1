package redis

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// nowhere is a connection that takes whatever is written.
type nowhere struct{ net.Conn }

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

// turns runs n goroutines on one processor, which compute for so long in each of their
// turns; the counter is how many turns they have had.
func turns(t *testing.T, n int, long time.Duration) *atomic.Int64 {
	before := runtime.GOMAXPROCS(1)
	var stop atomic.Bool
	var all sync.WaitGroup
	t.Cleanup(func() {
		stop.Store(true)
		all.Wait()
		runtime.GOMAXPROCS(before)
	})
	had := new(atomic.Int64)
	for range n {
		all.Go(func() {
			for !stop.Load() {
				for begun := time.Now(); time.Since(begun) < long; {
				}
				had.Add(1)
				runtime.Gosched()
			}
		})
	}
	return had
}

// crowded returns a connection for which many calls wait.
func crowded() *conn {
	calls := make(chan struct{}, few+1)
	for range cap(calls) {
		calls <- struct{}{}
	}
	return &conn{Conn: nowhere{}, in: &conns{calls: calls}}
}

// While many calls wait, others have their turn before something is written.
func TestWriteInTurn(t *testing.T) {
	had := turns(t, 4, 0)
	c := crowded()
	writes := 0
	for ; had.Load() < 100 && writes < 1_000_000; writes++ {
		_, _ = c.Write(nil)
	}
	if had.Load() < 100 {
		t.Errorf("others had %d turns in %d writes", had.Load(), writes)
	}
}

// Where others compute for long, what is written does not wait for their turns: of a
// hundred times as long as it has, once.
func TestWriteHurries(t *testing.T) {
	const others, writes = 20, 50
	had := turns(t, others, turn/4)
	c := crowded()
	for range writes {
		_, _ = c.Write(nil)
	}
	if n := had.Load(); n > others*writes/5 {
		t.Errorf("%d others had %d turns in %d writes", others, n, writes)
	}
	const took = others * turn / 4
	if most := time.Now().Add(20 * took); c.hurry.Load() < most.UnixNano() {
		t.Errorf("after a turn of %v, the next comes before %v", took, 20*took)
	}
}
