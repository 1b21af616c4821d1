package harness

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// Ask sends a request and returns its answer, notifications left out.
func Ask(t *testing.T, c Conversation, method, params string) string {
	t.Helper()
	heard := c.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
	for _, message := range heard {
		if !strings.Contains(message, `"method":`) {
			return message
		}
	}
	t.Fatalf("%s: no answer among %q", method, heard)
	return ""
}

func OpenSession(t *testing.T, transport TransportUnderTest, s *mcp.Server) Conversation {
	c := transport.Open(t, s, protocol.V20250618)
	Ask(t, c, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	c.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}
