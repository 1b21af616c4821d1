package harness

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// Session1 opens a legacy session over stdio and returns its wire and its id.
func Session1(t *testing.T, s *mcp.Server) (c Listener, id string) {
	t.Helper()
	c = PipeWire(t, s)
	c.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, protocol.LatestLegacy))
	c.Hear()
	c.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.Say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"id"}}`)
	var m struct {
		Result struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal([]byte(c.Hear()), &m); err != nil || len(m.Result.Content) != 1 || m.Result.Content[0].Text == "" {
		t.Fatalf("no session id: %v %+v", err, m)
	}
	return c, m.Result.Content[0].Text
}
