// Package pause waits.
package pause

import (
	"context"
	"time"
)

// For waits for d, which may be over at once, or for the end of ctx, whose cause
// it returns.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
