//go:build unix

package redis

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/taskstest"
)

var taskSeeds = flag.Int("taskseeds", 1, "simulations of tasks on each engine")

// What holds for tasks on the store of the process holds on an engine.
func TestTasks(t *testing.T) {
	for name, servers := range map[string][]*server{"alone": {start(t)}, "cluster": startCluster(t, 0)} {
		t.Run(name, func(t *testing.T) {
			var finals, takeovers int64
			for seed := range *taskSeeds {
				s := &taskstest.Simulation{
					Seed: uint64(seed), Store: open(t, user(t, servers...)), Lease: 300 * time.Millisecond,
					Replicas: 4, Tasks: 100, Kills: 6, Faults: 0.03,
				}
				if faults := s.Run(t.Context()); len(faults) > 0 {
					t.Errorf("seed %d:\n%s", seed, strings.Join(faults, "\n"))
				}
				finals += s.Finals.Load()
				takeovers += s.Takeovers.Load()
			}
			t.Logf("%d tasks ended, %d runs taken over", finals, takeovers)
			if takeovers == 0 {
				t.Error("nothing was taken over")
			}
		})
	}
}
