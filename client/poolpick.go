package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Strategy says which connection of a pool a call goes to.
type Strategy int

// The strategies. None of them takes a connection that is not ready.
const (
	RoundRobin Strategy = iota // one after the other
	Random                     // any
	LeastBusy                  // that with the fewest calls under way
)

var strategyNames = [...]string{"round robin", "random", "least busy"}

// String returns the strategy's name.
func (s Strategy) String() string {
	if s < 0 || int(s) >= len(strategyNames) {
		return "unknown"
	}
	return strategyNames[s]
}

// pick leases a connection; it returns nil if none is ready.
func (p *Pool) pick() (*pooled, *Client) {
	ready := *p.ready.Load()
	n := uint64(len(ready))
	if n == 0 {
		return nil, nil
	}
	var start uint64
	switch p.opts.Strategy {
	case Random:
		start = rand.Uint64N(n)
	case LeastBusy:
		start = leastBusy(ready, p.turn.Add(1)-1)
	default:
		start = p.turn.Add(1) - 1
	}
	for i := range n { // the first one, if it is not lost in this moment
		m := ready[(start+i)%n]
		if c := m.lease(); c != nil {
			return m, c
		}
	}
	return nil, nil
}

// leastBusy returns the place of the least busy member; turn decides among
// equals.
func leastBusy(ready []*pooled, turn uint64) uint64 {
	n := uint64(len(ready))
	best, least := turn%n, int64(-1)
	for i := range n {
		at := (turn + i) % n
		if busy := ready[at].inFlight.Load(); least < 0 || busy < least {
			best, least = at, busy
		}
	}
	return best
}

// checkout leases a connection, and waits for one while none is ready.
func (p *Pool) checkout(ctx context.Context) (*pooled, *Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, wrap("get a connection", "", "", context.Cause(ctx))
	}
	if m, c := p.pick(); m != nil {
		return m, c, nil
	}
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	var timeout <-chan time.Time
	if p.opts.CheckoutTimeout > 0 {
		timer := time.NewTimer(p.opts.CheckoutTimeout)
		defer timer.Stop()
		timeout = timer.C
	}
	for {
		p.mu.Lock()
		changed, closed, size := p.changed, p.closed, len(p.members)
		p.mu.Unlock()
		if closed {
			return nil, nil, &Error{Op: "get a connection", kind: ErrClosed, Err: errPoolClosed}
		}
		if size == 0 {
			return nil, nil, p.noConnections("the pool is empty")
		}
		if m, c := p.pick(); m != nil {
			return m, c, nil
		}
		select {
		case <-changed:
		case <-timeout:
			return nil, nil, p.noConnections(fmt.Sprint("none within ", p.opts.CheckoutTimeout))
		case <-ctx.Done():
			return nil, nil, wrap("get a connection", "", "", p.unready(context.Cause(ctx)))
		}
	}
}

// noConnections says why there are none.
func (p *Pool) noConnections(why string) error {
	e := &Error{Op: "get a connection", kind: ErrNoConnections, Err: fmt.Errorf("%s", why), lost: true}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		if _, _, fault := m.now(); fault != nil {
			e.Err = fmt.Errorf("%s; connection %d: %w", why, m.id, fault)
		}
	}
	return e
}

// unready adds to the end of a context why there was no connection before.
func (p *Pool) unready(ended error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		if _, _, fault := m.now(); fault != nil {
			return fmt.Errorf("%w: %w: connection %d: %v", ended, ErrNoConnections, m.id, fault) // what kind the fault is does not matter here
		}
	}
	return fmt.Errorf("%w: %w", ended, ErrNoConnections)
}

// Get returns a connection, chosen by the strategy, that the caller shares with
// others until release is called. While none is ready it waits, at most for
// CheckoutTimeout; the error is ErrNoConnections then. A pool without any fails
// at once.
func (p *Pool) Get(ctx context.Context) (c *Client, release func(), err error) {
	m, c, err := p.checkout(ctx)
	if err != nil {
		return nil, nil, err
	}
	return c, sync.OnceFunc(m.release), nil
}

// Do runs fn with a connection, so that all of its calls go to the same one. It
// returns the error of fn, or that of Get.
func (p *Pool) Do(ctx context.Context, fn func(*Client) error) error {
	m, c, err := p.checkout(ctx)
	if err != nil {
		return err
	}
	defer m.release()
	return m.count(fn(c))
}
