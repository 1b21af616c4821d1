// Package reconnector keeps a connection to a server open, for pools and groups
// of clients.
package reconnector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/protocol"
)

// Reconnector makes another connection when the last one is lost or does not
// answer. Set its exported fields, then call Run once.
type Reconnector struct {
	Transport client.Transport
	Options   client.Options
	// Health is how often a connection without answered calls is pinged; 0 means
	// never. One that does not answer within HealthTimeout is given up.
	Health, HealthTimeout time.Duration
	// Changed is called when there is a connection, and when there is none any
	// more or an attempt to make one failed; err says why.
	Changed func(c *client.Client, err error)

	answered atomic.Int64 // calls
	client   atomic.Pointer[client.Client]
	tried    chan struct{} // closed after the first attempt

	mu     sync.Mutex
	opened int64
	fault  error // why there is no connection
	down   error // why that which there is is not ready
}

// settled is how long a connection must have lived to be replaced at once when
// it is lost; before, that counts as an attempt that failed. So a server that
// takes connections and drops them is not asked all the time.
const settled = 15 * time.Second

// Init makes r ready for Run and for its other methods. fault, if there is one,
// stands in the place of a connection: Run must not be called then.
func (r *Reconnector) Init(fault error) {
	r.tried, r.fault = make(chan struct{}), fault
	if fault != nil {
		close(r.tried)
	}
}

// Tried is closed after the first attempt to connect, however it ended.
func (r *Reconnector) Tried() <-chan struct{} { return r.tried }

// Client returns the connection, nil while there is none.
func (r *Reconnector) Client() *client.Client { return r.client.Load() }

// Answered notes a call that has shown that the connection is well.
func (r *Reconnector) Answered() { r.answered.Add(1) }

// Now returns the connection, how many there were, and why there is none.
func (r *Reconnector) Now() (c *client.Client, opened int64, fault error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.client.Load(), r.opened, r.fault
}

// Down says why the connection that there is is not ready; nil if it is.
func (r *Reconnector) Down() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down
}

// Run keeps the connection open until ctx ends.
func (r *Reconnector) Run(ctx context.Context) {
	var backoff client.Backoff // without its number of attempts
	if r.Options.Reconnect != nil {
		backoff = *r.Options.Reconnect
	}
	for failures := 0; ctx.Err() == nil; {
		began := time.Now()
		changed := make(chan struct{}, 1)
		c, err := r.connect(ctx, changed)
		if err == nil {
			r.set(c, nil)
			err = r.watch(ctx, c, changed)
			r.set(nil, err)
			_ = c.Close() // it is lost, or not wanted any more
			if time.Since(began) >= settled {
				failures = 0
				continue
			}
		} else {
			r.set(nil, err)
		}
		failures++
		if pause.For(ctx, pause.Growing(failures, backoff.Base, backoff.Max, backoff.Jitter)) != nil {
			return
		}
	}
}

// connect connects within the time that a request may take. changed gets a
// value when the connection's state has changed.
func (r *Reconnector) connect(ctx context.Context, changed chan<- struct{}) (*client.Client, error) {
	if limit := cmp.Or(r.Options.Timeout, 30*time.Second); limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, limit)
		defer stop()
	}
	opts := r.Options
	opts.OnState = func(state client.State, err error) {
		r.mu.Lock()
		r.down = err
		r.mu.Unlock()
		select {
		case changed <- struct{}{}:
		default:
		}
		if r.Options.OnState != nil {
			r.Options.OnState(state, err)
		}
	}
	return client.Connect(ctx, r.Transport, &opts)
}

// set takes a connection, or err for its absence.
func (r *Reconnector) set(c *client.Client, err error) {
	r.mu.Lock()
	r.fault = err
	if c != nil {
		r.opened++
	}
	r.client.Store(c)
	r.mu.Unlock()
	r.Changed(c, err)
	select {
	case <-r.tried:
	default:
		close(r.tried) // by this goroutine alone
	}
}

// watch returns when the connection is lost for good, does not answer, or ctx
// ends. Its error is nil in the last case.
func (r *Reconnector) watch(ctx context.Context, c *client.Client, changed <-chan struct{}) error {
	var health <-chan time.Time
	if r.Health > 0 {
		ticker := time.NewTicker(r.Health)
		defer ticker.Stop()
		health = ticker.C
	}
	answered := r.answered.Load()
	for {
		if lost, why := lost(c); lost {
			return why
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		case <-health:
			if now := r.answered.Load(); now != answered {
				answered = now // it has shown that it is well
				continue
			}
			if err := r.ping(ctx, c); err != nil && ctx.Err() == nil {
				return fmt.Errorf("the health check failed: %w", err)
			}
		}
	}
}

// lost reports whether a client has no connection and will make none by itself,
// and why.
func lost(c *client.Client) (lost bool, why error) {
	ctx, stop := context.WithCancel(context.Background())
	stop() // it is a question that does not wait
	err := c.WaitReady(ctx)
	if err == nil || errors.Is(err, client.ErrCancelled) {
		return false, nil // it is ready, or about to be
	}
	return true, err
}

// ping asks for a sign of life; an error that the server sent is one.
func (r *Reconnector) ping(ctx context.Context, c *client.Client) error {
	err := c.Ping(ctx, client.Timeout(r.HealthTimeout), client.Retry(1))
	if _, ok := errors.AsType[*protocol.Error](err); ok || errors.Is(err, client.ErrUnsupported) {
		return nil
	}
	return err
}

// Ended is the error of an operation whose context has ended.
func Ended(ctx context.Context, op string) error {
	kind := client.ErrCancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = client.ErrTimeout
	}
	return &client.Error{Op: op, Err: fmt.Errorf("%w: %w", kind, context.Cause(ctx))}
}
