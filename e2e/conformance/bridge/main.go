// Command bridge puts a loopback HTTP front before an MCP server that speaks
// stdio, so that a client that knows only HTTP can test it.
//
//	go run ./conformance/bridge -http 127.0.0.1:0 -- ./server -stdio
//
// It prints the address of its endpoint as one line. Bodies are handed on as
// they are. A stdio connection is one session, so each legacy session gets a
// process of its own, from initialize to DELETE; all modern requests share one
// process. Rules of HTTP, such as those for headers, are not checked.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/talaria-go/mcp/internal/test/testcmd"
)

func main() { testcmd.Main("bridge", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bridge", flag.ContinueOnError)
	addr := flags.String("http", "127.0.0.1:0", "loopback `address` to listen on; port 0 takes a free one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("no command: write it after the flags, as in bridge -http 127.0.0.1:0 -- ./server -stdio")
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	front := newFront(flags.Args())
	server := &http.Server{Handler: front, ReadHeaderTimeout: 10 * time.Second}
	fmt.Printf("http://%s/mcp\n", listener.Addr())

	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		server.Close()
		<-served
	}
	front.close()
	return err
}
