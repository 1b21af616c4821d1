package mcp_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/protocol"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// TestTranscripts plays each script in testdata/transcripts to a server, over
// every transport and in every revision that the script names, and compares
// what goes back and forth with the transcript of that revision. A script has
// one message a line; $REV and $META stand for the revision and for the _meta
// of a modern request.
func TestTranscripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/transcripts/*.script")
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
			for _, transport := range transportsOf(rev) {
				t.Run(filepath.Base(golden)+"/"+transport.name, func(t *testing.T) {
					play(t, transport, rev, body, golden)
				})
			}
		}
	}
}

func play(t *testing.T, transport transportUnderTest, rev protocol.Revision, body, golden string) {
	conversation := transport.open(t, fixture(t, nil), rev)
	var out bytes.Buffer
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			fmt.Fprintln(&out, line)
			continue
		}
		line = expand(line, rev)
		fmt.Fprintln(&out, ">", line)
		for _, answer := range conversation.say(line) {
			fmt.Fprintln(&out, "<", answer)
		}
	}
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v (go test -run TestTranscripts -update writes it)", err)
	}
	if diff := firstDifference(string(want), out.String()); diff != "" {
		t.Error(diff)
	}
}

func expand(line string, rev protocol.Revision) string {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"$REV","io.modelcontextprotocol/clientInfo":{"name":"script","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	line = strings.ReplaceAll(line, "$META+", strings.TrimSuffix(meta, "}"))
	line = strings.ReplaceAll(line, "$META", meta)
	return strings.ReplaceAll(line, "$REV", rev.String())
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		a, b := "(end)", "(end)"
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, a, b)
		}
	}
	return ""
}

// isRequest reports whether a line wants an answer: it has an id, or cannot be
// read at all.
func isRequest(line string) bool {
	line = strings.TrimLeft(line, "\ufeff")
	type message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	var batch []message
	if json.Unmarshal([]byte(line), &batch) == nil && len(batch) > 0 {
		return slices.ContainsFunc(batch, func(m message) bool { return m.ID != nil })
	}
	var m message
	return json.Unmarshal([]byte(line), &m) != nil || m.ID != nil || m.Method == ""
}
