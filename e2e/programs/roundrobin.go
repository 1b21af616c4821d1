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

// runRoundrobin distributes requests among the replicas of a server, whose addresses are
// the arguments. Like a balancer without sessions, it sends each request to the next
// replica.
func runRoundrobin(ctx context.Context, args []string) error {
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
