package streamable

import (
	"sync"

	"github.com/talaria-go/mcp/internal/upcall"
)

// resuming is what an exchange has for a client that may come back for its
// answer: the function that begins the stream, until it is called, and then the
// stream.
type resuming struct {
	mu     sync.Mutex
	open   func(to upcall.Sink) upcall.Stream // nil once it was called
	opened upcall.Stream
}

// stream returns the stream that keeps what is sent, begun when it is first
// needed; nil if there is none.
func (r *resuming) stream(e *exchange) upcall.Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open != nil {
		r.opened, r.open = r.open(e), nil
	}
	return r.opened
}

// begun returns the stream if it has begun, else nil, and prevents one from
// beginning later: the answer goes out without. r may be nil.
func (r *resuming) begun() upcall.Stream {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = nil
	return r.opened
}
