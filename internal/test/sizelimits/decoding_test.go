package sizelimits

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// direct are the files that decode with encoding/json itself, by why they may, with the
// number of places.
var direct = map[string]map[string]int{
	"its own text, which comes back from a store, another replica, a page of the command or the go tool": {
		"auth/internal/issuing/user.go": 1, "auth/oauth/filestore.go": 1, "auth/oauth/storage.go": 1, "client/handlers.go": 1, "host.go": 2, "internal/ask/ask.go": 1,
		"internal/core/values.go": 3, "internal/ask/askers.go": 1, "internal/tasks/shared.go": 1,
		"internal/tasks/store.go": 1, "internal/tasks/sweeper.go": 2, "internal/topics/inventory.go": 1, "middleware/limit.go": 2,
		"session/resumer.go": 1, "session/savedanswers.go": 1, "session/snapshot.go": 1, "slogwriter/slogwriter.go": 4, "tasks.go": 1,
		"cmd/talaria/internal/browser/keys.go": 1, "cmd/talaria/internal/dev/tool.go": 1, "cmd/talaria/internal/form/form.go": 1, "cmd/talaria/internal/inspector/pages.go": 2, "cmd/talaria/internal/inspector/api.go": 1,
		"cmd/talaria/internal/inspector/export.go": 1, "cmd/talaria/internal/login/store.go": 1, "cmd/talaria/internal/shell/person.go": 1,
	},
	"token by token, or with numbers as they are written; the text is part of a document that was read": {
		"client/config/json.go": 2, "client/skills/entry.go": 2, "cmd/talaria/internal/inspector/secret.go": 2, "cmd/talaria/internal/inspector/verdict.go": 2, "cmd/talaria/internal/shellwords/shellwords.go": 1,
		"internal/tooling/hostrules/schema.go": 1, "internal/ask/askers.go": 1, "internal/tooling/skillhead/skillhead.go": 2, "internal/tooling/toollock/lock.go": 1,
		"middleware/cache.go": 1, "openapi/document.go": 1, "schema/finish.go": 1, "schema/raw/raw.go": 1, "schema/unique.go": 1, "cmd/talaria/internal/arguments/reader.go": 1,
	},
	"a text, a list or an object, without numbers, of a document that was read": {
		"cmd/talaria/internal/arguments/field.go": 2, "cmd/talaria/internal/arguments/object.go": 1, "cmd/talaria/internal/arguments/reader.go": 6,
		"cmd/talaria/internal/arguments/tree.go": 1, "cmd/talaria/internal/inspector/export.go": 4, "cmd/talaria/internal/inspector/schemas.go": 2,
		"cmd/talaria/internal/inspector/secret.go": 2, "cmd/talaria/internal/inspector/texts.go": 3, "cmd/talaria/internal/inspector/variants.go": 2,
	},
	"numbers as encoding/json has them: two texts are compared, or a person has typed one": {
		"cmd/talaria/internal/arguments/field.go": 1, "cmd/talaria/internal/arguments/tree.go": 2, "cmd/talaria/internal/hosts/edit.go": 2,
	},
	"the one place itself": {"internal/jsonx/outline.go": 1, "internal/jsonx/time.go": 1, "internal/jsonx/unmarshal.go": 4},
}

// Text of a peer, or of another program, is decoded by jsonx.Unmarshal alone, which reads
// every form that they write. A file that uses encoding/json itself says why it may.
func TestForeignTextIsDecodedInOnePlace(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	found := map[string]int{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at, _ := filepath.Rel(root, name)
		at = filepath.ToSlash(at)
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && at != "." || d.Name() == "testdata" || d.Name() == "node_modules" || slices.Contains(notOurs, at)) {
			return fs.SkipDir
		}
		if path.Ext(at) == ".go" && !strings.HasSuffix(at, "_test.go") {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			if n := decodes(file); n > 0 {
				found[at] = n
			}
		}
		return nil
	})
	if err != nil || len(found) < 10 {
		t.Fatal(found, err)
	}
	allowed := map[string]int{}
	for _, files := range direct {
		for file, n := range files {
			allowed[file] += n
		}
	}
	for file, n := range found {
		if n > allowed[file] {
			t.Errorf("%s uses encoding/json %d times to decode, and may %d times; use jsonx.Unmarshal for what a peer or another program wrote", file, n, allowed[file])
		}
	}
	for file, n := range allowed {
		if found[file] < n {
			t.Errorf("%s uses encoding/json %d times to decode, and may %d times; take the rest away", file, found[file], n)
		}
	}
}

// decodes returns in how many places a file decodes with encoding/json.
func decodes(file *ast.File) (n int) {
	name := ""
	for _, spec := range file.Imports {
		if what, _ := strconv.Unquote(spec.Path.Value); what == "encoding/json" || what == "encoding/json/v2" {
			if name = "json"; spec.Name != nil {
				name = spec.Name.Name
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if s, ok := node.(*ast.SelectorExpr); ok && name != "" {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == name && slices.Contains([]string{"Unmarshal", "NewDecoder", "Decoder", "UnmarshalRead", "UnmarshalDecode"}, s.Sel.Name) {
				n++
			}
		}
		return true
	})
	return n
}

// The walk finds a decoder under another name and as a value, and nothing else.
func TestDecodesAreFound(t *testing.T) {
	for text, want := range map[string]int{
		`import "encoding/json"; var _ = json.Unmarshal`:                                  1,
		`import j "encoding/json"; func f() { j.NewDecoder(nil).Decode(nil) }`:            1,
		`import "encoding/json"; type _ struct { *json.Decoder }; var _ json.Unmarshaler`: 1,
		`import "encoding/json"; var _ json.RawMessage; func f() { json.Marshal(1) }`:     0,
		`import json "other"; var _ = json.Unmarshal`:                                     0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p; "+text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if n := decodes(file); n != want {
			t.Errorf("%s: %d, want %d", text, n, want)
		}
	}
}
