// Command server is the everything-server that the official conformance suite
// expects: the tools, names and texts here are those of the suite's scenarios.
//
//	go run ./conformance/server -http 127.0.0.1:8080
//	go run ./conformance/server -stdio
//
// Over HTTP it prints the address of its endpoint as one line.
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

// newServer returns the server with everything that the suite asks for.
func newServer() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "talaria-conformance", Version: "1.0.0"}, &mcp.Options{HTTP: streamable.Options{Polling: true, Retry: 5 * step}})
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

func serveHTTP(ctx context.Context, s *mcp.Server, addr string) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
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
