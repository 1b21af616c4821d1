package proxy

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/subscriptions"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// backend is a connection to the server behind.
type backend struct {
	*client.Client
	subs subscriptions.Set
	lost atomic.Pointer[error] // why it is not there, nil while it is

	mu      sync.Mutex
	offers  protocol.ServerCapabilities // when it was there the last time
	watched []string                    // resources that clients without sessions listen to, in the order of the last time
}

// state keeps what became of the attempts to come back, and reports whether the server
// is there again.
func (b *backend) state(state client.State, err error) (again bool) {
	switch {
	case state == client.StateReady:
		return b.lost.Swap(nil) != nil
	case err != nil:
		b.lost.Store(&err)
	}
	return false
}

// backTime is how long a request waits for a connection that was lost.
const backTime = 10 * time.Second

// ready waits for a while if the connection is lost.
func (b *backend) ready(ctx context.Context) error {
	if b.Revision() != 0 {
		return nil
	}
	limited, stop := context.WithTimeout(ctx, backTime)
	defer stop()
	return b.explain(b.WaitReady(limited))
}

// explain returns why the connection is lost for an error that says that it
// does not come back in time.
func (b *backend) explain(err error) error {
	why := b.lost.Load()
	if why == nil || !errors.Is(err, client.ErrTimeout) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return *why
}

// capabilities are those of the server behind, without what ends here. While it
// is away they are what they were.
func (b *backend) capabilities() protocol.ServerCapabilities {
	var hello struct {
		Capabilities protocol.ServerCapabilities `json:"capabilities"`
	}
	raw := b.Server().Raw
	b.mu.Lock()
	defer b.mu.Unlock()
	if raw != nil && jsonx.Unmarshal(raw, &hello) == nil {
		b.offers = hello.Capabilities
		b.offers.Extensions, b.offers.Experimental = nil, nil
	}
	return b.offers
}

// maxWatched is how many resources clients without sessions can listen to at a
// time. When they stop is not told here, so that the oldest make room.
const maxWatched = 1000

// watch subscribes to a resource for a client without a session.
func (b *backend) watch(ctx context.Context, uri string) error {
	b.mu.Lock()
	if i := slices.Index(b.watched, uri); i >= 0 {
		b.watched = slices.Delete(b.watched, i, i+1)
	}
	b.watched = append(b.watched, uri)
	oldest := ""
	if len(b.watched) > maxWatched {
		oldest, b.watched = b.watched[0], slices.Delete(b.watched, 0, 1)
	}
	b.mu.Unlock()
	_, ended := b.subs.Remove(oldest)        // first, since the server may have the same limit
	_, err := b.subs.Add(ctx, b.Client, uri) // again if it has ended, or failed before
	return errors.Join(ended, err)
}
