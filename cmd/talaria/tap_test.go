package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/internal/tooling/recording"
)

// TestTap: a client does not notice, and what was said is in the file.
func TestTap(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "calls.jsonl")
	words := append([]string{os.Args[0], "tap", "-o", file, "--"}, stdioExample(t, dir)...)
	r := talaria(t, "", "call", quoted(words), "calculate", "operation=add", "a=40", "b=2", "--env", "TALARIA_COMMAND=1")
	if r.code != exitOK || !strings.Contains(r.stdout, "42") {
		t.Fatalf("%d %s %s", r.code, r.stdout, r.stderr)
	}
	kept := read(t, file)
	if !strings.Contains(kept[recording.Out], `"name":"calculate"`) || !strings.Contains(kept[recording.In], `"result":42`) {
		t.Errorf("recorded %v", kept)
	}
	if notes := kept[recording.Note]; !strings.HasPrefix(notes, "started example\nended: ") {
		t.Errorf("notes: %s", notes)
	}
}

// read returns what was recorded, by kind.
func read(t *testing.T, file string) map[recording.Dir]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	kept := map[recording.Dir]string{}
	for e, err := range recording.Read(f) {
		if err != nil {
			t.Error(err)
		}
		kept[e.Dir] += string(e.Text) + "\n"
	}
	return kept
}

func TestTapHTTP(t *testing.T) {
	file, url := filepath.Join(t.TempDir(), "calls.jsonl"), httpExample(t)
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr syncBuffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"tap", "-o", file, "--http", "127.0.0.1:0", url}, &console.Console{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	}()
	address := stderr.wait(t, `http://\S+/mcp`)
	if r := talaria(t, "", "call", address, "calculate", "operation=add", "a=40", "b=2"); r.code != exitOK || !strings.Contains(r.stdout, "42") {
		t.Errorf("%d %s %s", r.code, r.stdout, r.stderr)
	}
	cancel()
	if c := <-code; c != exitOK {
		t.Errorf("%d %s", c, stderr.String())
	}
	kept := read(t, file)
	if !strings.Contains(kept[recording.Out], `"name":"calculate"`) || !strings.Contains(kept[recording.Note], "POST /mcp HTTP 200") {
		t.Errorf("recorded %v", kept)
	}
}

func TestTapUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"tap", "COMMAND or URL is missing"},
		{"tap http://127.0.0.1:1/mcp", "which address shall the client get"},
		{"tap --http 127.0.0.1:0 ./server", "is no URL"},
		{"tap --http 127.0.0.1:0 http://127.0.0.1:1 more", `unexpected argument "more"`},
		{"tap --http 0.0.0.0:0 http://127.0.0.1:1", "others could reach it"},
		{"tap -o /no/such/folder/file -- true", "--out: "},
	} {
		t.Setenv("XDG_STATE_HOME", t.TempDir())
		if r := talaria(t, "", strings.Fields(c.args)...); r.code != exitUsage || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: %d %s", c.args, r.code, r.stderr)
		}
	}
	if r := talaria(t, "", "tap", "-o", filepath.Join(t.TempDir(), "f"), "--", "/no/such/command"); r.code != exitConnect {
		t.Errorf("%d %s", r.code, r.stderr)
	}
}
