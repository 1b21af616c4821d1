// Package docs_test holds the README and the pages of docs to what is
// so: their code compiles and works, their commands run, their links lead
// somewhere.
package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// root is the folder of the module, and folder that of the pages.
const root, folder = "../../..", "../../../docs"

const readme = "../README.md"

// elsewhere are the files that hold the code of a page besides its test.
var elsewhere = map[string][]string{
	"cookbook.md":         {"transports_test.go", "extending_test.go"},
	"custom-methods.md":   {"extending_test.go"},
	"middleware.md":       {"extending_test.go"},
	"mounting.md":         {"extending_test.go"},
	"notifications.md":    {"longwork_test.go"},
	"pools-and-groups.md": {"clients_test.go"},
	"progress.md":         {"longwork_test.go"},
	"prompts.md":          {"resources_test.go"},
	"tags.md":             {"tools_test.go"},
	"tasks.md":            {"longwork_test.go"},
	"bundles.md":          {"../examples/bundle/*.go"},
	"from-go-sdk.md":      {"../examples/notes/*.go", "../e2e/servers/notes/gosdk/*.go"},
	"from-mcp-go.md":      {"../examples/notes/*.go", "../e2e/servers/notes/mcpgo/*.go"},
	"operations.md":       {"../examples/service/*.go", "extending_test.go"},
	"scale.md":            {"../scale/redis/example/*.go"},
	"transports.md":       {"extending_test.go"},
	"telemetry.md":        {"../telemetry/*_test.go", "../e2e/prometheus/*.go"},
	"from-fastmcp.md":     {"../examples/notes/*.go", "../e2e/python/notes.py"},
}

// pages returns the README and the pages, as they are named from docs.
func pages(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil || len(names) < 13 {
		t.Fatalf("found %q: %v", names, err)
	}
	for i, name := range names {
		names[i] = filepath.Base(name)
	}
	return append(names, readme)
}

// page returns the text of a page, or of another file, which is named from docs, too.
func page(t *testing.T, name string) string {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(folder, name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// blocks returns the code in a language of a page.
func blocks(text, language string) []string {
	var found []string
	for _, block := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		found = append(found, block[1])
	}
	return found
}

// isProgram reports whether code is a whole program.
func isProgram(code string) bool { return strings.HasPrefix(code, "package main\n") }

// TestCode: every piece of code stands, as it is, in the test of its page, or in
// a program that a test runs.
func TestCode(t *testing.T) {
	total := 0
	for _, name := range pages(t) {
		for language, suffix := range map[string]string{"go": "_test.go", "python": ".py"} {
			for _, code := range blocks(page(t, name), language) {
				if total++; isProgram(code) || name == "tutorial.md" { // TestTutorial runs all of it
					continue
				}
				var files []string
				for _, pattern := range append([]string{strings.ReplaceAll(strings.TrimSuffix(name, ".md"), "-", "") + suffix}, elsewhere[name]...) {
					if strings.HasSuffix(pattern, "_test.go") && !strings.HasPrefix(pattern, "..") {
						pattern = filepath.Join("..", "internal", "test", "docs", pattern) // as this is
					}
					found, err := filepath.Glob(filepath.Join(folder, pattern))
					if err != nil {
						t.Fatal(err)
					}
					for _, file := range found {
						if file, err = filepath.Abs(file); err != nil {
							t.Fatal(err)
						}
						files = append(files, file)
					}
				}
				if !standsInOne(t, files, code) {
					t.Errorf("%s has code that is not in any of %q as it is there:\n%s", name, files, code)
				}
			}
		}
	}
	if total < 30 {
		t.Errorf("found %d pieces of code only", total)
	}
}

func standsInOne(t *testing.T, files []string, code string) bool {
	for _, file := range files {
		if standsIn(page(t, file), code) {
			return true
		}
	}
	return false
}

// standsIn reports whether code is in text, indented by up to two tabs.
func standsIn(text, code string) bool {
	for _, indent := range []string{"", "\t", "\t\t"} {
		var indented strings.Builder
		for line := range strings.Lines(code) {
			if line != "\n" {
				indented.WriteString(indent)
			}
			indented.WriteString(line)
		}
		if strings.Contains("\n"+text, "\n"+indented.String()) {
			return true
		}
	}
	return false
}

// TestPrograms: whole programs build and pass go vet. A test of cmd/example runs
// that of the README, too.
func TestPrograms(t *testing.T) {
	tool := testdep.LookPath(t, "go")
	total := 0
	for _, name := range pages(t) {
		for _, code := range blocks(page(t, name), "go") {
			if !isProgram(code) || name == "tutorial.md" {
				continue
			}
			total++
			source := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), tool, "vet", source).CombinedOutput(); err != nil {
				t.Errorf("%s: go vet: %v\n%s", name, err, out)
			}
		}
	}
	if total < 3 {
		t.Errorf("found %d programs only", total)
	}
}

// TestPages: no page is too long, each begins with its title, and the index has
// all of them.
func TestPages(t *testing.T) {
	index := page(t, "README.md")
	for _, name := range pages(t) {
		text, most := page(t, name), 250
		if name == readme {
			most = 200
		}
		if lines := strings.Count(text, "\n"); lines > most {
			t.Errorf("%s has %d lines, more than %d", name, lines, most)
		}
		if !strings.HasPrefix(text, "# ") {
			t.Errorf("%s has no title", name)
		}
		if name != "README.md" && name != readme && !strings.Contains(index, "]("+name+")") {
			t.Errorf("the index has no %s", name)
		}
	}
}

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	letters = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestMethodsOfPages checks that Frame (f), Server (s) and the clients (c) have the methods
// that pages name in their sentences.
func TestMethodsOfPages(t *testing.T) {
	methods := map[string]bool{}
	of := map[string]string{"Frame": "f", "Server": "s", "Client": "c"}
	for _, m := range regexp.MustCompile(`(?m)^func \(\w+ \*?(Frame|Server|Client)\) (\w+)`).FindAllStringSubmatch(page(t, "../testdata/api.txt"), -1) {
		methods[of[m[1]]+"."+m[2]] = true
	}
	named := regexp.MustCompile("`([fsc]\\.[A-Z]\\w*)[(`]")
	found := 0
	for _, name := range pages(t) {
		if strings.HasPrefix(name, "from-") {
			continue // which name those of others
		}
		for _, m := range named.FindAllStringSubmatch(page(t, name), -1) {
			if found++; !methods[m[1]] && m[1] != "f.Done" && m[1] != "f.Err" {
				t.Errorf("%s: there is no method %s", name, m[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("found %d names only", found)
	}
}

// TestLinks: links within the repository lead to a file, and to a heading of it.
func TestLinks(t *testing.T) {
	total := 0
	for _, name := range append(pages(t), "../ARCHITECTURE.md", "../CONTRIBUTING.md") {
		for _, found := range link.FindAllStringSubmatch(fenced.ReplaceAllString(page(t, name), ""), -1) {
			if strings.Contains(found[1], ":") {
				continue
			}
			total++
			file := name
			if found[1] != "" {
				file = filepath.Join(filepath.Dir(name), found[1])
			}
			if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
				t.Errorf("%s links to %s, which is not there", name, found[1])
				continue
			}
			if anchor := strings.TrimPrefix(found[2], "#"); anchor != "" && !hasHeading(page(t, file), anchor) {
				t.Errorf("%s links to %s, which has no heading %s", name, file, anchor)
			}
		}
	}
	if total < 60 {
		t.Errorf("found %d links only", total)
	}
}

func hasHeading(text, anchor string) bool {
	for _, found := range heading.FindAllStringSubmatch(text, -1) {
		id := letters.ReplaceAllString(strings.ToLower(found[1]), "")
		if strings.ReplaceAll(id, " ", "-") == anchor {
			return true
		}
	}
	return false
}
