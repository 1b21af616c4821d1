// Package reconnector keeps a connection to a server open, for pools and groups
// of clients.
//
// A client.Client reconnects by itself for a limited number of attempts. A
// member of a pool or group has to return whenever its server does, so a
// [Reconnector] makes a new Client after the last one has given up, with
// growing waits and without end, until its context ends.
//
// There is one exception. After client.ErrUnauthorized another attempt would be
// refused like the last one, or ask the user again: the Reconnector pauses until
// Retry.
//
// It is embedded by pool's member and group's server. Run is its goroutine; all
// other methods may be called from any. mu guards the fields below
// it.
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
	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/clients/attend"
	"github.com/talaria-go/mcp/internal/inflight"
	"github.com/talaria-go/mcp/internal/pause"
)

// Reconnector makes another connection when the last one is lost. Set its exported fields, call Init, then call Run once.
type Reconnector struct {
	Transport client.Transport
	Options   client.Options
	// Changed is called when there is a connection, and when there is none any
	// more or an attempt to make one failed; err says why.
	Changed func(c *client.Client, err error)
	// Occasion is that of the first attempt; nil means one of its own.
	Occasion *attend.Occasion

	client atomic.Pointer[client.Client]
	retry  chan *attend.Occasion // of Retry; it has room for one

	mu     sync.Mutex
	opened int64
	fault  error         // why there is no connection
	down   error         // why that which there is is not ready
	tried  chan struct{} // closed after the first attempt, or the first since Retry
	paused bool          // until Retry
	told   bool          // Now has returned why it is paused
}

// settled is how long a connection must have lived to be replaced at once when
// it is lost. A loss before that counts as a failed attempt, so that a server
// which accepts connections and drops them is not asked all the time.
const settled = 15 * time.Second

// Init prepares r for Run and its other methods. A fault takes the place of a
// connection: Run must not be called then.
func (r *Reconnector) Init(fault error) {
	r.tried, r.retry, r.fault = make(chan struct{}), make(chan *attend.Occasion, 1), fault
	if fault != nil {
		close(r.tried)
	}
}

// Tried returns a channel that is closed after the first attempt to connect,
// however it ended. Retry replaces it.
func (r *Reconnector) Tried() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tried
}

// Paused reports whether there is no connection until Retry.
func (r *Reconnector) Paused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paused
}

// Retry lets a Reconnector that has paused continue, because a caller wants
// that. It does nothing before Now has returned why: the caller cannot have
// reacted to that. Those that are to share one login share the occasion.
func (r *Reconnector) Retry(occasion *attend.Occasion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paused && r.told {
		r.paused, r.told, r.tried = false, false, make(chan struct{})
		r.retry <- occasion
	}
}

// Client returns the connection, nil while there is none.
func (r *Reconnector) Client() *client.Client { return r.client.Load() }

// Now returns the connection, how many there have been, and why there is none.
func (r *Reconnector) Now() (c *client.Client, opened int64, fault error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = r.paused
	return r.client.Load(), r.opened, r.fault
}

// Down returns why the current connection is not ready, or nil.
func (r *Reconnector) Down() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down
}

// Run keeps the connection open until ctx ends. When it returns, the connection
// is closed and Changed is called no more. It waits after each failure, with
// the Base, Max and Jitter of Options.Reconnect; a connection that has lived
// for settled is replaced at once. After client.ErrUnauthorized it waits for
// Retry.
func (r *Reconnector) Run(ctx context.Context) {
	var backoff client.Backoff // without its number of attempts
	if r.Options.Reconnect != nil {
		backoff = *r.Options.Reconnect
	}
	occasion := cmp.Or(r.Occasion, &attend.Occasion{})
	for failures := 0; ctx.Err() == nil; {
		began := time.Now()
		changed := make(chan struct{}, 1)
		c, err := r.connect(occasion.With(ctx), changed)
		if err == nil {
			occasion = &attend.Occasion{} // the next one is that of a loss
			r.set(c, nil)
			err = r.watch(ctx, c, changed)
			r.set(nil, err)
			_ = c.Close() // it is lost, or not wanted any more
		} else {
			r.set(nil, err)
		}
		if errors.Is(err, client.ErrUnauthorized) {
			select {
			case occasion = <-r.retry:
				failures = 0
				continue
			case <-ctx.Done():
				return
			}
		}
		if c != nil && time.Since(began) >= settled {
			failures = 0
			continue
		}
		failures++
		if pause.For(ctx, pause.Growing(failures, backoff.Base, backoff.Max, backoff.Jitter)) != nil {
			return
		}
	}
}

// connect makes a connection, by default within the time that a request may
// take. changed gets a value when the state of the connection has changed.
func (r *Reconnector) connect(ctx context.Context, changed chan<- struct{}) (*client.Client, error) {
	opts := r.Options
	opts.ConnectTimeout = cmp.Or(opts.ConnectTimeout, opts.Timeout, 30*time.Second)
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
	if r.opened > 0 { // only this goroutine changes it
		ctx = link.Resumed(ctx)
	}
	return client.Connect(ctx, r.Transport, &opts)
}

// set stores a connection, or the reason for its absence, and reports it. Only
// Run calls it.
func (r *Reconnector) set(c *client.Client, err error) {
	r.mu.Lock()
	r.fault = err
	if c != nil {
		r.opened++
	}
	r.client.Store(c)
	r.paused = errors.Is(err, client.ErrUnauthorized)
	r.mu.Unlock()
	r.Changed(c, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.tried:
	default:
		close(r.tried) // only by this goroutine
	}
}

// WaitClosed calls wait, which waits for the end of Run of all these, and returns its
// error when they have had the time that closing a Client takes. op is the
// operation of the error.
func WaitClosed(op string, wait func(), all ...*Reconnector) error {
	var most time.Duration
	for _, r := range all {
		most = max(most, cmp.Or(r.Options.CloseTimeout, 10*time.Second))
	}
	ctx, stop := context.WithTimeout(context.Background(), most)
	defer stop()
	if !inflight.Within(ctx, afterClose, wait) {
		return &client.Error{Op: op, Err: fmt.Errorf("%w: a callback or a transport does not return", client.ErrTimeout)}
	}
	return nil
}

// afterClose is how long Client.Close may take after Options.CloseTimeout, and a second.
const afterClose = 7 * time.Second

// watch returns when the connection is lost for good or ctx ends. In the last
// case the error is nil.
func (r *Reconnector) watch(ctx context.Context, c *client.Client, changed <-chan struct{}) error {
	for {
		if lost, why := lost(c); lost {
			return why
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
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

// Ended returns the error of an operation whose context has ended: that of
// package client for a timeout or a cancellation, with the cause of ctx. op may
// be "" for an error that is put into another one.
func Ended(ctx context.Context, op string) error {
	kind := client.ErrCancelled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = client.ErrTimeout
	}
	return &client.Error{Op: op, Err: fmt.Errorf("%w: %w", kind, context.Cause(ctx))}
}
