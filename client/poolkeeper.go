package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/protocol"
)

// keeper keeps a connection open: it makes another one when the last is lost or
// does not answer. Pool and Many have one for each connection.
type keeper struct {
	transport     Transport
	opts          Options
	health        time.Duration // how often to ping a connection without answers; 0 never
	healthTimeout time.Duration
	// changed is called when there is a connection, and when there is none any
	// more or an attempt failed; err says why.
	changed func(c *Client, err error)

	client   atomic.Pointer[Client] // nil while there is none
	answered atomic.Int64           // calls
	tried    chan struct{}          // closed after the first attempt

	mu     sync.Mutex
	opened int64
	fault  error // why there is no connection
}

// settled is how long a connection must have lived to be replaced at once when
// it is lost; before, that counts as an attempt that failed.
const settled = 15 * time.Second

// run keeps the connection open until ctx ends.
func (k *keeper) run(ctx context.Context) {
	backoff := Backoff{}
	if k.opts.Reconnect != nil {
		backoff = *k.opts.Reconnect
	}
	backoff.Attempts = -1
	for failures := 0; ctx.Err() == nil; {
		began := time.Now()
		c, err := k.connect(ctx)
		if err == nil {
			k.set(c, nil)
			err = k.watch(ctx, c)
			k.set(nil, err)
			_ = c.Close() // it is lost, or not wanted any more
			if time.Since(began) >= settled {
				failures = 0
				continue
			}
		} else {
			k.set(nil, err)
		}
		failures++
		wait, _ := backoff.wait(failures)
		if pause.For(ctx, wait) != nil {
			return
		}
	}
}

// connect connects within the time that a request may take.
func (k *keeper) connect(ctx context.Context) (*Client, error) {
	limit := k.opts.Timeout
	if limit == 0 {
		limit = DefaultTimeout
	}
	if limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, limit)
		defer stop()
	}
	return Connect(ctx, k.transport, &k.opts)
}

// set takes a connection, or err for its absence.
func (k *keeper) set(c *Client, err error) {
	k.mu.Lock()
	k.fault = err
	if c != nil {
		k.opened++
	}
	k.client.Store(c)
	k.mu.Unlock()
	k.changed(c, err)
	select {
	case <-k.tried:
	default:
		close(k.tried) // by this goroutine alone
	}
}

// now returns the connection, how many there were, and why there is none.
func (k *keeper) now() (c *Client, opened int64, fault error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.client.Load(), k.opened, k.fault
}

// watch returns when the connection is lost for good, does not answer, or ctx
// ends. Its error is nil in the last case.
func (k *keeper) watch(ctx context.Context, c *Client) error {
	var health <-chan time.Time
	if k.health > 0 {
		ticker := time.NewTicker(k.health)
		defer ticker.Stop()
		health = ticker.C
	}
	answered := k.answered.Load()
	for {
		lost, changed, fault := c.lostForGood()
		if lost {
			return fault
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		case <-health:
			if now := k.answered.Load(); now != answered {
				answered = now // it has shown that it is well
				continue
			}
			if err := k.ping(ctx, c); err != nil && ctx.Err() == nil {
				return fmt.Errorf("the health check failed: %w", err)
			}
		}
	}
}

// lostForGood tells whether the client is disconnected and will stay so, what is
// closed when that may have changed, and why.
func (c *Client) lostForGood() (lost bool, changed <-chan struct{}, fault error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fault = c.stateErr
	if fault == nil {
		fault = errClientClosed
	}
	return c.state == StateDisconnected && !c.returning, c.changed, fault
}

// ping asks for a sign of life; an error that the server sent is one.
func (k *keeper) ping(ctx context.Context, c *Client) error {
	err := c.Ping(ctx, Timeout(k.healthTimeout), NoRetry())
	if _, ok := errors.AsType[*protocol.Error](err); ok || errors.Is(err, ErrUnsupported) {
		return nil
	}
	return err
}
