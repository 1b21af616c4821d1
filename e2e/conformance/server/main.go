// Command server is the everything-server that the official conformance suite
// expects, see package everything.
//
//	go run ./conformance/server -http 127.0.0.1:8080
//	go run ./conformance/server -stdio
//
// Over HTTP it prints the address of its endpoint as one line.
package main

import (
	"github.com/talaria-go/mcp/internal/test/everything"
	"github.com/talaria-go/mcp/internal/test/testcmd"
)

func main() { testcmd.Server(everything.NewServer) }
