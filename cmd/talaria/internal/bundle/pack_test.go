package bundle

import (
	"archive/zip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// planted is in no bundle.
const planted = "sk-live-planted"

// project writes the source of a program, which needs nothing but the standard
// library, with secrets beside it.
func project(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.com/orders\n\ngo 1.26.0\n",
		"main.go":       "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"ready\\n\") }\n",
		"manifest.json": valid,
		"LICENSE":       "as you like\n",
		"data/a.json":   "{}\n",
		"data/key.txt":  planted,
		".env":          "KEY=" + planted + "\n",
		".git/config":   planted,
		"icon.png":      string(pngSignature) + "rest",
		"icon.svg":      "<svg/>",
		"lib/lib.go":    "package lib\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pack packs a project for linux/amd64, with files of it.
func pack(t *testing.T, dir, out string, files ...string) (*Result, error) {
	t.Helper()
	for i, name := range files {
		files[i] = filepath.Join(dir, filepath.FromSlash(name))
	}
	return Pack(t.Context(), Source{Manifest: filepath.Join(dir, ManifestName), Package: dir, Files: files, Target: Target{"linux", "amd64"}}, out)
}

// A manifest in which an editor or a formatter has left its forms makes the same bundle.
func TestManifestForms(t *testing.T) {
	testdep.LookPath(t, "go")
	dir := project(t)
	want, err := pack(t, dir, filepath.Join(dir, "a.mcpb"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ManifestName), []byte("\ufeff\r\n"+valid), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := pack(t, dir, filepath.Join(dir, "b.mcpb")); err != nil || got.SHA256 != want.SHA256 {
		t.Errorf("with a mark: %+v, %v", got, err)
	}
	for name, form := range map[string][2]string{
		"half a pair": {`"Orders of the shop"`, `"Orders of the shop \ud83d"`},
		"numbers":     {`"sensitive": true`, `"sensitive": true, "min": 1.0, "max": 1e1`},
	} {
		if _, err := Read([]byte(strings.Replace(valid, form[0], form[1], 1))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Two folders and two environments give the same bytes, in which there is what was
// named and nothing of the machine.
func TestPack(t *testing.T) {
	testdep.LookPath(t, "go")
	one, two := project(t), project(t)
	first, err := pack(t, one, filepath.Join(one, "a.mcpb"), "data/a.json", "LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"GOFLAGS": "-ldflags=-X=main.key=" + planted, "TZ": "Asia/Tokyo", "GOAMD64": "v3", "CGO_ENABLED": "1", "GOOS": "plan9"} {
		t.Setenv(name, value)
	}
	if err := os.WriteFile(filepath.Join(two, "untracked.txt"), []byte(planted), 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := pack(t, two, filepath.Join(two, "b.mcpb"), "LICENSE", "data/a.json")
	if err != nil {
		t.Fatal(err)
	}
	if first.SHA256 != second.SHA256 || first.Size != second.Size || !released.MatchString(first.Toolchain) {
		t.Errorf("got %+v and %+v", first, second)
	}
	if want := []string{"manifest.json", "server/orders", "LICENSE", "data/a.json"}; !slices.Equal(first.Names, want) {
		t.Errorf("got %q, want %q", first.Names, want)
	}
	r, err := zip.OpenReader(first.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i, f := range r.File {
		mode, unix := os.FileMode(0o644), f.CreatorVersion>>8 == 3
		if f.Name == "server/orders" {
			mode = 0o755
		}
		if f.Name != first.Names[i] || f.Mode() != mode || !unix || len(f.Extra) > 0 || f.ModifiedDate != firstDay || f.ModifiedTime != 0 || f.Comment != "" {
			t.Errorf("got %+v", f.FileHeader)
		}
		from, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		for _, absent := range []string{planted, one, two, "vcs.revision"} {
			if strings.Contains(string(data), absent) {
				t.Errorf("%s has %q", f.Name, absent)
			}
		}
	}
	if left, err := filepath.Glob(filepath.Join(one, ".talaria-*")); err != nil || len(left) > 0 {
		t.Errorf("got %q, %v", left, err)
	}
}

// A bundle takes the place of nothing but a bundle, and of none that is a part of it.
func TestPackKeeps(t *testing.T) {
	testdep.LookPath(t, "go")
	dir := project(t)
	out := filepath.Join(dir, "out.mcpb")
	for range 2 { // the second time there is one already
		if _, err := pack(t, dir, out, "LICENSE"); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.Symlink(filepath.Join(dir, "main.go"), link), os.Link(filepath.Join(dir, "LICENSE"), filepath.Join(dir, "hard"))); err != nil {
		t.Skip(err)
	}
	empty := filepath.Join(dir, "empty.zip")
	f, err := os.Create(empty)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(zip.NewWriter(f).Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ out, want string }{
		{"main.go", "exists and is not a bundle"}, {"link", "exists and is not a bundle"}, {"data/key.txt", "exists and is not a bundle"},
		{"go.mod", "exists and is not a bundle"}, {"empty.zip", "exists and is not a bundle"}, {"data", "it is a directory"},
		{"LICENSE", "is a file of the bundle itself"}, {"hard", "is a file of the bundle itself"}, {ManifestName, "is a file of the bundle itself"},
		{"icon.png", "exists and is not a bundle"}, {"out.mcpb", "is a file of the bundle itself"},
	} {
		before, _ := os.ReadFile(filepath.Join(dir, test.out)) // a directory has no text
		_, err := pack(t, dir, filepath.Join(dir, test.out), "LICENSE", "out.mcpb")
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.out, err, test.want)
		}
		if after, _ := os.ReadFile(filepath.Join(dir, test.out)); string(after) != string(before) {
			t.Errorf("%s was changed", test.out)
		}
	}
}

// What was not meant for everybody cannot be named.
func TestPackRefuses(t *testing.T) {
	dir := project(t)
	if runtime.GOOS != "windows" {
		if err := os.Symlink("/etc/hostname", filepath.Join(dir, "link.txt")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc", filepath.Join(dir, "etc")); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		files []string
		want  string
	}{
		{[]string{"data"}, "data is a folder; name each of its files"},
		{[]string{"."}, "cannot be the name of a file in a bundle"},
		{[]string{".env"}, `".env" cannot be the name of a file in a bundle: it is hidden`},
		{[]string{".git/config"}, "it is hidden"},
		{[]string{"../orders.key"}, "is not below"},
		{[]string{"no.txt"}, "no.txt: no such file"},
		{[]string{"LICENSE", "LICENSE"}, "LICENSE is named twice"},
		{[]string{"manifest.json"}, "would be one file"},
		{[]string{"link.txt"}, "link.txt is a link"},
		{[]string{"etc/hostname"}, "escapes"},
	} {
		if runtime.GOOS == "windows" && (test.files[0] == "link.txt" || test.files[0] == "etc/hostname") {
			continue
		}
		if _, err := pack(t, dir, filepath.Join(dir, "out.mcpb"), test.files...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want %s", test.files, err, test.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out.mcpb")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a bundle was written: %v", err)
	}
}

// What a manifest names is in the bundle, or it is an error.
func TestPackComplete(t *testing.T) {
	dir := project(t)
	for _, test := range []struct{ old, new, want string }{
		{`"author"`, `"icon": "icon.svg", "author"`, "/icon: icon.svg is no PNG"},
		{`"author"`, `"icon": "no.png", "author"`, "/icon: "},
		{`"author"`, `"icon": "../icon.png", "author"`, "/icon: "},
		{`"author"`, `"icons": [{"src": "/etc/icon.png", "size": "1x1"}], "author"`, "/icons/0/src: "},
		{`"author"`, `"screenshots": ["icon.png"], "author"`, `/screenshots/0: the bundle would have no file "icon.png"; name it on the command line`},
		{`"author"`, `"localization": {"resources": "texts/${locale}.json", "default_locale": "en"}, "author"`, `no file "texts/en.json"`},
		{`${user_config.key}`, `${__dirname}/data`, `/server/mcp_config/env/ORDERS_KEY: the bundle would have no "data"`},
		{`"server/orders"`, `"LICENSE"`, "would be one file"},
		{`"server/orders"`, `"LICENSE/orders"`, "LICENSE would be a file and the folder of LICENSE/orders"},
	} {
		text := strings.Replace(valid, test.old, test.new, 1)
		if test.old == `"server/orders"` {
			text = strings.Replace(text, "/server/orders", "/"+strings.Trim(test.new, `"`), 1)
		}
		if err := os.WriteFile(filepath.Join(dir, ManifestName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := pack(t, dir, filepath.Join(dir, "out.mcpb"), "LICENSE"); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.new, err, test.want)
		}
	}
}

// What cannot be built again by others is not built.
func TestBuildFaults(t *testing.T) {
	testdep.LookPath(t, "go")
	dir := project(t)
	source := Source{Manifest: filepath.Join(dir, ManifestName), Package: filepath.Join(dir, "lib"), Target: Target{"linux", "amd64"}}
	if _, err := Pack(t.Context(), source, filepath.Join(dir, "out.mcpb")); err == nil || !strings.Contains(err.Error(), "has package lib; name the directory of a program") {
		t.Errorf("got %v", err)
	}
	source.Package, source.Toolchain = dir, "devel"
	if _, err := Pack(t.Context(), source, filepath.Join(dir, "out.mcpb")); err == nil || !strings.Contains(err.Error(), `"devel" is no release of Go`) {
		t.Errorf("got %v", err)
	}
	source.Toolchain, source.Target.Arch = "", "z80"
	if _, err := Pack(t.Context(), source, filepath.Join(dir, "out.mcpb")); err == nil || !strings.Contains(err.Error(), "z80") {
		t.Errorf("got %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	source.Target.Arch = "amd64"
	if _, err := Pack(stopped, source, filepath.Join(dir, "out.mcpb")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Of the environment a build gets what says where modules come from, and nothing
// that changes the program.
func TestEnvironment(t *testing.T) {
	got := environment([]string{"PATH=/bin", "GOFLAGS=-race", "GOEXPERIMENT=x", "GOARM64=v9", "CGO_CFLAGS=-O0", "GOWORK=/w", "GODEBUG=a=1", "GOPROXY=off", "GOCACHE=/c"},
		Target{"darwin", "arm64"}, "go1.26.1", map[string]string{"GOPROXY": "https://proxy.example"})
	want := []string{"PATH=/bin", "GOPROXY=off", "GOCACHE=/c", "GOPROXY=https://proxy.example",
		"GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0", "GOFLAGS=", "GOENV=off", "GOWORK=off", "GOTOOLCHAIN=go1.26.1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUsable(t *testing.T) {
	for name, want := range map[string]bool{"a": true, "a/b.txt": true, "ü/ö.json": true, "-x": true, "": false, ".": false, "/a": false, "a/": false,
		"a//b": false, "../a": false, "a/../b": false, ".env": false, "a/.git/b": false, `a\b`: false, "a:b": false, "a.": false, "a ": false, "con": false,
		"x/NUL.txt": false, "console": true, "a\nb": false, "\xff": false, "$x": false, strings.Repeat("a", 241): false} {
		if got := usable(name); got != want {
			t.Errorf("%q: got %t", name, got)
		}
	}
}
