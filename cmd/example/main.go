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
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// options are what the command line says.
type options struct {
	http    string // address to listen on
	stdio   bool
	auth    bool   // access tokens are needed
	notes   string // path of the notes file; "" is the default place
	events  string // path of the events file; "" is the default place
	files   string // directory that imports read from
	verbose bool
}

const helpHead = `Usage: example [flags]

A workbench for a model, served over the Model Context Protocol: a calculator,
notes, a calendar with CSV import, bar charts and information on this machine.

Without flags it serves HTTP on 127.0.0.1:8080 and prints a request to try.
Ctrl-C stops it.

Flags:
`

// parseFlags reads the command line. The error fits into one line; it is
// flag.ErrHelp for -h, which explains the command.
func parseFlags(args []string, stdout io.Writer) (opts options, err error) {
	flags := flag.NewFlagSet("example", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run says what is wrong, in one line
	flags.StringVar(&opts.http, "http", "127.0.0.1:8080", "serve HTTP on this `address`; port 0 takes a free one")
	flags.BoolVar(&opts.stdio, "stdio", false, "serve standard input and output instead, for a client that starts this program")
	flags.BoolVar(&opts.auth, "auth", false, "ask clients for access tokens, which an authorization server for development issues on the same address; loopback only")
	flags.StringVar(&opts.notes, "notes", "", "keep notes in this `file` (default: notes.json in talaria-workbench in your configuration directory)")
	flags.StringVar(&opts.events, "events", "", "keep events in this `file` (default: events.json in the same place)")
	flags.StringVar(&opts.files, "files", ".", "let imports read from this `directory` and below, and nowhere else")
	flags.BoolVar(&opts.verbose, "v", false, "log every request to standard error: method, duration and error code, no content")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stdout, helpHead)
			flags.SetOutput(stdout)
			flags.PrintDefaults()
		}
		return opts, err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) {
		given[f.Name] = true
		if f.Value.String() == "" && f.Name != "http" {
			err = fmt.Errorf("-%s needs a path", f.Name)
		}
	})
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case opts.stdio && given["http"]:
		err = errors.New("-stdio and -http exclude each other")
	case opts.stdio && opts.auth:
		err = errors.New("-stdio and -auth exclude each other: whoever starts this program is trusted")
	case err == nil:
		if _, wrong := net.ResolveTCPAddr("tcp", opts.http); wrong != nil {
			err = fmt.Errorf("-http %q is no address: %w; write host:port, such as 127.0.0.1:8080", opts.http, wrong)
		}
	}
	return opts, err
}

// run is main with its surroundings as arguments; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
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

// grace is how long running calls may take to finish after Ctrl-C.
const grace = 5 * time.Second

// errCutOff is the error of a server that was stopped.
var errCutOff = errors.New("some calls did not finish in time and were cut off")

// serve opens the workbench and serves it until ctx ends.
func serve(ctx context.Context, opts options, stdout, stderr io.Writer) error {
	bench, err := openWorkbench(opts)
	if err != nil {
		return err
	}
	defer bench.Close()
	level := zerolog.WarnLevel
	if opts.verbose {
		level = zerolog.DebugLevel
	}
	logger := zerolog.New(zerolog.ConsoleWriter{Out: stderr, NoColor: true}).Level(level).With().Timestamp().Logger()
	server := bench.server(&logger)
	if !opts.stdio {
		return serveHTTP(ctx, server, opts, stdout, stderr)
	}
	return serveStdio(ctx, server) // to which standard output belongs from here on
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
