package middleware_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/test/testproc"
	"github.com/talaria-go/mcp/middleware"
	"github.com/talaria-go/mcp/scale"
)

// However many principals come and go, RateLimit keeps no more than of as many as it has
// places for, and a store nothing of those whose rates are full again.
func TestPrincipalsAreFreed(t *testing.T) {
	if !testproc.Isolated(t) {
		return
	}
	for name, open := range map[string]func() scale.Store{"alone": func() scale.Store { return nil }, "with a store": scale.NewLocal} {
		synctest.Test(t, func(t *testing.T) {
			const places = 1_000
			l := newLimiter(t, middleware.RateLimitOptions{Rate: 1, Burst: 1, MaxClients: places, Store: open(), Secret: rateSecret})
			come := func(round int) {
				for n := range places {
					for _, tool := range []string{"a", "b", "c"} {
						if wait := l.call(fmt.Sprintf("principal %d", round*places+n), tool); wait != 0 {
							t.Fatalf("%s: principal %d of round %d waits %v", name, n, round, wait)
						}
					}
				}
				time.Sleep(5 * time.Second)
			}
			come(0)
			before := reachable()
			for round := range testdep.Rounds(3, 100) {
				come(round + 1)
			}
			if after := reachable(); after > before+before/10 {
				t.Errorf("%s: %d bytes are reachable, and %d were", name, after, before)
			}
		})
	}
}

func reachable() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
