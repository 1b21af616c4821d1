package hosts

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata anew")

var echo = Server{Name: "echo", Command: "npx", Args: []string{"-y", "a b", "<x>"}, Env: map[string]string{"KEY": "v&w", "A": "1"}}

func host(t *testing.T, id string) Host {
	t.Helper()
	h, err := Find(id)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Each file of testdata holds a configuration as it was, a line of dashes, and
// what becomes of it.
func TestPut(t *testing.T) {
	for _, test := range []struct {
		name, host string
		server     Server
	}{
		{"empty", "claude-desktop", echo},
		{"others", "claude-desktop", echo},
		{"replace", "claude-desktop", echo},
		{"tabs", "cursor", echo},
		{"oneline", "cursor", echo},
		{"comments", "vscode", echo},
		{"trailing", "vscode", Server{Name: "far", URL: "https://example.com/mcp", Headers: map[string]string{"X-Key": "k"}}},
		{"tourl", "cursor", Server{Name: "echo", URL: "https://example.com/mcp"}},
		{"claude-code", "claude-code", Server{Name: "echo", Command: "npx", Args: []string{"-y", "echo"}, Env: map[string]string{"KEY": "${KEY}"}}},
		{"claude-code-url", "claude-code", Server{Name: "far", URL: "https://example.com/mcp", Headers: map[string]string{"X-Key": "${KEY}"}}},
		{"gemini", "gemini", echo},
		{"gemini-url", "gemini", Server{Name: "far", URL: "https://example.com/mcp", Headers: map[string]string{"X-Key": "k"}}},
		{"lmstudio", "lmstudio", echo},
		{"lmstudio-url", "lmstudio", Server{Name: "far", URL: "https://example.com/mcp", Headers: map[string]string{"X-Key": "k"}}},
		{"windsurf", "windsurf", echo},
		{"windsurf-url", "windsurf", Server{Name: "far", URL: "https://example.com/mcp", Headers: map[string]string{"X-Key": "k"}}},
	} {
		path := filepath.Join("testdata", test.name+".txt")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		const dashes = "----\n"
		before, want, _ := strings.Cut(string(data), dashes)
		h := host(t, test.host)
		got, err := h.Put([]byte(before), test.server)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if *update {
			if err := os.WriteFile(path, []byte(before+dashes+string(got)), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if string(got) != want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, want)
		}
		if again, err := h.Put(got, test.server); err != nil || string(again) != string(got) {
			t.Errorf("%s: the second time gives\n%s, %v", test.name, again, err)
		}
	}
}

func TestPutKeepsLineEnds(t *testing.T) {
	old := "\xef\xbb\xbf{\r\n    \"theme\": \"dark\"\r\n}\r\n"
	got, err := host(t, "cursor").Put([]byte(old), Server{Name: "a", Command: "b"})
	want := "{\r\n    \"theme\": \"dark\",\r\n    \"mcpServers\": {\r\n        \"a\": {\r\n            \"command\": \"b\",\r\n            \"args\": []\r\n        }\r\n    }\r\n}\r\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// A byte order mark leaves the file of every host, by whichever edit.
func TestByteOrderMark(t *testing.T) {
	for _, id := range IDs() {
		h := host(t, id)
		plain, err := h.Put(nil, echo)
		if err != nil {
			t.Fatal(err)
		}
		for _, marks := range []string{"\xef\xbb\xbf", "\xef\xbb\xbf\xef\xbb\xbf"} {
			marked := []byte(marks + string(plain))
			if !Marked(marked) || Marked(plain) {
				t.Errorf("%s: marked %v and %v", id, Marked(marked), Marked(plain))
			}
			if got, err := h.Put(marked, echo); err != nil || string(got) != string(plain) {
				t.Errorf("%s: Put gives %q, %v", id, got, err)
			}
			if got, err := h.Remove(marked, echo.Name); err != nil || Marked(got) || len(got) == 0 {
				t.Errorf("%s: Remove gives %q, %v", id, got, err)
			}
			if got := Masked(marked, func(s string) string { return s }); got != Masked(plain, func(s string) string { return s }) {
				t.Errorf("%s: shown as %q", id, got)
			}
		}
	}
	if _, err := host(t, "cursor").Put([]byte("\xff\xfe{\x00}\x00"), echo); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("UTF-16: got %v", err)
	}
}

func TestRemove(t *testing.T) {
	h := host(t, "claude-desktop")
	both, err := h.Put([]byte(`{"mcpServers": {"other": {"command": "x"}}, "k": 1}`), echo)
	if err != nil {
		t.Fatal(err)
	}
	one, err := h.Remove(both, "echo")
	if err != nil || strings.Contains(string(one), "npx") || !strings.Contains(string(one), `"other": {"command": "x"}`) {
		t.Errorf("got %s, %v", one, err)
	}
	if none, err := h.Remove(one, "other"); err != nil || !strings.Contains(string(none), `"mcpServers": {}, "k": 1`) {
		t.Errorf("got %s, %v", none, err)
	}
	if _, err := h.Remove(one, "echo"); !errors.Is(err, ErrAbsent) {
		t.Errorf("got %v, want ErrAbsent", err)
	}
}

func TestPutFaults(t *testing.T) {
	h := host(t, "claude-desktop")
	for _, test := range []struct{ old, want string }{
		{`{"mcpServers": `, "not valid JSON"},
		{`[]`, "no JSON object"},
		{`{"mcpServers": []}`, "mcpServers in it is not an object"},
		{`{"mcpServers": {"echo": 5}}`, `the entry "echo" is not an object`},
	} {
		if got, err := h.Put([]byte(test.old), echo); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %s, %v, want %q", test.old, got, err, test.want)
		}
	}
	for _, name := range []string{"", "a b", "ü", strings.Repeat("a", 65), `a"b`} {
		if _, err := h.Put(nil, Server{Name: name, Command: "x"}); !errors.Is(err, ErrName) {
			t.Errorf("%q: got %v", name, err)
		}
	}
	if _, err := Find("emacs"); err == nil || !strings.Contains(err.Error(), "claude-desktop, claude-code, cursor, gemini, lmstudio, vscode, windsurf") {
		t.Errorf("got %v", err)
	}
}

func TestPaths(t *testing.T) {
	linux, xdg := Place{GOOS: "linux", Home: "/h"}, Place{GOOS: "linux", Home: "/h", XDG: "/x"}
	mac := Place{GOOS: "darwin", Home: "/Users/a"}
	windows, bare := Place{GOOS: "windows", Home: `C:\Users\a`, AppData: `D:\Roam`}, Place{GOOS: "windows", Home: `C:\Users\a`}
	for _, test := range []struct {
		host  string
		place Place
		want  string
	}{
		{"claude-desktop", linux, "/h/.config/Claude/claude_desktop_config.json"},
		{"claude-desktop", xdg, "/x/Claude/claude_desktop_config.json"},
		{"claude-desktop", mac, "/Users/a/Library/Application Support/Claude/claude_desktop_config.json"},
		{"claude-desktop", windows, `D:\Roam\Claude\claude_desktop_config.json`},
		{"claude-desktop", bare, `C:\Users\a\AppData\Roaming\Claude\claude_desktop_config.json`},
		{"cursor", linux, "/h/.cursor/mcp.json"},
		{"cursor", windows, `C:\Users\a\.cursor\mcp.json`},
		{"gemini", linux, "/h/.gemini/settings.json"},
		{"gemini", windows, `C:\Users\a\.gemini\settings.json`},
		{"lmstudio", mac, "/Users/a/.lmstudio/mcp.json"},
		{"lmstudio", windows, `C:\Users\a\.lmstudio\mcp.json`},
		{"windsurf", xdg, "/h/.codeium/windsurf/mcp_config.json"},
		{"windsurf", windows, `C:\Users\a\.codeium\windsurf\mcp_config.json`},
		{"vscode", linux, "/h/.config/Code/User/mcp.json"},
		{"vscode", mac, "/Users/a/Library/Application Support/Code/User/mcp.json"},
		{"vscode", windows, `D:\Roam\Code\User\mcp.json`},
	} {
		if got, err := host(t, test.host).Path(test.place, ""); err != nil || got != test.want {
			t.Errorf("%s on %s: got %s, %v, want %s", test.host, test.place.GOOS, got, err, test.want)
		}
	}
	for id, want := range map[string]string{"vscode": ".vscode/mcp.json", "cursor": ".cursor/mcp.json", "claude-code": ".mcp.json", "gemini": ".gemini/settings.json"} {
		if got, err := host(t, id).Path(linux, "dir"); err != nil || got != filepath.Join("dir", filepath.FromSlash(want)) {
			t.Errorf("%s: got %s, %v", id, got, err)
		}
	}
	if _, err := host(t, "claude-code").Path(linux, ""); !errors.Is(err, ErrOwnFile) {
		t.Errorf("got %v, want ErrOwnFile", err)
	}
	if _, err := host(t, "claude-desktop").Path(linux, "dir"); err == nil || !strings.Contains(err.Error(), "--project") {
		t.Errorf("got %v", err)
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	path := filepath.Join(dir, "new", "config.json")
	if backup, err := Write(path, nil, []byte("1"), now); err != nil || backup != "" {
		t.Fatalf("got %q, %v", backup, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"config.json.backup-20260102-030405", "config.json.backup-20260102-030405-2"} {
		old, err := Read(link)
		if err != nil {
			t.Fatal(err)
		}
		backup, err := Write(link, old, append(old, byte('a'+i)), now)
		if err != nil || filepath.Base(backup) != want {
			t.Fatalf("got %q, %v, want %q", backup, err, want)
		}
		if kept, err := os.ReadFile(backup); err != nil || string(kept) != string(old) {
			t.Errorf("the backup has %q, %v, want %q", kept, err, old)
		}
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link became %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(link); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("got %v, %v, want the permissions kept", info.Mode(), err)
	}
	if _, err := Write(path, []byte("something else"), []byte("2"), now); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v, want ErrChanged", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 3 {
		t.Errorf("got %v, %v, want the file and two backups", entries, err)
	}
	if _, err := Read(dir); err == nil {
		t.Error("a directory was read")
	}
}

// A file of nothing but brackets, which may come with a project, is an error.
func TestDeepFile(t *testing.T) {
	h, err := Find("cursor")
	if err != nil {
		t.Fatal(err)
	}
	for _, deep := range []string{strings.Repeat("[", maxConfig), `{"mcpServers":` + strings.Repeat(`{"a":[`, maxBrackets/2-10)} {
		if _, err := h.Put([]byte(deep), Server{Name: "x", Command: "y"}); err == nil {
			t.Error("no error for adding a server")
		}
		if _, err := h.Remove([]byte(deep), "x"); err == nil {
			t.Error("no error for removing one")
		}
	}
}
