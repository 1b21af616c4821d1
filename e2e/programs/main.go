// Command programs has the programs that e2e/run and e2e/conformance/run start. The first
// argument names one:
//
//		go run ./e2e/programs server -http 127.0.0.1:0
//
//	  - server offers something of everything to the clients of e2e/clients.
//	  - everything is the server that the official conformance suite expects, see package
//	    everything.
//	  - gateway offers a server through a gateway.
//	  - roundrobin distributes requests among replicas of a server.
//	  - bridge serves a stdio server over HTTP.
//	  - client is the client that the official conformance suite expects.
//	  - tally counts what the suite found.
//
// Servers have the flags -http ADDRESS and -stdio, and WebSocket connections are served
// next to HTTP, under /ws. Each server prints the address of its endpoint as one line.
package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/everything"
	"github.com/talaria-go/mcp/internal/test/interop"
	"github.com/talaria-go/mcp/internal/test/testcmd"
)

func main() { testcmd.Main("programs", run) }

func run(ctx context.Context, args []string) error {
	programs := map[string]func(context.Context, []string) error{
		"server":     testcmd.Server(func(o mcp.Options) *mcp.Server { return interop.NewServers(o)[0] }),
		"everything": testcmd.Server(everything.NewServer),
		"gateway":    testcmd.Server(newGateway),
		"roundrobin": runRoundrobin,
		"bridge":     runBridge,
		"client":     runClient,
		"tally":      runTally,
	}
	if len(args) == 0 || programs[args[0]] == nil {
		return fmt.Errorf("the first argument is one of %s", strings.Join(slices.Sorted(maps.Keys(programs)), ", "))
	}
	return programs[args[0]](ctx, args[1:])
}
