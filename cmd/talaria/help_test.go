package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/shellwords"
)

// The help of every command has examples, and those for the workbench work on
// it.
func TestExamples(t *testing.T) {
	t.Parallel()
	url, dir, ran := httpExample(t), t.TempDir(), 0
	root, _ := newRoot(&console.Console{})
	for _, cmd := range root.Commands() {
		if cmd.Example == "" {
			t.Errorf("talaria %s -h shows no example", cmd.Name())
		}
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			if cmd.GroupID != groupOnce || cmd.Name() == "watch" || cmd.Name() == "events" || !strings.Contains(line, workbench) {
				continue
			}
			line = strings.NewReplacer(workbench, url, "--out notes.json", "--out "+shellwords.Quote(filepath.Join(dir, "notes.json"))).Replace(line)
			if cmd.Name() == "lock" {
				line += " --out " + shellwords.Quote(filepath.Join(dir, "mcp.lock"))
			}
			list, err := shellwords.Split(strings.TrimPrefix(line, "  talaria "))
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if got := talaria(t, "", shellwords.Texts(list)...); got.code != exitOK || got.stdout == "" && !strings.Contains(line, "--out") {
				t.Errorf("%s: exit %d, %q, %q", line, got.code, got.stdout, got.stderr)
			}
			ran++
		}
	}
	if ran < 15 {
		t.Errorf("only %d examples were tried", ran)
	}
}
