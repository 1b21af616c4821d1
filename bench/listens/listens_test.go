package main

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// TestMain makes the test's own binary the server that start runs.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "-serve" {
		if err := runServer(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	const n, rounds = 150, 2
	listens, err := run("talaria", n, rounds, request, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":100000}}`; !bytes.Contains(listens.message, []byte(want)) {
		t.Errorf("heard %q, want %s", listens.message, want)
	}
	bare, err := run("bare", n, rounds, func(string, int) (string, error) { return "\n", nil }, listens.message)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bare.message, listens.message) {
		t.Errorf("bare connections heard %q, want %q", bare.message, listens.message)
	}
	for name, f := range map[string]*figures{"talaria": listens, "bare": bare} {
		if len(f.cpu) != rounds || len(f.took) != rounds || median(f.took) <= 0 {
			t.Errorf("%s: got %d and %d rounds, want %d; took %v ms", name, len(f.cpu), len(f.took), rounds, f.took)
		}
	}
}
