package servers

import (
	"context"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/gateway"
	"github.com/talaria-go/mcp/protocol"
)

// throughGateway returns the transport to a server behind a gateway, which speaks these
// revisions with it, or any if there are none. With E2E_GATEWAY all tests of this package
// are tests of the gateway; what differs then, they say by session.behind.
func throughGateway(t *testing.T, behind client.Transport, revisions []protocol.Revision) client.Transport {
	t.Helper()
	s := mcp.NewServer(mcp.Info{Name: "gateway", Version: "1"}, nil)
	g := gateway.New(s, &gateway.Options{Client: client.Options{Timeout: timeLimit, Revisions: revisions}})
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), timeLimit)
		defer stop()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	// The client is one person, whatever the revision.
	if err := g.Set("", gateway.Upstream{Transport: behind, For: func(*mcp.Frame) (string, client.Transport, error) {
		return "ada", behind, nil
	}}); err != nil {
		t.Fatal(err)
	}
	if err := g.Warm(within(t)); err != nil {
		t.Fatal(err)
	}
	return client.Local(s.ServeConn)
}
