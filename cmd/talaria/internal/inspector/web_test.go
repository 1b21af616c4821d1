package inspector

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// vendored is the checksum of the file that is made of npm's.
const vendored = "7aa62d8f4ff567111257fee83e408a71a41a3d5fb7292f2b612ac8ef33dc073f"

// The bounds of what the browser loads.
const (
	maxAssets = 160_000 // bytes
	maxLines  = 2600    // of our own JavaScript
)

// TestAssets: nothing in the page makes code or markup of text, or leads
// elsewhere; and it stays small.
func TestAssets(t *testing.T) {
	unsafe := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|\bFunction\(|dangerouslySet|srcdoc|localStorage|document\.cookie|importScripts`)
	bytes, lines, declared := len(frameDocument), 0, map[string]string{}
	for name, text := range assets() {
		if !strings.Contains(name, "LICENSE") {
			bytes += len(text)
		}
	}
	top := regexp.MustCompile(`^(?:export )?(?:async )?(?:const|let|function|class) ([\w$]+)`)
	err := fs.WalkDir(web, "web", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(name, "LICENSE") {
			return err
		}
		text, err := fs.ReadFile(web, name)
		if err != nil {
			return err
		}
		if path.Ext(name) == ".js" && !slices.Contains(scripts, path.Base(name)) {
			t.Errorf("%s is not served", name)
		}
		if path.Base(name) == "vendor.js" {
			if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != vendored {
				t.Errorf("vendor.js has the checksum %x", sum)
			}
			return nil
		}
		if path.Ext(name) == ".js" {
			lines += strings.Count(string(text), "\n")
		}
		for n, line := range strings.Split(string(text), "\n") {
			if found := unsafe.FindString(line); found != "" {
				t.Errorf("%s:%d has %s", name, n+1, found)
			}
			if strings.Contains(strings.ReplaceAll(line, "https?:", ""), "://") {
				t.Errorf("%s:%d leads elsewhere: %s", name, n+1, line)
			}
			if m := top.FindStringSubmatch(line); m != nil && path.Ext(name) == ".js" {
				if other := declared[m[1]]; other != "" {
					t.Errorf("%s:%d declares %s, as %s does: the modules are one script", name, n+1, m[1], other)
				}
				declared[m[1]] = name
			}
			if strings.HasPrefix(strings.TrimLeft(line, " "), "import ") && !strings.HasSuffix(line, ".js'") {
				t.Errorf("%s:%d: an import is one line", name, n+1)
			}
		}
		return nil
	})
	t.Logf("%d bytes, %d lines of JavaScript", bytes, lines)
	if err != nil || bytes > maxAssets || lines > maxLines || lines < 100 {
		t.Errorf("%v, %d bytes, %d lines", err, bytes, lines)
	}
}

// TestPage: the page names its files by their content.
func TestPage(t *testing.T) {
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		Page("").ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	index := get("/")
	if index.Code != http.StatusOK || strings.Contains(index.Body.String(), "<script>") {
		t.Fatalf("%d %s", index.Code, index.Body)
	}
	names := regexp.MustCompile(`"(/web/[0-9a-f]{12}/[a-z.]+)"`).FindAllStringSubmatch(index.Body.String(), -1)
	if len(names) != 2 {
		t.Fatalf("%s", index.Body)
	}
	for _, name := range names {
		if w := get(name[1]); w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", name[1], w.Code, w.Header())
		}
	}
	for _, name := range []string{"/web/app.js", "/app.js", path.Dir(names[0][1]) + "/program.js", path.Dir(names[0][1]) + "/../../pages.go", path.Dir(names[0][1]) + "/", "/favicon.ico"} {
		if w := get(name); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
}
