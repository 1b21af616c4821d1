package taskstest_test

import (
	"flag"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/tasks"
	"github.com/talaria-go/mcp/internal/test/taskstest"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/scale"
)

var (
	seeds = flag.Int("seeds", testdep.Rounds(60, 200), "simulations to run")
	first = flag.Uint64("seed", 1, "the seed of the first")
	many  = flag.Int("tasks", 100, "tasks of one large simulation")
)

// Whatever fails meanwhile, a task ends once, no run writes after the next has
// begun, and nothing that somebody was told is lost.
func TestSimulation(t *testing.T) {
	var finals, takeovers atomic.Int64
	begin := time.Now()
	for i := range *seeds {
		synctest.Test(t, func(t *testing.T) {
			s := &taskstest.Simulation{Seed: *first + uint64(i), Store: scale.NewLocal(), Replicas: 3, Tasks: 6, Kills: 4, Faults: 0.05}
			if faults := s.Run(t.Context()); len(faults) > 0 {
				t.Errorf("seed %d:\n%s", s.Seed, strings.Join(faults, "\n"))
			}
			finals.Add(s.Finals.Load())
			takeovers.Add(s.Takeovers.Load())
		})
		if t.Failed() {
			break
		}
	}
	t.Logf("%d seeds, %d tasks ended, %d runs taken over, in %v", *seeds, finals.Load(), takeovers.Load(), time.Since(begin))
	if finals.Load() < int64(*seeds) || takeovers.Load() < int64(*seeds)/10 {
		t.Error("too little has happened")
	}
}

// So it is for many tasks at once.
func TestManyTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &taskstest.Simulation{Seed: *first, Store: scale.NewLocal(), Replicas: 4, Tasks: *many, Kills: 20, Faults: 0.02}
		if faults := s.Run(t.Context()); len(faults) > 0 {
			t.Errorf("%s", strings.Join(faults, "\n"))
		}
		t.Logf("%d tasks ended, %d runs taken over, the slowest %v after its replica was lost", s.Finals.Load(), s.Takeovers.Load(), s.Slowest())
	})
}

// A task goes on at another replica a lease and 2.5 s after its own was lost.
func TestFailover(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			s := &taskstest.Simulation{Seed: seed, Store: scale.NewLocal(), Replicas: 4, Tasks: 40, Kills: 6}
			if faults := s.Run(t.Context()); len(faults) > 0 {
				t.Errorf("%s", strings.Join(faults, "\n"))
			}
			if s.Takeovers.Load() == 0 || s.Slowest() > tasks.DefaultLease+2500*time.Millisecond {
				t.Errorf("seed %d: %d runs taken over, the slowest after %v", seed, s.Takeovers.Load(), s.Slowest())
			}
		})
	}
}
