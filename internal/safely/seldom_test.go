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
			kind, from string
			after      time.Duration
			due        bool
			skipped    Skipped
		}{
			{"a", "x", 0, true, Skipped{}}, {"a", "x", 0, false, Skipped{}}, {"b", "y", 0, true, Skipped{}},
			{"a", "y", SeldomPause - 1, false, Skipped{}}, {"a", "y", 1, true, Skipped{2, 1}},
			{"a", "x", 0, false, Skipped{}}, {"a", "y", SeldomPause, true, Skipped{1, 1}}, {"a", "y", SeldomPause, true, Skipped{}},
			{"b", "z", time.Hour, true, Skipped{}},
		} {
			time.Sleep(step.after)
			if skipped, due := s.Due(step.kind, step.from); due != step.due || skipped != step.skipped {
				t.Errorf("step %d: %+v, %t", i, skipped, due)
			}
		}
	})
}
