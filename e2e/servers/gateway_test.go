package servers

import (
	"context"
	"os"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/gateway"
)

// throughGateway returns the transport to a server behind a gateway, if E2E_GATEWAY is
// set: all tests of this package are tests of the gateway then.
func throughGateway(t *testing.T, behind client.Transport) client.Transport {
	t.Helper()
	if os.Getenv("E2E_GATEWAY") == "" {
		return behind
	}
	s := mcp.NewServer(mcp.Info{Name: "gateway", Version: "1"}, nil)
	g := gateway.New(s, &gateway.Options{Client: client.Options{Timeout: timeLimit}})
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
