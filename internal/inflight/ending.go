package inflight

import (
	"context"
	"time"
)

// Grace is how long after the end of its context a shutdown returns at the latest.
const Grace = 500 * time.Millisecond

// Ending is the time that the steps of a shutdown have together: until a context ends, and
// then Grace, of which each step that does not return gets half of what is left. One
// goroutine takes the steps, one after the other.
type Ending struct {
	ctx context.Context
	end time.Time // of Grace; zero until ctx has ended
}

// NewEnding returns an Ending with the time of ctx.
func NewEnding(ctx context.Context) *Ending { return &Ending{ctx: ctx} }

// Step calls fn, which may lead to users' code that does not return, and waits until it
// has returned or its time is over. It reports whether fn has returned.
func (e *Ending) Step(fn func()) bool { return within(e.ctx, e.share, run(fn)) }

// share returns what a step gets of Grace. The context has ended.
func (e *Ending) share() time.Duration {
	if e.end.IsZero() {
		e.end = time.Now().Add(Grace)
	}
	return time.Until(e.end) / 2
}

// Within calls fn, which may lead to users' code that does not return, and waits until it
// has returned, but no longer than grace after the end of ctx. It reports whether fn has
// returned.
func Within(ctx context.Context, grace time.Duration, fn func()) bool {
	return within(ctx, func() time.Duration { return grace }, run(fn))
}

// run calls fn on a goroutine, and returns a channel that is closed when fn has returned.
func run(fn func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	return done
}

// within waits for done until ctx has ended, and then for the time that grace returns. It
// reports whether done is closed.
func within(ctx context.Context, grace func() time.Duration, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	late := time.NewTimer(grace())
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}
