package redis

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// A call has at least most of the time, and never more than all of it.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deadlines{timeout: 16 * time.Second}
		made := map[*deadline]bool{}
		for range 40 {
			c, begun := d.next(), time.Now()
			made[c] = true
			if at, ok := c.Deadline(); !ok || at.Sub(begun) <= 15*time.Second || at.Sub(begun) > 16*time.Second || c.Err() != nil {
				t.Errorf("a call has %v, %v; error %v", at.Sub(begun), ok, c.Err())
			}
			synctest.Wait()
			time.Sleep(250 * time.Millisecond)
		}
		if len(made) != 10 {
			t.Errorf("%d deadlines for the calls of 10 s", len(made))
		}
		last := d.next()
		begun := time.Now()
		<-last.Done()
		if at, _ := last.Deadline(); last.Err() != context.DeadlineExceeded || !time.Now().Equal(at) || time.Since(begun) > 16*time.Second {
			t.Errorf("it ended after %v with %v", time.Since(begun), last.Err())
		}
	})
}

// The look that every request of a session makes has no timer of its own, and makes
// few things.
func TestLookAllocations(t *testing.T) {
	s := open(t, user(t, start(t)))
	ctx := context.WithoutCancel(t.Context())
	es, err := s.Put(ctx, scale.Write{Key: theKey, Prev: scale.Any, Value: make([]byte, 450), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(500, func() {
		if _, err := s.Get(ctx, scale.GetOp{Key: theKey, Known: es[0].Rev}); err != nil {
			t.Fatal(err)
		}
	}); n > 11 {
		t.Errorf("%v allocations, want at most 11", n)
	}
}
