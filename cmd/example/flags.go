package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

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

func newFlags(opts *options) *flag.FlagSet {
	flags := flag.NewFlagSet("example", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run says what is wrong, in one line
	flags.StringVar(&opts.http, "http", "127.0.0.1:8080", "serve HTTP on this `address`; port 0 takes a free one")
	flags.BoolVar(&opts.stdio, "stdio", false, "serve standard input and output instead, for a client that starts this program")
	flags.BoolVar(&opts.auth, "auth", false, "ask clients for access tokens, which an authorization server for development issues on the same address; loopback only")
	flags.StringVar(&opts.notes, "notes", "", "keep notes in this `file` (default: notes.json in talaria-workbench in your configuration directory)")
	flags.StringVar(&opts.events, "events", "", "keep events in this `file` (default: events.json in the same place)")
	flags.StringVar(&opts.files, "files", ".", "let imports read from this `directory` and below, and nowhere else")
	flags.BoolVar(&opts.verbose, "v", false, "log every request to standard error: method, duration and error code, no content")
	return flags
}

// parseFlags reads the command line. The error fits into one line; it is
// flag.ErrHelp for -h.
func parseFlags(args []string) (options, error) {
	var opts options
	flags := newFlags(&opts)
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if flags.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if opts.stdio && given["http"] {
		return opts, errors.New("-stdio and -http exclude each other")
	}
	if opts.stdio && opts.auth {
		return opts, errors.New("-stdio and -auth exclude each other: whoever starts this program is trusted")
	}
	for _, name := range []string{"notes", "events", "files"} {
		if given[name] && flags.Lookup(name).Value.String() == "" {
			return opts, fmt.Errorf("-%s needs a path", name)
		}
	}
	if err := checkAddress(opts.http); err != nil {
		return opts, err
	}
	return opts, nil
}

// checkAddress finds what can be wrong with an address before it is used.
func checkAddress(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		if n, convErr := strconv.Atoi(port); convErr == nil && n >= 0 && n <= 65535 {
			return nil
		}
		if _, err = net.LookupPort("tcp", port); err == nil && port != "" {
			return nil
		}
	}
	return fmt.Errorf("-http %q is no address; write host:port, such as 127.0.0.1:8080", addr)
}

const helpHead = `Usage: example [flags]

A workbench for a model, served over the Model Context Protocol: a calculator,
notes, a calendar with CSV import, bar charts and information on this machine.

Without flags it serves HTTP on 127.0.0.1:8080 and prints a request to try.
Ctrl-C stops it.

Flags:
`

// printHelp explains the command.
func printHelp(w io.Writer) {
	var b strings.Builder
	b.WriteString(helpHead)
	flags := newFlags(&options{})
	flags.SetOutput(&b)
	flags.PrintDefaults()
	fmt.Fprint(w, b.String())
}
