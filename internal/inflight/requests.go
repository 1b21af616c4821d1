// Package inflight keeps what is in progress between two sides that send each
// other requests. Servers and clients both use it.
//
//   - [Requests] is the table of requests that this side serves for one peer.
//     It makes sure that an id is used by one request at a time, and finds the
//     request that a cancellation names.
//   - [Pending] is the table of requests that this side has sent. It passes
//     each response to the waiting caller.
//   - [Task] is the context of a request that is being served. It is cheaper
//     than the contexts of the standard library, because most requests end
//     before any code waits for their end.
//   - [Tracker] counts all work of a server, so that a shutdown can refuse
//     more, wait, and cancel what remains.
//
// A request can be in Requests and known to a Tracker with the same Task.
// The zero values are ready for use, and all types are safe for concurrent use.
//
// Specification: basic/index and basic/utilities/cancellation of every
// revision.
package inflight

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// ErrCancelled is the cause of a context whose request the client cancelled.
var ErrCancelled = errors.New("cancelled by the client")

// Requests is the table of requests that are being served for one client, by the
// canonical spelling of their ids. The zero value is empty and ready; it is safe for concurrent use.
type Requests struct {
	mu       sync.Mutex
	requests map[protocol.ID]*Task
	ended    error // why every request is cancelled, once CancelAll was called
}

// Start enters a request. It fails if one with that id is in progress, which a
// cancelled one is until its handler has returned. The context that it returns
// ends when the request is cancelled; done must be called once, when the
// request is answered.
func (t *Requests) Start(ctx context.Context, id protocol.ID) (_ context.Context, done func(), ok bool) {
	task := newTask(ctx)
	if t.Enter(id, task, 0) != nil {
		return nil, nil, false
	}
	return task, func() {
		t.Leave(id)
		task.End()
	}, true
}

// Enter enters a request that has its Task already. The error, which is for the
// client, says that one with that id is in progress, or as many as limit; 0 is
// not a limit. Leave must be called when the request is answered.
func (t *Requests) Enter(id protocol.ID, task *Task, limit int) *protocol.Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if limit > 0 && len(t.requests) >= limit {
		return protocol.Errorf(protocol.CodeBusy, "the session has %d requests in progress, the limit", limit)
	}
	if _, taken := t.requests[id.Canonical()]; taken {
		return wire.Refused("duplicate_id", protocol.CodeInvalidRequest, "a request with id %s is under way", id)
	}
	if t.requests == nil {
		t.requests = make(map[protocol.ID]*Task)
	}
	t.requests[id.Canonical()] = task
	if t.ended != nil {
		task.Cancel(t.ended)
	}
	return nil
}

// Leave takes a request out of the table. Its id may be used again from then
// on. It does not end the Task, which may belong to a Tracker, too.
func (t *Requests) Leave(id protocol.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.requests, id.Canonical())
}

// Cancel ends the context of a request, and tells whether it is in progress.
// The request stays in the table until it is done: its handler may take its
// time, and must count.
func (t *Requests) Cancel(id protocol.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	task, ok := t.requests[id.Canonical()]
	if ok {
		task.Cancel(ErrCancelled)
	}
	return ok
}

// CancelFor is Cancel with what the client says of it: the cause of the
// request's context is ErrCancelled with the reason, if there is one.
func (t *Requests) CancelFor(id protocol.ID, reason string) bool {
	cause := ErrCancelled
	if reason != "" {
		cause = fmt.Errorf("%w: %s", ErrCancelled, reason)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	task, ok := t.requests[id.Canonical()]
	if ok {
		task.Cancel(cause)
	}
	return ok
}

// CancelAll ends the contexts of every request, and of those that start later:
// a request that was read before the end of its connection or session may come
// to be entered only after it.
func (t *Requests) CancelAll(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = cause
	for _, task := range t.requests {
		task.Cancel(cause)
	}
}

// Len returns how many requests are in progress.
func (t *Requests) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.requests)
}

// Cancelled reports whether ctx ended because the client cancelled its request.
func Cancelled(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), ErrCancelled)
}
