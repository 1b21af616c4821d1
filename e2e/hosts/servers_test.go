package hosts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/tooling/hostrules"
	"github.com/talaria-go/mcp/protocol"
)

// published is a server that others have published. E2E_UPDATE=1 writes what lint
// reports of it to testdata/lint; a difference is to be read.
type published struct {
	name string // of the file, and of a package for Python
	main string // the program of a package from npm
	args []string
	env  []string // what it wants before it lists tools; nothing is called with it
}

// servers from npm are in the versions of .ci/node, those in Python in the versions of
// servers/NAME.txt. All of them list tools without a service.
var servers = []published{
	{name: "server-filesystem", main: "@modelcontextprotocol/server-filesystem/dist/index.js", args: []string{"/tmp"}},
	{name: "playwright", main: "@playwright/mcp/cli.js"},
	{name: "notion", main: "@notionhq/notion-mcp-server/bin/cli.mjs", env: []string{"NOTION_TOKEN=none"}},
	{name: "mongodb", main: "mongodb-mcp-server/dist/esm/index.js"},
	{name: "sentry", main: "@sentry/mcp-server/dist/index.js", env: []string{"SENTRY_ACCESS_TOKEN=none"}},
	{name: "figma", main: "figma-developer-mcp/dist/bin.js", args: []string{"--stdio"}, env: []string{"FIGMA_API_KEY=none"}},
	{name: "brave", main: "@brave/brave-search-mcp-server/dist/index.js", env: []string{"BRAVE_API_KEY=none"}},
	{name: "desktop-commander", main: "@wonderwhy-er/desktop-commander/dist/index.js"},
	{name: "chrome-devtools", main: "chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js", args: []string{"--no-usage-statistics"}},
	{name: "mcp-atlassian", env: []string{
		"JIRA_URL=https://none.atlassian.net", "JIRA_USERNAME=none@example.com", "JIRA_API_TOKEN=none",
		"CONFLUENCE_URL=https://none.atlassian.net/wiki", "CONFLUENCE_USERNAME=none@example.com", "CONFLUENCE_API_TOKEN=none",
	}},
	{name: "mcp-server-git"},
}

// TestEverything is TestServers for one that is there for other tests, too.
func TestEverything(t *testing.T) {
	lint(t, "E2E_MODULES", []published{{name: "server-everything", main: "@modelcontextprotocol/server-everything/dist/index.js"}})
}

// Lint reports of published servers what it is known to report, and says pattern-plain
// or repeat of no tool that llama.cpp takes.
func TestServers(t *testing.T) { lint(t, "E2E_SERVERS", servers) }

// lint lists the tools of each server, those of npm below the directory of that variable,
// and compares what lint reports with its file.
func lint(t *testing.T, modules string, servers []published) {
	node, packages := testdep.Env(t, "E2E_NODE", installed), testdep.Env(t, modules, installed)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			program, args := node, append([]string{filepath.Join(packages, s.main)}, s.args...)
			if s.main == "" {
				program, args = filepath.Join(testdep.Env(t, "E2E_PYPI", installed), s.name, "bin", s.name), nil
			}
			tools := listed(t, s, program, args)
			got := report(t, tools)
			file := filepath.Join("testdata", "lint", s.name+".txt")
			if os.Getenv("E2E_UPDATE") != "" {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || got != string(want) {
				t.Errorf("%v; lint reports\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

// listed starts a server and returns its tools.
func listed(t *testing.T, s published, program string, args []string) (tools []protocol.Tool) {
	t.Helper()
	home := t.TempDir()
	transport := client.Command(program, args...)
	transport.Dir, transport.Grace = home, time.Second
	transport.Env = append([]string{"HOME=" + home, "DO_NOT_TRACK=1", "MDB_MCP_TELEMETRY=disabled"}, s.env...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := client.Connect(ctx, transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, tool)
	}
	if len(tools) == 0 {
		t.Fatal("it has no tools")
	}
	return tools
}

// report returns a line for each finding that fails lint, how many notes each rule has,
// and the tools that llama.cpp refuses without a finding of pattern-plain or repeat.
func report(t *testing.T, tools []protocol.Tool) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%d tools\n", len(tools))
	notes, grammar := map[string]int{}, map[string]bool{}
	for _, f := range hostrules.Check("", tools) {
		if grammar[f.Tool] = grammar[f.Tool] || f.Rule.ID == "pattern-plain" || f.Rule.ID == "repeat"; f.Rule.Fails {
			fmt.Fprintln(&b, f.Line())
		} else {
			notes[f.Rule.ID]++
		}
	}
	for i := range hostrules.Rules {
		if id := hostrules.Rules[i].ID; notes[id] > 0 {
			fmt.Fprintf(&b, "note     %s: %d\n", id, notes[id])
		}
	}
	slices.SortFunc(tools, func(a, b protocol.Tool) int { return strings.Compare(a.Name, b.Name) })
	schemas := make([][]byte, len(tools))
	for i, tool := range tools {
		schemas[i] = tool.InputSchema
	}
	for i, verdict := range llama(t, schemas) {
		switch name := tools[i].Name; {
		case verdict == "ok" && grammar[name]:
			t.Errorf("llama.cpp takes %s: %s", name, schemas[i])
		case verdict != "ok" && !grammar[name]:
			fmt.Fprintf(&b, "missed   %s: %.60s\n", name, verdict)
		}
	}
	return b.String()
}
