package sizelimits

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The limits. Who needs to raise one says why in the commit.
const (
	maxMethodFiles = 4      // files with methods of one type
	maxPackages    = 90     // outside of internal/test
	maxFolders     = 24     // directly below internal
	maxFile        = 800    // lines
	maxFunction    = 100    // lines
	maxExported    = 1_120  // names that users see
	maxLines       = 91_700 // of the library, without comments
)

// maxFiles limits the files of packages that grew too wide to be found one's way
// in.
var maxFiles = map[string]int{"": 22, "schema": 31, "client": 30}

func TestLimits(t *testing.T) {
	c, err := Measure("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Lines) < 30 {
		t.Fatalf("found %d packages only", len(c.Lines))
	}
	names, lines, comments := 0, 0, 0
	for dir := range c.Lines {
		if Public(dir) {
			names += c.Exported[dir]
		}
		if Library(dir) {
			lines += c.Lines[dir]
			comments += c.Comments[dir]
		}
	}
	t.Logf("%d exported names; %d lines of library, %.1f %% comments", names, lines, 100*float64(comments)/float64(lines))
	if names > maxExported {
		t.Errorf("%d names are exported, at most %d may be", names, maxExported)
	}
	if code := lines - comments; code > maxLines {
		t.Errorf("the library has %d lines without comments, at most %d may be", code, maxLines)
	}
	for dir, limit := range maxFiles {
		t.Logf("package %q: %d files", dir, c.Files[dir])
		if c.Files[dir] > limit {
			t.Errorf("package %q has %d files, at most %d may be", dir, c.Files[dir], limit)
		}
	}
	shapes(t, c)
	packages, folders := 0, map[string]bool{}
	for dir := range c.Files {
		if !strings.HasPrefix(dir, "internal/test/") {
			packages++
		}
		if rest, ok := strings.CutPrefix(dir, "internal/"); ok {
			folder, _, _ := strings.Cut(rest, "/")
			folders[folder] = true
		}
	}
	t.Logf("%d packages, %d folders below internal", packages, len(folders))
	if packages > maxPackages {
		t.Errorf("there are %d packages, at most %d may be", packages, maxPackages)
	}
	if len(folders) > maxFolders {
		t.Errorf("internal has %d folders, at most %d may be", len(folders), maxFolders)
	}
}

// A type that is made of another struct hides the methods of that one: a reader does
// not find them, and a gauge does not count them. A struct with a field shows both.
func TestHidden(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.go":   "package a\n\ntype A struct{ n int }\n\nfunc (A) M() {}\n\ntype B A\n\ntype C = A\n\ntype D struct{ a A }\n\ntype E struct{}\n\ntype F E\n",
		"b/b.go": "package b\n\nimport a \"" + module + "/c\"\n\ntype G a.H\n", "c/c.go": "package c\n\ntype H struct{}\n\nfunc (*H) M() {}\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Measure(root)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(slices.Values(c.hidden())), []string{".B is a .A", "b.G is a c.H"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Other modules are not the library: what they export and how much they are has
// no limit here.
func TestModules(t *testing.T) {
	for dir, packages := range map[string]int{"cmd/talaria": 10, "scale/redis": 1, "telemetry": 1} {
		c, err := Measure("../../../" + dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Lines) < packages {
			t.Fatalf("%s: found %d packages only", dir, len(c.Lines))
		}
		shapes(t, c)
	}
}

// shapes holds the limits of each file, function and type.
func shapes(t *testing.T, c *Code) {
	t.Helper()
	each(t, c.LongFiles, maxFile, "file")
	each(t, c.LongFuncs, maxFunction, "function")
	for _, what := range c.hidden() {
		t.Errorf("type %s with other methods: make it a struct with a field", what)
	}
	widest := map[string]int{}
	for name, files := range c.Methods {
		widest[name] = len(files)
	}
	each(t, widest, maxMethodFiles, "files with methods of type")
}

// A func that nobody outside of the module can call is no name that users see.
func TestFuncsOfTheModule(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"internal/call/call.go": "package call\n\ntype Private struct{}\ntype Named string\ntype Doer interface{ Do() }\n",
		"api.go": `package api

import (
	"other.example/internal/call"
	"time"

	ours "github.com/talaria-go/mcp/internal/call"
)

func Plain(d time.Duration)           {} // counts
func Internal(ours.Private)           {}
func Second(n int, _ ours.Private)    {}
func Pointer(p *ours.Private)         {} // counts, as all below but New: nil, "", any Doer, and a type of others will do
func List(p ...ours.Private)          {}
func Text(n ours.Named)               {}
func Interface(d ours.Doer)           {}
func Foreign(p call.Private)          {}
func Made() (p ours.Private)          { return p }
func unexported(p ours.Private)       {}

type T struct{}                          // counts

func (T) New(p ours.Private)           {}
func (T) Method()                      {} // counts
`,
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Measure(root)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Exported[""], 9; got != want {
		t.Errorf("%d names count, want %d", got, want)
	}
}

// each reports what is over a limit, and the five that are next to it.
func each(t *testing.T, sizes map[string]int, limit int, what string) {
	t.Helper()
	names := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return sizes[b] - sizes[a] })
	for i, name := range names {
		switch {
		case sizes[name] > limit:
			t.Errorf("%s %s: %d, at most %d", what, name, sizes[name], limit)
		case i < 5:
			t.Logf("%s %s: %d", what, name, sizes[name])
		}
	}
}
