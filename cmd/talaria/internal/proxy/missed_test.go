package proxy

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/backendtest"
	"github.com/talaria-go/mcp/protocol"
)

// Changes of lists and resources of the server behind reach clients in every pair of eras,
// also those that it made while it was away.
func TestChangesPass(t *testing.T) {
	for _, back := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
		for _, front := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
			t.Run(front.String()+" of "+back.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := backendtest.New(t, "behind", &mcp.Options{Revisions: []protocol.Revision{back}})
					p := start(t, Options{One: true, Connect: func(ctx context.Context, o *client.Options) (*client.Client, error) {
						return client.Connect(ctx, b.Transport(), o)
					}})
					got := make(chan string, 100)
					c := one(t, p, &client.Options{Revisions: []protocol.Revision{front}, OnNotification: func(n client.Notification) { got <- n.Method }})
					if _, err := c.Listen(t.Context(), client.Filter{ToolsListChanged: true, ResourceSubscriptions: []string{"notes://1"}}, nil); err != nil {
						t.Fatal(err)
					}
					change := func(tool string, when func(change func())) {
						t.Helper()
						when(func() {
							b.Server.MustAdd(mcp.Tool(tool, func(*mcp.Frame, struct{}) (string, error) { return "", nil }))
							b.Server.ResourceUpdated("notes://1")
						})
						time.Sleep(2 * time.Minute)
						var all []string
						for synctest.Wait(); len(got) > 0; {
							all = append(all, <-got)
						}
						if !slices.Contains(all, protocol.MethodResourceUpdated) || !slices.Contains(all, protocol.MethodToolsChanged) {
							t.Errorf("%s: %v", tool, all)
						}
					}
					change("there", func(change func()) { change() })
					change("away", func(change func()) {
						b.Cut(errors.New("away"))
						time.Sleep(time.Hour)
						change()
						b.Accept()
					})
				})
			})
		}
	}
}
