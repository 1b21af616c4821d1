package streamable

import (
	"sync"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// resuming is what an exchange has for a client that may come back for its
// answer: who begins the stream, until that is asked to, and then the stream. The
// zero value is for clients that cannot come back. It is a part of the exchange,
// because few of the answers that may be streams become one. by and id are set
// before the exchange is shared.
type resuming struct {
	by *session.Session
	id protocol.ID // of the request

	mu     sync.Mutex
	over   bool // by is not to be asked any more
	opened core.AnswerStream
}

// can reports whether the client may come back at all.
func (r *resuming) can() bool { return r.by != nil }

// stream returns the stream that keeps what is sent, begun when it is first
// needed; nil if there is none.
func (r *resuming) stream(e *exchange) core.AnswerStream {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.opened, r.over = r.by.OpenStream(e, r.id), true
	}
	return r.opened
}

// begun returns the stream if it has begun, else nil, and prevents one from
// beginning later: the answer goes out without.
func (r *resuming) begun() core.AnswerStream {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	return r.opened
}
