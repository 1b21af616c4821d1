// Package peer keeps the requests that are under way between two sides.
package peer

import (
	"context"
	"errors"
	"sync"

	"github.com/talaria-go/mcp/protocol"
)

// ErrCancelled is the cause of a context whose request the client cancelled.
var ErrCancelled = errors.New("cancelled by the client")

// Inflight is the table of requests that are being served for one client, by
// id. The zero value is empty and ready; it is safe for concurrent use.
type Inflight struct {
	mu       sync.Mutex
	requests map[protocol.ID]context.CancelCauseFunc
}

// Start enters a request. It fails if one with that id is under way. The
// context that it returns ends when the request is cancelled; done must be
// called when the request is answered.
func (t *Inflight) Start(ctx context.Context, id protocol.ID) (_ context.Context, done func(), ok bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, taken := t.requests[id]; taken {
		cancel(nil)
		return nil, nil, false
	}
	if t.requests == nil {
		t.requests = make(map[protocol.ID]context.CancelCauseFunc)
	}
	t.requests[id] = cancel
	return ctx, func() { t.finish(id, nil) }, true
}

// Cancel ends the context of a request, if it is under way.
func (t *Inflight) Cancel(id protocol.ID) { t.finish(id, ErrCancelled) }

// CancelAll ends the contexts of every request.
func (t *Inflight) CancelAll(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, cancel := range t.requests {
		cancel(cause)
		delete(t.requests, id)
	}
}

// Len returns how many requests are under way.
func (t *Inflight) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.requests)
}

func (t *Inflight) finish(id protocol.ID, cause error) {
	t.mu.Lock()
	cancel, ok := t.requests[id]
	delete(t.requests, id)
	t.mu.Unlock()
	if ok {
		cancel(cause)
	}
}

// Cancelled tells whether ctx ended because the client cancelled its request.
func Cancelled(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), ErrCancelled)
}
