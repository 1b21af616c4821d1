package mcptest

import (
	"errors"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// errClosed ends what listens when the client is closed.
var errClosed = errors.New("the client was closed")

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
	if !c.conf.revision.Modern() {
		for _, uri := range filter.ResourceSubscriptions {
			c.Request(protocol.MethodSubscribe, map[string]string{"uri": uri})
		}
		return
	}
	over := make(chan error, 1)
	c.listeners.Go(func() {
		_, err := c.DoContext(c.listening, protocol.MethodListen, map[string]any{"notifications": filter})
		over <- err
	})
	timer := time.NewTimer(c.conf.timeout)
	defer timer.Stop()
	for {
		_, ok, another := c.take(protocol.MethodAcknowledged)
		if ok {
			return
		}
		select {
		case <-another:
		case err := <-over:
			c.t.Fatalf("mcptest: the server does not let the client listen: %v", err)
		case <-timer.C:
			c.t.Fatalf("mcptest: no %s within %v", protocol.MethodAcknowledged, c.conf.timeout)
		}
	}
}
