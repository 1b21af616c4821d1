package client_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/backendtest"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// TestBrokenEntries: an entry of a list that is none hides no other, and is
// named.
func TestBrokenEntries(t *testing.T) {
	pages := []string{
		`"tools":[{"name":"first","inputSchema":{"type":"object"}},{"name":"odd","description":5,"inputSchema":{"type":"object"}},7],"nextCursor":"more"`,
		`"tools":[{"name":"last","inputSchema":{"type":"object"}}]`,
	}
	serve := func(_ context.Context, conn transport.Conn) error {
		return backendtest.Scripted(conn, func(m *protocol.Message, _ string) string {
			switch {
			case m.Method == protocol.MethodInitialize:
				return `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}`
			case bytes.Contains(m.Params, []byte(`"more"`)):
				return `"result":{` + pages[1] + `}`
			}
			return `"result":{` + pages[0] + `}`
		})
	}
	c, err := client.Connect(t.Context(), client.Local(serve), &client.Options{Revisions: []protocol.Revision{protocol.V20250618}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var names []string
	var last error
	for tool, err := range c.Tools(t.Context()) {
		if last = err; err == nil {
			names = append(names, tool.Name)
		}
	}
	if got := strings.Join(names, " "); got != "first last" {
		t.Errorf("got %s", got)
	}
	if !errors.Is(last, client.ErrInvalidResult) || !strings.Contains(last.Error(), `number 2 ("odd")`) || !strings.Contains(last.Error(), "number 3") {
		t.Errorf("the error is %v", last)
	}
	if tool, err := c.Tool(t.Context(), "last"); err != nil || tool.Name != "last" {
		t.Errorf("%v, %v", tool.Name, err)
	}
}
