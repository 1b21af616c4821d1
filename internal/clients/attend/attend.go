// Package attend connects the two ends of a request during which a person is
// asked, such as one that needs a login in a browser: the code that waits for
// the request, and the code that asks. Package auth/oauth calls [Ask] before it
// opens a browser. The clocks of the waiting code then stop ([Asker],
// [WithTimeout]), and an [Occasion] lets a person refuse only once.
package attend

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrUnauthorized is client.ErrUnauthorized. It is here because package
// auth/oauth does not import package client.
var ErrUnauthorized = errors.New("not authorized")

// ErrNever is the error of Ask in a context of Never.
var ErrNever = errors.New("a background request does not ask the user")

// Asker is notified before a person is asked during a request. An error refuses
// that. Otherwise the caller calls done with the outcome. An Asker passes the
// call on to that of its parent context, with Ask.
type Asker interface {
	Ask() (done func(error), err error)
}

// Key is the key of the Asker among the values of a context.
type Key struct{}

// Ask notifies the Asker of ctx, if there is one, that a person is about to be
// asked. Unless it returns an error, done must be called with the outcome.
func Ask(ctx context.Context) (done func(error), err error) {
	if asker, ok := ctx.Value(Key{}).(Asker); ok {
		return asker.Ask()
	}
	return func(error) {}, nil
}

// Never returns a context in which no person is asked, for requests that no
// caller waits for.
func Never(ctx context.Context) context.Context { return context.WithValue(ctx, Key{}, never{}) }

// never is the Asker of Never.
type never struct{}

// Ask implements Asker.
func (never) Ask() (func(error), error) { return nil, ErrNever }

// Occasion is one wish of a caller, which may take several requests. A person
// who has refused a login on an occasion is not asked again on the same one. It
// is safe for concurrent use. The zero value is a new occasion.
type Occasion struct {
	mu      sync.Mutex
	refused error
}

// With returns a context of the occasion.
func (o *Occasion) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, Key{}, &occasionAsker{o, ctx})
}

// occasionAsker is the Asker of an Occasion.
type occasionAsker struct {
	*Occasion
	parent context.Context
}

// Ask implements Asker. It returns the error of an earlier refusal.
func (o *occasionAsker) Ask() (func(error), error) {
	o.mu.Lock()
	refused := o.refused
	o.mu.Unlock()
	if refused != nil {
		return nil, refused
	}
	done, err := Ask(o.parent)
	if err != nil {
		return nil, err
	}
	return func(err error) {
		if errors.Is(err, ErrUnauthorized) {
			o.mu.Lock()
			o.refused = err
			o.mu.Unlock()
		}
		done(err)
	}, nil
}

// WithTimeout returns a context that ends with cause after d, not counting the
// time during which a person is asked. A d of 0 or less means no limit. stop
// releases the context.
func WithTimeout(parent context.Context, d time.Duration, cause error) (ctx context.Context, stop context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(parent)
	}
	ctx, cancel := context.WithCancelCause(parent)
	ctx, stopClock := AfterFunc(ctx, d, func() { cancel(cause) })
	return ctx, func() {
		stopClock()
		cancel(nil)
	}
}

// AfterFunc runs fn on a goroutine of its own after d, not counting the time
// during which a person is asked within the context that it returns. stop
// prevents that, and reports whether it has.
func AfterFunc(parent context.Context, d time.Duration, fn func()) (ctx context.Context, stop func() bool) {
	c := &clock{Context: parent, left: d, since: time.Now()}
	c.timer = time.AfterFunc(d, fn)
	return c, c.stop
}

// clock is a context of AfterFunc. While a person is asked, its timer is
// stopped. mu guards the fields below it.
type clock struct {
	context.Context
	timer *time.Timer

	mu    sync.Mutex
	asked int           // persons asked now
	left  time.Duration // when the timer was started
	since time.Time
	over  bool // stop was called, or the time is over
}

// stop stops the clock for good.
func (c *clock) stop() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.over
	c.over = true
	return (c.timer.Stop() || c.asked > 0) && !was
}

// Value implements context.Context.
func (c *clock) Value(key any) any {
	if key == (Key{}) {
		return c
	}
	return c.Context.Value(key)
}

// Ask implements Asker.
func (c *clock) Ask() (func(error), error) {
	done, err := Ask(c.Context)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked++; c.asked == 1 {
		c.over = c.over || !c.timer.Stop()
		c.left -= time.Since(c.since)
	}
	return func(err error) {
		c.mu.Lock()
		if c.asked--; c.asked == 0 && !c.over {
			c.since = time.Now()
			c.timer.Reset(max(c.left, 0))
		}
		c.mu.Unlock()
		done(err)
	}, nil
}
