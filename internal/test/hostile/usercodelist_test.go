package hostile_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository is the folder of the module.
const repository = "../../../"

// doors returns every place of the exported surface by which code of users
// gets in: "client.Options.Trace" for a field, "client.OnProgress(fn)" for a
// parameter, "client.Client.Listen(fn)" for one of a method, "tasks.Store" for an
// interface or a func type. What values do when they are decoded and encoded is
// not among them; see trapTools.
func doors(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		dir, err := filepath.Rel(repository, path)
		if slices.Contains([]string{"cmd", "e2e", "bench"}, dir) || d.Name() == "internal" || d.Name() == "testdata" || dir != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if err == nil {
			scanDoors(t, dir, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(found))
}

// foreign are interfaces of other modules, and structs that hold one, by which
// code of users gets in.
var foreign = []string{
	"http.Client", "http.RoundTripper", "http.Handler", "net.Listener", "net.Conn", "fs.FS", "zerolog.Logger", "slog.Logger", "slog.Handler",
	"io.Reader", "io.Writer", "io.ReadWriter", "io.ReadCloser", "io.WriteCloser", "io.ReadWriteCloser", "http.CookieJar", "crypto.Signer",
}

func scanDoors(t *testing.T, dir string, found map[string]bool) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	entries, err := os.ReadDir(filepath.Join(repository, dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, filepath.Join(repository, dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if len(files) == 0 || files[0].Name.Name == "main" { // nobody imports a program
		return
	}
	p, err := doc.NewFromFiles(fset, files, dir)
	if err != nil {
		t.Fatal(err)
	}
	function := func(owner string, f *doc.Func) {
		for _, field := range f.Decl.Type.Params.List {
			if !lets(field.Type) {
				continue
			}
			for _, name := range field.Names {
				found[fmt.Sprintf("%s.%s%s(%s)", p.Name, owner, f.Name, name.Name)] = true
			}
		}
	}
	for _, f := range p.Funcs {
		function("", f)
	}
	for _, typ := range p.Types {
		for _, f := range typ.Funcs {
			function("", f)
		}
		for _, f := range typ.Methods {
			function(typ.Name+".", f)
		}
		for _, spec := range typ.Decl.Specs {
			spec := spec.(*ast.TypeSpec)
			switch u := spec.Type.(type) {
			case *ast.FuncType, *ast.InterfaceType:
				found[p.Name+"."+spec.Name.Name] = true
			case *ast.StructType:
				for _, field := range u.Fields.List {
					if !lets(field.Type) {
						continue
					}
					for _, name := range field.Names {
						found[p.Name+"."+typ.Name+"."+name.Name] = true
					}
				}
			}
		}
	}
}

// lets says whether a value of the type may hold code of users.
func lets(expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.FuncType:
		return true
	case *ast.Ellipsis:
		return lets(e.Elt)
	case *ast.ArrayType:
		return lets(e.Elt)
	case *ast.MapType:
		return lets(e.Value)
	case *ast.StarExpr:
		return lets(e.X)
	}
	return slices.Contains(foreign, types.ExprString(expr))
}
