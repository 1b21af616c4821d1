// Package programs_test measures the programs below this directory, and runs each
// of them.
package programs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/talaria-go/mcp"

// ceilings are what programs that show the common path may take: lines without
// blanks and comments, and different names of the library.
var ceilings = map[string]struct{ lines, names int }{
	"hello":     {19, 5},
	"order":     {37, 6},
	"chart":     {35, 6},
	"config":    {31, 7},
	"review":    {23, 6},
	"remove":    {30, 6},
	"importing": {28, 6},
	"notes":     {34, 9},
	"forecast":  {28, 6},
	"tested":    {46, 11},
}

// TestPrograms holds each program to its ceilings, and uses it once.
func TestPrograms(t *testing.T) {
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(ceilings) {
		t.Errorf("there are %q; want one file for each of %d programs", files, len(ceilings))
	}
	built := build(t)
	for _, file := range files {
		name := filepath.Dir(file)
		t.Run(name, func(t *testing.T) {
			ceiling := ceilings[name]
			lines, names := measure(t, file)
			if lines > ceiling.lines || len(names) > ceiling.names {
				t.Errorf("it has %d lines and %d names %v; it may have %d and %d", lines, len(names), names, ceiling.lines, ceiling.names)
			}
			if runs[name] == nil {
				t.Fatal("nothing runs it")
			}
			runs[name](t, built)
		})
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
