package safely

import (
	"testing"
	"testing/synctest"
	"time"
)

// A line of a kind is due once in a while, with the number of those between.
func TestSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Seldom
		for i, step := range []struct {
			kind    string
			after   time.Duration
			due     bool
			skipped int
		}{
			{"a", 0, true, 0}, {"a", 0, false, 0}, {"b", 0, true, 0}, {"a", SeldomPause - 1, false, 0}, {"a", 1, true, 2},
			{"a", SeldomPause, true, 0}, {"b", time.Hour, true, 0},
		} {
			time.Sleep(step.after)
			if skipped, due := s.Due(step.kind); due != step.due || skipped != step.skipped {
				t.Errorf("step %d: %d, %t", i, skipped, due)
			}
		}
	})
}
