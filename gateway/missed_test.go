package gateway

import (
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

// What changes while an upstream is away reaches clients when it is back: the lists, and the
// resources that they subscribed to.
func TestMissed(t *testing.T) {
	for era, rev := range eras {
		for front, frontRev := range eras {
			for _, away := range []time.Duration{0, 2 * time.Hour} { // the client of the upstream gives up
				t.Run(front+" of "+era+" away for "+away.String(), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b := backendtest.New(t, "up", &mcp.Options{Revisions: []protocol.Revision{rev}})
						_, s := start(t, map[string]Upstream{"up": {Transport: b.Transport()}})
						got := make(chan string, 100)
						c := connect(t, s, frontRev, &client.Options{OnNotification: func(n client.Notification) { got <- n.Method }})
						time.Sleep(time.Second)
						if _, err := c.Listen(t.Context(), client.Filter{ToolsListChanged: true, ResourceSubscriptions: []string{"notes://1"}}, nil); err != nil {
							t.Fatal(err)
						}
						heard := func() (all []string) {
							time.Sleep(2 * time.Minute)
							synctest.Wait()
							for len(got) > 0 {
								all = append(all, <-got)
							}
							return all
						}
						heard()
						b.Server.ResourceUpdated("notes://1")
						if all := heard(); !slices.Equal(all, []string{protocol.MethodResourceUpdated}) {
							t.Errorf("before: %v", all)
						}
						b.Cut(errors.New("away"))
						time.Sleep(away)
						b.Server.MustAdd(mcp.Tool("late", func(*mcp.Frame, struct{}) (string, error) { return "", nil }))
						b.Server.ResourceUpdated("notes://1")
						b.Accept()
						if all := heard(); !slices.Contains(all, protocol.MethodResourceUpdated) || !slices.Contains(all, protocol.MethodToolsChanged) {
							t.Errorf("after: %v", all)
						}
					})
				})
			}
		}
	}
}
