package tasks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/test/testproc"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// The memory of a task, and of the principal whose it was, is free once it has ended
// and its time is over, beside others that stay.
func TestEndedTasksAreFreed(t *testing.T) {
	if !testproc.Isolated(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		m := NewManager(Config{}, nil)
		defer m.Close()
		result, _ := json.Marshal(string(bytes.Repeat([]byte("x"), 10_000)))
		round := func(n int, ttl time.Duration) {
			for i := range 1000 {
				task, err := m.Create(fmt.Sprintf("principal %d", 1000*n+i), ttl, 0, func(error) {})
				if err != nil {
					t.Fatal(err)
				}
				if err := task.Finish(protocol.TaskCompleted, bytes.Clone(result), nil); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(2 * DefaultTTL)
			synctest.Wait()
		}
		round(0, 1_000_000*time.Hour)
		round(1, 0)
		before := reachable()
		for n := range testdep.Rounds(20, 100) {
			round(n+2, 0)
		}
		if after := reachable(); after > before+before/10 {
			t.Errorf("%d bytes are reachable, and %d were", after, before)
		}
		if n, size := m.kept.Used(), m.bytes.Used(); n != 1000 || size < 10_000_000 || size > 11_000_000 {
			t.Errorf("%d tasks are kept, %d bytes", n, size)
		}
	})
}

// In a store, too: neither the replica nor the store keeps anything of tasks whose time
// is over.
func TestEndedTasksInAStoreAreFreed(t *testing.T) {
	if !testproc.Isolated(t) {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		r := newReplica(t, store)
		defer r.stop()
		result, _ := json.Marshal(string(bytes.Repeat([]byte("x"), 10_000)))
		round := func(n int) {
			for i := range 1000 {
				task, err := r.Create(fmt.Sprintf("principal %d", 1000*n+i), 0, 0, func(error) {})
				if err == nil {
					err = task.Finish(protocol.TaskCompleted, bytes.Clone(result), nil)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			time.Sleep(2 * DefaultTTL)
			synctest.Wait()
		}
		round(0)
		before := reachable()
		for n := range testdep.Rounds(2, 100) {
			round(n + 1)
		}
		if after := reachable(); after > before+1<<20 {
			t.Errorf("%d bytes are reachable, and %d were", after, before)
		}
		if n, size := r.kept.Used(), r.bytes.Used(); n != 0 || size != 0 {
			t.Errorf("%d tasks are kept, %d bytes", n, size)
		}
	})
}

func reachable() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
