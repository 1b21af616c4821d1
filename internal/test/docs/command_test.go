package docs_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/test/testexec"
)

// exempt are the commands of the pages that TestCommands does not run, with the
// reason. What is in no page any more must leave the list.
var exempt = map[string]string{
	"go run ./examples/bills &":           "TestCommands builds the program and starts it",
	"go install ./cmd/talaria":            "TestCommands builds it elsewhere",
	"go build -o workbench ./cmd/example": "TestCommands builds it elsewhere",
	"go run ./cmd/example":                "it runs until it is stopped; .ci/smoke tries it",
	"go run ./cmd/example -auth":          "it runs until it is stopped; tests of cmd/example try it",
	"go test ./...":                       "the gate runs it",

	`redis-server --save "" &`: "it runs until it is stopped; e2e/deploy starts an engine of its own",
	"export REDIS_URL=redis://127.0.0.1:6379 STATE_KEYS=$(openssl rand -hex 32)": "the two after it are not run",
	"go run ./scale/redis/example -http 127.0.0.1:8081 &":                        "it runs until it is stopped; e2e/deploy starts several",
	"go run ./scale/redis/example -http 127.0.0.1:8082 &":                        "it runs until it is stopped; e2e/deploy starts several",

	`redis-cli ACL SETUSER shop on ">$PASSWORD" $(go run ./scale/redis/example -acl)`: "an engine; tests of scale/redis do the same",

	"talaria pack examples/bundle examples/bundle/terms.json --target windows/amd64 --out glossary.mcpb": "it compiles everything for another system",

	"talaria login http://127.0.0.1:8080/mcp":                                 "a browser; tests of cmd/talaria try it",
	"talaria http http://127.0.0.1:8080/mcp":                                  "a terminal; tests of cmd/talaria try it",
	"talaria serve-proxy --http 127.0.0.1:8080 -- ./workbench -stdio":         "it runs until it is stopped; tests of cmd/talaria try it",
	"talaria serve-proxy --stdio http://127.0.0.1:8080/mcp":                   "it runs until it is stopped; tests of cmd/talaria try it",
	"talaria events http://127.0.0.1:8080/mcp":                                "the example has no events; TestEventsCommand runs it",
	"talaria events http://127.0.0.1:8080/mcp comment.created document=doc_1": "the example has no events; TestEventsCommand runs it",
	"talaria gateway --config .mcp.json --check":                              "the servers of whoever runs the test",
	"talaria gateway --config .mcp.json --stdio":                              "it runs until it is stopped; tests of cmd/talaria try it",
	"talaria gateway --config .mcp.json --http 127.0.0.1:8080":                "it runs until it is stopped; tests of cmd/talaria try it",
	"talaria dev .":                         "it runs until it is stopped; tests of cmd/talaria try it",
	"talaria dev ./cmd/weather -- -verbose": "it runs until it is stopped; tests of cmd/talaria try it",
	"talaria dev --http 127.0.0.1:8080 .":   "it runs until it is stopped; tests of cmd/talaria try it",
	"talaria install --host claude-desktop --name weather -- talaria dev ~/src/weather": "the configuration of whoever runs the test",
	`talaria inspect "./workbench -stdio" -b`:                                           "it runs until it is stopped; tests of cmd/talaria try it",
	"talaria inspect http://127.0.0.1:8080/mcp -b --no-open":                            "it runs until it is stopped; tests of cmd/talaria try it",
	"talaria inspect -b --config .mcp.json":                                             "it runs until it is stopped; tests of cmd/talaria try it",
	"talaria inspect notes -b --config .mcp.json":                                       "it runs until it is stopped; tests of cmd/talaria try it",
	`talaria inspect -b --file calls.jsonl "./workbench -stdio"`:                        "it runs until it is stopped; tests of its inspector try it",
	"talaria inspect -b --watch ./cmd/example -- -stdio":                                "it runs until it is stopped; tests of cmd/talaria try it",
	"talaria inspect -b --file calls.jsonl":                                             "it runs until it is stopped; tests of its inspector try it",
	"talaria tap --http 127.0.0.1:8090 http://127.0.0.1:8080/mcp":                       "it runs until it is stopped; tests of cmd/talaria try it",
}

// printed is what commands print, among other things; those that are not here
// must end well, and that is all.
var printed = map[string]string{
	`talaria tools "./workbench -stdio"`:                                               "calculate",
	`talaria call "./workbench -stdio" calculate operation=add a=40 b=2`:               "42",
	`talaria call "./workbench -stdio" calculate operation=add a=40 b=2 --json`:        `"structuredContent"`,
	`talaria complete "./workbench -stdio" summarize_notes style p`:                    "p",
	"talaria pack examples/bundle examples/bundle/terms.json":                          "everybody who gets it can read",
	"talaria link --host vscode --name weather https://example.com/mcp --header X-Key": "vscode:mcp/install?",
}

// TestCommands runs the commands of the pages, or finds them among those that
// are exempt. The program of the README serves meanwhile, on a port of its own.
func TestCommands(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a shell")
	}
	tool, dir := testdep.LookPath(t, "go"), t.TempDir()
	build := func(name, from string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), tool, "build", "-o", filepath.Join(dir, name), from)
		workspace, err := filepath.Abs(filepath.Join(root, "go.work")) // whatever the tests are run with: the command is a module of its own
		if err != nil {
			t.Fatal(err)
		}
		cmd.Dir, cmd.Env = root, append(os.Environ(), "GOWORK="+workspace)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go build %s: %v\n%s", from, err, out)
		}
	}
	// The example is packed where it is; what is written is below dir.
	examples, err := filepath.Abs(filepath.Join(root, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(examples, filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	build("talaria", "./cmd/talaria")
	build("workbench", "./cmd/example")
	address := testexec.FreeAddr(t)
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(strings.Replace(blocks(page(t, readme), "go")[0], "127.0.0.1:8080", address, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	build("bills", source)
	testexec.Start(t, filepath.Join(dir, "bills"), address)

	caches, err := exec.CommandContext(t.Context(), tool, "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, modules, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	home := append(os.Environ(), "GOCACHE="+cache, "GOMODCACHE="+modules, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+dir, "XDG_CONFIG_HOME="+dir)
	seen := map[string]bool{}
	for _, name := range pages(t) {
		if name == "tutorial.md" {
			continue // TestTutorial runs it, in order
		}
		shown := map[string]string{}
		for _, s := range steps(page(t, name)) {
			shown[s.command] = s.output
		}
		for _, command := range append(commands(page(t, name)), slices.Sorted(maps.Keys(shown))...) {
			if seen[command] {
				continue
			}
			seen[command] = true
			if exempt[command] != "" {
				continue
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, "127.0.0.1:8080", address))
			cmd.Dir, cmd.Env = dir, home
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), printed[command]) || !shows(shown[command], string(out)) {
				t.Errorf("%s: %s: %v, without %q:\n%s", name, command, err, printed[command]+shown[command], out)
			}
		}
	}
	packed(t, filepath.Join(dir, "glossary-1.0.0-"+runtime.GOOS+"-"+runtime.GOARCH+".mcpb"), filepath.Join(dir, ".mcp.json"))
	for command := range exempt {
		if !seen[command] {
			t.Errorf("no page has the command that is exempt: %s", command)
		}
	}
	for command := range printed {
		if !seen[command] {
			t.Errorf("no page has the command: %s", command)
		}
	}
}

// commands returns those of the shell that a page has, without their comments.
func commands(text string) []string {
	comment := regexp.MustCompile(`\s+# .*$`)
	var found []string
	for _, block := range blocks(text, "sh") {
		for line := range strings.Lines(block) {
			if line = comment.ReplaceAllString(strings.TrimSpace(line), ""); line != "" {
				found = append(found, line)
			}
		}
	}
	return found
}
