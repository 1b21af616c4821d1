package terminal

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestPatience(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(p *idleTimer)
		want time.Duration // until the context ends; 0 for never
	}{
		{"nothing is heard", func(*idleTimer) {}, 10 * time.Second},
		{"a sign of life", func(p *idleTimer) { time.Sleep(7 * time.Second); p.heard() }, 17 * time.Second},
		{"a task to look at in a while", func(p *idleTimer) { p.heardBefore(7 * time.Second) }, 17 * time.Second},
		{"a task to look at in a year", func(p *idleTimer) { p.heardBefore(365 * 24 * time.Hour) }, 365*24*time.Hour + 10*time.Second},
		{"a task to look at never", func(p *idleTimer) { p.heardBefore(math.MaxInt64); p.heard() }, 10 * time.Second},
		{"a time that is none", func(p *idleTimer) { p.heardBefore(-time.Hour) }, 10 * time.Second},
		{"a person is asked", func(p *idleTimer) {
			p.pause()
			time.Sleep(time.Hour)
			p.resume()
		}, time.Hour + 10*time.Second},
		{"a sign of life while a person is asked", func(p *idleTimer) {
			p.pause()
			p.heard()
			time.Sleep(time.Minute)
			p.resume()
		}, time.Minute + 10*time.Second},
		{"two questions", func(p *idleTimer) {
			p.pause()
			p.pause()
			p.resume()
			time.Sleep(time.Minute)
			p.resume()
		}, time.Minute + 10*time.Second},
		{"the end", func(p *idleTimer) { p.end(); p.heard() }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				ctx, p := newIdleTimer(t.Context(), 10*time.Second)
				defer p.end()
				test.do(p)
				<-ctx.Done()
				took := time.Since(start)
				if test.want == 0 {
					if took != 0 || !errors.Is(context.Cause(ctx), context.Canceled) {
						t.Errorf("got %v after %v", context.Cause(ctx), took)
					}
				} else if took != test.want || !errors.Is(context.Cause(ctx), ErrIdle) {
					t.Errorf("got %v after %v, want it after %v", context.Cause(ctx), took, test.want)
				}
			})
		})
	}
}

func TestNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, p := newIdleTimer(t.Context(), 0)
		p.pause()
		p.resume()
		p.heard()
		time.Sleep(1000 * time.Hour)
		if ctx.Err() != nil {
			t.Error(context.Cause(ctx))
		}
		p.end()
	})
}
