// Command example is a small workbench for a model: a calculator, notes, a
// calendar with a CSV import, a chart and a look at the machine it runs on.
// It shows what a server made with package mcp looks like, and is useful as it
// is.
//
//	go run ./cmd/example           serves HTTP on 127.0.0.1:8080
//	go run ./cmd/example -auth     does so for clients with an access token, and issues such tokens
//	go run ./cmd/example -stdio    serves one client over standard input and output
//	go run ./cmd/example -h        explains the flags
//
// It exits with 0 when it was told to stop, 2 when the command line is wrong
// and 1 when anything else fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
)

// timeLimit is how long a call may take; only an import needs that long.
const timeLimit = 10 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its surroundings as arguments; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseFlags(args)
	if errors.Is(err, flag.ErrHelp) {
		printHelp(stdout)
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "example: %v; -h lists the flags\n", err)
		return 2
	}
	if err := serve(ctx, opts, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "example: %v\n", err)
		return 1
	}
	return 0
}

// serve opens the workbench and serves it until ctx ends.
func serve(ctx context.Context, opts options, stdout, stderr io.Writer) error {
	bench, err := openWorkbench(opts)
	if err != nil {
		return err
	}
	defer bench.Close()
	server := bench.server(logger(opts, stderr))
	if !opts.stdio {
		return serveHTTP(ctx, server, opts, stdout, stderr)
	}
	// Standard output belongs to the protocol from here on.
	return serveStdio(ctx, server)
}

// serveStdio serves one client until it leaves or ctx ends, and then lets
// running calls and tasks finish.
func serveStdio(ctx context.Context, server *mcp.Server) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		stopped <- server.Shutdown(end)
	})
	err := server.ServeStdio(context.WithoutCancel(ctx))
	if stop() {
		return err // the client has left
	}
	if <-stopped != nil {
		return errCutOff
	}
	return nil
}

// errCutOff is the error of a server that was stopped.
var errCutOff = errors.New("some calls did not finish in time and were cut off")

// logger writes for people: warnings and worse, or every request.
func logger(opts options, stderr io.Writer) *zerolog.Logger {
	level := zerolog.WarnLevel
	if opts.verbose {
		level = zerolog.DebugLevel
	}
	l := zerolog.New(zerolog.ConsoleWriter{Out: stderr, NoColor: true}).Level(level).With().Timestamp().Logger()
	return &l
}

// server returns an MCP server with every tool of the workbench.
func (w *workbench) server(logger *zerolog.Logger) *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "workbench", Title: "Workbench", Version: "1.0.0"}, &mcp.Options{
		Instructions: "Calculate, keep notes, plan events, import events from CSV files and draw bar charts. " +
			"Dates are YYYY-MM-DD, times of day HH:MM on a 24-hour clock, without a time zone.",
		Logger:   logger,
		Timeouts: mcp.Timeouts{Call: timeLimit},
	})
	w.updated = s.ResourceUpdated
	s.MustAdd(calculatorTool())
	s.MustAdd(w.noteTools()...)
	s.MustAdd(w.noteResources()...)
	s.MustAdd(w.eventTools()...)
	s.MustAdd(w.importTool(), w.systemTool(), chartTool())
	return s
}
