package auth

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/talaria-go/mcp/internal/safely"
)

// cache keeps the tickets of tokens. Refusals are not kept. Its keys are the
// tokens themselves, because hashing one with SHA-256 would take as long as
// everything else that a request with a known token costs here.
//
// mu guards flights and swept; the LRU has a lock of its own.
type cache struct {
	keep    time.Duration
	tickets *lru.Cache[string, *ticket] // nil if nothing is kept

	mu      sync.Mutex
	flights map[string]*flight
	swept   time.Time // when tickets that were over were dropped
}

// flight is a verification in progress, for which other requests wait. ticket
// and err are set before done is closed and read only afterwards.
type flight struct {
	done   chan struct{}
	ticket *ticket
	err    error
}

// newCache returns a cache. If keep or size is 0 it keeps nothing, and only
// joins concurrent verifications of one token.
func newCache(keep time.Duration, size int) *cache {
	c := &cache{keep: keep, flights: map[string]*flight{}}
	if keep > 0 && size > 0 {
		// It fails only for a size below 1.
		c.tickets, _ = lru.New[string, *ticket](size)
	}
	return c
}

// get returns the ticket of a token. If there is none it calls verify, once for
// all requests that arrive with the token at a time. A request whose ctx ends
// stops waiting.
func (c *cache) get(ctx context.Context, token string, verify func(context.Context, string) (*ticket, error)) (*ticket, error) {
	for {
		if t, ok := c.find(token); ok {
			return t, nil
		}
		c.mu.Lock()
		other := c.flights[token]
		if other == nil {
			return c.fly(ctx, token, verify)
		}
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-other.done:
		}
		if !errors.Is(other.err, errGone) {
			return other.ticket, other.err
		}
	}
}

// errGone is the result of a flight whose request was cancelled. Those that
// waited for it try again by themselves.
var errGone = errors.New("the request has ended")

// fly verifies a token as a new flight. c.mu is held when it is called, and
// released.
func (c *cache) fly(ctx context.Context, token string, verify func(context.Context, string) (*ticket, error)) (*ticket, error) {
	token = strings.Clone(token) // not with the rest of its header, of which an Identity may have a part
	f := &flight{done: make(chan struct{}), err: errGone}
	c.flights[token] = f
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.flights, token)
		c.mu.Unlock()
		close(f.done)
	}()
	// On a goroutine of its own: a Verifier, and what it asks, is users' code.
	var t *ticket
	err := safely.Known(safely.Try(func() (err error) { t, err = verify(ctx, token); return err }))
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	f.ticket, f.err = t, err
	if err == nil && c.tickets != nil && time.Now().Before(t.until) {
		c.tickets.Add(token, t)
		c.sweep(time.Now())
	}
	return t, err
}

// sweep drops the tickets that are over, at most once in c.keep. Most of them are of
// tokens that are not sent again.
func (c *cache) sweep(now time.Time) {
	c.mu.Lock()
	due := now.Sub(c.swept) >= c.keep
	if due {
		c.swept = now
	}
	c.mu.Unlock()
	if !due {
		return
	}
	for _, token := range c.tickets.Keys() {
		if t, ok := c.tickets.Peek(token); ok && !now.Before(t.until) {
			c.tickets.Remove(token)
		}
	}
}

// find returns the ticket of a token, if it is known and still good.
func (c *cache) find(token string) (*ticket, bool) {
	if c.tickets == nil {
		return nil, false
	}
	t, ok := c.tickets.Get(token)
	if !ok || !time.Now().Before(t.until) {
		return nil, false
	}
	return t, true
}
