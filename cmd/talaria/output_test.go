package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
)

// full is an output that takes nothing.
type full struct{ err error }

func (f full) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "stdout", Err: f.err}
}

// Results that cannot be written are no success, whatever command has them. A
// pipe that was closed is none of anybody's business.
func TestUnwritten(t *testing.T) {
	t.Parallel()
	server := quoted(stdioExample(t, t.TempDir()))
	for _, args := range [][]string{
		{"call", server, "calculate", "operation=add", "a=1", "b=2"},
		{"call", server, "calculate", "operation=add", "a=1", "b=2", "--json"},
		{"tools", server},
		{"tools", server, "--json"},
		{"inspect", server},
		{"ping", server},
		{"ping", server, "--json"},
		{"read", server, "notes://all"},
		{"read", server, "notes://all", "-o", "-"},
		{"request", server, "tools/list"},
		{"version"},
		{"help"},
		{"completion", "bash"},
		append([]string{"stdio"}, stdioExample(t, t.TempDir())...),
	} {
		for _, test := range []struct {
			err    error
			code   int
			stderr string
		}{
			{syscall.ENOSPC, exitTool, "error: the output cannot be written: write stdout: no space left on device\n"},
			{syscall.EPIPE, exitOK, ""},
		} {
			var stderr syncBuffer
			code := run(t.Context(), args, &console.Console{In: strings.NewReader("ping\n"), Out: full{test.err}, Err: &stderr})
			if code != test.code || stderr.String() != test.stderr {
				t.Errorf("%s, %v: got %d and %q", strings.Join(args[:1], " "), test.err, code, stderr.String())
			}
		}
	}
	var stderr syncBuffer
	args := []string{"call", server, "calculate", "operation=divide", "a=1", "b=0"}
	code := run(t.Context(), args, &console.Console{In: strings.NewReader(""), Out: full{io.ErrShortWrite}, Err: &stderr})
	if code != exitTool || !strings.Contains(stderr.String(), "cannot be written") || !strings.Contains(stderr.String(), `the tool "calculate" returned an error`) {
		t.Errorf("a tool that failed: got %d and %q", code, stderr.String())
	}
}

// Who closes the pipe, as head does, ends the command and its server in good
// order, and a script of commands that nobody sees.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{{"tools", quoted(stdioExample(t, dir))}, append([]string{"stdio"}, stdioExample(t, dir)...)} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env = append(os.Environ(), "TALARIA_COMMAND=1")
		cmd.Stdin, cmd.Stdout = strings.NewReader("call_tool add_note text=unseen\n"), w
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v", args[0], err)
		}
	}
	if got := talaria(t, "", "call", quoted(stdioExample(t, dir)), "search_notes"); strings.Contains(got.stdout, "unseen") {
		t.Errorf("the script went on: %+v", got)
	}
}

// There is nothing to watch for where nothing can be written.
func TestWatchUnwritten(t *testing.T) {
	t.Parallel()
	url := httpExample(t)
	var stderr syncBuffer
	code := make(chan int, 1)
	go func() {
		code <- run(t.Context(), []string{"watch", url, "notes://all"}, &console.Console{In: strings.NewReader(""), Out: full{syscall.ENOSPC}, Err: &stderr})
	}()
	stderr.wait(t, "watching")
	if got := talaria(t, "", "call", url, "add_note", "text=milk"); got.code != 0 {
		t.Fatalf("got %+v", got)
	}
	if c := <-code; c != exitTool || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("got %d and %q", c, stderr.String())
	}
}

// Where results are to be saved is looked at before a tool runs, and what cannot
// be saved takes nothing else along.
func TestSave(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := quoted(stdioExample(t, dir))
	chart := []string{"call", server, "draw_bar_chart", `bars:=[{"label": "a", "value": 1}]`, "--save"}
	missing := filepath.Join(dir, "not", "there")
	if got := talaria(t, "", append(chart, missing)...); got.code != exitOK || !strings.Contains(got.stdout, "saved as "+missing) {
		t.Errorf("a directory that was missing: got %+v", got)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{file, filepath.Join(file, "below")} {
		if got := talaria(t, "", "call", server, "add_note", "text=x", "--save", wrong); got.code != exitUsage || !strings.Contains(got.stderr, "--save: ") {
			t.Errorf("%s: got %+v", wrong, got)
		}
	}
	if got := talaria(t, "", "call", server, "search_notes"); strings.Contains(got.stdout, `"text"`) {
		t.Errorf("the tool ran all the same: %+v", got)
	}
}

// A command does not replace a file that it reads, such as the source of a server.
func TestOutIsAnInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "server.py")
	if err := os.WriteFile(name, []byte("source"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(name, link); err != nil {
		t.Skip(err)
	}
	server := quoted(stdioExample(t, dir))
	for _, args := range [][]string{
		{"read", "python3 " + name, "notes://all", "-o", name},
		{"read", "python3 " + name, "notes://all", "-o", link},
		{"read", "python3 server.py", "notes://all", "--cwd", dir, "-o", name},
		{"read", server, "notes://all", "--config", name, "-o", name},
		{"read", "http://127.0.0.1:9", "notes://all", "--token-file", name, "-o", name},
		{"lock", "python3 " + name, "-o", name},
	} {
		if got := talaria(t, "", args...); got.code != exitUsage || !strings.Contains(got.stderr, "the command reads this file") {
			t.Errorf("%s: got %d and %s", strings.Join(args, " "), got.code, got.stderr)
		}
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != "source" {
		t.Errorf("the file has %q, %v", text, err)
	}
	for range 2 { // any other file is replaced
		out := filepath.Join(dir, "out")
		if got := talaria(t, "", "read", server, "notes://all", "-o", out); got.code != exitOK {
			t.Errorf("got %d and %s", got.code, got.stderr)
		}
	}
}
