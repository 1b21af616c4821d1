// Command server offers something of everything to the clients of e2e/clients.
//
//	go run ./e2e/server -http 127.0.0.1:0
//	go run ./e2e/server -stdio
//
// Over HTTP it prints the address of its endpoint, which is the one of HTTP+SSE
// too, as one line. WebSocket connections are served beside it, under /ws.
package main

import (
	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/undertest"
)

func main() { undertest.Server(newServer) }

// newServer returns the server. Its pages are short, so that every list has
// several.
func newServer(opts mcp.Options) *mcp.Server {
	opts.Instructions, opts.PageSize = "Try everything.", 3
	opts.HTTP = mcp.HTTPOptions{SSE: true, Polling: true}
	s := mcp.NewServer(mcp.Info{Name: "talaria-e2e", Title: "Something of everything", Version: "1.0.0"}, &opts)
	s.MustAdd(answering()...)
	s.MustAdd(asking()...)
	s.MustAdd(running()...)
	s.MustAdd(changing(s)...)
	s.MustAdd(resources()...)
	s.MustAdd(prompts()...)
	return s
}
