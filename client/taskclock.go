package client

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// taskClock bounds the wait for a task that a call became. The zero value does
// not.
type taskClock struct {
	limit time.Time     // of the whole call; zero: none
	most  time.Duration // the same, from its start
	idle  time.Duration // how long the task may stay as it is; 0 or less: for ever
	heard time.Time     // when it last changed
}

// clock returns the clock of a call that began then.
func (c *Client) clock(o *callOptions, began time.Time) taskClock {
	t := taskClock{idle: cmp.Or(o.timeout, c.opts.Timeout), most: cmp.Or(o.maxTimeout, c.opts.MaxTimeout, DefaultMaxTimeout), heard: time.Now()}
	if t.most > 0 {
		t.limit = began.Add(t.most)
	}
	return t
}

// bound returns a context that ends with the limit. stop must be called.
func (t *taskClock) bound(ctx context.Context) (limited context.Context, stop context.CancelFunc) {
	if t.limit.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadlineCause(ctx, t.limit, &Error{kind: ErrTimeout, Err: fmt.Errorf("the task has not ended within %v", t.most)})
}

// wait shortens the time until the next look at the task, so that the last one
// comes when the task has stayed as it is for too long.
func (t *taskClock) wait(poll time.Duration) time.Duration {
	if t.idle <= 0 {
		return poll
	}
	return min(poll, time.Until(t.heard.Add(t.idle)))
}

// look takes what a look at the task found; the error says that nothing has
// changed for too long.
func (t *taskClock) look(before, now *Task) error {
	switch {
	case now.Status != before.Status, now.StatusMessage != before.StatusMessage, !now.Updated.Equal(before.Updated):
		t.heard = time.Now()
	case t.idle > 0 && time.Since(t.heard) >= t.idle:
		return &Error{kind: ErrTimeout, Err: fmt.Errorf("the task has not changed within %v", t.idle)}
	}
	return nil
}
