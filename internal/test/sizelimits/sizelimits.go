// Package sizelimits measures the code of this module: how long its files and
// functions are, over how many files the methods of a type are spread, and how
// many names it exports. Its test holds the limits.
//
// A func or method that takes a struct of an internal package is not counted as
// exported: code outside of the module cannot make such a value, and thus call
// it. By a pointer or an interface it could be called with nil, which counts.
package sizelimits

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// module is the path of this module.
const module = "github.com/talaria-go/mcp"

// Code is what was counted. Test files, other modules and testdata are left out.
type Code struct {
	Files     map[string]int      // by package directory, "" for the root
	Lines     map[string]int      // by package directory
	Comments  map[string]int      // lines with a comment and nothing else, by package directory
	Exported  map[string]int      // names by package directory: constants, variables, types, funcs, methods
	Methods   map[string][]string // files with methods, by "directory.Type"
	LongFiles map[string]int      // lines by file
	LongFuncs map[string]int      // lines by "file:Func"

	structs map[string]bool   // by "directory.Type"
	derived map[string]string // what "type A B" makes of what, both as "directory.Type"
	guarded []internalOnly
}

// internalOnly is an exported func that may be only for packages of the module: if
// one of its parameters is a struct.
type internalOnly struct {
	dir   string
	takes []string // types of internal packages, as in Code.structs
}

// Measure counts the code below a directory.
func Measure(root string) (*Code, error) {
	c := &Code{Files: map[string]int{}, Lines: map[string]int{}, Comments: map[string]int{}, Exported: map[string]int{},
		Methods: map[string][]string{}, LongFiles: map[string]int{}, LongFuncs: map[string]int{}, structs: map[string]bool{}, derived: map[string]string{}}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || isOtherModule(name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		return c.file(name, rel)
	})
	for _, g := range c.guarded {
		if !slices.ContainsFunc(g.takes, func(t string) bool { return c.structs[t] && isInternal(t[:strings.LastIndexByte(t, '.')]) }) {
			c.Exported[g.dir]++
		}
	}
	return c, err
}

// isInternal tells a package directory, or the path of an import, that is below
// internal.
func isInternal(dir string) bool { return strings.Contains("/"+dir+"/", "/internal/") }

// isOtherModule reports whether a directory is the root of another module.
func isOtherModule(dir string) bool {
	found, err := filepath.Glob(filepath.Join(dir, "go.mod"))
	return err == nil && len(found) > 0
}

// Library reports whether a package directory is a part of the library, and not
// a program, an example or a help for tests of this project.
func Library(dir string) bool {
	for _, prefix := range []string{"cmd/", "e2e/", "examples/", "internal/test/", "client/internal/linktest"} {
		if strings.HasPrefix(dir+"/", prefix) || dir == prefix {
			return false
		}
	}
	return true
}

// Public reports whether users of the library can import a package directory.
func Public(dir string) bool {
	return Library(dir) && !isInternal(dir)
}

func (c *Code) file(name, rel string) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := path.Dir(rel)
	if dir == "." {
		dir = ""
	}
	lines := fset.File(f.Pos()).LineCount() - 1 // the last newline begins one
	c.Files[dir]++
	c.Lines[dir] += lines
	c.LongFiles[rel] = lines
	c.Comments[dir] += commentLines(fset, f)
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			c.function(fset, f, d, dir, rel)
		case *ast.GenDecl:
			c.declared(f, d, dir)
		}
	}
	return nil
}

func (c *Code) function(fset *token.FileSet, f *ast.File, d *ast.FuncDecl, dir, rel string) {
	name := d.Name.Name
	exported := d.Name.IsExported()
	if d.Recv != nil {
		receiver := receiverName(d.Recv.List[0].Type)
		key := dir + "." + receiver
		if !slices.Contains(c.Methods[key], rel) {
			c.Methods[key] = append(c.Methods[key], rel)
		}
		name, exported = receiver+"."+name, exported && ast.IsExported(receiver)
	}
	if takes := fromInternal(f, d.Type.Params); exported && len(takes) > 0 {
		c.guarded = append(c.guarded, internalOnly{dir, takes})
	} else if exported {
		c.Exported[dir]++
	}
	c.LongFuncs[rel+":"+name] = fset.Position(d.End()).Line - fset.Position(d.Pos()).Line + 1
}

// fromInternal returns which types of internal packages of this module are those
// of parameters, as they are, and not behind a pointer or in a list.
func fromInternal(f *ast.File, params *ast.FieldList) (types []string) {
	for _, param := range params.List {
		if of, ok := param.Type.(*ast.SelectorExpr); ok {
			if t := typeOf(f, "", of); isInternal(strings.TrimSuffix(t, "."+of.Sel.Name)) {
				types = append(types, t)
			}
		}
	}
	return types
}

// typeOf returns the "directory.Type" of a type of this module that a file in dir
// names, "" if it is another one.
func typeOf(f *ast.File, dir string, t ast.Expr) string {
	of, ok := t.(*ast.SelectorExpr)
	if !ok {
		return dir + "." + t.(*ast.Ident).Name
	}
	for _, imported := range f.Imports {
		dir, ours := strings.CutPrefix(strings.Trim(imported.Path.Value, `"`), module+"/")
		name := path.Base(dir)
		if imported.Name != nil {
			name = imported.Name.Name
		}
		if pkg, ok := of.X.(*ast.Ident); ok && ours && pkg.Name == name {
			return dir + "." + of.Sel.Name
		}
	}
	return ""
}

// hidden returns the types that are made of another struct which has methods, and
// thus hide these: "type A B".
func (c *Code) hidden() (types []string) {
	for name, from := range c.derived {
		if c.structs[from] && len(c.Methods[from]) > 0 {
			types = append(types, name+" is a "+from)
		}
	}
	return types
}

func (c *Code) declared(f *ast.File, d *ast.GenDecl, dir string) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				c.Exported[dir]++
			}
			switch of := spec.Type.(type) {
			case *ast.StructType:
				c.structs[dir+"."+spec.Name.Name] = true
			case *ast.Ident, *ast.SelectorExpr:
				if from := typeOf(f, dir, of); from != "" && !spec.Assign.IsValid() {
					c.derived[dir+"."+spec.Name.Name] = from
				}
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() {
					c.Exported[dir]++
				}
			}
		}
	}
}

func receiverName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiverName(t.X)
	case *ast.IndexExpr:
		return receiverName(t.X)
	case *ast.IndexListExpr:
		return receiverName(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// commentLines counts the lines that have only a comment.
func commentLines(fset *token.FileSet, f *ast.File) int {
	code := map[int]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n.(type) {
		case nil, *ast.CommentGroup, *ast.Comment:
			return false
		case *ast.File:
			return true
		}
		code[fset.Position(n.Pos()).Line] = true
		return true
	})
	lines := 0
	for _, group := range f.Comments {
		for _, comment := range group.List {
			first := fset.Position(comment.Pos()).Line
			if !code[first] {
				lines += bytes.Count([]byte(comment.Text), []byte("\n")) + 1
			}
		}
	}
	return lines
}
