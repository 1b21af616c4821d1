// Command server is the everything-server that the official conformance suite
// expects: the tools, names and texts here are those of the suite's scenarios.
//
//	go run ./conformance/server -http 127.0.0.1:8080
//	go run ./conformance/server -stdio
//
// Over HTTP it prints the address of its endpoint as one line.
package main

import (
	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/undertest"
)

func main() { undertest.Server(newServer) }

// newServer returns the server with everything that the suite asks for.
func newServer(opts mcp.Options) *mcp.Server {
	opts.HTTP.Polling = true
	s := mcp.NewServer(mcp.Info{Name: "talaria-conformance", Version: "1.0.0"}, &opts)
	s.MustAdd(contentTools()...)
	s.MustAdd(behaviourTools()...)
	s.MustAdd(askingTools()...)
	s.MustAdd(askingPrompts()...)
	s.MustAdd(taskTools()...)
	s.MustAdd(schemaTools()...)
	s.MustAdd(resources()...)
	s.MustAdd(prompts()...)
	s.MustAdd(changeTools(s)...)
	return s
}
