package sizelimits

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notOurs are folders whose programs serve tests, measurements and readers.
var notOurs = []string{
	"bench", "e2e", "examples", "cmd/talaria/browsertest", "internal/test",
	"transport/transporttest", "scale/scaletest", "internal/test/backendtest",
	"client/internal/linktest", "auth/authtest", "scale/redis/cmd", "scale/redis/example", "telemetry/example",
}

// harmless are calls whose error says nothing that is not found out elsewhere, by the
// name of what is called: ends of connections and files that are given up, deadlines,
// writes whose reader may be gone, and guards that log a failure themselves.
var harmless = []string{
	"Close", "CloseNow", "SetReadDeadline", "SetWriteDeadline", "Write", "WriteString", "Copy", "CopyN", "Flush", "guard", "failed", "Apart", "Kill", "Unregister",
}

// silent are places that drop something, say nothing, and are right to: a value that is not
// wanted any more, or one that is found out about otherwise.
var silent = map[string]string{
	"client/tasks.go taskWatch.receive": "a newer state of the task waits already, or takes the place of this one",
}

// Whatever is refused or dropped is visible. So the code has no select that drops a value
// because nothing takes it, no error that is passed over with continue or return, and no
// error that is assigned to nothing, unless the code says beside it why that is right. A
// value that only wakes a goroutine is none that is lost.
func TestNothingIsDroppedInSilence(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	found := map[string]bool{}
	files := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at, _ := filepath.Rel(root, name)
		at = filepath.ToSlash(at)
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && at != "." || d.Name() == "testdata" || d.Name() == "node_modules" || slices.Contains(notOurs, at)) {
			return fs.SkipDir
		}
		if path.Ext(at) != ".go" || strings.HasSuffix(at, "_test.go") {
			return nil
		}
		files++
		for where, what := range drops(t, name, at) {
			found[where] = true
			if silent[where] == "" {
				t.Errorf("%s: %s; let the caller or the log have it, or say beside it why nobody needs it", where, what)
			}
		}
		return nil
	})
	if err != nil || files < 300 {
		t.Fatal(files, err)
	}
	for where := range silent {
		if !found[where] {
			t.Errorf("%s drops nothing any more", where)
		}
	}
}

// drops returns what the file drops in silence, by "file func".
func drops(t *testing.T, name, at string) map[string]string {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	line := func(p token.Pos) int { return set.Position(p).Line }
	said := map[int]bool{} // lines with a comment
	for _, group := range file.Comments {
		for n := line(group.Pos()); n <= line(group.End()); n++ {
			said[n] = true
		}
	}
	explained := func(n ast.Node) bool {
		for l := line(n.Pos()) - 1; l <= line(n.End()); l++ {
			if said[l] {
				return true
			}
		}
		return false
	}
	all := map[string]string{}
	for _, declared := range file.Decls {
		place := at
		if f, ok := declared.(*ast.FuncDecl); ok {
			place += " " + f.Name.Name
			if f.Recv != nil {
				place = at + " " + strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*") + "." + f.Name.Name
			}
		}
		ast.Inspect(declared, func(n ast.Node) bool {
			if n == nil {
				return false
			}
			if what := drop(n); what != "" && !explained(n) {
				all[place] = what
			}
			return true
		})
	}
	return all
}

// drop says what a statement drops, "" for nothing.
func drop(n ast.Node) string {
	switch n := n.(type) {
	case *ast.SelectStmt:
		var sent ast.Expr
		for _, clause := range n.Body.List {
			switch clause := clause.(*ast.CommClause); comm := clause.Comm.(type) {
			case *ast.SendStmt:
				sent = comm.Value
			case nil:
				if len(clause.Body) > 0 {
					return ""
				}
			}
		}
		if !hasDefault(n) || sent == nil || types.ExprString(sent) == "struct{}{}" {
			return ""
		}
		return "a select drops " + types.ExprString(sent)
	case *ast.IfStmt:
		test, ok := n.Cond.(*ast.BinaryExpr)
		if !ok || test.Op != token.NEQ || types.ExprString(test.Y) != "nil" || len(n.Body.List) != 1 || n.Else != nil {
			return ""
		}
		name := types.ExprString(test.X)
		if name != "err" && name != "fault" {
			return ""
		}
		switch last := n.Body.List[0].(type) {
		case *ast.BranchStmt:
			if last.Tok == token.CONTINUE {
				return name + " is passed over"
			}
		case *ast.ReturnStmt:
			if len(last.Results) == 0 {
				return name + " ends it"
			}
		}
	case *ast.AssignStmt:
		if n.Tok != token.ASSIGN || len(n.Rhs) != 1 {
			return ""
		}
		called, ok := n.Rhs[0].(*ast.CallExpr)
		for _, left := range n.Lhs {
			ok = ok && types.ExprString(left) == "_"
		}
		if !ok {
			return ""
		}
		fn := types.ExprString(called.Fun)
		if slices.Contains(harmless, fn[strings.LastIndexByte(fn, '.')+1:]) {
			return ""
		}
		return "the error of " + fn + " is dropped"
	}
	return ""
}

// hasDefault reports whether a select does not wait.
func hasDefault(s *ast.SelectStmt) bool {
	return slices.ContainsFunc(s.Body.List, func(clause ast.Stmt) bool { return clause.(*ast.CommClause).Comm == nil })
}

// The walk finds what it is for.
func TestDropsAreFound(t *testing.T) {
	const head = "func f() {\n"
	for code, want := range map[string]bool{
		"select {\ncase c <- v:\ndefault:\n}":                true,
		"select {\ncase c <- v:\ndefault: // it is stale\n}": false,
		"select {\ncase c <- struct{}{}:\ndefault:\n}":       false,
		"select {\ncase c <- v:\ndefault:\nlog()\n}":         false,
		"for {\nif err := g(); err != nil {\ncontinue\n}\n}": true,
		"if err != nil {\nreturn\n}":                         true,
		"if err != nil {\nlog(err)\nreturn\n}":               false,
		"// It may be gone.\nif err != nil {\nreturn\n}":     false,
		"_ = x.Save()":                                                  true,
		"_, _ = x.Save()":                                               true,
		"_ = x.Save() // it was saved before":                           false,
		"_ = x.Close()":                                                 false,
		"_ = x":                                                         false,
		"go func() {\n_ = x.Save()\n}()":                                true,
		"defer func() { _ = x.Save() }()":                               true,
		"if fault != nil {\nreturn\n}":                                  true,
		"select {\ncase c <- v:\ncase <-d:\ndefault:\n}":                true,
		"select {\ncase v := <-c:\nuse(v)\ndefault:\n}":                 false,
		"select {\ncase c <- v:\ncase <-ctx.Done():\nreturn\n}":         false,
		"switch {\ncase err != nil:\nlog(err)\n}":                       false,
		"if err != nil && !errors.Is(err, io.EOF) {\nlog(err)\n}":       false,
		"if found, err := x.Find(); err != nil {\nreturn\n}":            true,
		"if found, err := x.Find(); err == nil {\nuse(found)\n}":        false,
		"var _ = x.Save()":                                              false,
		"for range n {\nif err != nil {\nbreak\n}\n}\nreturn err":       false,
		"if err != nil {\nreturn nil, err\n}":                           false,
		"if err != nil {\n// It comes again.\ncontinue\n}":              false,
		"_ = json.Unmarshal(text, &v) // what does not fit is left out": false,
	} {
		name := filepath.Join(t.TempDir(), "x.go")
		write(t, name, "package x\n\n"+head+code+"\n}\n")
		if got := slices.Collect(maps.Keys(drops(t, name, "x.go"))); len(got) > 0 != want {
			t.Errorf("%s: found %v", code, got)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
