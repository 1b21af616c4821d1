// Command example is a shop that any number of processes serve together, behind a
// balancer that sends each request to any of them: copy it. The environment is the
// same for all of them:
//
//	REDIS_URL   rediss://shop:PASSWORD@redis.internal:6379
//	STATE_KEYS  secrets of 16 random bytes or more, the newest first, with commas
//	            between them
//
// With -acl it prints what the user of the engine has to be allowed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/scale/redis"
)

// prefix tells this server from others in the engine.
const prefix = "shop"

// basket is kept for each session, whichever process a request reaches.
var basket = mcp.NewStoredKey[[]string]("example.com/basket")

type item struct {
	Name string `json:"name" validate:"required"`
}

func put(f *mcp.Frame, in item) (string, error) {
	items := basket.Update(f, func(items []string) []string { return append(items, in.Name) })
	return strings.Join(items, ", "), nil
}

func newServer(opts mcp.Options) *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: prefix, Version: "1.0.0"}, &opts)
	s.MustAdd(mcp.Tool("put", put, mcp.Doc("Puts an item into the basket")))
	return s
}

func main() {
	acl := flag.Bool("acl", false, "print the rules of the engine's user")
	addr := flag.String("http", ":8080", "serve HTTP on this `address`")
	grace := flag.Duration("grace", 27*time.Second, "the `duration` that the end may take: nine tenths of the time until SIGKILL")
	early := flag.Bool("early", false, "close the port before calls are drained: for balancers that look at no /readyz")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "example: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if *acl {
		fmt.Println(redis.ACL(prefix))
		return
	}
	if err := serve(*addr, *grace, *early); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

func serve(addr string, grace time.Duration, early bool) error {
	ctx, stop := untilSignal()
	defer stop()
	var keys [][]byte
	for key := range strings.SplitSeq(os.Getenv("STATE_KEYS"), ",") {
		if len(key) < 16 {
			return errors.New("STATE_KEYS: each secret needs 16 random bytes or more; openssl rand -hex 32 makes one")
		}
		keys = append(keys, []byte(key))
	}
	if os.Getenv("REDIS_URL") == "" {
		return errors.New("REDIS_URL is not set: it is as redis://user:password@host:port")
	}
	log := zerolog.New(os.Stderr).Level(zerolog.InfoLevel).With().Timestamp().Logger()
	store, err := redis.Open(ctx, redis.Options{URL: os.Getenv("REDIS_URL"), Prefix: prefix, Logger: &log})
	if err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	defer store.Close()
	s := newServer(mcp.Options{Store: store, StateKeys: keys, Logger: &log})

	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.Stats().Draining {
			http.Error(w, "draining", http.StatusServiceUnavailable)
		}
	})
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	log.Info().Str("url", fmt.Sprintf("http://%v/mcp", listener.Addr())).Msg("serving")
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	select {
	case err := <-served:
		return errors.Join(err, s.Shutdown(context.Background()))
	case <-ctx.Done():
		log.Info().Stringer("within", grace).Msg("clients are sent to the other replicas; a second signal ends at once")
	}
	if early {
		_ = listener.Close() // what is connected stays so
	}
	within := func(share int, end func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(context.Background(), grace*time.Duration(share)/10)
		defer cancel()
		return end(ctx)
	}
	drained := within(5, s.Drain)
	_ = listener.Close() // new clients go to another replica
	<-served
	return errors.Join(drained, within(4, s.Shutdown), within(1, web.Shutdown))
}

// untilSignal returns a context that ends with the first signal; the second one ends the
// program at once. stop gives the signals back.
func untilSignal() (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var watching sync.WaitGroup
	watching.Go(func() {
		<-signals
		cancel()
		if _, second := <-signals; second {
			os.Exit(1)
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		watching.Wait()
	}
}
