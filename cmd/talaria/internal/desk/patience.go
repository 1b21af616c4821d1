package desk

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errPatience is the cause of what took too long.
var errPatience = errors.New("no answer in time")

// patience ends a context when nothing was heard for a while. It does not run
// while a person is asked something, who may take their time.
type patience struct {
	limit  time.Duration // 0 or less is no limit
	cancel context.CancelCauseFunc
	mu     sync.Mutex
	timer  *time.Timer
	paused int
}

func newPatience(ctx context.Context, limit time.Duration) (context.Context, *patience) {
	p := &patience{limit: limit}
	ctx, p.cancel = context.WithCancelCause(ctx)
	if limit > 0 {
		p.timer = time.AfterFunc(limit, func() { p.cancel(errPatience) })
	}
	return ctx, p
}

// heard starts the time anew.
func (p *patience) heard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil && p.paused == 0 {
		p.timer.Reset(p.limit)
	}
}

func (p *patience) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused++; p.timer != nil {
		p.timer.Stop()
	}
}

func (p *patience) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused--; p.timer != nil && p.paused == 0 {
		p.timer.Reset(p.limit)
	}
}

func (p *patience) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.paused = 1 << 30 // what comes late starts nothing
	p.cancel(nil)
}
