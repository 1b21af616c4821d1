package dev

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// module writes a module and makes it the working directory. Its program imports nothing,
// so that builds are short.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	testdep.LookPath(t, "go")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "")
	write(t, map[string]string{"go.mod": "module example.com/m\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n"})
	write(t, files)
	return dir
}

func write(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// kept are the names of what is in a directory.
func kept(dir string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	return names
}

// The sources are those of the modules that are worked on, and new ones among them are
// noticed.
func TestSources(t *testing.T) {
	dir := module(t, map[string]string{
		"go.work":         "go 1.26\n\nuse (\n\t.\n\t./other\n)\n",
		"other/go.mod":    "module example.com/other\n\ngo 1.26\n",
		"other/sub/o.go":  "package sub\n",
		"part/p.go":       "package part\n\nimport _ \"embed\"\n\n//go:embed notes/* page.html\nvar S string\n",
		"part/p_test.go":  "package part\n",
		"part/notes/a":    "a",
		"part/notes/b/c":  "c",
		"part/page.html":  "page",
		"part/other.html": "other",
		"unused/u.go":     "package unused\n",
		"main.go":         "package main\n\nimport (\n\t_ \"example.com/m/part\"\n\t_ \"example.com/other/sub\"\n)\n\nfunc main() {}\n",
	})
	tool := &Tool{Package: ".", Temp: t.TempDir()}
	s, err := tool.sources(t.Context(), "", ".")
	if err != nil {
		t.Fatal(err)
	}
	seen := func() string {
		var list []string
		for file := range Scan(s) {
			name, err := filepath.Rel(dir, file)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, filepath.ToSlash(name))
		}
		slices.Sort(list)
		return strings.Join(list, " ")
	}
	const before = "go.mod go.work main.go other/go.mod other/sub/o.go part/notes/a part/notes/b/c part/p.go part/page.html"
	for _, name := range []string{".", "part"} { // are not read again until they change
		if err := os.Chtimes(name, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if got := seen(); got != before {
			t.Errorf("got  %s\nwant %s", got, before)
		}
	}
	write(t, map[string]string{"new.go": "", "new_test.go": "", "_no.go": "", ".main.go.swp": "", "notes.db": "", "part/new.s": "", "part/notes/d": "", "part/notes/b/e": "", "part/notes/b/.swp": "", "part/notes/b/_c/f": "", "part/other2.html": "", "other/sub/n.txt": ""})
	const after = "go.mod go.work main.go new.go other/go.mod other/sub/o.go part/new.s part/notes/a part/notes/b/c part/notes/b/e part/notes/d part/p.go part/page.html"
	if got := seen(); got != after {
		t.Errorf("got  %s\nwant %s", got, after)
	}
	if err := os.Remove("part/p.go"); err != nil {
		t.Fatal(err)
	}
	if got, want := seen(), strings.Replace(after, "part/p.go ", "", 1); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What is no program is said at once, and what can be mended leaves something to watch.
func TestWrong(t *testing.T) {
	elsewhere := module(t, nil)
	module(t, map[string]string{"tools/t.go": "package tools\n", "empty/README": ""})
	for _, test := range []struct {
		pkg     string
		main    string
		want    string
		watched bool
	}{
		{pkg: "./tools", want: "./tools is not a program: package tools"},
		{pkg: "./nope", want: "directory not found"},
		{pkg: "./empty", want: "./empty: no Go files in "},
		{pkg: "./...", want: "./... names "},
		{pkg: "example.com/nope", want: "example.com/nope: no required module provides package"},
		{pkg: ".", main: "package main\n\nfunc main() { x }\n", want: "undefined: x", watched: true},
		{pkg: ".", main: "package main\n\nimport \"fm\n", want: "string literal not terminated", watched: true},
		{pkg: ".", main: "package main\n\nimport _ \"example.com/m/no\"\n", want: "no required module provides package", watched: true},
		{pkg: ".", main: "package other\n", want: ". is not a program: package other"},
		{pkg: ".", main: "package main\n\nfunc main() {}\n", watched: true},
		{pkg: "main.go", watched: true},
		{pkg: elsewhere, watched: true},
	} {
		if test.main != "" {
			write(t, map[string]string{"main.go": test.main})
		}
		temp := t.TempDir()
		tool := &Tool{Package: test.pkg, Temp: temp}
		s, file, err := tool.Make(t.Context())
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) || s.found() != test.watched {
			t.Errorf("%s: got %v, %v; want %s, %v", test.pkg, err, s, test.want, test.watched)
		}
		if err == nil {
			if out, err := exec.CommandContext(t.Context(), file).CombinedOutput(); err != nil {
				t.Errorf("%s: %v, %s", test.pkg, err, out)
			}
			if tool.Keep(file); len(kept(temp)) != 1 {
				t.Errorf("%q are kept", kept(temp))
			}
		}
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errChanged)
	if _, _, err := (&Tool{Package: ".", Temp: t.TempDir()}).Make(gone); !errors.Is(err, errChanged) {
		t.Errorf("got %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, _, err := (&Tool{Package: ".", Temp: t.TempDir()}).Make(t.Context()); !errors.Is(err, exec.ErrNotFound) || !strings.HasPrefix(err.Error(), "go is not installed") {
		t.Errorf("got %v", err)
	}
}
