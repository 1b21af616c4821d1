package peer

import (
	"fmt"

	"github.com/talaria-go/mcp/protocol"
)

// CancelFor is Cancel with what the client says of it: the cause of the
// request's context is ErrCancelled with the reason, if there is one.
func (t *Inflight) CancelFor(id protocol.ID, reason string) {
	cause := ErrCancelled
	if reason != "" {
		cause = fmt.Errorf("%w: %s", ErrCancelled, reason)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if task, ok := t.requests[id]; ok {
		task.Cancel(cause)
	}
}
