// Package testcmd is what the commands have in common that tests of others
// start: they print the address of their endpoint as one line, and end with a
// signal.
package testcmd

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/transport/websocket"
)

// shutdownTimeout is how long what is in progress may take once a signal has
// come.
const shutdownTimeout = 5 * time.Second

// Main is the main function of a command of that name: it runs run until that
// returns, with a context that ends with a signal.
func Main(name string, run func(ctx context.Context, args []string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Server returns what Main runs for a server, with the flags -http and -stdio. Over
// HTTP its endpoint is /mcp, and WebSocket connections are served under /ws.
// newServer completes the options.
func Server(newServer func(opts mcp.Options) *mcp.Server) func(ctx context.Context, args []string) error {
	return func(ctx context.Context, args []string) error {
		flags := flag.NewFlagSet("server", flag.ContinueOnError)
		addr := flags.String("http", "", "serve HTTP on this `address`; port 0 takes a free one")
		stdio := flags.Bool("stdio", false, "serve standard input and output")
		if err := flags.Parse(args); err != nil {
			return err
		}
		if (*addr != "") == *stdio || flags.NArg() > 0 {
			return errors.New("give either -http ADDRESS or -stdio")
		}
		s := newServer(mcp.Options{})
		if *stdio {
			return s.ServeStdio(ctx)
		}
		return Serve(ctx, *addr, Endpoints(s), s.Shutdown)
	}
}

// Endpoints serves a server under /mcp, WebSocket connections under /ws, and 200 OK
// under /healthz.
func Endpoints(s *mcp.Server) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
	mux.Handle("/ws", websocket.Handler(s))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	return mux
}

// RoundRobin serves each request by the next of the handlers.
func RoundRobin(handlers ...http.Handler) http.Handler {
	var next atomic.Uint64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers[next.Add(1)%uint64(len(handlers))].ServeHTTP(w, r)
	})
}

// Proxy hands requests on to the server at an address, as they are: Host stays, and
// answers are passed on while they come. It is what is between clients and replicas
// in tests, with RoundRobin.
func Proxy(to *url.URL) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
			r.Out.Host = r.In.Host
		},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The body as a whole: net/http closes that of r with the first word of the
		// answer, and if the transport has not seen its end by then, it closes the
		// connection that the answer comes on.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})
}

// Serve serves h on an address, which it prints, until ctx ends; then end ends
// what h has in progress.
func Serve(ctx context.Context, addr string, h http.Handler, end func(context.Context) error) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	web := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	fmt.Printf("http://%s/mcp\n", listener.Addr())

	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	err = errors.Join(end(last), web.Shutdown(last))
	<-served
	return err
}
