// Command server offers something of everything to the clients of e2e/clients.
//
//	go run ./e2e/server -http 127.0.0.1:0
//	go run ./e2e/server -stdio
//
// Over HTTP it prints the address of its endpoint, which is the one of HTTP+SSE
// too, as one line. WebSocket connections are served next to it, under /ws.
package main

import (
	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/interop"
	"github.com/talaria-go/mcp/internal/test/testcmd"
)

func main() {
	testcmd.Server(func(opts mcp.Options) *mcp.Server { return interop.NewServers(opts)[0] })
}
