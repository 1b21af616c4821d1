package middleware

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// RateLimitOptions determine how often a client may call each tool. The zero
// value has the defaults.
type RateLimitOptions struct {
	Rate  rate.Limit // calls per second, of each tool; 0 means 10
	Burst int        // calls at once after a pause; 0 means twice Rate, and at least 1
	// Client names who calls; nil means Frame.Principal, for which all
	// anonymous clients are one.
	Client func(f *mcp.Frame) string
	// MaxClients is how many clients are kept apart; 0 means 10,000. Only those
	// count that have called lately; beyond the number they share their limits.
	MaxClients int
	// MaxTools is how many tools are kept apart for all clients together; 0 means
	// 200,000, which take some 64 MiB. Of one client it is 256. Beyond that the
	// further tools of a client share their limit.
	MaxTools int
}

// The defaults of RateLimitOptions.
const (
	defaultRate       = rate.Limit(10)
	defaultMaxClients = 10_000
	defaultMaxTools   = 200_000
)

// maxTools is how many tools of one client have a limit of their own. Names of
// tools that do not exist count too, so there must be a bound.
const maxTools = 256

// maxName is the longest name of a tool, in bytes, that gets a limit of its
// own. Longer names belong to no tool.
const maxName = 128

// RateLimit limits how often each client may call each tool. Calls beyond that
// are refused with CodeBusy, and Error.RetryAfter says when the next will pass.
// Over HTTP the status stays 200, with Retry-After beside it.
// nil stands for the default; the options are copied.
func RateLimit(opts *RateLimitOptions) mcp.Middleware {
	limits := RateLimitOptions{}
	if opts != nil {
		limits = *opts
	}
	if limits.Rate <= 0 {
		limits.Rate = defaultRate
	}
	if limits.Burst <= 0 {
		limits.Burst = int(min(max(1, math.Ceil(2*float64(limits.Rate))), math.MaxInt32))
	}
	if limits.MaxClients <= 0 {
		limits.MaxClients = defaultMaxClients
	}
	if limits.MaxTools <= 0 {
		limits.MaxTools = defaultMaxTools
	}
	if limits.Client == nil {
		limits.Client = (*mcp.Frame).Principal
	}
	t := &clients{limits: limits, all: make(map[string]*budget)}
	t.others = t.newBudget()
	return func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			req := f.Request()
			if req.Method != protocol.MethodToolsCall {
				return next(f)
			}
			if wait := t.take(limits.Client(f), req.Params.Name); wait > 0 {
				return nil, busy(wait, "Too many calls of tool %q: the limit is %s. Try again in %v", req.Params.Name, pace(limits.Rate), wait.Round(time.Millisecond))
			}
			return next(f)
		}
	}
}

// pace returns a rate as a message says it: calls per second, or, for rates
// below that, the time between two calls.
func pace(limit rate.Limit) string {
	if limit >= 1 {
		return fmt.Sprintf("%v per second", limit)
	}
	return fmt.Sprintf("1 in %v", time.Duration(float64(time.Second)/float64(limit)).Round(time.Millisecond))
}

// clients holds the budgets of all clients. A budget is dropped only when it is
// full again, so that nobody gets a new one by making other clients come. mu
// guards the fields below it and all budgets.
type clients struct {
	limits RateLimitOptions

	mu     sync.Mutex
	all    map[string]*budget
	kept   int       // limiters of tools, of all clients
	others *budget   // of the clients for whom there is no place
	swept  time.Time // when there was last looked for places
}

// budget is what one client may do: a token bucket for each of its tools, made
// with the first call of the tool. The mu of the clients guards it.
type budget struct {
	tools  map[string]*rate.Limiter
	others *rate.Limiter // of the tools for which there is no place
}

// newBudget returns a full budget.
func (t *clients) newBudget() *budget {
	return &budget{tools: make(map[string]*rate.Limiter), others: t.newLimiter()}
}

// newLimiter returns a full token bucket.
func (t *clients) newLimiter() *rate.Limiter {
	return rate.NewLimiter(t.limits.Rate, t.limits.Burst)
}

// take takes one call from a budget, or returns how long to wait for one. A
// call that has to wait takes nothing: clients that try again too early do not
// push their own turn back.
func (t *clients) take(client, tool string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	r := t.limiter(t.budget(client, now), tool, now).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// budget returns the budget of a client, or the shared one if there is no
// place. It looks for places at most once a second. t.mu is held.
func (t *clients) budget(client string, now time.Time) *budget {
	if b := t.all[client]; b != nil {
		return b
	}
	if len(t.all) >= t.limits.MaxClients && now.Sub(t.swept) >= time.Second {
		t.swept = now
		for name, b := range t.all {
			if t.full(b.others, now) && t.sweep(b, now) == 0 {
				delete(t.all, name)
			}
		}
	}
	if len(t.all) >= t.limits.MaxClients {
		return t.others
	}
	b := t.newBudget()
	t.all[client] = b
	return b
}

// limiter returns the token bucket of a tool, or the shared one of the client
// if there is no place. t.mu is held.
func (t *clients) limiter(b *budget, tool string, now time.Time) *rate.Limiter {
	if len(tool) > maxName {
		return b.others
	}
	if l := b.tools[tool]; l != nil {
		return l
	}
	isFull := func() bool { return len(b.tools) >= maxTools || t.kept >= t.limits.MaxTools }
	if isFull() {
		t.sweep(b, now)
	}
	if isFull() {
		return b.others
	}
	l := t.newLimiter()
	b.tools[tool] = l
	t.kept++
	return l
}

// sweep drops the token buckets of b that are full, which new ones would be as
// well, and returns how many are left. t.mu is held.
func (t *clients) sweep(b *budget, now time.Time) int {
	for tool, l := range b.tools {
		if t.full(l, now) {
			delete(b.tools, tool)
			t.kept--
		}
	}
	return len(b.tools)
}

// full reports whether a token bucket is as good as a new one.
func (t *clients) full(l *rate.Limiter, now time.Time) bool {
	return l.TokensAt(now) >= float64(t.limits.Burst)
}
