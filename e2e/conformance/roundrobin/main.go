// Command roundrobin is before replicas of a server, as a balancer that knows nothing of sessions:
// each request goes to the next one.
//
//	go run ./conformance/roundrobin -http 127.0.0.1:0 http://127.0.0.1:8081/mcp http://127.0.0.1:8082/mcp
//
// It prints the address of its endpoint as one line.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"

	"github.com/talaria-go/mcp/internal/test/testcmd"
)

func main() { testcmd.Main("roundrobin", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("roundrobin", flag.ContinueOnError)
	addr := flags.String("http", "127.0.0.1:0", "`address` to listen on; port 0 takes a free one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var replicas []http.Handler
	for _, text := range flags.Args() {
		to, err := url.Parse(text)
		if err != nil || to.Scheme == "" || to.Host == "" {
			return fmt.Errorf("%q is not an address of a replica: write it as http://127.0.0.1:8081/mcp", text)
		}
		replicas = append(replicas, testcmd.Proxy(to))
	}
	if len(replicas) == 0 {
		return errors.New("no replicas: write their addresses after the flags")
	}
	return testcmd.Serve(ctx, *addr, testcmd.RoundRobin(replicas...), func(context.Context) error { return nil })
}
