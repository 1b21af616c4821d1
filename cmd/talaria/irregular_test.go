//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// A flag that takes a file takes a regular one: nothing hangs at a pipe, or reads a
// device without end.
func TestIrregularFiles(t *testing.T) {
	testdep.NoRace(t, "its processes run one after another")
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	pipe, zero, huge := filepath.Join(dir, "pipe"), filepath.Join(dir, "zero"), filepath.Join(dir, "huge")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("/dev/zero", zero); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 8<<30); err != nil { // which takes no space
		t.Skip(err)
	}
	server := quoted(stdioExample(t, t.TempDir()))
	for _, args := range [][]string{
		{"tap", "-o", "FILE", "--", "true"},
		{"inspect", "-b", "--no-open", "--file", "FILE"},
		{"ping", "http://127.0.0.1:9", "--token-file", "FILE"},
		{"ping", "name", "--config", "FILE"},
		{"login", "http://127.0.0.1:9", "--client-id", "x", "--client-secret-file", "FILE"},
		{"install", "--host", "cursor", "--name", "x", "--file", "FILE", "--yes", "--", "true"},
		{"new", "weather", "--no-tidy", "--dir", "FILE"},
		{"pack", dir, "--manifest", "FILE"},
		{"lock", server, "-o", "FILE"},
		{"lock", server, "-o", "FILE", "--check"},
		{"call", server, "calculate", "operation=@FILE"},
		{"call", server, "calculate", "operation:=@FILE"},
		{"call", server, "calculate", "@FILE"},
		{"read", server, "notes://all", "-o", "FILE"},
		{"gateway", "--config", "FILE", "--check"},
		{"gateway", "--config", "FILE", "--http", "127.0.0.1:0"},
		{"prompt", server, "summarize_notes", "style=@FILE"},
		{"request", server, "tools/call", "@FILE"},
		{"call", server, "calculate", "operation=add", "a=1", "b=2", "--save", "FILE"},
	} {
		for _, file := range []string{pipe, zero, huge} {
			if file == huge && args[0] == "read" {
				continue // it is replaced
			}
			var with []string
			for _, arg := range args {
				with = append(with, strings.ReplaceAll(arg, "FILE", file))
			}
			done := make(chan result, 1)
			go func() { done <- talaria(t, "", with...) }()
			select {
			case got := <-done:
				if got.code == 0 || !strings.Contains(got.stderr, file) {
					t.Errorf("%s: got %d and %s", strings.Join(with, " "), got.code, got.stderr)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s does not end", strings.Join(with, " "))
			}
		}
	}
	for _, args := range [][]string{ // "-" is no file, and is not made one
		{"pack", dir, "--out", "-"},
		{"tap", "-o", "-", "--", "true"},
		{"lock", server, "-o", "-"},
		{"install", "--host", "cursor", "--name", "x", "--file", "-", "--yes", "--", "true"},
	} {
		if got := talaria(t, "", args...); got.code != exitUsage || !strings.Contains(got.stderr, "is a file; name one") {
			t.Errorf("%s: got %d and %s", strings.Join(args, " "), got.code, got.stderr)
		}
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is %v, %v", info, err)
	}
}
