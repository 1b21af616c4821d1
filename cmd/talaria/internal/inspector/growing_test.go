package inspector

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/cmd/talaria/internal/record"
)

// TestFollow: a recording is shown with what is appended to it, whatever else is in
// its file, and no server is asked anything.
func TestFollow(t *testing.T) {
	name := filepath.Join(t.TempDir(), "calls.jsonl")
	write := func(lines ...string) {
		t.Helper()
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	const asked = `{"at":"2026-07-28T12:00:00Z","dir":"out","conn":"1","text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"sum\"}}"}`
	const answered = `{"at":"2026-07-28T12:00:00.5Z","dir":"in","conn":"1","text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"isError\":true}}"}`
	i := New(Options{Target: "calls.jsonl"})
	defer i.Close()
	if err := i.Follow(name); err == nil {
		t.Error("a file that is not there is shown")
	}
	write("nonsense", asked)
	if err := i.Follow(name); err == nil || !strings.Contains(err.Error(), "is not a recording") {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	write(asked)
	if err := i.Follow(name); err != nil {
		t.Fatal(err)
	}
	rows := func() (p record.Page) { ask(t, i, "GET", "/api/traffic", "", &p); return p }
	until(t, i, func() bool { return len(rows().Rows) == 1 })
	write("nonsense", answered)
	until(t, i, func() bool { p := rows(); return len(p.Rows) == 2 && p.Rows[1].Status == "failed" })
	if p := rows(); p.Rows[0].Kind != "note" || !strings.Contains(p.Rows[0].Name, "line 2") || p.Rows[1].Took != 500 {
		t.Errorf("got %+v", p.Rows)
	}
	if s := snapshot(i); s.State != "recording" || s.Traffic != 2 {
		t.Errorf("got %+v", s)
	}
	for path, body := range map[string]string{"/api/connect": `{"revision":""}`, "/api/call": `{"tool":"sum","arguments":"{}"}`} {
		if code := ask(t, i, "POST", path, body, nil); code != http.StatusConflict {
			t.Errorf("%s: %d", path, code)
		}
	}
}
