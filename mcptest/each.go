package mcptest

import (
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// Each runs a test as a subtest in every revision, each with a server and a
// client of its own:
//
//	mcptest.Each(t, newServer, func(t *testing.T, c *mcptest.Client) {
//		if sum := mcptest.Call[int](c, "add", AddIn{1, 2}); sum != 3 {
//			t.Errorf("got %d", sum)
//		}
//	})
//
// The options are those of New; Revision among them is overridden. Client.Supports
// tells the revisions apart where a test has to.
func Each(t *testing.T, server func() *mcp.Server, test func(t *testing.T, c *Client), options ...Option) {
	t.Helper()
	for _, rev := range protocol.Revisions() {
		t.Run(rev.String(), func(t *testing.T) {
			test(t, New(t, server(), append(options[:len(options):len(options)], Revision(rev))...))
		})
	}
}

// Call calls a tool and returns its structured result, or its text where the
// revision or the tool has none. A tool that fails, and a result that is no Out,
// end the test.
func Call[Out any](c *Client, name string, arguments any) (out Out) {
	c.t.Helper()
	r := c.Call(name, arguments)
	if r.IsError {
		c.t.Fatalf("mcptest: %s failed: %s", name, r.Text())
	}
	if text, ok := any(&out).(*string); ok && r.Value == nil {
		*text = r.Text()
		return out
	}
	r.Structured(&out)
	return out
}
