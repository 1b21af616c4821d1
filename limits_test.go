package mcp_test

import (
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// Options.Schema bounds what the arguments of a call may be made of.
func TestSchemaLimits(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "narrow", Version: "1"}, &mcp.Options{Schema: &schema.Options{MaxNodes: 5}})
	s.MustAdd(mcp.Tool("sum", func(_ *mcp.Frame, in struct {
		Numbers []int `json:"numbers"`
	}) (sized, error) {
		return sized{len(in.Numbers)}, nil
	}))
	inEach(t, s, func(t *testing.T, _ protocol.Revision, c *mcptest.Client) {
		if r := c.Call("sum", map[string][]int{"numbers": {1, 2, 3}}); r.IsError || r.Text() != `{"size":3}` {
			t.Errorf("three: %s", r.Raw)
		}
		if r := c.Call("sum", map[string][]int{"numbers": {1, 2, 3, 4, 5}}); !r.IsError || !strings.Contains(r.Text(), "/numbers/3: the document has more than 5 values") {
			t.Errorf("five: %s", r.Raw)
		}
	})
}

// What a session keeps of its client is bounded.
func TestClientDescriptionLimit(t *testing.T) {
	big := strings.Repeat("x", 32<<10)
	for _, tr := range transportsOf(protocol.V20251125) {
		t.Run(tr.name, func(t *testing.T) {
			for _, said := range []string{
				`"capabilities":{},"clientInfo":{"name":"` + big + `","version":"1"}`,
				`"capabilities":{"experimental":{"x":{"y":"` + big + `"}}},"clientInfo":{"name":"c","version":"1"}`,
			} {
				c := tr.open(t, fixture(t, nil), protocol.V20251125)
				heard := c.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` + said + `}}`)
				if len(heard) != 1 || !strings.Contains(heard[0], `"code":-32602,"message":"params.clientInfo and params.capabilities are longer than 32768 bytes`) {
					t.Errorf("%s… %.300q", said[:40], heard)
				}
			}
		})
	}
}
