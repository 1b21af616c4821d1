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
func newServer() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "talaria-e2e", Title: "Something of everything", Version: "1.0.0"}, &mcp.Options{
		Instructions: "Try everything.",
		PageSize:     3,
		HTTP:         mcp.HTTPOptions{SSE: true, Polling: true},
	})
	s.MustAdd(answering()...)
	s.MustAdd(asking()...)
	s.MustAdd(running()...)
	s.MustAdd(changing(s)...)
	s.MustAdd(resources()...)
	s.MustAdd(prompts()...)
	return s
}
