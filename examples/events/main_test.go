package main

import (
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
)

// A comment reaches those who watch its document, and no others.
func TestComments(t *testing.T) {
	var s *mcp.Server
	mcptest.Each(t, func() *mcp.Server { s = newServer(); return s }, func(t *testing.T, c *mcptest.Client) {
		mine, other := c.Watch("comment.created", Watch{"doc_1"}), c.Watch("comment.created", Watch{"doc_2"})
		c.Call("add_comment", Comment{"doc_1", "Hello"})
		if o := mine.Next(); o.ID != "comment-1" || string(o.Data) != `{"document":"doc_1","text":"Hello"}` {
			t.Errorf("received %+v: %s", o, o.Data)
		}
		mine.None()
		other.None()
	})
}
