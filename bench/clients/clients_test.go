package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestMain makes the test's own binary the client that start runs.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "-job" {
		if err := runJob(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// Both clients make their calls in modern and legacy revisions over both transports, and are
// measured.
func TestCompare(t *testing.T) {
	server := filepath.Join(t.TempDir(), "server")
	if out, err := exec.Command("go", "build", "-o", server, "../servers/talaria").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, transport := range []string{"http", "stdio"} {
		for kind, revision := range revisions {
			j := job{Server: server, Revision: revision, Tool: "search", InFlight: 4, For: 20 * time.Millisecond}
			f, err := compare(j, transport, 1)
			if err != nil {
				t.Errorf("%s/%s: %v", transport, kind, err)
				continue
			}
			for _, client := range clients {
				if len(f.cpu[client]) != 1 || f.cpu[client][0] <= 0 || f.rate[client][0] <= 0 {
					t.Errorf("%s/%s: %s took %v µs at %v calls/s", transport, kind, client, f.cpu[client], f.rate[client])
				}
			}
		}
	}
}

func TestMedianAndSpread(t *testing.T) {
	if got := median([]float64{3, 1, 2}); got != 2 {
		t.Errorf("median %v", got)
	}
	if got := spread([]float64{3, 1, 2}); got != 1 {
		t.Errorf("spread %v", got)
	}
}
