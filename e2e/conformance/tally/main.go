// Command tally counts what the conformance suite found.
//
//	go run ./conformance/tally -plan e2e/conformance/scenarios.txt -except e2e/conformance/exceptions.txt DIR
//
// DIR holds DIR/<transport>/<revision>/server-<scenario>-<time>/checks.json, as
// e2e/conformance/run lets the suite write them; -prefix "" leaves "server-" out, as
// the suite does for clients. Every planned run must have its file, and must not
// have DIR/<transport>/<revision>/<scenario>.failed, which says that the suite
// has ended with an error. The last line is "N passed, N failed", and the exit status is 1 if
// anything failed. Warnings are shown and not counted, as in the suite.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	ok, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) (bool, error) {
	flags := flag.NewFlagSet("tally", flag.ContinueOnError)
	planFile := flags.String("plan", "", "`file` of planned runs: revision, scenario, transports")
	exceptFile := flags.String("except", "", "`file` of checks that may fail: transport, revision, scenario, check")
	prefix := flags.String("prefix", "server-", "what the names of results begin with")
	only := flags.String("only", "", "count only scenarios whose name contains this `text`")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if flags.NArg() != 1 || *planFile == "" {
		return false, errors.New("want -plan FILE and one directory of results")
	}
	runs, err := readPlan(*planFile, *only)
	if err != nil {
		return false, err
	}
	exceptions, err := readExceptions(*exceptFile)
	if err != nil {
		return false, err
	}
	t := &tally{dir: flags.Arg(0), prefix: *prefix, out: out, exceptions: exceptions}
	for _, r := range runs {
		if err := t.count(r); err != nil {
			return false, err
		}
	}
	return t.report(), nil
}
