package docs_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/test/testexec"
)

// step is a command of a page with the output that the page shows, or a file that
// the reader saves, or a function that the reader replaces.
type step struct {
	command, output      string
	file, function, code string
}

var (
	anyBlock = regexp.MustCompile("(?ms)^```(console|go)\n(.*?)^```$")
	saved    = regexp.MustCompile("Save this as `([^`]+)`:\\s*$")
	replaced = regexp.MustCompile("Replace `([^`]+)` in `([^`]+)`:\\s*$")
)

// steps returns what a reader of the page does, in order.
func steps(text string) []step {
	var all []step
	end := 0
	for _, at := range anyBlock.FindAllStringSubmatchIndex(text, -1) {
		before, language, code := text[end:at[0]], text[at[2]:at[3]], text[at[4]:at[5]]
		end = at[1]
		if language == "console" {
			for line := range strings.Lines(code) {
				if command, ok := strings.CutPrefix(line, "$ "); ok {
					all = append(all, step{command: strings.TrimSpace(command)})
				} else {
					all[len(all)-1].output += line
				}
			}
		} else if m := saved.FindStringSubmatch(before); m != nil {
			all = append(all, step{file: m[1], code: code})
		} else if m := replaced.FindStringSubmatch(before); m != nil {
			all = append(all, step{file: m[2], function: m[1], code: code})
		}
	}
	return all
}

// shows reports whether the output of a command is the one that a page shows. A
// terminal aligns columns with spaces, a pipe with tabs.
func shows(shown, output string) bool {
	return shown == "" || strings.Join(strings.Fields(shown), " ") == strings.Join(strings.Fields(output), " ")
}

// TestTutorial does what the tutorial says, line by line, in a home directory of its
// own.
func TestTutorial(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a shell")
	}
	tool := testdep.LookPath(t, "go")
	home, address := t.TempDir(), testexec.FreeAddr(t)
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	caches, err := exec.CommandContext(t.Context(), tool, "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, modules, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	env := append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "GOBIN="+home, "GOCACHE="+cache, "GOMODCACHE="+modules,
		"PATH="+home+string(os.PathListSeparator)+os.Getenv("PATH"))
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	all := steps(page(t, "tutorial.md"))
	if len(all) < 15 {
		t.Fatalf("found %d steps only", len(all))
	}
	for _, s := range all {
		command := strings.ReplaceAll(s.command, "127.0.0.1:8080", address)
		switch to, changes := strings.CutPrefix(command, "cd "); {
		case s.function != "":
			name := filepath.Join(dir, s.file)
			old := regexp.MustCompile(`(?ms)^func ` + s.function + `\(.*?^}\n`)
			text := page(t, name)
			if !old.MatchString(text) {
				t.Fatalf("%s has no function %s", s.file, s.function)
			}
			write(t, name, old.ReplaceAllLiteralString(text, s.code))
		case s.file != "":
			write(t, filepath.Join(dir, s.file), s.code)
		case changes:
			dir = strings.Replace(to, "~", home, 1)
		case strings.HasPrefix(command, "talaria inspect"):
			continue // it runs until Ctrl-C; tests of cmd/talaria try it
		case strings.HasSuffix(command, " &"):
			background(t, dir, strings.Fields(strings.TrimSuffix(command, " &")), address)
		default:
			if out := run("sh", "-c", command); !shows(s.output, out) {
				t.Errorf("%s: the page shows\n%sbut it is\n%s", command, s.output, out)
			}
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// background starts a program of dir, and returns when it listens on address. The
// program is killed when the test ends.
func background(t *testing.T, dir string, command []string, address string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, filepath.Join(dir, command[0]), command[1:]...)
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%v: %v", command, err)
		}
	}
}
