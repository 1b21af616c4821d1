// Package pause waits for a time or for the end of a context, and computes the
// waits between attempts. It is what the module uses in place of time.Sleep, so
// that every wait ends with its context.
package pause

import (
	"context"
	"math"
	"math/rand/v2"
	"time"
)

// For waits for d, or for the end of ctx, whose cause it returns. A d of 0 or
// less is over at once.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		// Without a timer: the race detector of Go 1.26 breaks down where goroutines of
		// one synctest bubble take the time from timers that are due at once.
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Growing returns how long to wait before the n-th attempt in a row: base·n², at
// most max, plus or minus a random part of it. 0 stands for 1 second, 15 seconds
// and 0.2; a jitter below 0 means none.
func Growing(n int, base, max time.Duration, jitter float64) time.Duration {
	if base <= 0 {
		base = time.Second
	}
	if max <= 0 {
		max = 15 * time.Second
	}
	if jitter == 0 {
		jitter = 0.2
	}
	jitter = math.Min(math.Max(jitter, 0), 1)
	wait := math.Min(float64(base)*float64(n)*float64(n), float64(max))
	return time.Duration(wait * (1 + jitter*(2*rand.Float64()-1)))
}
