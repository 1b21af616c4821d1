package mcp_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/test/spectest"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
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
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
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

// specWatch checks every message that a client hears. rev is what the client
// means to speak, until initialize has settled it.
type specWatch struct {
	t   testing.TB
	rev protocol.Revision
}

// heard checks what came back for asked, and returns it.
func (w *specWatch) heard(asked string, answers ...string) []string {
	w.t.Helper()
	asked = strings.TrimLeft(asked, "\ufeff")
	for _, answer := range answers {
		var m struct {
			Result struct{ ProtocolVersion string }
		}
		if json.Unmarshal([]byte(answer), &m) == nil && strings.Contains(asked, `"initialize"`) {
			if rev, ok := protocol.ParseRevision(m.Result.ProtocolVersion); ok {
				w.rev = rev
			}
		}
		rev := w.rev
		if strings.Contains(asked, facts.MetaVersion) && !strings.Contains(asked, `"initialize"`) && !wire.IsBatch([]byte(asked)) {
			rev = protocol.Latest
		}
		if rev == 0 {
			rev = protocol.LatestLegacy
		}
		checkSpec(w.t, rev, asked, answer)
	}
	return answers
}

// checkSpec checks a message of the server, or a batch of them, against the
// official schema of its revision.
func checkSpec(t testing.TB, rev protocol.Revision, asked, answer string) {
	t.Helper()
	spectest.Check(t, rev, asked, answer)
}
