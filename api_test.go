package mcp_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
)

// TestAliasesListMethods compares the methods in the comment of an alias with those
// of its type: neither go doc nor the reference site shows them.
func TestAliasesListMethods(t *testing.T) {
	listed := map[string][]string{}
	for _, name := range []string{"mcp.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				continue
			}
			for line := range strings.Lines(decl.Doc.Text()) {
				if _, methods, ok := strings.Cut(strings.TrimPrefix(line, "\t"), "  "); ok && strings.HasPrefix(line, "\t") {
					alias := decl.Specs[0].(*ast.TypeSpec).Name.Name
					listed[alias] = append(listed[alias], strings.Split(strings.TrimSpace(methods), ", ")...)
				}
			}
		}
	}
	for alias, typ := range map[string]reflect.Type{
		"Frame": reflect.TypeFor[*mcp.Frame](), "Key": reflect.TypeFor[mcp.Key[int]](),
		"Error": reflect.TypeFor[*mcp.Error](), "Elicited": reflect.TypeFor[mcp.Elicited[int]](),
	} {
		var want []string
		for m := range typ.Methods() {
			want = append(want, m.Name)
		}
		slices.Sort(listed[alias])
		if !slices.Equal(listed[alias], want) {
			t.Errorf("the comment of %s lists\n%q, but the methods are\n%q", alias, listed[alias], want)
		}
	}
}

// TestAPI compares the exported surface with testdata/api.txt, so that no
// change of it goes unseen: go test -run TestAPI -update writes the file anew.
func TestAPI(t *testing.T) {
	var dirs []string
	for dir := range importGraph {
		if !strings.Contains("/"+dir+"/", "/internal/") && !strings.HasPrefix(dir, "cmd/") && !strings.HasPrefix(dir, "e2e/conformance/") && !strings.HasPrefix(dir, "examples/") {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	var out bytes.Buffer
	for _, dir := range dirs {
		writeAPI(t, &out, dir)
	}
	const golden = "testdata/api.txt"
	if *harness.Update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := harness.FirstDifference(string(want), out.String()); diff != "" {
		t.Errorf("the exported surface changed; if that is meant, run go test -run TestAPI -update\n%s", diff)
	}
}

func writeAPI(t *testing.T, out *bytes.Buffer, dir string) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	entries, err := os.ReadDir("./" + dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, "./"+dir+"/"+name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(fset, files, module+"/"+dir)
	if err != nil {
		t.Fatal(err)
	}
	if p.Name == "main" {
		return
	}
	fmt.Fprintf(out, "package %s // %s\n\n", p.Name, strings.TrimSuffix(p.ImportPath, "/"))
	values(out, fset, p.Consts)
	values(out, fset, p.Vars)
	functions(out, fset, p.Funcs)
	for _, typ := range p.Types {
		node(out, fset, typ.Decl)
		values(out, fset, typ.Consts)
		values(out, fset, typ.Vars)
		functions(out, fset, typ.Funcs)
		functions(out, fset, typ.Methods)
	}
}

func values(out *bytes.Buffer, fset *token.FileSet, list []*doc.Value) {
	for _, v := range list {
		node(out, fset, v.Decl)
	}
}

func functions(out *bytes.Buffer, fset *token.FileSet, list []*doc.Func) {
	for _, f := range list {
		f.Decl.Body = nil
		node(out, fset, f.Decl)
	}
}

// node prints a declaration without its comments and unexported parts, which
// package doc has taken out already.
func node(out *bytes.Buffer, fset *token.FileSet, decl ast.Decl) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		d.Doc = nil
	case *ast.GenDecl:
		d.Doc = nil
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				n.Doc, n.Comment = nil, nil
			case *ast.ValueSpec:
				n.Doc, n.Comment = nil, nil
			case *ast.TypeSpec:
				n.Doc, n.Comment = nil, nil
			}
			return true
		})
	}
	var text bytes.Buffer
	// Printing a parsed tree cannot fail.
	_ = printer.Fprint(&text, fset, decl)
	for line := range strings.Lines(text.String()) {
		if strings.TrimSpace(line) != "" {
			out.WriteString(line)
		}
	}
	out.WriteString("\n\n")
}
