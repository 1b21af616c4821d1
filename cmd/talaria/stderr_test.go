//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/cmd/talaria/internal/shellwords"
)

// A command that ends at once is started once, and what it writes to standard error is
// shown once and in whole lines, by every command. One that ends when it is probed is
// started again, and -v says so.
func TestStderrOnce(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, script, again string
		starts              int
	}{
		{"at once", "echo x >> STARTS; printf par >&2; printf 'tial line\nsecond\n  indented' >&2; exit 3", "", 1},
		{"at the probe", "echo x >> STARTS; read line; printf par >&2; printf 'tial line\nsecond\n  indented' >&2; exit 3", "started again", 2},
	} {
		for _, args := range [][]string{
			{"ping", "TARGET"}, {"tools", "TARGET"}, {"inspect", "TARGET"}, {"call", "TARGET", "x"}, {"watch", "TARGET"},
			{"stdio", "sh", "SCRIPT"}, {"serve-proxy", "--stdio", "--", "sh", "SCRIPT"},
		} {
			for _, verbose := range []bool{true, false} {
				dir := t.TempDir()
				starts, script := filepath.Join(dir, "starts"), filepath.Join(dir, "script")
				if err := os.WriteFile(script, []byte(strings.ReplaceAll(test.script, "STARTS", starts)), 0o600); err != nil {
					t.Fatal(err)
				}
				var with []string
				for i, arg := range args {
					arg = strings.ReplaceAll(strings.ReplaceAll(arg, "TARGET", "sh "+shellwords.Quote(script)), "SCRIPT", script)
					if with = append(with, arg); i == 0 && verbose {
						with = append(with, "-v")
					}
				}
				got := talaria(t, "ping\n", with...)
				count, err := os.ReadFile(starts)
				if n := strings.Count(string(count), "x"); err != nil || n != test.starts || got.code != exitConnect {
					t.Errorf("%s, %q: %d starts, %v, code %d", test.name, with, n, err, got.code)
				}
				shown := 1
				if verbose {
					shown = test.starts // each start has its own
				}
				if n := strings.Count(got.stderr, "partial line\n"); n != shown {
					t.Errorf("%s, %q: it is shown %d times, want %d:\n%s", test.name, with, n, shown, got.stderr)
				}
				if !strings.Contains(got.stderr, "second\n") || verbose && !strings.Contains(got.stderr, test.again) {
					t.Errorf("%s, %q: got\n%s", test.name, with, got.stderr)
				}
			}
		}
	}
}
