package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

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
		for {
			text, err := conn.Read()
			if err != nil {
				return nil
			}
			var m protocol.Message
			answer := ""
			switch {
			case !bytes.Contains(text, []byte(`"id"`)):
				continue
			case bytes.Contains(text, []byte(`"initialize"`)):
				answer = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}`
			case bytes.Contains(text, []byte(`"more"`)):
				answer = "{" + pages[1] + "}"
			default:
				answer = "{" + pages[0] + "}"
			}
			if m, err = protocol.Decode(text); err != nil {
				return err
			}
			id, err := m.ID.MarshalJSON()
			if err != nil {
				return err
			}
			if err := conn.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, answer)); err != nil {
				return nil
			}
		}
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
