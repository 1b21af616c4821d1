package inflight

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTrackerStop(t *testing.T) {
	var tracker Tracker
	_, done, ok := tracker.Start(t.Context())
	if !ok {
		t.Fatal("Start failed before Stop")
	}
	tracker.Stop()
	tracker.Stop()
	if _, _, ok := tracker.Start(t.Context()); ok {
		t.Error("Start worked after Stop")
	}
	done()
	if err := tracker.Wait(NewEnding(t.Context())); err != nil {
		t.Errorf("Wait: %v", err)
	}
}

func TestTrackerWait(t *testing.T) {
	const work, limit = 3 * time.Second, 10 * time.Second
	tests := []struct {
		name    string
		work    func(ctx context.Context) // what is under way
		limit   time.Duration
		want    error
		elapsed time.Duration
		cause   error // of the work's context
	}{
		{"work ends in time", func(context.Context) { time.Sleep(work) }, limit, nil, work, nil},
		{"work is cancelled", func(ctx context.Context) { <-ctx.Done() }, limit, context.DeadlineExceeded, limit, ErrShutdown},
		{"work ignores its context", func(context.Context) { time.Sleep(3 * limit) }, limit, context.DeadlineExceeded, limit + Grace/2, ErrShutdown},
		{"no time at all", func(ctx context.Context) { <-ctx.Done() }, 0, context.DeadlineExceeded, 0, ErrShutdown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var tracker Tracker
				ctx, done, _ := tracker.Start(t.Context())
				cause := make(chan error, 1)
				tracker.Go(func() {
					tt.work(ctx)
					cause <- context.Cause(ctx)
					done()
				})
				tracker.Stop()
				deadline, cancel := context.WithTimeout(t.Context(), tt.limit)
				defer cancel()
				begin := time.Now()
				err := tracker.Wait(NewEnding(deadline))
				if !errors.Is(err, tt.want) || time.Since(begin) != tt.elapsed {
					t.Errorf("Wait: %v after %v, want %v after %v", err, time.Since(begin), tt.want, tt.elapsed)
				}
				if got := <-cause; got != tt.cause {
					t.Errorf("the work's context ended with %v, want %v", got, tt.cause)
				}
			})
		})
	}
}

// Nothing under way is no error, however late it is.
func TestTrackerWaitIdle(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // a select between two ready channels picks either
		var tracker Tracker
		if err := tracker.Wait(NewEnding(ended)); err != nil {
			t.Fatalf("Wait: %v, want nil", err)
		}
	}
}

// Go is part of work that was let in, so it works after Stop, and Wait waits
// for it; two may wait at once.
func TestTrackerGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tracker Tracker
		tracker.Stop()
		ran := false
		tracker.Go(func() {
			time.Sleep(time.Second)
			tracker.Go(func() {
				time.Sleep(time.Second)
				ran = true
			})
		})
		go func() { _ = tracker.Wait(NewEnding(t.Context())) }()
		begin := time.Now()
		if err := tracker.Wait(NewEnding(t.Context())); err != nil || !ran || time.Since(begin) != 2*time.Second {
			t.Errorf("Wait: %v after %v, ran %v; want both goroutines to have ended", err, time.Since(begin), ran)
		}
	})
}

// A tracker is idle again and again.
func TestTrackerReuse(t *testing.T) {
	var tracker Tracker
	for range 3 {
		_, done, _ := tracker.Start(t.Context())
		go done()
		if err := tracker.Wait(NewEnding(t.Context())); err != nil {
			t.Error(err)
		}
	}
}
