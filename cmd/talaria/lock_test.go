package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A lock is written, compared and renewed, and nothing but a lock is overwritten.
func TestLock(t *testing.T) {
	server, dir := quoted(stdioExample(t, t.TempDir())), t.TempDir()
	file := filepath.Join(dir, "mcp.lock")
	check := func(want int, parts string, args ...string) {
		t.Helper()
		got := talaria(t, "", append([]string{"lock", server, "-o", file}, args...)...)
		if got.code != want || !strings.Contains(got.stdout+got.stderr, parts) {
			t.Errorf("%v: exit %d, %s%s; want %d, %s", args, got.code, got.stdout, got.stderr, want, parts)
		}
	}
	check(exitUsage, "a lock is a file; name one", "-o", "-")
	check(exitUsage, "no such file", "--check")
	check(exitOK, "wrote "+file)
	check(exitOK, "the tools are those of", "--check")
	check(exitOK, "[]", "--check", "--json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(strings.Replace(string(text), `"calculate": {`, `"computes": {`, 1), `"name": "calculate"`, `"name": "computes"`, 1)
	if changed == string(text) {
		t.Fatalf("there is no calculate in %s", text)
	}
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	check(exitTool, "breaking: computes: the tool is gone\ncompatible: calculate: the tool is new", "--check")
	check(exitTool, `"class": "breaking"`, "--check", "--json")
	check(exitOK, "wrote")
	check(exitOK, "", "--check")
	if err := os.WriteFile(file, []byte("package main"), 0o600); err != nil {
		t.Fatal(err)
	}
	check(exitTool, "it is left as it is")
	check(exitUsage, "it is not a lock", "--check")
	if text, err := os.ReadFile(file); err != nil || string(text) != "package main" {
		t.Errorf("%s, %v", text, err)
	}
}
