package mcp_test

import (
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

const module = "github.com/talaria-go/mcp"

// importGraph says which packages of this module a package may import. Arrows
// point down only: what stands on a line may import what stands above it.
var importGraph = map[string][]string{
	"internal/jsonx":           {},
	"internal/pause":           {},
	"transport":                {},
	"transport/transporttest":  {"transport"},
	"uritemplate":              {},
	"protocol":                 {"internal/jsonx"},
	"schema":                   {"internal/jsonx"},
	"frame":                    {"protocol", "schema"},
	"internal/peer":            {"protocol"},
	"internal/hub":             {"protocol"},
	"transport/internal/guard": {},
	"transport/websocket":      {"transport", "transport/internal/guard"},
	"transport/streamable":     {"protocol", "transport", "transport/internal/guard"},
	"internal/rounds":          {"protocol", "frame"},
	"internal/spectest":        {"protocol", "transport", "uritemplate"},
	"tasks":                    {"protocol"},
	"registry":                 {"internal/jsonx", "protocol", "frame"},
	"internal/dispatch":        {"protocol", "frame"},
	"session":                  {"protocol", "frame", "internal/peer"},
	"": {"internal/jsonx", "transport", "protocol", "schema", "frame", "internal/peer", "internal/hub",
		"transport/streamable", "transport/websocket", "registry", "uritemplate", "internal/dispatch", "internal/rounds", "tasks", "session"},
	"client/internal/link":     {"protocol"},
	"client/internal/sse":      {"transport"},
	"client/internal/linktest": {"protocol", "client/internal/link"},
	"client/internal/origin":   {"protocol", "transport", "client/internal/link"},
	"client/internal/connlink": {"internal/jsonx", "protocol", "transport", "client/internal/link"},
	"client/internal/sselink":  {"internal/pause", "protocol", "transport", "client/internal/link", "client/internal/origin", "client/internal/sse"},
	"client/internal/httplink": {"internal/pause", "protocol", "transport", "client/internal/link", "client/internal/origin", "client/internal/sse", "client/internal/sselink"},
	"client": {"internal/pause", "internal/jsonx", "transport", "protocol", "schema", "internal/peer", "client/internal/link",
		"client/internal/connlink", "client/internal/httplink", "client/internal/sselink", "client/internal/origin", "transport/websocket"},
	"auth":                         {"frame"},
	"auth/oauth/internal/outbound": {},
	"auth/oauth":                   {"protocol", "auth/oauth/internal/outbound"},
	"middleware":                   {"", "protocol"},
	"mcptest":                      {"", "client", "protocol", "transport"},
	"cmd/example/internal/devauth": {},
	"cmd/example":                  {"", "auth", "cmd/example/internal/devauth", "frame", "protocol", "schema", "transport", "transport/streamable"},
	"conformance/server":           {"internal/undertest", "internal/pause", "", "frame", "protocol", "schema", "transport/streamable"},
	"internal/undertest":           {""},
	"conformance/bridge":           {"internal/undertest"},
	"conformance/client":           {"auth/oauth", "client", "protocol"},
	"conformance/tally":            {},
	"e2e/server":                   {"internal/undertest", "", "transport/streamable"},

	"cmd/talaria/internal/words":     {},
	"cmd/talaria/internal/console":   {},
	"cmd/talaria/internal/hosts":     {},
	"cmd/talaria/internal/scaffold":  {},
	"cmd/talaria/internal/arguments": {"schema"},
	"cmd/talaria/internal/form":      {"protocol", "cmd/talaria/internal/arguments", "cmd/talaria/internal/console"},
	"cmd/talaria/internal/editor":    {"cmd/talaria/internal/console", "cmd/talaria/internal/form"},
	"cmd/talaria/internal/render":    {"client", "protocol", "cmd/talaria/internal/arguments", "cmd/talaria/internal/console"},
	"cmd/talaria/internal/desk": {"internal/pause", "client", "protocol", "cmd/talaria/internal/console", "cmd/talaria/internal/editor",
		"cmd/talaria/internal/form"},
	"cmd/talaria/internal/shell": {"client", "protocol", "cmd/talaria/internal/arguments", "cmd/talaria/internal/console", "cmd/talaria/internal/desk",
		"cmd/talaria/internal/editor", "cmd/talaria/internal/form", "cmd/talaria/internal/render", "cmd/talaria/internal/words"},
	"cmd/talaria/internal/proxy": {"", "client", "protocol", "transport"},
	"cmd/talaria/internal/login": {"auth/oauth", "cmd/talaria/internal/words", "protocol"},
	"cmd/talaria": {"auth/oauth", "client", "protocol", "transport", "cmd/talaria/internal/login", "cmd/talaria/internal/words", "cmd/talaria/internal/console", "cmd/talaria/internal/hosts",
		"cmd/talaria/internal/scaffold", "cmd/talaria/internal/arguments", "cmd/talaria/internal/form", "cmd/talaria/internal/editor",
		"cmd/talaria/internal/render", "cmd/talaria/internal/desk", "cmd/talaria/internal/shell", "cmd/talaria/internal/proxy"},
}

// thirdParty says which packages may import which modules of others.
var thirdParty = map[string][]string{
	"github.com/invopop/jsonschema":         {"schema", "frame"},
	"github.com/go-playground/validator":    {"schema"},
	"github.com/santhosh-tekuri/jsonschema": {"schema", "internal/spectest"},
	"github.com/coder/websocket":            {"transport/websocket"},
	"golang.org/x/time":                     {"middleware"},
	"github.com/rs/zerolog":                 {"", "client", "middleware", "cmd/example", "conformance/server", "cmd/talaria", "cmd/talaria/internal/proxy"},
	"github.com/go-chi/chi":                 {"cmd/example", "cmd/example/internal/devauth", "conformance/server"},
	"github.com/pb33f/ordered-map":          {"schema"},
	"golang.org/x/text":                     {"schema"},
	"github.com/go-jose/go-jose":            {"auth", "auth/oauth", "cmd/example/internal/devauth"},
	"golang.org/x/oauth2":                   {"auth/oauth"},
	"code.dny.dev/ssrf":                     {"auth/oauth/internal/outbound", "cmd/example/internal/devauth"},
	"github.com/gofrs/flock":                {"auth/oauth"},
	"github.com/hashicorp/golang-lru":       {"auth"},
	"github.com/spf13/cobra":                {"cmd/talaria"},
	"github.com/spf13/pflag":                {"cmd/talaria"},
	"github.com/aymanbagabas/go-udiff":      {"cmd/talaria"},
	"github.com/tailscale/hujson":           {"cmd/talaria/internal/hosts"},
	"github.com/peterh/liner":               {"cmd/talaria/internal/editor"},
	"github.com/jedib0t/go-pretty":          {"cmd/talaria/internal/console"},
	"github.com/schollz/progressbar":        {"cmd/talaria/internal/console"},
	"golang.org/x/term":                     {"cmd/talaria/internal/console"},
}

func TestImportGraph(t *testing.T) {
	for dir, imports := range packageImports(t) {
		allowed, known := importGraph[dir]
		if !known {
			t.Errorf("package %q is not in the import graph", dir)
		}
		for _, path := range imports {
			if own, ok := strings.CutPrefix(path, module); ok {
				if own = strings.TrimPrefix(own, "/"); !slices.Contains(allowed, own) {
					t.Errorf("%q must not import %q", dir, own)
				}
				continue
			}
			if strings.Contains(strings.SplitN(path, "/", 2)[0], ".") && !thirdPartyAllowed(dir, path) {
				t.Errorf("%q must not import %s", dir, path)
			}
		}
	}
}

func thirdPartyAllowed(dir, path string) bool {
	for prefix, dirs := range thirdParty {
		if strings.HasPrefix(path, prefix) && slices.Contains(dirs, dir) {
			return true
		}
	}
	return false
}

// packageImports returns what the packages of this module import, tests left
// out.
func packageImports(t *testing.T) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (name == "bench" || name == "e2e/servers" || name == "e2e/oidc" || name == "testdata" || strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir // another module, or no code
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(name))
		if dir == "." {
			dir = ""
		}
		for _, spec := range file.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports[dir] = append(imports[dir], p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}
