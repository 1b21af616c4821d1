// Package pool spreads calls over several connections to MCP servers, and
// replaces those that are lost.
//
//	p := pool.New(client.HTTP("https://example.com/mcp", nil), &pool.Options{Size: 8})
//	defer p.Close()
//	sum, err := client.Call[Sum](ctx, p, "sum", Numbers{2, 3})
//
// Connections are shared and not lent: many calls may be in progress on each. A call
// picks one from a list of ready connections that is replaced as a whole and read
// without a lock. Each connection has a goroutine that keeps it open. A call whose
// connection is lost goes to another one if sending it again is safe.
//
// The package is built on the exported API of package client only.
package pool

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/client/internal/reconnector"
	"github.com/talaria-go/mcp/internal/clients/attend"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/protocol"
)

// ErrNoConnections: no connection of the pool was ready in time. It is a
// client.ErrConnection, too.
var ErrNoConnections error = noConnections{}

// noConnections is the type of ErrNoConnections. It makes the error one of the
// connection, so that client.Retriable understands it.
type noConnections struct{}

// Error says what is missing; the error around it says why.
func (noConnections) Error() string { return "no connection is ready" }

// Is implements the interface that errors.Is looks for.
func (noConnections) Is(target error) bool { return target == client.ErrConnection }

// Options are the settings of a Pool. The zero value is the default of all; New
// copies it.
type Options struct {
	Size     int      // how many connections New opens; 0 means 4
	Strategy Strategy // which connection a call goes to; the zero value is RoundRobin
	// Client are the options of every connection; nil means the zero value. Its
	// Reconnect says how long to wait between attempts to replace a connection;
	// the pool does not give up after some of them. Handlers are called for any
	// of the connections. Without Cache, the connections of New share what they
	// read; those of Add may have another authorization, and share what the server
	// calls public.
	Client *client.Options
	// CheckoutTimeout is how long a call waits for a connection while none is
	// ready; 0 means 5 seconds, less than 0 as long as its context.
	CheckoutTimeout time.Duration
	// HealthCheck is how often a connection on which nothing came is pinged; 0
	// means every 30 seconds, less than 0 never. One that does not answer within
	// HealthTimeout, 0 meaning 5 seconds, is replaced.
	HealthCheck   time.Duration
	HealthTimeout time.Duration
	// OnChange is called when a connection becomes ready, with nil, or unavailable,
	// with the reason. It must not wait for the pool.
	OnChange func(id int, err error)
}

// Strategy says which connection of a pool a call goes to.
type Strategy int

// The strategies. None of them takes a connection that is not ready.
const (
	RoundRobin Strategy = iota // one after the other
	Random                     // any
	LeastBusy                  // that with the fewest calls in progress
)

// Stats count what a pool does.
type Stats struct {
	Size        int   // connections, ready or not
	Ready       int   // those that calls may go to
	InFlight    int64 // calls in progress
	Waiting     int64 // callers that wait for a connection
	Requests    int64 // calls that went to one of these connections
	Failed      int64 // those that failed
	Connections []ConnStats
}

// ConnStats are those of one connection.
type ConnStats struct {
	ID       int
	Server   string // what the transport calls the server
	Ready    bool
	InFlight int64
	Requests int64
	Failed   int64
	Opened   int64 // how often; more than once means that it was replaced
	Err      error // why it is not ready, or nil
}

// Pool spreads calls over several connections, to one server or to several that
// offer the same. It keeps them open: one that is lost is skipped and replaced.
// After client.ErrUnauthorized, such as a refused login, it waits for Warm. All
// methods are safe for concurrent use, and connections are shared, not owned:
// many calls may be in progress on each.
//
// A call goes to another connection when the one that it is on is lost, up to 3
// times, if sending it again is safe, as client.Error.Safe says.
//
// Roots belong to a connection; use Options.Client, or a Client of All, for
// them.
type Pool struct {
	opts   Options
	client client.Options // of the connections
	cache  *client.Cache  // the pool's own; nil if the user gave one

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	next    atomic.Uint64             // the turn of RoundRobin
	ready   atomic.Pointer[[]*member] // replaced, never changed
	waiting atomic.Int64
	level   atomic.Uint32 // of SetLevel, a protocol.Level

	mu      sync.Mutex
	closed  bool
	lastID  int
	members []*member
	changed chan struct{} // closed when members or their states change
}

// A Pool can be used wherever a client can.
var _ client.Caller = (*Pool)(nil)

// New returns a pool that opens Size connections through t in the background;
// Warm waits for them. A nil t makes a pool without any; Add gives it some. opts
// may be nil.
func New(t client.Transport, opts *Options) *Pool {
	p := &Pool{changed: make(chan struct{})}
	if opts != nil {
		p.opts = *opts
	}
	p.opts.Size = cmp.Or(max(p.opts.Size, 0), 4)
	p.opts.CheckoutTimeout = cmp.Or(p.opts.CheckoutTimeout, 5*time.Second)
	if p.opts.Client != nil {
		p.client = *p.opts.Client
	}
	p.client.NoReconnect = true // the pool does that, and in the meantime uses another one
	p.client.HealthCheck = cmp.Or(p.opts.HealthCheck, 30*time.Second)
	p.client.HealthTimeout = p.opts.HealthTimeout
	if p.client.Cache == nil {
		p.cache = client.NewCache(0)
		p.client.Cache = p.cache
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.ready.Store(&[]*member{})
	if t == nil {
		return p
	}
	shared := p.client
	if p.cache != nil && shared.CacheKey == "" {
		shared.CacheKey = rand.Text() // these have one authorization
	}
	var once attend.Occasion // they share a login, and its refusal
	p.mu.Lock()
	defer p.mu.Unlock()
	for range p.opts.Size {
		p.start(t, shared, &once)
	}
	return p
}

// errClosed is the cause of everything that is asked of a pool after Close.
var errClosed = fmt.Errorf("%w: the pool is closed", client.ErrClosed)

// Add opens one more connection, in the background, and returns its id. opts are
// its own, such as other credentials or another CacheKey, except for
// NoReconnect; without a Cache it has that of the pool. nil means
// Options.Client.
func (p *Pool) Add(t client.Transport, opts *client.Options) (id int, err error) {
	if t == nil {
		return 0, &client.Error{Op: "add a connection", Err: errors.New("no transport")}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, &client.Error{Op: "add a connection", Err: errClosed}
	}
	own := p.client
	if opts != nil {
		own = *opts
		own.NoReconnect = true
		own.Cache = cmp.Or(own.Cache, p.client.Cache)
	}
	return p.start(t, own, nil), nil
}

// All yields the connections that are ready now, by their ids, in the order in
// which they were added. They are shared, and closing one is the business of the
// pool.
func (p *Pool) All() iter.Seq2[int, *client.Client] {
	return func(yield func(int, *client.Client) bool) {
		for _, m := range p.all() {
			if c := m.Client(); c != nil && !yield(m.id, c) {
				return
			}
		}
	}
}

// ID returns the id of a connection that Get or Do gave, for Remove. ok is false
// if the pool does not have it any more.
func (p *Pool) ID(c *client.Client) (id int, ok bool) {
	for id, one := range p.All() {
		if one == c {
			return id, true
		}
	}
	return 0, false
}

// start makes a member and the goroutine that keeps its connection open, and
// returns its id; p.mu is held. Ids count from 1 and are not used again. once is
// the occasion of the first attempt; nil means one of its own.
func (p *Pool) start(t client.Transport, opts client.Options, once *attend.Occasion) int {
	p.lastID++
	m := &member{pool: p, id: p.lastID}
	m.Transport, m.Options, m.Occasion = t, opts, once
	m.Changed = m.changed
	m.Init(nil)
	var ctx context.Context
	ctx, m.cancel = context.WithCancel(p.ctx)
	p.members = append(p.members, m)
	p.notify()
	p.tasks.Go(func() { m.Run(ctx) })
	return m.id
}

// Remove takes a connection out of the pool. Calls that are in progress on it
// continue; it is closed after the last. Unknown ids are client.ErrNotFound.
func (p *Pool) Remove(id int) error {
	p.mu.Lock()
	i := slices.IndexFunc(p.members, func(m *member) bool { return m.id == id })
	if i < 0 {
		p.mu.Unlock()
		return &client.Error{Op: "remove a connection", Err: fmt.Errorf("%w: the pool has no connection %d", client.ErrNotFound, id)}
	}
	m := p.members[i]
	p.members = slices.Delete(p.members, i, i+1)
	p.settle()
	p.mu.Unlock()
	m.remove()
	return nil
}

// notify wakes those who wait for a change; p.mu is held.
func (p *Pool) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// settle recomputes the list of ready members and reports the change; p.mu is
// held.
func (p *Pool) settle() {
	ready := make([]*member, 0, len(p.members))
	for _, m := range p.members {
		if m.Client() != nil {
			ready = append(ready, m)
		}
	}
	p.ready.Store(&ready)
	p.notify()
}

// all returns the members of now, in a list of the caller's own.
func (p *Pool) all() []*member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.members)
}

// Warm waits until every connection is ready or could not be opened, and
// returns what went wrong with those, joined. Attempts to open them continue,
// except after client.ErrUnauthorized: then only Warm tries again, and the user
// may be asked to log in.
func (p *Pool) Warm(ctx context.Context) error {
	var faults []error
	var once attend.Occasion
	members := p.all()
	for _, m := range members {
		m.Retry(&once)
	}
	for _, m := range members {
		select {
		case <-m.Tried():
			if c, _, fault := m.Now(); c == nil {
				faults = append(faults, fmt.Errorf("connection %d: %w", m.id, fault))
			}
		case <-ctx.Done():
			return reconnector.Ended(ctx, "warm up")
		case <-p.ctx.Done():
			return &client.Error{Op: "warm up", Err: errClosed}
		}
	}
	return errors.Join(faults...)
}

// Close closes every connection and waits for the pool's goroutines, as long as
// client.Client.Close does. Calls in progress fail with client.ErrClosed. The error
// is client.ErrTimeout if a callback does not return. Calling it again does nothing.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	all := []*reconnector.Reconnector{{Options: p.client}} // of those that were removed, too
	for _, m := range p.members {
		all = append(all, &m.Reconnector)
	}
	p.members = nil
	p.settle()
	p.mu.Unlock()
	p.cancel()
	err := reconnector.WaitClosed("close the pool", p.tasks.Wait, all...)
	if p.cache != nil {
		p.cache.Clear()
	}
	return err
}

// Stats returns what the connections of the pool did so far, in the order in
// which they were added.
func (p *Pool) Stats() Stats {
	members := p.all()
	stats := Stats{Size: len(members), Waiting: p.waiting.Load()}
	for _, m := range members {
		c := m.stats()
		stats.Connections = append(stats.Connections, c)
		stats.InFlight += c.InFlight
		stats.Requests += c.Requests
		stats.Failed += c.Failed
		if c.Ready {
			stats.Ready++
		}
	}
	return stats
}

// Get returns a connection, chosen by the strategy, that the caller shares with
// others until release is called. While none is ready it waits, at most for
// CheckoutTimeout; the error is ErrNoConnections then. A pool without any fails
// at once.
func (p *Pool) Get(ctx context.Context) (c *client.Client, release func(), err error) {
	m, c, err := p.checkout(ctx)
	if err != nil {
		return nil, nil, err
	}
	return c, sync.OnceFunc(m.release), nil
}

// Do runs fn with a connection, so that all of its calls go to the same one. It
// returns the error of fn, or that of Get.
func (p *Pool) Do(ctx context.Context, fn func(*client.Client) error) error {
	m, c, err := p.checkout(ctx)
	if err != nil {
		return err
	}
	defer m.release()
	return m.count(fn(c))
}

// checkout leases a connection, and waits for one while none is ready. It takes
// the channel for changes before it looks for a connection, so that none that
// becomes ready in between is missed. The caller must release the member.
func (p *Pool) checkout(ctx context.Context) (*member, *client.Client, error) {
	const op = "get a connection"
	if ctx.Err() != nil {
		return nil, nil, reconnector.Ended(ctx, op)
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
			return nil, nil, &client.Error{Op: op, Err: errClosed}
		}
		if size == 0 {
			return nil, nil, &client.Error{Op: op, Err: fmt.Errorf("%w: the pool is empty", ErrNoConnections)}
		}
		if m, c := p.pick(); m != nil {
			return m, c, nil
		}
		if !slices.ContainsFunc(p.all(), func(m *member) bool { return !m.Paused() }) {
			return nil, nil, &client.Error{Op: op, Err: p.because(fmt.Errorf("%w before Pool.Warm", ErrNoConnections))}
		}
		select {
		case <-changed:
		case <-timeout:
			return nil, nil, &client.Error{Op: op, Err: p.because(fmt.Errorf("%w: none within %v", ErrNoConnections, p.opts.CheckoutTimeout))}
		case <-ctx.Done():
			return nil, nil, &client.Error{Op: op, Err: p.because(fmt.Errorf("%w: %w", reconnector.Ended(ctx, ""), ErrNoConnections))}
		}
	}
}

// because adds to err the reason why some connection is not ready, the first
// that has one: with one server they mostly have the same.
func (p *Pool) because(err error) error {
	because := err
	for _, m := range p.all() {
		if _, _, fault := m.Now(); fault != nil && because == err {
			because = fmt.Errorf("%w; connection %d: %w", err, m.id, fault)
		}
	}
	return because
}

// pick leases a ready connection by the strategy, or returns nil. It takes no
// lock and does not wait. A member that is lost but still in the list is passed
// over.
func (p *Pool) pick() (*member, *client.Client) {
	ready := *p.ready.Load()
	n := uint64(len(ready))
	if n == 0 {
		return nil, nil
	}
	var start uint64
	switch p.opts.Strategy {
	case Random:
		start = mathrand.Uint64N(n)
	case LeastBusy:
		start = leastBusy(ready, p.next.Add(1)-1)
	default:
		start = p.next.Add(1) - 1
	}
	for i := range n { // the first one, if it is not lost in this moment
		m := ready[(start+i)%n]
		if c := m.lease(); c != nil {
			return m, c
		}
	}
	return nil, nil
}

// leastBusy returns the index of the member with the fewest calls; turn decides
// among equals.
func leastBusy(ready []*member, turn uint64) uint64 {
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

// maxLost is how many connections may be lost under one call that is safe to
// send again.
const maxLost = 3

// onConnection makes a call on a connection, and on another one if that is lost
// and the call is safe to send again.
func onConnection[T any](ctx context.Context, p *Pool, fn func(*client.Client) (T, error)) (T, error) {
	for n := 0; ; n++ {
		m, c, err := p.checkout(ctx)
		if err != nil {
			var none T
			return none, err
		}
		result, err := fn(c)
		err = p.lost(m.count(err))
		m.release()
		if err == nil || n == maxLost || !moves(err) || ctx.Err() != nil {
			return result, err
		}
	}
}

// errReplaced is the cause of a call that was in progress on a connection
// which the pool has given up.
var errReplaced = fmt.Errorf("%w: the pool has given it up", client.ErrConnection)

// lost turns the end of a connection that the pool itself has closed, because
// it was lost, into an error of the connection: a later call may succeed.
func (p *Pool) lost(err error) error {
	var e *client.Error
	if p.ctx.Err() != nil || !errors.Is(err, client.ErrClosed) || !errors.As(err, &e) {
		return err
	}
	return &client.Error{Op: e.Op, Method: e.Method, Safe: e.Safe, Err: errReplaced}
}

// moves reports whether a call goes to another connection after err.
func moves(err error) bool {
	var e *client.Error
	return errors.Is(err, client.ErrConnection) && errors.As(err, &e) && e.Safe
}

// Ping checks that one of the connections responds.
func (p *Pool) Ping(ctx context.Context, options ...client.CallOption) error {
	_, err := onConnection(ctx, p, func(c *client.Client) (struct{}, error) { return struct{}{}, c.Ping(ctx, options...) })
	return err
}

// Call is Client.Call on one of the connections.
func (p *Pool) Call(ctx context.Context, tool string, args any, options ...client.CallOption) (*client.CallToolResult, error) {
	return onConnection(ctx, p, func(c *client.Client) (*client.CallToolResult, error) {
		return c.Call(ctx, tool, args, options...)
	})
}

// Read is Client.Read on one of the connections.
func (p *Pool) Read(ctx context.Context, uri string, options ...client.CallOption) (*protocol.ReadResourceResult, error) {
	return onConnection(ctx, p, func(c *client.Client) (*protocol.ReadResourceResult, error) {
		return c.Read(ctx, uri, options...)
	})
}

// GetPrompt is Client.GetPrompt on one of the connections.
func (p *Pool) GetPrompt(ctx context.Context, name string, args map[string]string, options ...client.CallOption) (*protocol.GetPromptResult, error) {
	return onConnection(ctx, p, func(c *client.Client) (*protocol.GetPromptResult, error) {
		return c.GetPrompt(ctx, name, args, options...)
	})
}

// Complete is Client.Complete on one of the connections.
func (p *Pool) Complete(ctx context.Context, q client.Completion, options ...client.CallOption) (*protocol.Completion, error) {
	return onConnection(ctx, p, func(c *client.Client) (*protocol.Completion, error) {
		return c.Complete(ctx, q, options...)
	})
}

// Request is Client.Request on one of the connections.
func (p *Pool) Request(ctx context.Context, method string, params, result any, options ...client.CallOption) error {
	_, err := onConnection(ctx, p, func(c *client.Client) (struct{}, error) {
		return struct{}{}, c.Request(ctx, method, params, result, options...)
	})
	return err
}

// SetLevel is Client.SetLevel on all connections, those that are opened later
// included. The error joins those of the connections that are ready.
func (p *Pool) SetLevel(ctx context.Context, level protocol.Level, options ...client.CallOption) error {
	if level.String() == "" {
		return &client.Error{Op: "set level", Err: fmt.Errorf("%d is not a level", level)}
	}
	if p.ctx.Err() != nil {
		return &client.Error{Op: "set level", Err: errClosed}
	}
	p.level.Store(uint32(level))
	var faults []error
	for id, c := range p.All() {
		if err := p.lost(c.SetLevel(ctx, level, options...)); err != nil {
			faults = append(faults, fmt.Errorf("connection %d: %w", id, err))
		}
	}
	return errors.Join(faults...)
}

// Listen is Client.Listen on one of the connections, and on another one when that
// is lost. Changes in between are missed: Options.Client.OnResumed is called. It returns when ctx ends, with its
// cause, when the server ends the subscription, with nil, when no connection is
// ready in time, or when 4 connections in a row were lost before the server
// agreed. It waits before each of them, as Options.Client.Reconnect says.
func (p *Pool) Listen(ctx context.Context, filter client.Filter, fn func(client.Notification)) error {
	backoff := cmp.Or(p.client.Reconnect, &client.Backoff{})
	moved := false
	for n := 0; ; n++ {
		m, c, err := p.checkout(ctx)
		if err != nil {
			return err
		}
		opening := ctx
		if moved {
			opening = link.Resumed(ctx)
		}
		sub, err := c.Listen(opening, filter, fn)
		err = p.lost(m.count(err))
		m.release() // before it waits, so that the connection can be removed
		if err == nil {
			n, moved = -1, true
			select {
			case <-sub.Done():
				err = p.lost(sub.Err())
			case <-ctx.Done():
				return errors.Join(reconnector.Ended(ctx, "listen"), sub.Close())
			}
		}
		if n == maxLost || !errors.Is(err, client.ErrConnection) {
			return err
		}
		if pause.For(ctx, pause.Growing(n+2, backoff.Base, backoff.Max, backoff.Jitter)) != nil {
			return reconnector.Ended(ctx, "listen")
		}
	}
}

// Tools lists the tools of one of the connections.
func (p *Pool) Tools(ctx context.Context, options ...client.CallOption) iter.Seq2[protocol.Tool, error] {
	return list(ctx, p, func(c *client.Client) iter.Seq2[protocol.Tool, error] { return c.Tools(ctx, options...) })
}

// Prompts lists the prompts of one of the connections.
func (p *Pool) Prompts(ctx context.Context, options ...client.CallOption) iter.Seq2[protocol.Prompt, error] {
	return list(ctx, p, func(c *client.Client) iter.Seq2[protocol.Prompt, error] { return c.Prompts(ctx, options...) })
}

// Resources lists the resources of one of the connections.
func (p *Pool) Resources(ctx context.Context, options ...client.CallOption) iter.Seq2[protocol.Resource, error] {
	return list(ctx, p, func(c *client.Client) iter.Seq2[protocol.Resource, error] { return c.Resources(ctx, options...) })
}

// Templates lists the resource templates of one of the connections.
func (p *Pool) Templates(ctx context.Context, options ...client.CallOption) iter.Seq2[protocol.ResourceTemplate, error] {
	return list(ctx, p, func(c *client.Client) iter.Seq2[protocol.ResourceTemplate, error] {
		return c.Templates(ctx, options...)
	})
}

// list lists on one connection from beginning to end, because cursors are that
// server's own. If the connection is lost before the first item, another one is
// tried.
func list[T any](ctx context.Context, p *Pool, items func(*client.Client) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for n := 0; ; n++ {
			m, c, err := p.checkout(ctx)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			if !listOn(m, c, n < maxLost, items, yield) {
				return
			}
		}
	}
}

// listOn yields the list of one connection and reports whether another
// connection should be tried.
func listOn[T any](m *member, c *client.Client, retry bool, items func(*client.Client) iter.Seq2[T, error], yield func(T, error) bool) (again bool) {
	defer m.release()
	given := false
	for item, err := range items(c) {
		if err != nil {
			err = m.pool.lost(m.count(err))
			if retry && !given && moves(err) {
				return true
			}
			yield(item, err)
			return false
		}
		given = true
		if !yield(item, nil) {
			break
		}
	}
	_ = m.count(nil) // returns what it gets
	return false
}
