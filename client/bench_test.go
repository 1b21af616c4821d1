package client

import (
	"context"
	"testing"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/protocol"
)

// BenchmarkCall is what a call costs beside its transport.
func BenchmarkCall(b *testing.B) {
	tr := &fakeHTTP{name: "http://fake", respond: func(l *fakeLink, _ context.Context, m *link.Message) error {
		l.mu.Lock()
		l.sent = l.sent[:0]
		l.mu.Unlock()
		if m.Method == protocol.MethodDiscover {
			l.answer(m, fakeDiscover)
		} else {
			l.answer(m, `{"resultType":"complete","content":[{"type":"text","text":"{\"sum\":5}"}],"structuredContent":{"sum":5},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fixture","version":"1.2.3"}}}`)
		}
		return nil
	}}
	c := connect(b, tr, nil)
	ctx := context.Background()
	for b.Loop() {
		if _, err := c.Call(ctx, "sum", sumIn{2, 3}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPipe is a call over a connection in memory, the server's work
// included.
func BenchmarkPipe(b *testing.B) {
	c := connect(b, serving(b, fixture(b, nil)), nil)
	ctx := context.Background()
	for b.Loop() {
		if _, err := c.Call(ctx, "sum", sumIn{2, 3}); err != nil {
			b.Fatal(err)
		}
	}
}
