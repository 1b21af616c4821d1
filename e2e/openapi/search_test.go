package openapi

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/openapi"
	"github.com/talaria-go/mcp/toolsearch"
)

// words are what users of the document's service say, and what the document says.
var words = map[string]string{
	"pr": "pull request", "merge request": "pull request", "ci": "workflow run, workflow", "pipeline": "workflow run, workflow", "build": "workflow run, build",
	"ticket": "issue", "bug": "issue", "board": "project", "snippet": "gist", "bookmark": "star", "star": "stargazer", "dev environment": "codespace", "workspace": "codespace",
	"vulnerable": "dependabot alert", "leak": "secret scanning", "static analysis": "code scanning", "docker image": "package container",
	"tag": "label, topic", "logged in": "authenticated user", "version": "release", "discussion": "comment", "website": "pages", "api call": "rate limit",
	"give access": "add collaborator", "protected": "branch protection", "binary": "release asset", "license": "copilot seat", "branch": "reference", "close": "update", "bot": "app",
}

// github returns a server with a tool for each operation of the largest document, and those of a
// file of other servers.
func github(t testing.TB, o *toolsearch.Options, servers string) *mcp.Server {
	dir := testdep.Env(t, "E2E_OPENAPI", "e2e/run openapi installs the documents")
	file := ""
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if filepath.Base(path) == "api.github.com.json" && strings.Contains(path, "octokit") {
			file = path
			return fs.SkipAll
		}
		return err
	})
	text, read := os.ReadFile(file)
	if err := errors.Join(err, read); err != nil {
		t.Fatal(err)
	}
	tools, _, err := openapi.Tools(text, nil)
	log := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: "github", Version: "1"}, &mcp.Options{Logger: &log})
	if err := errors.Join(err, s.Add(tools...), s.Add(others(t, servers)...), toolsearch.Add(s, o)); err != nil {
		t.Fatal(err)
	}
	return s
}

// others returns the tools of MCP servers that others published, from a file of their lists, as a
// gateway names them; none without a file.
func others(t testing.TB, file string) (all []mcp.Component) {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	var servers map[string][]struct {
		Name, Title, Description string
		InputSchema              json.RawMessage
		ReadOnly                 bool
	}
	if err := errors.Join(err, json.Unmarshal(text, &servers)); err != nil {
		t.Fatal(err)
	}
	for server, tools := range servers {
		for _, tool := range tools {
			options := []mcp.ToolOption{mcp.Title(tool.Title), mcp.Doc(tool.Description), mcp.InputSchema(tool.InputSchema)}
			if tool.ReadOnly {
				options = append(options, mcp.ReadOnly())
			}
			all = append(all, mcp.Tool(server+"_"+tool.Name, func(*mcp.Frame, json.RawMessage) (string, error) { return "", nil }, options...))
		}
	}
	return all
}

// answer returns the tools that a search finds, and whether one of them has the words.
func answer(c *mcptest.Client, query string) (names []string, some bool) {
	lines := strings.Split(c.Call("search_tools", map[string]string{"query": query}).Text(), "\n")
	for _, line := range lines[1:] {
		var hit struct{ Name string }
		if _, rest, ok := strings.Cut(line, "search for one by its name: "); ok {
			names = append(names, strings.Split(rest, ", ")...)
		} else if json.Unmarshal([]byte(line), &hit) == nil {
			names = append(names, hit.Name)
		}
	}
	return names, !strings.HasPrefix(lines[0], "No tool ")
}

// TestSearchPhrases: of phrases as users say them, each with the tool that it is for or "-", most
// have that tool among the first five found. Most of those without one get the answer that says so.
func TestSearchPhrases(t *testing.T) {
	c := mcptest.New(t, github(t, &toolsearch.Options{Words: words}, ""))
	list, err := json.Marshal(c.Tools())
	if err != nil || len(list) > 4<<10 {
		t.Errorf("the list has %d bytes, more than 4 KiB: %v", len(list), err)
	}
	files, err := filepath.Glob("testdata/phrases*.tsv")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no phrases: ", err)
	}
	if file := os.Getenv("E2E_PHRASES"); file != "" {
		files = []string{file}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(file, "phrases3") { // is for the tools of three servers, too
			c = mcptest.New(t, github(t, &toolsearch.Options{Words: words}, "testdata/servers.json"))
		}
		var answerable, hits, first, unsure, none, silent int
		for line := range strings.Lines(string(text)) {
			tool, phrase, _ := strings.Cut(strings.TrimSpace(line), "\t")
			names, some := answer(c, phrase)
			if tool == "-" {
				none++
				if !some {
					silent++
				} else {
					t.Logf("finds %v for %q", names[:min(3, len(names))], phrase)
				}
				continue
			}
			answerable++
			if !some {
				unsure++
			}
			at := -1
			for i, name := range names[:min(5, len(names))] {
				for _, right := range strings.Fields(tool) { // several may be
					if name == right || strings.HasSuffix(right, "*") && strings.HasPrefix(name, right[:len(right)-1]) {
						at = i
					}
				}
			}
			switch {
			case at < 0:
				t.Logf("finds %v for %q, not %s", names[:min(3, len(names))], phrase, tool)
			default:
				hits++
				if at < 3 || some {
					first++
				}
			}
		}
		t.Logf("%s: %d of %d found, %d if an answer that lacks words had 3 tools; %d answers lack words; %d of %d phrases without a tool have that answer",
			file, hits, answerable, first, unsure, silent, none)
		if answerable == 0 || hits*100 < answerable*60 {
			t.Errorf("%s: %d of %d phrases find their tool, fewer than 60 %%", file, hits, answerable)
		}
		if none == 0 || silent*100 < none*85 {
			t.Errorf("%s: %d of %d phrases without a tool have that answer, fewer than 85 %%", file, silent, none)
		}
	}
}

// BenchmarkSearch is one search of all tools, from a client.
func BenchmarkSearch(b *testing.B) {
	c := mcptest.New(b, github(b, &toolsearch.Options{Words: words}, ""))
	answer(c, "create an issue")
	b.ReportAllocs()
	for b.Loop() {
		answer(c, "ask dave to review my pull request")
	}
}
