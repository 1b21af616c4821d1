package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The values that a zero PoolOptions stands for.
const (
	DefaultPoolSize        = 4
	DefaultCheckoutTimeout = 5 * time.Second
	DefaultHealthCheck     = 30 * time.Second
	DefaultHealthTimeout   = 5 * time.Second
)

// ErrNoConnections: no connection of the pool was ready in time.
var ErrNoConnections = errors.New("no connection is ready")

// PoolOptions are the settings of a Pool. The zero value is the default of all;
// NewPool copies it.
type PoolOptions struct {
	Size     int      // how many connections NewPool opens; 0 means DefaultPoolSize
	Strategy Strategy // which connection a call goes to; the zero value is RoundRobin
	// Client are the options of every connection; nil means the zero value. Its
	// Reconnect says how long to wait between attempts to replace a connection;
	// the pool does not give up after some of them. Handlers are called for any
	// of the connections.
	Client *Options
	// CheckoutTimeout is how long a call waits for a connection while none is
	// ready; 0 means DefaultCheckoutTimeout, less than 0 as long as its context.
	CheckoutTimeout time.Duration
	// HealthCheck is how often a connection without answered calls is pinged; 0
	// means DefaultHealthCheck, less than 0 never. One that does not answer
	// within HealthTimeout, 0 meaning DefaultHealthTimeout, is replaced.
	HealthCheck   time.Duration
	HealthTimeout time.Duration
	// OnChange hears when a connection became ready, with nil, or ceased to be,
	// with the reason. It must not wait for the pool.
	OnChange func(id int, err error)
}

// Pool spreads calls over several connections, to one server or to several that
// offer the same. It keeps them open: one that is lost is skipped and replaced.
// All methods are safe for concurrent use, and connections are shared, not
// owned: many calls may be under way on each.
//
// Subscriptions, roots and levels belong to a connection; use a Client for
// them.
type Pool struct {
	opts   PoolOptions
	client Options // of the connections

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	turn    atomic.Uint64             // of RoundRobin
	ready   atomic.Pointer[[]*pooled] // replaced, never changed
	waiting atomic.Int64

	mu      sync.Mutex
	closed  bool
	lastID  int
	members []*pooled
	changed chan struct{} // closed when members or their states change
}

// NewPool returns a pool that opens Size connections through t in the
// background; Warm waits for them. A nil t makes a pool without any; Add gives
// it some. opts may be nil.
func NewPool(t Transport, opts *PoolOptions) *Pool {
	p := &Pool{changed: make(chan struct{})}
	if opts != nil {
		p.opts = *opts
	}
	if p.opts.Size <= 0 {
		p.opts.Size = DefaultPoolSize
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&p.opts.CheckoutTimeout, DefaultCheckoutTimeout}, {&p.opts.HealthCheck, DefaultHealthCheck}, {&p.opts.HealthTimeout, DefaultHealthTimeout}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if p.opts.Client != nil {
		p.client = *p.opts.Client
	}
	p.client.NoReconnect = true // the pool does that, and meanwhile uses another one
	if p.client.Eras == nil {
		p.client.Eras = &Eras{}
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.ready.Store(&[]*pooled{})
	if t == nil {
		return p
	}
	// These have one authorization, and may share what they read.
	shared := p.client
	if shared.Cache == nil {
		shared.Cache = NewCache(0)
	}
	if shared.CacheKey == "" {
		shared.CacheKey = fmt.Sprintf("pool %p", p)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for range p.opts.Size {
		p.start(t, shared)
	}
	return p
}

// Add opens one more connection, in the background, and returns its id.
func (p *Pool) Add(t Transport) (id int, err error) {
	if t == nil {
		return 0, &Error{Op: "add a connection", Err: errors.New("no transport")}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, &Error{Op: "add a connection", kind: ErrClosed, Err: errPoolClosed}
	}
	return p.start(t, p.client), nil
}

var errPoolClosed = errors.New("the pool is closed")

// start makes a member; p.mu is held.
func (p *Pool) start(t Transport, opts Options) int {
	p.lastID++
	m := &pooled{pool: p, id: p.lastID}
	m.keeper = keeper{
		transport: t, opts: opts, health: max(p.opts.HealthCheck, 0), healthTimeout: p.opts.HealthTimeout,
		changed: m.onChange, tried: make(chan struct{}),
	}
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(p.ctx)
	p.members = append(p.members, m)
	p.notify()
	p.tasks.Go(func() { m.run(ctx) })
	return m.id
}

// Remove takes a connection out of the pool. Calls that are under way on it go
// on; it is closed after the last. Unknown ids are ErrNotFound.
func (p *Pool) Remove(id int) error {
	p.mu.Lock()
	i := slices.IndexFunc(p.members, func(m *pooled) bool { return m.id == id })
	if i < 0 {
		p.mu.Unlock()
		return &Error{Op: "remove a connection", kind: ErrNotFound, Err: fmt.Errorf("the pool has no connection %d", id)}
	}
	m := p.members[i]
	p.members = slices.Delete(p.members, i, i+1)
	p.settle()
	p.mu.Unlock()
	m.remove()
	return nil
}

// notify wakes who waits for a change; p.mu is held.
func (p *Pool) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// settle finds out which members are ready; p.mu is held.
func (p *Pool) settle() {
	ready := make([]*pooled, 0, len(p.members))
	for _, m := range p.members {
		if m.client.Load() != nil {
			ready = append(ready, m)
		}
	}
	p.ready.Store(&ready)
	p.notify()
}

// Warm waits until every connection is ready or could not be opened, and
// returns what went wrong with those, joined. Attempts to open them go on.
func (p *Pool) Warm(ctx context.Context) error {
	p.mu.Lock()
	members := slices.Clone(p.members)
	p.mu.Unlock()
	var faults []error
	for _, m := range members {
		select {
		case <-m.tried:
			if c, _, fault := m.now(); c == nil {
				faults = append(faults, fmt.Errorf("connection %d: %w", m.id, fault))
			}
		case <-ctx.Done():
			return wrap("warm up", "", "", context.Cause(ctx))
		case <-p.ctx.Done():
			return &Error{Op: "warm up", kind: ErrClosed, Err: errPoolClosed}
		}
	}
	return errors.Join(faults...)
}

// Close closes every connection and waits for the pool's goroutines. Calls
// under way fail with ErrClosed. Calling it again does nothing.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.members = nil
	p.settle()
	p.mu.Unlock()
	p.cancel()
	p.tasks.Wait()
	return nil
}
