package mcp_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// programCeilings are what programs that show the common path may take: lines
// without blanks and comments, and different names of the library. They are
// built with everything else.
var programCeilings = map[string]struct{ lines, names int }{
	"hello":     {19, 5},
	"order":     {37, 6},
	"chart":     {35, 6},
	"config":    {31, 7},
	"review":    {23, 6},
	"remove":    {30, 6},
	"importing": {28, 6},
	"notes":     {34, 9},
	"forecast":  {28, 6},
}

func TestPrograms(t *testing.T) {
	dirs, err := os.ReadDir("internal/programs")
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) != len(programCeilings) {
		t.Errorf("there are %d programs, and ceilings for %d", len(dirs), len(programCeilings))
	}
	for _, dir := range dirs {
		ceiling := programCeilings[dir.Name()]
		files, err := filepath.Glob(filepath.Join("internal/programs", dir.Name(), "*.go"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s: %d files, %v; want one", dir.Name(), len(files), err)
		}
		lines, names := measure(t, files[0])
		if lines > ceiling.lines || len(names) > ceiling.names {
			t.Errorf("%s has %d lines and %d names %v; it may have %d and %d", dir.Name(), lines, len(names), names, ceiling.lines, ceiling.names)
		}
	}
}

// measure counts the lines of a file without blanks and comments, and the
// different names that it uses of the packages of this module.
func measure(t *testing.T, path string) (lines int, names []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			lines++
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]bool{}
	for _, spec := range file.Imports {
		if at := strings.Trim(spec.Path.Value, `"`); strings.HasPrefix(at, module) {
			ours[filepath.Base(at)] = true
		}
	}
	seen := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if of, ok := selector.X.(*ast.Ident); ok && ours[of.Name] && !seen[of.Name+"."+selector.Sel.Name] {
			seen[of.Name+"."+selector.Sel.Name] = true
			names = append(names, of.Name+"."+selector.Sel.Name)
		}
		return true
	})
	return lines, names
}
