package client

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// taskClock bounds the wait for a task. The zero value does not.
type taskClock struct {
	own  bool      // the task is that of the call that waits, and of nobody else
	end  time.Time // of the whole call; zero: none
	most time.Duration
}

// clock returns the clock of a call that began then.
func (c *Client) clock(o *callOptions, began time.Time) taskClock {
	most := cmp.Or(o.maxTimeout, c.opts.MaxTimeout, DefaultMaxTimeout)
	if most < 0 {
		return taskClock{own: true}
	}
	return taskClock{true, began.Add(most), most}
}

// bound returns a context that ends when the time is up. stop must be called.
func (t *taskClock) bound(ctx context.Context) (limited context.Context, stop context.CancelFunc) {
	if t.end.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, t.end, &Error{kind: ErrTimeout, Err: fmt.Errorf("the task has not ended within the MaxTimeout of %v", t.most)})
}

// stood notes that the clock has stood still since then, while something was
// asked.
func (t *taskClock) stood(since time.Time) {
	if !t.end.IsZero() {
		t.end = t.end.Add(time.Since(since))
	}
}
