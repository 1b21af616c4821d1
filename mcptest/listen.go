package mcptest

import "github.com/talaria-go/mcp/protocol"

// Listen watches what filter names, in the way of the revision, and returns
// when the server has agreed; WaitFor then waits for what it tells:
//
//	c.Listen(protocol.SubscriptionFilter{ResourceSubscriptions: []string{"config://app"}})
//	c.WaitFor(protocol.MethodResourceUpdated)
//
// Legacy revisions subscribe to the resources; of lists they are told anyway.
// The server agrees to what it declares and leaves the rest out. It lasts until
// the client is closed.
func (c *Client) Listen(filter protocol.SubscriptionFilter) {
	c.t.Helper()
	ctx, cancel := c.within("no " + protocol.MethodAcknowledged)
	defer cancel()
	if _, err := c.client.Listen(ctx, filter, nil); err != nil {
		c.t.Fatalf("mcptest: the server does not let the client listen: %v", plain(ctx, err))
	}
}
