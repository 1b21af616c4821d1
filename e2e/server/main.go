// Command server offers something of everything to the clients of e2e/clients.
//
//	go run ./e2e/server -http 127.0.0.1:0
//	go run ./e2e/server -stdio
//
// Over HTTP it prints the address of its endpoint, which is the one of HTTP+SSE
// too, as one line. WebSocket connections are served beside it, under /ws.
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
	"syscall"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/transport/streamable"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("server", flag.ContinueOnError)
	addr := flags.String("http", "", "serve HTTP on this `address`; port 0 takes a free one")
	stdio := flags.Bool("stdio", false, "serve standard input and output")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if (*addr != "") == *stdio || flags.NArg() > 0 {
		return errors.New("give either -http ADDRESS or -stdio")
	}
	s := newServer()
	if *stdio {
		return s.ServeStdio(ctx)
	}
	return serveHTTP(ctx, s, *addr)
}

// newServer returns the server. Its pages are short, so that every list has
// several.
func newServer() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "talaria-e2e", Title: "Something of everything", Version: "1.0.0"}, &mcp.Options{
		Instructions: "Try everything.",
		PageSize:     3,
		HTTP:         streamable.Options{SSE: true, Polling: true, Retry: 50 * time.Millisecond},
	})
	s.MustAdd(answering()...)
	s.MustAdd(asking()...)
	s.MustAdd(running()...)
	s.MustAdd(changing(s)...)
	s.MustAdd(resources()...)
	s.MustAdd(prompts()...)
	return s
}

func serveHTTP(ctx context.Context, s *mcp.Server, addr string) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
	mux.Handle("/ws", s.WebSocketHandler())
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	fmt.Printf("http://%s/mcp\n", listener.Addr())

	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = errors.Join(s.Shutdown(end), web.Shutdown(end))
	<-served
	return err
}
