package mcp_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
)

const module = "github.com/talaria-go/mcp"

// importGraph says which packages of this module a package may import. Arrows
// point down only: what stands on a line may import what stands above it.
var importGraph = map[string][]string{
	"internal/jsonx":             {},
	"internal/safely":            {},
	"internal/pause":             {},
	"internal/clients/attend":    {},
	"internal/visible":           {"internal/safely"},
	"internal/facts":             {},
	"internal/tooling/recording": {"internal/jsonx"},
	"internal/tooling/files":     {},
	"internal/tooling/names":     {},
	"internal/tooling/release":   {},
	"internal/tooling/toollock":  {"internal/wire", "internal/tooling/files", "internal/jsonx", "internal/visible", "protocol"},
	"transport":                  {"internal/facts", "internal/jsonx", "internal/safely", "internal/visible"},
	"transport/transporttest":    {"transport"},
	"uritemplate":                {"internal/facts"},
	"protocol":                   {"internal/facts", "internal/jsonx", "internal/visible"},
	"internal/tooling/hostrules": {"internal/tooling/names", "internal/visible", "protocol"},
	"internal/wire":              {"internal/facts", "internal/jsonx", "protocol"},
	"schema/civil":               {},
	"schema/internal/regex":      {},
	"schema/internal/wording":    {"internal/jsonx"},
	"schema/internal/lexical":    {"internal/jsonx", "schema/civil", "schema/internal/regex", "schema/internal/wording"},
	"schema/internal/schemadoc":  {"internal/jsonx", "schema/internal/wording"},
	"schema/internal/tags":       {"schema/internal/wording"},
	"schema/internal/rules":      {"internal/safely", "schema/civil", "schema/internal/lexical", "schema/internal/regex", "schema/internal/schemadoc", "schema/internal/tags", "schema/internal/wording"},
	"schema/raw":                 {"internal/jsonx", "schema/internal/lexical", "schema/internal/regex", "schema/internal/wording"},
	"schema":                     {"internal/facts", "internal/jsonx", "internal/safely", "schema/civil", "schema/internal/lexical", "schema/internal/regex", "schema/internal/rules", "schema/internal/schemadoc", "schema/internal/tags", "schema/internal/wording", "schema/raw"},
	"slogwriter":                 {},
	"internal/core":              {"internal/wire", "protocol"},
	"frame":                      {"internal/jsonx", "internal/wire", "internal/facts", "internal/core", "protocol"},
	"internal/ask":               {"internal/jsonx", "internal/seal", "internal/wire", "internal/facts", "internal/core", "frame", "protocol", "schema"},
	"internal/inflight":          {"internal/wire", "internal/jsonx", "protocol"},
	"internal/share":             {},
	"transport/websocket":        {"internal/facts", "transport"},
	"internal/streamable":        {"session", "internal/wire", "internal/jsonx", "internal/facts", "internal/safely", "internal/core", "protocol", "transport"},
	"internal/seal":              {},
	"internal/test/spectest":     {"protocol", "transport", "uritemplate"},
	"internal/replica":           {"scale"},
	"scale":                      {},
	"scale/scaletest":            {"scale"},
	"scale/redis":                {"scale", "internal/facts", "internal/safely"},
	"telemetry":                  {"internal/jsonx", "", "client", "frame", "protocol"},
	"telemetry/example":          {"", "client", "telemetry"},
	"internal/tasks":             {"internal/wire", "internal/core", "internal/replica", "internal/safely", "internal/share", "internal/bus", "internal/seal", "scale", "protocol"},
	"registry":                   {"internal/wire", "internal/facts", "internal/jsonx", "protocol", "frame"},
	"internal/dispatch":          {"internal/wire", "internal/facts", "internal/inflight", "internal/safely", "protocol", "frame"},
	"session":                    {"internal/wire", "internal/replica", "internal/share", "internal/safely", "protocol", "internal/core", "frame", "internal/inflight", "internal/jsonx", "internal/pause", "internal/bus", "internal/seal", "internal/topics", "scale"},
	"internal/bus":               {"internal/facts", "internal/replica", "internal/safely", "internal/seal", "scale"},
	"internal/outbound":          {"internal/facts", "internal/jsonx"},
	"internal/events":            {"internal/pause", "internal/inflight", "internal/jsonx", "internal/outbound", "internal/replica", "internal/safely", "internal/seal", "internal/wire", "protocol", "scale"},
	"internal/topics":            {"internal/replica", "internal/seal", "internal/wire", "protocol", "scale"},
	"internal/conn":              {"internal/jsonx", "internal/wire", "internal/facts", "internal/core", "frame", "internal/dispatch", "internal/streamable", "internal/inflight", "internal/safely", "internal/share", "internal/visible", "protocol", "session", "transport", "internal/bus", "scale"},
	"internal/option":            {"frame", "protocol", "registry"},
	"internal/tooling/skillhead": {},
	"skill":                      {"", "frame", "internal/option", "internal/tooling/skillhead", "internal/wire", "protocol", "registry"},
	"app":                        {"internal/jsonx", "", "frame", "internal/option", "internal/wire", "protocol", "registry"},
	"":                           {"internal/tooling/hostrules", "internal/option", "internal/wire", "internal/core", "internal/conn", "internal/facts", "internal/ask", "internal/visible", "internal/jsonx", "internal/safely", "transport", "protocol", "schema", "schema/raw", "frame", "internal/inflight", "internal/streamable", "registry", "uritemplate", "internal/dispatch", "internal/seal", "internal/bus", "internal/topics", "internal/events", "scale", "internal/tasks", "session"},

	"internal/clients/origin":          {"internal/facts", "internal/jsonx", "internal/wire", "internal/safely", "internal/visible", "protocol"},
	"openapi":                          {"", "internal/jsonx", "internal/tooling/names", "internal/option", "internal/clients/origin", "internal/visible", "protocol", "schema/raw"},
	"toolsearch":                       {"", "internal/jsonx", "internal/option", "internal/wire", "protocol", "schema/raw"},
	"client/internal/link":             {"internal/safely", "internal/visible", "protocol", "transport"},
	"client/internal/linktest":         {"protocol", "client/internal/link"},
	"client/internal/sselink":          {"internal/clients/attend", "internal/wire", "internal/pause", "protocol", "transport", "client/internal/link", "internal/clients/origin"},
	"client/internal/httplink":         {"internal/clients/attend", "internal/facts", "internal/jsonx", "internal/wire", "internal/pause", "protocol", "transport", "client/internal/link", "internal/clients/origin", "client/internal/sselink"},
	"client":                           {"internal/tooling/toollock", "internal/clients/attend", "internal/wire", "internal/facts", "internal/safely", "internal/visible", "internal/pause", "internal/jsonx", "transport", "protocol", "schema/raw", "internal/inflight", "client/internal/link", "client/internal/httplink", "client/internal/sselink", "internal/clients/origin", "transport/websocket"},
	"client/internal/reconnector":      {"internal/clients/attend", "client/internal/link", "internal/inflight", "internal/pause", "client"},
	"client/skills":                    {"internal/jsonx", "client", "internal/facts", "internal/tooling/skillhead", "internal/visible", "internal/wire", "protocol"},
	"client/config":                    {"internal/jsonx", "client", "internal/tooling/files"},
	"client/pool":                      {"internal/clients/attend", "client", "client/internal/link", "client/internal/reconnector", "internal/pause", "protocol"},
	"internal/clients/subscriptions":   {"client"},
	"client/group":                     {"internal/jsonx", "internal/clients/attend", "internal/tooling/names", "client", "client/config", "client/internal/link", "client/internal/reconnector", "internal/safely", "internal/visible", "protocol"},
	"internal/test/backendtest":        {"", "client", "protocol", "transport"},
	"auth/internal/jwt":                {"internal/facts", "internal/jsonx", "internal/safely"},
	"auth":                             {"auth/internal/jwt", "internal/jsonx", "internal/safely", "internal/core", "internal/replica", "internal/bus", "frame", "scale"},
	"auth/internal/issuing":            {"internal/bus", "internal/facts", "internal/jsonx", "internal/outbound", "internal/replica", "internal/safely", "internal/seal", "internal/visible", "scale"},
	"auth/authtest":                    {"internal/jsonx", "auth", "auth/internal/issuing"},
	"auth/broker":                      {"internal/facts", "internal/jsonx", "internal/ask", "internal/bus", "internal/outbound", "internal/replica", "internal/safely", "internal/seal", "internal/visible", "internal/wire", "auth", "auth/internal/issuing", "auth/internal/jwt", "frame", "scale"},
	"auth/oauth":                       {"internal/facts", "internal/jsonx", "internal/clients/attend", "internal/wire", "protocol", "internal/outbound"},
	"middleware":                       {"internal/wire", "internal/facts", "frame", "", "internal/replica", "internal/bus", "internal/safely", "internal/seal", "internal/visible", "protocol", "scale"},
	"gateway":                          {"internal/facts", "internal/jsonx", "internal/tooling/names", "internal/option", "internal/pause", "internal/safely", "internal/clients/subscriptions", "internal/visible", "internal/wire", "", "client", "client/config", "client/group", "frame", "protocol", "registry", "session", "transport", "uritemplate"},
	"mcptest":                          {"internal/tooling/hostrules", "internal/safely", "internal/tooling/recording", "internal/tooling/toollock", "internal/wire", "", "internal/jsonx", "client", "protocol", "transport"},
	"cmd/example":                      {"", "app", "auth", "auth/authtest", "schema", "schema/civil", "transport/websocket"},
	"examples/bills":                   {""},
	"examples/broker":                  {"", "auth", "auth/broker"},
	"examples/audit":                   {"", "protocol"},
	"examples/openapi":                 {"", "auth", "openapi"},
	"examples/report":                  {"", "protocol"},
	"examples/search":                  {"", "openapi", "toolsearch"},
	"examples/events":                  {"", "client"},
	"examples/gateway":                 {"", "client", "gateway"},
	"examples/notes":                   {""},
	"examples/service":                 {""},
	"examples/skills":                  {"", "skill"},
	"examples/apps":                    {"", "app"},
	"examples/bundle":                  {""},
	"internal/test/everything":         {"internal/pause", "", "frame", "protocol", "schema", "skill"},
	"scale/redis/example":              {"", "scale/redis"},
	"internal/test/zoo":                {"schema", "schema/civil"},
	"internal/test/interop":            {"", "frame", "protocol"},
	"scale/redis/cmd/replica":          {"internal/test/testcmd", "internal/test/everything", "internal/test/interop", "", "scale/redis"},
	"internal/test/harness":            {"", "client", "frame", "internal/facts", "internal/core", "internal/streamable", "internal/test/spectest", "internal/test/testcmd", "internal/test/testdep", "internal/wire", "mcptest", "protocol", "scale", "schema", "schema/civil", "transport", "transport/websocket"},
	"internal/test/testproc":           {"internal/test/testdep"},
	"internal/test/testdep":            {"protocol"},
	"internal/test/testexec":           {},
	"internal/test/testcmd":            {"", "transport/websocket"},
	"internal/test/taskstest":          {"internal/tasks", "internal/replica", "internal/bus", "internal/seal", "protocol", "scale"},
	"internal/test/programs/hello":     {""},
	"internal/test/programs/order":     {"", "schema/civil"},
	"internal/test/programs/chart":     {""},
	"internal/test/programs/config":    {""},
	"internal/test/programs/review":    {""},
	"internal/test/programs/remove":    {""},
	"internal/test/programs/importing": {""},
	"internal/test/programs/notes":     {"", "auth"},
	"internal/test/programs/forecast":  {"client"},
	"internal/test/sizelimits":         {},
	"e2e/programs":                     {"", "auth/oauth", "client", "client/skills", "gateway", "internal/test/everything", "internal/test/interop", "internal/test/testcmd", "protocol"},

	"cmd/talaria/internal/shellwords": {},
	"cmd/talaria/internal/console":    {"internal/visible"},
	"cmd/talaria/internal/hosts":      {"internal/tooling/files"},
	"cmd/talaria/internal/browser":    {},
	"cmd/talaria/internal/bundle":     {"internal/jsonx", "schema", "internal/tooling/files"},
	"cmd/talaria/internal/statedir":   {},
	"cmd/talaria/internal/record":     {"internal/jsonx", "internal/tooling/files", "internal/tooling/recording", "protocol", "internal/visible", "cmd/talaria/internal/statedir"},
	"cmd/talaria/internal/inspector":  {"internal/tooling/hostrules", "internal/jsonx", "internal/tooling/files", "client", "internal/wire", "uritemplate", "protocol", "transport", "schema", "schema/raw", "internal/tooling/recording", "internal/visible", "cmd/talaria/internal/arguments", "cmd/talaria/internal/record", "cmd/talaria/internal/statedir"},
	"cmd/talaria/internal/scaffold":   {},
	"cmd/talaria/internal/arguments":  {"protocol", "internal/wire", "internal/jsonx", "internal/tooling/files", "internal/tooling/names", "schema", "schema/raw"},
	"cmd/talaria/internal/form":       {"internal/tooling/names", "protocol", "cmd/talaria/internal/arguments", "cmd/talaria/internal/console"},
	"cmd/talaria/internal/editor":     {"cmd/talaria/internal/console", "cmd/talaria/internal/form", "cmd/talaria/internal/statedir"},
	"cmd/talaria/internal/render":     {"internal/jsonx", "internal/wire", "client", "protocol", "cmd/talaria/internal/arguments", "cmd/talaria/internal/console"},
	"cmd/talaria/internal/terminal":   {"client", "protocol", "cmd/talaria/internal/console", "cmd/talaria/internal/editor", "cmd/talaria/internal/form", "internal/safely"},
	"cmd/talaria/internal/shell":      {"internal/tooling/names", "internal/wire", "internal/tasks", "client", "internal/clients/subscriptions", "protocol", "cmd/talaria/internal/arguments", "cmd/talaria/internal/console", "cmd/talaria/internal/terminal", "cmd/talaria/internal/editor", "cmd/talaria/internal/form", "cmd/talaria/internal/render", "cmd/talaria/internal/shellwords"},
	"cmd/talaria/internal/proxy":      {"internal/jsonx", "internal/wire", "", "internal/clients/subscriptions", "internal/visible", "client", "protocol", "transport"},
	"cmd/talaria/internal/dev":        {"internal/pause"},
	"cmd/talaria/internal/login":      {"internal/jsonx", "internal/tooling/files", "auth/oauth", "cmd/talaria/internal/shellwords", "protocol"},
	"cmd/talaria":                     {"toolsearch", "gateway", "", "internal/tooling/names", "internal/tooling/hostrules", "internal/tooling/files", "internal/tooling/toollock", "internal/tooling/recording", "cmd/talaria/internal/statedir", "cmd/talaria/internal/record", "cmd/talaria/internal/browser", "cmd/talaria/internal/inspector", "client/skills", "internal/wire", "auth/oauth", "internal/visible", "client", "client/config", "protocol", "transport", "cmd/talaria/internal/login", "cmd/talaria/internal/shellwords", "cmd/talaria/internal/console", "cmd/talaria/internal/hosts", "cmd/talaria/internal/scaffold", "cmd/talaria/internal/arguments", "cmd/talaria/internal/form", "cmd/talaria/internal/editor", "cmd/talaria/internal/render", "cmd/talaria/internal/terminal", "cmd/talaria/internal/shell", "cmd/talaria/internal/proxy", "cmd/talaria/internal/bundle", "cmd/talaria/internal/dev"},
}

// thirdParty says which packages may import which modules of others.
var thirdParty = map[string][]string{
	"github.com/invopop/jsonschema":         {"schema", "schema/internal/rules", "schema/internal/schemadoc", "internal/ask", "internal/test/harness"},
	"github.com/go-playground/validator":    {"schema", "schema/internal/rules"},
	"github.com/santhosh-tekuri/jsonschema": {"internal/test/spectest"},
	"github.com/coder/websocket":            {"transport/websocket"},
	"golang.org/x/time":                     {"middleware"},
	"github.com/rs/zerolog":                 {"", "gateway", "internal/option", "internal/conn", "slogwriter", "client", "client/internal/link", "middleware", "cmd/example", "cmd/talaria", "cmd/talaria/internal/proxy", "scale/redis", "scale/redis/cmd/replica", "scale/redis/example", "internal/test/harness"},
	"github.com/redis/rueidis":              {"scale/redis"},
	"go.opentelemetry.io/otel":              {"telemetry", "telemetry/example"},
	"github.com/go-chi/chi":                 {"internal/test/programs/notes", "cmd/example", "internal/test/harness"},
	"golang.org/x/text":                     {"schema/internal/wording", "skill", "toolsearch"},
	"github.com/go-jose/go-jose":            {"auth", "auth/internal/jwt", "auth/internal/issuing", "auth/authtest", "auth/oauth"},
	"golang.org/x/oauth2":                   {"auth/oauth", "auth/broker"},
	"code.dny.dev/ssrf":                     {"internal/outbound"},
	"github.com/gofrs/flock":                {"auth/oauth", "cmd/example"},
	"github.com/hashicorp/golang-lru":       {"auth", "auth/internal/issuing", "auth/broker"},
	"go.yaml.in/yaml":                       {"openapi"},
	"github.com/spf13/cobra":                {"cmd/talaria"},
	"github.com/spf13/pflag":                {"cmd/talaria"},
	"github.com/aymanbagabas/go-udiff":      {"cmd/talaria", "cmd/talaria/internal/inspector"},
	"github.com/tailscale/hujson":           {"cmd/talaria/internal/hosts", "cmd/talaria/internal/bundle"},
	"github.com/peterh/liner":               {"cmd/talaria/internal/editor"},
	"github.com/jedib0t/go-pretty":          {"cmd/talaria/internal/console"},
	"github.com/schollz/progressbar":        {"cmd/talaria/internal/console"},
	"golang.org/x/sys":                      {"cmd/talaria/internal/editor"},
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

// TestServerLinks: a server without WebSocket does not link what serves it, nor a
// client, and one without skills not what reads them.
func TestServerLinks(t *testing.T) {
	imports := packageImports(t)
	seen := map[string]bool{}
	var visit func(dir string)
	visit = func(dir string) {
		if seen[dir] {
			return
		}
		seen[dir] = true
		for _, path := range imports[dir] {
			if own, ok := strings.CutPrefix(path, module); ok {
				visit(strings.TrimPrefix(own, "/"))
			}
		}
	}
	visit("")
	if seen["transport/websocket"] || seen["client"] || seen["skill"] || seen["internal/tooling/skillhead"] || !seen["internal/conn"] {
		t.Errorf("package mcp links %v", slices.Sorted(maps.Keys(seen)))
	}
}

// TestOpenTelemetryStaysOut: who uses the library or the command links nothing of
// OpenTelemetry, and who uses telemetry links its API, but no SDK.
func TestOpenTelemetryStaysOut(t *testing.T) {
	tool := testdep.LookPath(t, "go")
	workspace, err := filepath.Abs("go.work")
	if err != nil {
		t.Fatal(err)
	}
	for pattern, without := range map[string]string{
		"./...":               "go.opentelemetry.io/",
		module + "/cmd/...":   "go.opentelemetry.io/",
		module + "/telemetry": "go.opentelemetry.io/otel/sdk",
	} {
		list := exec.Command(tool, "list", "-deps", pattern)
		list.Env = append(os.Environ(), "GOWORK="+workspace) // whatever the test itself is run with
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		packages := strings.Fields(string(out))
		if len(packages) < 100 {
			t.Errorf("%s has %d packages only", pattern, len(packages))
		}
		for _, name := range packages {
			if strings.HasPrefix(name, without) {
				t.Errorf("%s links %s", pattern, name)
			}
		}
	}
}

// TestRoot: the root folder shows what the module is, and fits a screen.
func TestRoot(t *testing.T) {
	for _, name := range strings.Fields("go.mod mcp.go component.go schema/ frame/ transport/ registry/ session/ cmd/example/ testdata/ README.md") {
		if info, err := os.Stat(name); err != nil || info.IsDir() != strings.HasSuffix(name, "/") {
			t.Errorf("%s: %v", name, err)
		}
	}
	const most = 60
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") })); n > most {
		t.Errorf("the root folder has %d entries, at most %d may be", n, most)
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

// TestNoAddresses: nothing is found by its address, nor by its printed form. The
// collector gives an address to something else later, and another process has the
// same ones; two values may print alike.
func TestNoAddresses(t *testing.T) {
	testdep.NoRace(t, "it reads the source")
	address := regexp.MustCompile(`%[-+# 0-9]*p\b|uintptr\(unsafe\.Pointer|\.Pointer\(\)|\[fmt\.Sprint|\.(Load|Store|LoadOrStore|Get|Put|Delete)\(fmt\.Sprint`)
	files := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		files++
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for n, line := range strings.Split(string(text), "\n") {
			if found := address.FindString(line); found != "" {
				t.Errorf("%s:%d finds something by its address or printed form: %s", name, n+1, found)
			}
		}
		return nil
	})
	if err != nil || files < 300 {
		t.Errorf("read %d files: %v", files, err)
	}
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
		if d.IsDir() && name != "." && (name == "bench" || name == "e2e/apps" || name == "e2e/deploy" || name == "e2e/hosts" || name == "e2e/openapi" || name == "cmd/talaria/browsertest" || name == "e2e/servers" || name == "e2e/oidc" || name == "e2e/prometheus" || name == "testdata" || strings.HasPrefix(d.Name(), ".")) {
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
		if !strings.Contains("/"+dir+"/", "/internal/") && !strings.HasPrefix(dir, "cmd/") && !strings.HasPrefix(dir, "e2e/") && !strings.HasPrefix(dir, "examples/") {
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
