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
// Read it from here: main.go has the flags and the way to the end, workbench.go the server, http.go
// what is around it. Then come the tools: calculator.go, chart.go with a view (chart.html),
// notebook.go with resources, a prompt and a question to the user, calendar.go, importing.go with
// progress and tasks, system.go. Their storage is in file.go.
//
// It exits with 0 after a signal, 2 when the command line is wrong and 1 when anything else fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
)

func main() {
	ctx, stop := untilSignal()
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
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

// options are what the command line says.
type options struct {
	http    string // address to listen on
	stdio   bool
	auth    bool   // access tokens are needed
	notes   string // path of the notes file
	events  string // path of the events file
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
func parseFlags(args []string, stdout io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("example", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run says what is wrong, in one line
	flags.StringVar(&o.http, "http", "127.0.0.1:8080", "serve HTTP on this `address`; port 0 takes a free one")
	flags.BoolVar(&o.stdio, "stdio", false, "serve standard input and output instead, for a client that starts this program")
	flags.BoolVar(&o.auth, "auth", false, "ask clients for access tokens, which an authorization server for development issues on the same address; loopback only")
	flags.StringVar(&o.notes, "notes", defaultFile("notes.json"), "keep notes in this `file`")
	flags.StringVar(&o.events, "events", defaultFile("events.json"), "keep events in this `file`")
	flags.StringVar(&o.files, "files", ".", "let imports read from this `directory` and below, and nowhere else")
	flags.BoolVar(&o.verbose, "v", false, "log every request to standard error: method, duration and error code, no content")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stdout, helpHead)
			flags.SetOutput(stdout)
			flags.PrintDefaults()
		}
		return o, err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	_, wrong := net.ResolveTCPAddr("tcp", o.http)
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.stdio && (o.auth || given["http"]):
		err = errors.New("-stdio excludes -http and -auth: it serves the user who starts this program")
	case o.notes == "" || o.events == "" || o.files == "":
		err = errors.New("-notes, -events and -files need a path")
	case wrong != nil:
		err = fmt.Errorf("-http %q is not an address: %w; write host:port, such as 127.0.0.1:8080", o.http, wrong)
	}
	return o, err
}

// run is main with its surroundings as arguments; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseFlags(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "example: %v; -h lists the flags\n", err)
		return 2
	}
	if err := serve(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "example: %v\n", err)
		return 1
	}
	return 0
}

// grace is how long running calls may take to finish after Ctrl-C.
const grace = 5 * time.Second

// serve opens the workbench and serves it until ctx ends or, over standard
// input, the client leaves.
func serve(ctx context.Context, o options, stdout, stderr io.Writer) error {
	bench, err := openWorkbench(o)
	if err != nil {
		return err
	}
	defer bench.Close()
	level := zerolog.WarnLevel
	if o.verbose {
		level = zerolog.DebugLevel
	}
	logger := zerolog.New(zerolog.ConsoleWriter{Out: stderr, NoColor: true}).Level(level).With().Timestamp().Logger()
	s := bench.server(&logger)
	lasting := context.WithoutCancel(ctx) // the end of ctx is the beginning of the end

	web := &http.Server{ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	start := func() error { return s.ServeStdio(lasting) } // to which standard output belongs from here on
	if !o.stdio {
		listener, handler, hello, err := listen(s, o, stderr)
		if err != nil {
			return err
		}
		web.Handler = handler
		start = func() error { return web.Serve(listener) }
		fmt.Fprint(stdout, hello)
	}
	served := make(chan error, 1)
	go func() { served <- start() }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	if !o.stdio {
		fmt.Fprintln(stdout, "stopping")
	}
	end, cancel := context.WithTimeout(lasting, grace)
	defer cancel()
	err = s.Shutdown(end)
	// Cancelled calls now have their responses, which still have to be sent.
	last, cancelLast := context.WithTimeout(lasting, time.Second)
	defer cancelLast()
	err = errors.Join(err, web.Shutdown(last))
	<-served
	if err != nil {
		return errors.New("some calls did not finish in time and were cut off")
	}
	return nil
}
