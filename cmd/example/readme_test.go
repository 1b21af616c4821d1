package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// readmeBlock returns the first block of a language in the README.
func readmeBlock(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), "```"+language+"\n")
	if !ok {
		t.Fatalf("the README has no block of %s", language)
	}
	code, _, _ := strings.Cut(rest, "```\n")
	return code
}

// The program in the README must build and pass go vet, and say to a model
// what the README shows.
func TestReadme(t *testing.T) {
	tool := testdep.LookPath(t, "go")
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "bills.exe")
	if err := os.WriteFile(source, []byte(readmeBlock(t, "go")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"vet", source}, {"build", "-o", program, source}} {
		if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", args[0], err, out)
		}
	}
	cmd := exec.CommandContext(t.Context(), program, "-stdio")
	cmd.Stdin = strings.NewReader(strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"split_bill","arguments":{"total":"a lot","peple":3,"tip":60}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"split_bill","arguments":{"total":100,"people":4}}}`,
	}, "\n"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]result{}
	for line := range bytes.Lines(out) {
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		answers[string(m.ID)] = m.Result
	}
	bad, good := answers["2"], answers["3"]
	if want := readmeBlock(t, "text"); !bad.IsError || bad.Content[0].Text+"\n" != want {
		t.Errorf("the README shows\n%sbut it is\n%+v", want, bad)
	}
	if string(good.Structured) != `{"each":27.5}` {
		t.Errorf("got %s", good.Structured)
	}
}
