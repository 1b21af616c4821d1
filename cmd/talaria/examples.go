package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// workbench is the server of the examples: go run ./cmd/example.
const workbench = "http://127.0.0.1:8080/mcp"

// examples are the command lines that the help of a command shows, for those
// that do not say their own. They work on the workbench.
var examples = map[string][]string{
	"http":      {workbench, workbench + " -v", "--base-url http://127.0.0.1:8080"},
	"sse":       {"http://127.0.0.1:8000/sse"},
	"ws":        {"ws://127.0.0.1:8081/ws"},
	"tools":     {workbench, workbench + " calculate", workbench + " --json"},
	"prompts":   {workbench},
	"prompt":    {workbench + " summarize_notes style=haiku most=3"},
	"resources": {workbench, workbench + " --templates"},
	"read":      {workbench + " notes://all", workbench + " notes://all --out notes.json"},
	"complete":  {workbench + " summarize_notes style", workbench + " summarize_notes style p"},
	"ping":      {workbench, workbench + " --revision 2025-06-18"},
	"request":   {workbench + " tools/list", workbench + ` tools/call '{"name":"calculate","arguments":{"operation":"add","a":1,"b":2}}'`},
	"watch":     {workbench, workbench + " notes://all --json"},
	"inspect":   {workbench, workbench + " --json", `"npx -y @modelcontextprotocol/server-everything"`},
	"logout":    {"https://example.com/mcp", "--all"},
	"version":   {""},
	"help":      {"call"},
}

// addExamples gives each command its examples.
func addExamples(commands []*cobra.Command) {
	for _, cmd := range commands {
		if cmd.Example != "" {
			continue
		}
		lines := make([]string, len(examples[cmd.Name()]))
		for i, line := range examples[cmd.Name()] {
			lines[i] = strings.TrimRight("  talaria "+cmd.Name()+" "+line, " ")
		}
		cmd.Example = strings.Join(lines, "\n")
	}
}
