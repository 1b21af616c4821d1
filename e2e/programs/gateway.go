package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/gateway"
	"github.com/talaria-go/mcp/protocol"
)

// newGateway offers the server at the address UPSTREAM through a gateway.
// UPSTREAM_REVISION is the revision that the gateway speaks with that server.
func newGateway(o mcp.Options) *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "gateway", Version: "1.0.0"}, &o)
	var options gateway.Options
	if rev, ok := protocol.ParseRevision(os.Getenv("UPSTREAM_REVISION")); ok {
		options.Client.Revisions = []protocol.Revision{rev}
	}
	g := gateway.New(s, &options) // ends with the process
	if err := g.Set("", gateway.Upstream{Transport: client.HTTP(os.Getenv("UPSTREAM"), nil)}); err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := g.Warm(ctx); err != nil {
		log.Fatal(err)
	}
	return s
}
