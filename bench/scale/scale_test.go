package main

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// TestMain makes the test's own binary the server that startReplica runs.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-serve") {
		main()
		return
	}
	os.Exit(m.Run())
}

// few are options that take no time.
var few = options{
	calls: 1000, rounds: 1, sessions: 300, streams: 20, replicas: 2, subscribers: 20, changes: 40, asked: 40, drained: 100, idle: time.Second, minute: time.Second,
	entries: 1000, load: time.Second,
}

// What does not depend on the machine holds for few calls as well.
func TestCommands(t *testing.T) {
	testdep.LookPath(t, "redis-server")
	e, _, stop, err := startAll(0)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for i, want := range []float64{0, 1, 2} {
		c, err := compare(few, kinds[i], e)
		if err != nil {
			t.Fatal(err)
		}
		if n := c.with(asked); n < want || n > want+0.1 { // and what a replica does by itself
			t.Errorf("%s: %.3f commands, want %v", kinds[i].name, n, want)
		}
	}
}

// The streams of sessions, and their messages, cost no more commands than they may.
func TestMessageCommands(t *testing.T) {
	testdep.LookPath(t, "redis-server")
	_, f, stop, err := startAll(2)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	costs, err := messageCosts(f, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range steps {
		t.Logf("%s: %.2f commands", step.name, costs[i])
		if costs[i] < 1 || costs[i] > step.most+spare {
			t.Errorf("%s: %.2f commands, want %v at most", step.name, costs[i], step.most)
		}
	}
}

// Every case comes to its end, with all subscribers and streams told, and nothing
// refused: measuring is theirs.
func TestCases(t *testing.T) {
	testdep.LookPath(t, "redis-server")
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := c.measure(few, &report{}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMeasureRefuses(t *testing.T) {
	for _, test := range []struct {
		o    options
		name string
	}{{few, "nothing"}, {options{sessions: 1, streams: 2}, "calls"}} {
		if err := measure(test.o, []string{test.name}, false); err == nil {
			t.Errorf("%s of %v: no error", test.name, fmt.Sprint(test.o))
		}
	}
}
