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

// RateLimits say how often a client may call each tool. The zero value is the
// default.
type RateLimits struct {
	Rate  rate.Limit // calls per second, of each tool; 0 means 10
	Burst int        // calls at once after a pause; 0 means twice Rate, and at least 1
	// Client names who calls; nil means Frame.Principal, for which all
	// anonymous clients are one.
	Client func(f *mcp.Frame) string
	// MaxClients is how many clients are kept apart; 0 means 10,000. Only those
	// count that have called lately; beyond the number they share their limits.
	MaxClients int
}

// The limits that zero RateLimits stand for.
const (
	DefaultRate       = rate.Limit(10)
	DefaultMaxClients = 10_000
)

// maxTools is how many tools of one client are kept apart. Names that do not
// exist count, too, so there must be a bound.
const maxTools = 256

// RateLimit limits how often each client may call each tool. Calls beyond that
// are refused, with the time after which the next will pass.
func RateLimit(limits RateLimits) mcp.Middleware {
	if limits.Rate <= 0 {
		limits.Rate = DefaultRate
	}
	if limits.Burst <= 0 {
		limits.Burst = int(min(max(1, math.Ceil(2*float64(limits.Rate))), math.MaxInt32))
	}
	if limits.MaxClients <= 0 {
		limits.MaxClients = DefaultMaxClients
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

// pace says how often that is.
func pace(limit rate.Limit) string {
	if limit >= 1 {
		return fmt.Sprintf("%v per second", limit)
	}
	return fmt.Sprintf("1 in %v", time.Duration(float64(time.Second)/float64(limit)).Round(time.Millisecond))
}

// clients are the budgets of all clients. Nobody's budget is ever dropped before
// it is full again, so that nobody gets a new one by making others come.
type clients struct {
	limits RateLimits

	mu     sync.Mutex
	all    map[string]*budget
	others *budget   // of the clients for whom there is no place
	swept  time.Time // when there was last looked for places
}

// budget is what one client may do.
type budget struct {
	tools  map[string]*rate.Limiter
	others *rate.Limiter // of the tools for which there is no place
}

func (t *clients) newBudget() *budget {
	return &budget{tools: make(map[string]*rate.Limiter), others: t.newLimiter()}
}

func (t *clients) newLimiter() *rate.Limiter {
	return rate.NewLimiter(t.limits.Rate, t.limits.Burst)
}

// take takes one call from a budget, or returns how long to wait for one.
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

func (t *clients) limiter(b *budget, tool string, now time.Time) *rate.Limiter {
	if l := b.tools[tool]; l != nil {
		return l
	}
	if len(b.tools) >= maxTools && t.sweep(b, now) >= maxTools {
		return b.others
	}
	l := t.newLimiter()
	b.tools[tool] = l
	return l
}

// sweep drops what is full again, which a new one would be as well, and returns
// how many are left.
func (t *clients) sweep(b *budget, now time.Time) int {
	for tool, l := range b.tools {
		if t.full(l, now) {
			delete(b.tools, tool)
		}
	}
	return len(b.tools)
}

func (t *clients) full(l *rate.Limiter, now time.Time) bool {
	return l.TokensAt(now) >= float64(t.limits.Burst)
}
