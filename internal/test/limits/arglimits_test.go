package limits_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// Options.Schema bounds what the arguments of a call may be made of.
func TestSchemaLimits(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "narrow", Version: "1"}, &mcp.Options{Schema: &schema.Options{MaxValues: 5}})
	s.MustAdd(mcp.Tool("sum", func(_ *mcp.Frame, in struct {
		Numbers []int `json:"numbers"`
	}) (harness.Sized, error) {
		return harness.Sized{Size: len(in.Numbers)}, nil
	}))
	harness.InEach(t, s, func(t *testing.T, _ protocol.Revision, c *mcptest.Client) {
		if r := c.Call("sum", map[string][]int{"numbers": {1, 2, 3}}); r.IsError || r.Text() != `{"size":3}` {
			t.Errorf("three: %s", r.Raw)
		}
		if r := c.Call("sum", map[string][]int{"numbers": {1, 2, 3, 4, 5}}); !r.IsError || !strings.Contains(r.Text(), "/numbers/3: the document has more than 5 values") {
			t.Errorf("five: %s", r.Raw)
		}
	})
}

// A custom rule gets the context of the call.
func TestRuleContext(t *testing.T) {
	listed := schema.NewRule("listed", func(ctx context.Context, name, _ string) error {
		if f, ok := ctx.(*mcp.Frame); !ok || f.Request().Params.Name != name {
			return fmt.Errorf("runs in a %T", ctx)
		}
		return nil
	}, schema.Describe("the name of the tool"))
	s := mcp.NewServer(mcp.Info{Name: "ruled", Version: "1"}, &mcp.Options{Schema: &schema.Options{Rules: []schema.Rule{listed}}})
	s.MustAdd(mcp.Tool("echo", func(_ *mcp.Frame, in struct {
		Name string `json:"name" validate:"listed"`
	}) (harness.Sized, error) {
		return harness.Sized{Size: len(in.Name)}, nil
	}))
	harness.InEach(t, s, func(t *testing.T, _ protocol.Revision, c *mcptest.Client) {
		if r := c.Call("echo", map[string]string{"name": "echo"}); r.IsError {
			t.Errorf("got %s", r.Raw)
		}
	})
}

// What a client says of itself is bounded, in every revision: its length, and
// how many things it names, each of which takes much more than it has bytes.
func TestClientDescriptionLimit(t *testing.T) {
	big := strings.Repeat("x", 32<<10)
	icons := strings.TrimSuffix(strings.Repeat("{},", 252), ",")
	const long, many = "are longer than 32768 bytes", "have more than 250 members and items"
	t.Run("2026-07-28", func(t *testing.T) {
		for _, tr := range harness.TransportsOf(protocol.V20260728) {
			c := tr.Open(t, harness.Fixture(t, nil), protocol.V20260728)
			for _, said := range [][3]string{
				{`{"name":"` + big + `","version":"1"}`, `{}`, long},
				{`{"name":"c","version":"1","icons":[` + icons + `]}`, `{}`, many},
				{`{"name":"c","version":"1"}`, `{"experimental":{"x":[` + icons + `]}}`, many},
			} {
				heard := c.Say(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
					`"io.modelcontextprotocol/clientInfo":` + said[0] + `,"io.modelcontextprotocol/clientCapabilities":` + said[1] + `}}}`)
				if len(heard) != 1 || !strings.Contains(heard[0], `"code":-32602,"message":"the clientInfo and clientCapabilities of params._meta `+said[2]) {
					t.Errorf("%s: %.40s %.40s: %.300q", tr.Name, said[0], said[1], heard)
				}
			}
		}
	})
	for _, tr := range harness.TransportsOf(protocol.V20251125) {
		t.Run(tr.Name, func(t *testing.T) {
			for _, said := range [][2]string{
				{`"capabilities":{},"clientInfo":{"name":"` + big + `","version":"1"}`, long},
				{`"capabilities":{"experimental":{"x":{"y":"` + big + `"}}},"clientInfo":{"name":"c","version":"1"}`, long},
				{`"capabilities":{},"clientInfo":{"name":"c","version":"1","icons":[` + icons + `]}`, many},
			} {
				c := tr.Open(t, harness.Fixture(t, nil), protocol.V20251125)
				heard := c.Say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` + said[0] + `}}`)
				if len(heard) != 1 || !strings.Contains(heard[0], `"code":-32602,"message":"params.clientInfo and params.capabilities `+said[1]) {
					t.Errorf("%.40s… %.300q", said[0], heard)
				}
			}
		})
	}
}

// Arguments may have what a message may have, on every transport.
func TestLargeArguments(t *testing.T) {
	testdep.NoRace(t, "it sends 130 MB")
	s := harness.Bare(mcp.Options{})
	s.MustAdd(mcp.Tool("size", func(_ *mcp.Frame, in struct {
		Text string `json:"text"`
	}) (int, error) {
		return len(in.Text), nil
	}), mcp.Method("acme/size", func(_ *mcp.Frame, in struct {
		Text string `json:"text"`
	}) (map[string]int, error) {
		return map[string]int{"size": len(in.Text)}, nil
	}))
	text := strings.Repeat("x", 3<<20)
	for _, rev := range []protocol.Revision{protocol.LatestLegacy, protocol.Latest} {
		for _, over := range harness.TransportsOf(rev) {
			c := harness.Join(t, over, rev, s)
			for method, params := range map[string]string{
				"tools/call": `"name":"size","arguments":{"text":"` + text + `"}`, "acme/size": `"text":"` + text + `"`,
			} {
				if got := c.Ask(method, params); !strings.Contains(got, "3145728") {
					t.Errorf("%v, %s, %s: %.200s", rev, over.Name, method, got)
				}
			}
		}
	}
}
