package main

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/needs"
)

// TestMain makes the test's own binary the server that startReplica runs.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-serve") {
		if err := runServer(os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// What does not depend on the machine holds for few calls as well.
func TestCommands(t *testing.T) {
	needs.Program(t, "redis-server")
	e, err := startEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer e.stop()
	r, err := startReplica(e.url())
	if err != nil {
		t.Fatal(err)
	}
	defer r.stop()
	o := options{calls: 3000, rounds: 1, sessions: 300, streams: 20, idle: time.Second}
	for i, want := range []float64{0, 1, 2} {
		with, _, err := compare(o, kinds[i], r, r, e)
		if err != nil {
			t.Fatal(err)
		}
		if with.commands < want || with.commands > want+0.1 { // and what a replica does by itself
			t.Errorf("%s: %.3f commands, want %v", kinds[i].name, with.commands, want)
		}
	}
	if _, err := idleStreams(o, r); err != nil {
		t.Error(err)
	}
	if bytes, err := memory(o, r, e); err != nil || bytes < 100 || bytes > 4000 {
		t.Errorf("a session takes %.0f bytes, %v", bytes, err)
	}
}
