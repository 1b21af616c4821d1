package client

import (
	"slices"
	"testing"
	"testing/synctest"
)

// Two goroutines may read progress of one call, that of its answer and that of
// the session's stream. The callback runs once at a time, hears all of it in
// order, and not after the call has returned.
func TestProgressFromTwoStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []float64
		goOn := make(chan struct{})
		c := &call{conn: &connection{client: &Client{}}, done: make(chan struct{})}
		c.progress = func(p Progress) {
			heard = append(heard, p.Progress) // the race detector sees two at once
			<-goOn
		}
		returned := false
		go c.advance(Progress{Progress: 1}, true)
		synctest.Wait()
		go func() {
			c.advance(Progress{Progress: 2}, true) // returns, whatever the callback does
			c.close()
			returned = true
			c.advance(Progress{Progress: 3}, true)
		}()
		synctest.Wait()
		if returned {
			t.Error("the call returned with its callback under way")
		}
		close(goOn)
		synctest.Wait()
		if !returned || !slices.Equal(heard, []float64{1, 2}) {
			t.Errorf("returned %v, heard %v", returned, heard)
		}
	})
}
