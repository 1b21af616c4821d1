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
