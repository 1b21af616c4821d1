package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// runTally counts the checks in the directory that is the last argument. It has
// DIR/<transport>/<revision>/server-<scenario>-<time>/checks.json, as e2e/conformance/run
// lets the suite write them; -prefix "" leaves "server-" out, as the suite does for
// clients. Every planned run must have its file, and must not have
// DIR/<transport>/<revision>/<scenario>.failed, which says that the suite ended with an
// error. The last line is "N passed, N failed"; it is an error if anything failed.
// Warnings are shown and not counted, as in the suite.
func runTally(_ context.Context, args []string) error {
	ok, err := count(args, os.Stdout)
	if err == nil && !ok {
		return errors.New("checks failed")
	}
	return err
}

// count counts the checks for runTally, and reports whether none failed.
func count(args []string, out io.Writer) (bool, error) {
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

// check is one check as the suite writes it.
type check struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Status      string `json:"status"`
	Message     string `json:"errorMessage"`
}

// group counts one revision over one transport.
type group struct {
	transport, revision               string
	scenarios, passed, failed, warned int
}

type tally struct {
	dir        string
	prefix     string // of the names of results
	out        io.Writer
	exceptions map[planned][]string
	groups     []*group
	findings   []string
	excepted   int // failed checks that exceptions names
}

// group returns the group that r counts in.
func (t *tally) group(r planned) *group {
	for _, g := range t.groups {
		if g.transport == r.transport && g.revision == r.revision {
			return g
		}
	}
	g := &group{transport: r.transport, revision: r.revision}
	t.groups = append(t.groups, g)
	return g
}

// count reads the checks of one run. A run without a file is a failure.
func (t *tally) count(r planned) error {
	g := t.group(r)
	g.scenarios++
	dir := filepath.Join(t.dir, r.transport, r.revision)
	if _, err := os.Stat(filepath.Join(dir, r.scenario+".failed")); err == nil {
		t.fail(g, r, "", "the suite ended with an error: checks failed or warned, or the client did not end as it should; see its log")
	}
	files, err := filepath.Glob(filepath.Join(dir, t.prefix+r.scenario+"-2*", "checks.json"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		t.fail(g, r, "", "the suite wrote no result; see its log")
		return nil
	}
	text, err := os.ReadFile(files[len(files)-1]) // names end in the time, so the last is the newest
	if err != nil {
		return err
	}
	var checks []check
	if err := json.Unmarshal(text, &checks); err != nil {
		return fmt.Errorf("%s: %w", files[0], err)
	}
	t.countChecks(g, r, checks)
	return nil
}

func (t *tally) countChecks(g *group, r planned, checks []check) {
	exceptions := t.exceptions[r]
	failing := map[string]bool{}
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			g.passed++
		case "WARNING":
			g.warned++
			t.find("warning", r, c.ID, c.text())
		case "FAILURE":
			if slices.Contains(exceptions, c.ID) {
				failing[c.ID] = true
				t.excepted++
				continue
			}
			t.fail(g, r, c.ID, c.text())
		}
	}
	for _, id := range exceptions {
		if !failing[id] {
			t.fail(g, r, id, "is listed as an exception, but no longer fails: take it off the list")
		}
	}
}

func (c check) text() string {
	if c.Message == "" {
		return c.Description
	}
	return c.Name + ": " + c.Message
}

func (t *tally) fail(g *group, r planned, id, text string) {
	g.failed++
	t.find("FAILED", r, id, text)
}

func (t *tally) find(kind string, r planned, id, text string) {
	place := strings.Join([]string{r.transport, r.revision, r.scenario, id}, " ")
	t.findings = append(t.findings, fmt.Sprintf("%s %s\n    %s", kind, strings.TrimSpace(place), text))
}

// report prints everything and tells whether nothing failed.
func (t *tally) report() bool {
	for _, text := range t.findings {
		fmt.Fprintln(t.out, text)
	}
	var passed, failed int
	for _, g := range t.groups {
		fmt.Fprintf(t.out, "%-5s %s: %d scenarios, %d passed, %d failed, %d warnings\n",
			g.transport, g.revision, g.scenarios, g.passed, g.failed, g.warned)
		passed += g.passed
		failed += g.failed
	}
	if t.excepted > 0 {
		fmt.Fprintf(t.out, "%d failing checks are exceptions and not counted\n", t.excepted)
	}
	fmt.Fprintf(t.out, "%d passed, %d failed\n", passed, failed)
	return failed == 0 && passed > 0
}
