// Command replica is one of several processes that are one server: the
// everything-server of the conformance suite, with its sessions and tasks on an
// engine. It is for tests; example is the one to copy.
//
//	go run ./scale/redis/cmd/replica -http 127.0.0.1:0 -redis redis://127.0.0.1:6379
//
// With -trial it is several replicas of the server that e2e/clients try, each of
// which has the engine for itself, with a balancer before them that sends each
// request to the next one.
//
// It prints the address of its endpoint as one line. WebSocket connections are
// served under /ws, and /healthz says that it serves.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/everything"
	"github.com/talaria-go/mcp/internal/test/interop"
	"github.com/talaria-go/mcp/internal/test/testcmd"
	"github.com/talaria-go/mcp/scale/redis"
)

// opening is how long the engine may take to answer at first.
const opening = 10 * time.Second

// everyonesKey seals if STATE_KEY is not set: the values of this server are not secret.
const everyonesKey = "a key that everyone may know"

func main() { testcmd.Main("replica", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("replica", flag.ContinueOnError)
	addr := flags.String("http", "", "serve HTTP on this `address`; port 0 takes a free one")
	given := flags.String("redis", "", "the `URL` of the engine, such as redis://127.0.0.1:6379; with a password, better as REDIS_URL in the environment")
	trials := flags.Int("trial", 0, "be so many `replicas` of the server that e2e/clients try")
	prefix := flags.String("prefix", "replica", "the `name` of this server in the engine, the same for all replicas")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	url := cmp.Or(*given, os.Getenv("REDIS_URL"))
	if *addr == "" || url == "" || flags.NArg() > 0 {
		return errors.New("give -http ADDRESS and -redis URL, such as replica -http 127.0.0.1:8080 -redis redis://127.0.0.1:6379")
	}
	log := zerolog.New(os.Stderr).With().Timestamp().Logger()
	limited, cancel := context.WithTimeout(ctx, opening)
	defer cancel()
	var all []mcp.Options
	for range max(*trials, 1) {
		store, err := redis.Open(limited, redis.Options{URL: url, Prefix: *prefix, Logger: &log})
		if err != nil {
			return fmt.Errorf("the engine of -redis: %w", err)
		}
		defer store.Close()
		all = append(all, mcp.Options{
			Store: store, Logger: &log,
			StateKeys: [][]byte{[]byte(cmp.Or(os.Getenv("STATE_KEY"), everyonesKey))},
		})
	}
	if *trials == 0 {
		s := everything.NewServer(all[0])
		return testcmd.Serve(ctx, *addr, testcmd.Endpoints(s), s.Shutdown)
	}
	servers := interop.NewServers(all...)
	var handlers []http.Handler
	for _, s := range servers {
		handlers = append(handlers, testcmd.Endpoints(s))
	}
	return testcmd.Serve(ctx, *addr, testcmd.RoundRobin(handlers...), func(ctx context.Context) (err error) {
		for _, s := range servers {
			err = errors.Join(err, s.Shutdown(ctx))
		}
		return err
	})
}
