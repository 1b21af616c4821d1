package main

import (
	"context"
	"net/http"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// connect opens a session in the revision of the play, and in no other.
func connect(ctx context.Context, p play, hc *http.Client) (*client.Client, error) {
	return client.Connect(ctx, client.HTTP(p.url, &client.HTTPOptions{Client: hc}), &client.Options{
		Info:      protocol.Implementation{Name: "talaria-conformance", Version: "1.0.0"},
		Revisions: []protocol.Revision{p.revision},
	})
}

// useTools lists the tools of the server and calls each.
func useTools(ctx context.Context, p play, hc *http.Client) error {
	c, err := connect(ctx, p, hc)
	if err != nil {
		return err
	}
	defer c.Close()
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			return err
		}
		if _, err := c.Call(ctx, tool.Name, nil); err != nil {
			return err
		}
	}
	return c.Close()
}
