package client

import (
	"context"
	"testing"

	"github.com/talaria-go/mcp/client/internal/link"
)

// sink is a link that takes all and says nothing.
type sink struct{}

func (sink) Send(context.Context, *link.Message) error { return nil }
func (sink) Close(context.Context) error               { return nil }

// TestTraceOff: without Trace a message costs nothing more.
func TestTraceOff(t *testing.T) {
	conn := &connection{client: &Client{}, link: sink{}}
	m := &link.Message{Body: []byte(`{"jsonrpc":"2.0","method":"notifications/message"}`)}
	if n := testing.AllocsPerRun(100, func() {
		_ = conn.carry(t.Context(), m)
		conn.trace(true, m.Body)
	}); n > 0 {
		t.Errorf("%v allocations for a message", n)
	}
}
