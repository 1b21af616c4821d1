package sizelimits

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tree holds what the Go files of the repository declare, by the names that a
// comment uses for it.
type tree struct {
	packages map[string]map[string]bool // members, by the name of the package
	types    map[string][]string        // "package.Type" by Type
	members  map[string]map[string]bool // fields and methods, by "package.Type"
	embeds   map[string][]string        // what else the members are from, by "package.Type"
	used     map[string]map[string]bool // identifiers, and words of literal texts, by the name of the package
	texts    []text
}

// text is a comment, or a span of code of a page.
type text struct {
	where   string
	pkg     string
	foreign map[string]bool // packages of other modules that its file imports
	code    string
}

var (
	word       = regexp.MustCompile(`[A-Za-z_]\w*`)
	qualified  = regexp.MustCompile(`[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+`)
	inBrackets = regexp.MustCompile(`(?:^|[\s(])\[\*?([A-Z]\w*)\](?:[\s).,:;]|$)`)
	camelCase  = regexp.MustCompile(`(?:^|[^.\w])([A-Z][a-z0-9]+[A-Z]\w*)`)
	option     = regexp.MustCompile(`\b[A-Z]\w*(?:Options|Limits|Timeouts)\.[A-Z]\w*|\b(?:Options|Limits|Timeouts)\.[A-Z]\w*`)
	span       = regexp.MustCompile("`[^`\n]+`")
)

// variables are what pages call values.
var variables = map[string]string{"f": "frame.Frame", "s": "mcp.Server"}

// others are names of other projects and of examples that comments show.
var others = map[string]bool{
	"AppBridge": true, "JavaScript": true, "GiB": true, "KiB": true, "MiB": true, "TestMain": true, "OpenAI": true, "OpenID": true, "WebSocket": true, "WebSockets": true, "FastMCP": true, "OpenTelemetry": true, "PromptCompletionProvider": true, "SpanExporter": true, "SpanProcessor": true,
	"EdDSA": true, "GitHub": true, "TextMapCarrier": true, "TypeScript": true, "UnmarshalText": true, "WebRTC": true,
	"BesideOfficial": true, "AddIn": true, "FailNow": true, "FieldByIndex": true, "LimitNOFILE": true, "P2DT12H": true, "RegisterAlias": true, "TestMyTransport": true,
	"ErrTooLong": true, "Order.Items": true, "Range.From": true, "Server.Close": true, "registry.Add": true,
}

func readTree(root string) (*tree, error) {
	n := &tree{map[string]map[string]bool{}, map[string][]string{}, map[string]map[string]bool{}, map[string][]string{}, map[string]map[string]bool{}, nil}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch base := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") && name != root):
			return fs.SkipDir
		case strings.HasSuffix(base, ".go"):
			return n.file(name)
		case strings.HasSuffix(base, ".md") && base != "CHANGELOG.md" && !strings.HasPrefix(base, "from-"):
			return n.page(name)
		}
		return nil
	})
	return n, err
}

func (n *tree) page(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for _, code := range span.FindAllString(string(data), -1) {
		n.texts = append(n.texts, text{where: name, code: code})
	}
	return nil
}

func (n *tree) file(name string) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	pkg, foreign := f.Name.Name, map[string]bool{}
	if !strings.Contains(filepath.ToSlash(name), "internal/test/") { // there is no package without _test there
		pkg = strings.TrimSuffix(pkg, "_test")
	}
	for _, imported := range f.Imports {
		if p, err := strconv.Unquote(imported.Path.Value); err == nil && !strings.HasPrefix(p, module) {
			foreign[path.Base(p)] = true
			if imported.Name != nil {
				foreign[imported.Name.Name] = true
			}
		}
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			n.texts = append(n.texts, text{fset.Position(c.Pos()).String(), pkg, foreign, c.Text})
		}
	}
	for _, d := range f.Decls {
		n.declared(pkg, d)
	}
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Ident:
			note(n.used, pkg, node.Name)
		case *ast.BasicLit:
			if node.Kind == token.STRING {
				for _, w := range word.FindAllString(node.Value, -1) {
					note(n.used, pkg, w)
				}
				if !strings.HasSuffix(name, "_test.go") {
					for _, said := range option.FindAllString(node.Value, -1) {
						n.texts = append(n.texts, text{where: fset.Position(node.Pos()).String(), code: said})
					}
				}
			}
		}
		return true
	})
	return nil
}

func (n *tree) declared(pkg string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			note(n.packages, pkg, d.Name.Name)
		} else {
			note(n.members, pkg+"."+receiverName(d.Recv.List[0].Type), d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					note(n.packages, pkg, id.Name)
				}
			case *ast.TypeSpec:
				note(n.packages, pkg, spec.Name.Name)
				n.types[spec.Name.Name] = append(n.types[spec.Name.Name], pkg+"."+spec.Name.Name)
				n.typed(pkg, pkg+"."+spec.Name.Name, spec.Type)
			}
		}
	}
}

func note(in map[string]map[string]bool, key, name string) {
	if in[key] == nil {
		in[key] = map[string]bool{}
	}
	in[key][name] = true
}

// typed notes the fields of a struct, the methods of an interface, and the types
// whose members a type has as well.
func (n *tree) typed(pkg, name string, t ast.Expr) {
	var fields *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		n.embeds[name] = append(n.embeds[name], typeName(pkg, t))
		return
	}
	for _, field := range fields.List {
		for _, id := range field.Names {
			note(n.members, name, id.Name)
		}
		if len(field.Names) == 0 {
			embedded := typeName(pkg, field.Type)
			note(n.members, name, embedded[strings.LastIndex(embedded, ".")+1:])
			n.embeds[name] = append(n.embeds[name], embedded)
		}
	}
}

// typeName returns the "package.Type" of a type, without pointer and arguments.
func typeName(pkg string, t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return pkg + "." + t.Name
	case *ast.SelectorExpr:
		if p, ok := t.X.(*ast.Ident); ok {
			return p.Name + "." + t.Sel.Name
		}
	case *ast.StarExpr:
		return typeName(pkg, t.X)
	case *ast.IndexExpr:
		return typeName(pkg, t.X)
	case *ast.IndexListExpr:
		return typeName(pkg, t.X)
	}
	return ""
}

// has reports whether a type has a member. What has the members of a type of
// another module may have any.
func (n *tree) has(typ, member string, depth int) bool {
	if n.members[typ][member] || depth > 8 {
		return true
	}
	for _, embedded := range n.embeds[typ] {
		pkg, name, _ := strings.Cut(embedded, ".")
		if foreign := !n.packages[pkg][name]; foreign && pkg != "" && !ast.IsExported(pkg) && n.packages[pkg] == nil || n.has(embedded, member, depth+1) {
			return true
		}
	}
	return false
}

// missing returns the part of a qualified name that does not exist, or "". What
// begins with a variable, or with a package of another module, is not looked at.
func (n *tree) missing(t text, name string) string {
	parts := strings.Split(name, ".")
	of, member := parts[0], parts[1]
	types := n.types[of]
	switch typ := variables[of]; {
	case t.pkg == "" && typ != "" && ast.IsExported(member):
		if !n.has(typ, member, 0) {
			return of + "." + member
		}
		return ""
	case t.foreign[of]:
		return ""
	case n.packages[of] != nil && !n.packages[t.pkg][of]:
		if !ast.IsExported(member) {
			return ""
		}
		if !n.packages[of][member] {
			return of + "." + member
		}
		if len(parts) == 2 || n.has(of+"."+member, parts[2], 0) {
			return ""
		}
		return name
	case !ast.IsExported(of):
		return ""
	case len(types) == 0 && ast.IsExported(member):
		return name
	}
	if own := t.pkg + "." + of; slices.Contains(types, own) {
		types = []string{own}
	}
	for _, typ := range types {
		if n.has(typ, member, 0) {
			return ""
		}
	}
	if len(types) == 0 || member == "go" || member == "md" {
		return ""
	}
	return of + "." + member
}

// Comments, the code in pages and errors that name options name what exists: a member of a package or of
// a type, a link, and a name that looks like one of Go.
func TestNames(t *testing.T) {
	n, err := readTree("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(n.packages) < 50 || len(n.texts) < 10_000 {
		t.Fatalf("found %d packages and %d texts only", len(n.packages), len(n.texts))
	}
	for _, in := range n.texts {
		for _, name := range qualified.FindAllString(in.code, -1) {
			if missing := n.missing(in, name); missing != "" && !others[missing] {
				t.Errorf("%s: there is no %s", in.where, missing)
			}
		}
		for _, name := range inBrackets.FindAllStringSubmatch(in.code, -1) {
			if in.pkg != "" && !n.packages[in.pkg][name[1]] {
				t.Errorf("%s: package %s has no %s", in.where, in.pkg, name[1])
			}
		}
		if strings.HasPrefix(in.code, "//\t") {
			continue // an example has names of its own
		}
		for _, name := range camelCase.FindAllStringSubmatch(in.code, -1) {
			if in.pkg != "" && !n.used[in.pkg][name[1]] && !others[name[1]] {
				t.Errorf("%s: package %s has nothing named %s", in.where, in.pkg, name[1])
			}
		}
	}
}
