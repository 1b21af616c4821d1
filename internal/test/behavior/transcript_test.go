package behavior_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// TestTranscripts plays each script in testdata/transcripts to a server, over
// every transport and in every revision that the script names, and compares
// what goes back and forth with the transcript of that revision. A script has
// one message a line; $REV and $META stand for the revision and for the _meta
// of a modern request.
func TestTranscripts(t *testing.T) {
	scripts, err := filepath.Glob("../../../testdata/transcripts/*.script")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		header, body, _ := strings.Cut(string(text), "\n\n")
		_, names, ok := strings.Cut(header, "Revisions: ")
		if !ok {
			t.Fatalf("%s: no line \"Revisions: …\"", path)
		}
		for _, name := range strings.Fields(names) {
			rev, ok := protocol.ParseRevision(name)
			if !ok {
				t.Fatalf("%s: no such revision: %s", path, name)
			}
			golden := strings.TrimSuffix(path, ".script") + "." + name + ".txt"
			for _, transport := range harness.TransportsOf(rev) {
				t.Run(filepath.Base(golden)+"/"+transport.Name, func(t *testing.T) {
					play(t, transport, rev, body, golden)
				})
			}
		}
	}
}

func play(t *testing.T, transport harness.TransportUnderTest, rev protocol.Revision, body, golden string) {
	conversation := transport.Open(t, harness.Fixture(t, nil), rev)
	var out bytes.Buffer
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			fmt.Fprintln(&out, line)
			continue
		}
		line = harness.Expand(line, rev)
		fmt.Fprintln(&out, ">", line)
		for _, answer := range conversation.Say(line) {
			fmt.Fprintln(&out, "<", answer)
		}
	}
	if *harness.Update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v (go test ./internal/test/behavior -run TestTranscripts -update writes it)", err)
	}
	if diff := harness.FirstDifference(string(want), out.String()); diff != "" {
		t.Error(diff)
	}
}
