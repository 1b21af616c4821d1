package connlink

import (
	"bytes"
	"testing"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// FuzzIDOf sees that the ends of a response never tell another id than its own,
// so that no other request is failed for it.
func FuzzIDOf(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"result":{"id":8}}`), 12, 5)
	f.Add([]byte(`{"result":{"a":"\"id\":8}"},"jsonrpc":"2.0","id":"x"}`), 5, 20)
	f.Add([]byte(`{"result":{"id":8},"jsonrpc":"2.0","id" : 7 }`), 3, 40)
	f.Add([]byte(`{"id":7,"jsonrpc":"2.0","result":{"x":{"id":8}}}`), 0, 48)
	f.Fuzz(func(t *testing.T, text []byte, head, tail int) {
		var m protocol.Message
		text = bytes.TrimSpace(text)
		if wire.Scan(text, &m) != nil || m.Kind() != protocol.KindResponse {
			return
		}
		head, tail = min(max(head, 0), len(text)), min(max(tail, 0), len(text))
		if got := idOf(text[:head], text[len(text)-tail:]); !got.IsZero() && got != m.ID {
			t.Fatalf("%s ends with %s: id %v, want %v", text[:head], text[len(text)-tail:], got, m.ID)
		}
	})
}
