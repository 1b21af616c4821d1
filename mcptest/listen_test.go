package mcptest_test

import (
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

func TestListen(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		for name, options := range map[string][]mcptest.Option{"pipe": nil, "http": {mcptest.OverHTTP()}} {
			t.Run(rev.String()+" "+name, func(t *testing.T) {
				s := mcp.NewServer(mcp.Info{Name: "config", Version: "1"}, nil)
				s.MustAdd(mcp.Resource("config://app", func(*mcp.Frame) (string, error) { return "on", nil }))
				c := mcptest.New(t, s, append(options, mcptest.Revision(rev))...)
				c.Listen(protocol.SubscriptionFilter{ResourceSubscriptions: []string{"config://app"}, ResourcesListChanged: true})
				s.ResourceUpdated("config://app")
				if got := string(c.WaitFor(protocol.MethodResourceUpdated)); !strings.Contains(got, `"config://app"`) {
					t.Errorf("told of %s", got)
				}
				s.Remove(mcp.KindResource, "config://app")
				c.WaitFor("notifications/resources/list_changed")
			})
		}
	}
}

// A subscription that was refused ends the test instead of waiting.
func TestListenRefused(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "config", Version: "1"}, nil)
	s.Use(func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			if f.Request().Method == protocol.MethodListen {
				return nil, &mcp.Error{Code: protocol.CodeBusy, Message: "not now"}
			}
			return next(f)
		}
	})
	fake := &fakeT{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c := mcptest.New(fake, s)
		defer c.Close()
		c.Listen(protocol.SubscriptionFilter{ToolsListChanged: true})
	}()
	<-done
	if !strings.Contains(fake.failed, "not now") {
		t.Errorf("ended with %q", fake.failed)
	}
}
