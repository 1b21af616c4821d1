// Talaria offers the tools on this module.
package main

import (
	"context"
	"net/http"

	"github.com/talaria-go/mcp"

	"github.com/talaria-go/mcp/bench/internal/serve"
	"github.com/talaria-go/mcp/bench/tools"
)

func newServer() (*mcp.Server, error) {
	s := mcp.NewServer(mcp.Info{Name: "bench", Version: "1.0.0"}, nil)
	return s, s.Add(
		mcp.Tool("add", func(_ *mcp.Frame, in tools.AddIn) (tools.AddOut, error) { return tools.Add(in), nil }),
		mcp.Tool("search", func(_ *mcp.Frame, in tools.SearchIn) (tools.SearchOut, error) { return tools.Search(in), nil }),
	)
}

func handler() (http.Handler, error) {
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	return s.Handler(), nil
}

func serveStdio(ctx context.Context) error {
	s, err := newServer()
	if err != nil {
		return err
	}
	return s.ServeStdio(ctx)
}

func main() { serve.Main(serve.Server{HTTP: handler, Stdio: serveStdio}) }
