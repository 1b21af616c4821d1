package terminal

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// ErrIdle is the cause of what took too long.
var ErrIdle = errors.New("no answer in time")

// idleTimer ends a context when nothing was received for a while. It does not
// run while a person is asked something, who may take their time.
type idleTimer struct {
	limit  time.Duration // 0 or less means no limit
	cancel context.CancelCauseFunc
	mu     sync.Mutex
	timer  *time.Timer
	paused int
}

func newIdleTimer(ctx context.Context, limit time.Duration) (context.Context, *idleTimer) {
	p := &idleTimer{limit: limit}
	ctx, p.cancel = context.WithCancelCause(ctx)
	if limit > 0 {
		p.timer = time.AfterFunc(limit, func() { p.cancel(ErrIdle) })
	}
	return ctx, p
}

// heard starts the time again.
func (p *idleTimer) heard() { p.heardBefore(0) }

// heardBefore counts as received what need not arrive again for a while, such
// as the state of a task with a long poll interval.
func (p *idleTimer) heardBefore(quiet time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil && p.paused == 0 {
		p.timer.Reset(p.limit + min(max(quiet, 0), math.MaxInt64-p.limit))
	}
}

func (p *idleTimer) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused++; p.timer != nil {
		p.timer.Stop()
	}
}

func (p *idleTimer) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused--; p.timer != nil && p.paused == 0 {
		p.timer.Reset(p.limit)
	}
}

func (p *idleTimer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.paused = 1 << 30 // what comes late starts nothing
	p.cancel(nil)
}
