package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/pause"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, why)
		defer cancel()
		start := time.Now()
		if err := pause.For(ctx, 3*time.Second); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := pause.For(ctx, time.Minute); !errors.Is(err, why) || time.Since(start) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
