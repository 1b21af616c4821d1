package middleware

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
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
	// Store makes the limits those of all replicas of the server together; it is the
	// store of mcp.Options. A call asks it, unless calls before it have taken some
	// ahead: at most those of a tenth of a second, which have to be made within a
	// second. That a call is refused is mostly known without the Store. While it
	// does not answer, each replica has the limits for itself. The clocks of the
	// replicas have to agree within a part of the time that Burst calls take at
	// Rate. nil means that this process has its own limits.
	Store scale.Store
	// Secret, of 16 random bytes or more, hides from the Store who calls what. It is
	// needed with a Store, the same at all replicas; a key of mcp.Options.StateKeys
	// will do. A new one forgets the calls until now. Limits that share a Store and
	// that have Rate and Burst in common need Secrets of their own.
	Secret []byte
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
// Over HTTP the status stays 200, with Retry-After next to it. nil stands for
// the default; the options are copied. It panics if there is a Store without a
// Secret.
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
	t := newClients(limits)
	return func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			req := f.Request()
			if req.Method != protocol.MethodToolsCall {
				return next(f)
			}
			client := limits.Client(f)
			if wait := t.take(f, client, req.Params.Name); wait > 0 {
				return nil, busy(wait, "Too many calls of tool %q: the limit is %s. Try again in %v", req.Params.Name, said(limits.Rate), wait.Round(time.Millisecond))
			}
			return next(f)
		}
	}
}

// said returns a rate as a message says it: calls per second, or, for rates
// below that, the time between two calls.
func said(limit rate.Limit) string {
	if limit >= 1 {
		return fmt.Sprintf("%v per second", limit)
	}
	return fmt.Sprintf("1 in %v", time.Duration(float64(time.Second)/float64(limit)).Round(time.Millisecond))
}

// clients holds the budgets of all clients. A budget is dropped only when it is
// full again, so that a client cannot get a new one by flooding the table. mu
// guards the fields below it and all budgets.
type clients struct {
	limits RateLimitOptions
	pace   pace
	shared *sharedRates // nil without a store
	start  time.Time

	mu     sync.Mutex
	all    map[string]*budget
	kept   int       // buckets of tools, of all clients
	others budget    // of the clients without a place
	swept  time.Time // when there was last looked for places
	away   instant   // until when the store is not asked, because it failed
	failed bool      // the store, when it was last asked
}

// budget is what one client may do: a bucket for each of its tools, made with
// the first call of the tool. The mu of the clients guards it.
type budget struct {
	tools  map[string]*bucket
	others bucket // of the tools for which there is no place
}

// newClients returns the full budgets of all clients.
func newClients(limits RateLimitOptions) *clients {
	return &clients{
		limits: limits, pace: newPace(float64(limits.Rate), limits.Burst), shared: newSharedRates(limits),
		start: time.Now(), all: make(map[string]*budget),
	}
}

// now returns the time: that of the clock on the wall, which replicas have in
// common, if they share the limits, and else one that cannot be set.
func (t *clients) now() instant {
	if t.shared != nil {
		return instant(time.Now().UnixNano())
	}
	return instant(time.Since(t.start))
}

// take takes one call from a budget, or returns how long to wait for one. A
// call that has to wait takes nothing: clients that try again too early do not
// push their own turn back.
func (t *clients) take(ctx context.Context, client, tool string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, named := t.find(client, tool)
	for asked := 0; ; asked++ {
		now := t.now()
		switch {
		case t.shared == nil || now < t.away:
			wait := t.pace.wait(b.due, now)
			if wait == 0 {
				b.due = t.pace.after(b.due, now, 1)
			}
			return wait
		case b.held > 0 && now < b.until:
			b.held--
			return 0
		}
		if wait := t.pace.wait(b.due, now); wait > 0 {
			return wait
		}
		if asking := b.asking; asking != nil {
			if asked > 1 { // the second time it was asked for all who waited: there was not enough
				return t.pace.interval
			}
			b.waiting++
			t.mu.Unlock()
			late := time.NewTimer(2 * rateTimeout)
			answered := false
			select {
			case <-asking:
				answered = true
			case <-late.C:
			case <-ctx.Done():
			}
			late.Stop()
			t.mu.Lock()
			b.waiting--
			switch {
			case answered:
			case ctx.Err() != nil:
				return rateRetry // its error is not reported
			default: // the store does not care about the time
				t.away = t.now().add(rateRetry)
			}
			continue
		}
		t.ask(ctx, b, t.shared.key(named...))
	}
}

// ask takes calls from a bucket of the store, for those who wait for one and some
// ahead if they are likely to come. When it returns there are some, or there are
// none and the time of the next is known, or the store is unavailable. t.mu is
// held, but while the store works.
func (t *clients) ask(ctx context.Context, b *bucket, key scale.Key) {
	// Others wait for it, too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rateTimeout)
	defer cancel()
	asked := make(chan struct{})
	b.asking = asked
	now := t.now()
	if t.failed {
		t.away = now.add(rateRetry) // for all others: one is enough to find out
	}
	if b.held > 0 || now >= b.until {
		b.ahead = 0
	}
	b.held = 0
	if now >= b.due.add(rateKept) {
		b.rev = 0 // the store has forgotten it
	}
	var err error
	for err == nil && b.held == 0 {
		now = t.now()
		n := t.pace.room(b.due, now, max(1+b.waiting, t.pace.ahead>>max(0, t.pace.steps-b.ahead)))
		if n == 0 {
			break
		}
		b.ahead = min(b.ahead+1, t.pace.steps)
		next, rev := t.pace.after(b.due, now, n), b.rev
		t.mu.Unlock()
		var there sharedBucket
		there, err = t.shared.put(ctx, key, rev, next, now)
		t.mu.Lock()
		switch {
		case err != nil:
		case there.taken:
			b.rev, b.due = there.rev, max(b.due, next)
			b.held, b.until = n, now.add(rateHeld)
		default: // another replica took some, and the rest is known now
			b.rev, b.due = there.rev, there.due
		}
	}
	if t.failed = err != nil; t.failed {
		t.away = t.now().add(rateRetry)
	} else {
		t.away = 0
	}
	b.asking = nil
	close(asked)
}

// find returns the bucket of a client's calls of a tool, and what it is named by.
// t.mu is held.
func (t *clients) find(client, tool string) (b *bucket, named []string) {
	now := time.Now()
	of := t.budget(client, now)
	if of != &t.others {
		named = append(named, "client", client)
	}
	if b = t.tool(of, tool); b != &of.others {
		named = append(named, "tool", tool)
	}
	return b, named
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
			if t.full(&b.others) && t.sweep(b) == 0 {
				delete(t.all, name)
			}
		}
	}
	if len(t.all) >= t.limits.MaxClients {
		return &t.others
	}
	b := &budget{}
	t.all[client] = b
	return b
}

// tool returns the bucket of a tool, or the shared one of the client if there is
// no place. t.mu is held.
func (t *clients) tool(of *budget, tool string) *bucket {
	if len(tool) > maxName {
		return &of.others
	}
	if b := of.tools[tool]; b != nil {
		return b
	}
	isFull := func() bool { return len(of.tools) >= maxTools || t.kept >= t.limits.MaxTools }
	if isFull() {
		t.sweep(of)
	}
	if isFull() {
		return &of.others
	}
	if of.tools == nil {
		of.tools = make(map[string]*bucket)
	}
	b := &bucket{}
	of.tools[tool] = b
	t.kept++
	return b
}

// sweep drops the buckets of a budget that are full, which new ones would be as
// well, and returns how many are left. t.mu is held.
func (t *clients) sweep(of *budget) int {
	for tool, b := range of.tools {
		if t.full(b) {
			delete(of.tools, tool)
			t.kept--
		}
	}
	return len(of.tools)
}

// full reports whether a bucket is as good as a new one, and can be dropped.
func (t *clients) full(b *bucket) bool { return b.due <= t.now() && b.asking == nil }
