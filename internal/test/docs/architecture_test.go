package docs_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const architecture = "../ARCHITECTURE.md"

var (
	firstCell = regexp.MustCompile("(?m)^\\| (`[^|]*) \\|")
	quoted    = regexp.MustCompile("`([^`]*)`")
	namesIn   = regexp.MustCompile("`([^`]*\\.go)`(?:: | \\()((?:`\\w+`(?:, | and )?)+)")
)

// wholes have one row for themselves and all that is below them, as programs
// have.
var wholes = []string{"internal/test/programs", "examples", "e2e", "bench"}

// TestArchitectureHasAllPackages: the table of ARCHITECTURE.md names every
// package of the library, and no others.
func TestArchitectureHasAllPackages(t *testing.T) {
	_, table, _ := strings.Cut(page(t, architecture), "\n## Packages\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := map[string]bool{}
	for _, row := range firstCell.FindAllStringSubmatch(table, -1) {
		dir := ""
		for _, name := range quoted.FindAllStringSubmatch(row[1], -1) {
			if dir != "" && !strings.Contains(name[1], "/") {
				name[1] = path.Join(dir, name[1]) // beside the one before
			}
			dir, named[name[1]] = path.Dir(name[1]), true
		}
	}
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".go") && (!strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, filepath.Join(root, "internal", "test", "docs"))) {
			dir, err := filepath.Rel(root, filepath.Dir(name))
			if err != nil {
				return err
			}
			found[filepath.ToSlash(dir)] = true
		}
		return nil
	})
	if err != nil || len(found) < 40 {
		t.Fatalf("found %d packages: %v", len(found), err)
	}
	for dir := range found {
		for _, whole := range wholes {
			if strings.HasPrefix(dir, whole+"/") {
				dir = whole
			}
		}
		if parts := strings.SplitN(dir, "/", 3); parts[0] == "cmd" {
			dir = parts[0] + "/" + parts[1]
		}
		if !named[dir] {
			t.Errorf("ARCHITECTURE.md has no package %s", dir)
		}
	}
	for dir := range named {
		if !found[dir] && !slices.Contains(wholes, dir) {
			t.Errorf("ARCHITECTURE.md has the package %s, which is not there", dir)
		}
	}
}

// TestArchitectureNamesFiles: the files that the page sends a reader to are there.
func TestArchitectureNamesFiles(t *testing.T) {
	total := 0
	for _, name := range quoted.FindAllStringSubmatch(page(t, architecture), -1) {
		if !strings.HasSuffix(name[1], ".go") {
			continue
		}
		total++
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name[1]))); err != nil {
			t.Errorf("ARCHITECTURE.md names %s: %v", name[1], err)
		}
	}
	if total < 20 {
		t.Errorf("found %d files only", total)
	}
}

// TestArchitectureNamesFuncs: what the page says to be in a file is declared there.
func TestArchitectureNamesFuncs(t *testing.T) {
	total := 0
	for _, place := range namesIn.FindAllStringSubmatch(page(t, architecture), -1) {
		code := page(t, filepath.Join("..", filepath.FromSlash(place[1])))
		for _, name := range quoted.FindAllStringSubmatch(place[2], -1) {
			total++
			if !regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|type )` + name[1] + `\b`).MatchString(code) {
				t.Errorf("ARCHITECTURE.md says that %s is in %s", name[1], place[1])
			}
		}
	}
	if total < 15 {
		t.Errorf("found %d names only", total)
	}
}

// TestArchitectureHasAllDependencies: the tables of modules name those that the
// modules of the workspace require themselves, and no others.
func TestArchitectureHasAllDependencies(t *testing.T) {
	_, tables, _ := strings.Cut(page(t, architecture), "\n## Dependencies\n")
	named := map[string]bool{}
	for _, row := range firstCell.FindAllStringSubmatch(tables, -1) {
		named[strings.Trim(row[1], "`")] = true
	}
	required := map[string]bool{}
	direct := regexp.MustCompile(`(?m)^(?:require )?\t?(\S+\.\S+/\S+) v\S+$`)
	for _, file := range []string{"../go.mod", "../cmd/talaria/go.mod", "../scale/redis/go.mod", "../telemetry/go.mod"} {
		for _, line := range direct.FindAllStringSubmatch(page(t, file), -1) {
			if line[1] != "github.com/talaria-go/mcp" {
				required[line[1]] = true
			}
		}
	}
	if len(required) < 15 {
		t.Fatalf("found %v only", required)
	}
	for module := range required {
		if !named[module] {
			t.Errorf("ARCHITECTURE.md has no reason for %s", module)
		}
	}
	for module := range named {
		if !required[module] {
			t.Errorf("ARCHITECTURE.md has a reason for %s, which is not required", module)
		}
	}
}
