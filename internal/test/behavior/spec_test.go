package behavior_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/spectest"
)

// TestSpecNamesEveryMethod holds the tables up against the methods that the
// library has constants for.
func TestSpecNamesEveryMethod(t *testing.T) {
	var found int
	for _, dir := range []string{"protocol", "internal/tasks"} {
		for name, method := range methodConstants(t, dir) {
			found++
			if spectest.Results[method] == "" && spectest.FromServer[method] == "" && spectest.FromClient[method] == "" {
				t.Errorf("%s.%s: no schema is named for %s", dir, name, method)
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d methods", found)
	}
}

// methodConstants returns the string constants of a package whose names begin
// with Method.
func methodConstants(t *testing.T, dir string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../../../", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	methods := map[string]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "Method") || len(spec.Values) == 0 {
				return true
			}
			if text, ok := spec.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
				methods[spec.Names[0].Name] = strings.Trim(text.Value, `"`)
			}
			return true
		})
	}
	return methods
}
