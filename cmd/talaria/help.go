package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/internal/tooling/names"
)

// strictHelp is a help command that fails for unknown commands.
type strictHelp struct {
	root    *cobra.Command
	unknown error // for an unknown command: the function that calls it cannot fail
}

// replace replaces the help function of root.
func (h *strictHelp) replace() {
	show := h.root.HelpFunc()
	h.root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
		if cmd == h.root && i >= 0 {
			h.unknown = unknownCommand(h.root, args[i])
			return
		}
		show(cmd, args)
	})
	h.root.InitDefaultHelpFlag() // so that what stands after it is examined
	h.root.InitDefaultHelpCmd()
	help, _, err := h.root.Find([]string{"help"})
	must(err)
	explain := help.Run
	help.RunE = func(cmd *cobra.Command, args []string) error {
		if found, _, err := h.root.Find(args); len(args) > 0 && (err != nil || found == h.root) {
			return unknownCommand(h.root, args[0])
		}
		explain(cmd, args)
		return nil
	}
}

// unknownCommand is the error for a name that is not a command's.
func unknownCommand(root *cobra.Command, name string) error {
	var known []string
	for _, c := range root.Commands() {
		known = append(known, c.Name())
	}
	hint := "talaria -h lists the commands"
	if strings.Contains(name, "://") {
		hint = "a command precedes a TARGET: talaria tools " + name + " lists tools, talaria http " + name + " opens a shell"
	} else if near := names.Nearest(name, known); near != "" {
		hint = "did you mean talaria " + near + "? " + hint
	}
	return usage("unknown command %q", name).with(hint)
}

// workbench is the server of the examples: go run ./cmd/example.
const workbench = "http://127.0.0.1:8080/mcp"

// examples are the command lines in the help of commands without Example. They
// work with the workbench.
var examples = map[string][]string{
	"http":      {workbench, workbench + " -v", "--base-url http://127.0.0.1:8080"},
	"sse":       {"http://127.0.0.1:8000/sse"},
	"ws":        {"ws://127.0.0.1:8081/ws"},
	"tools":     {workbench, workbench + " calculate", workbench + " --json"},
	"prompts":   {workbench},
	"prompt":    {workbench + " summarize_notes style=haiku most=3"},
	"resources": {workbench, workbench + " --templates"},
	"read":      {workbench + " notes://all", workbench + " notes://all --out notes.json"},
	"lock":      {workbench, workbench + " --check"},
	"lint":      {workbench, workbench + " --notes --as workbench"},
	"skills":    {`"go run ./examples/skills"`},
	"skill":     {`"go run ./examples/skills" skill://release-notes/SKILL.md`, `"go run ./examples/skills" skill://release-notes/SKILL.md --file templates/notes.md`},
	"complete":  {workbench + " summarize_notes style", workbench + " summarize_notes style p"},
	"ping":      {workbench, workbench + " --revision 2025-06-18"},
	"request":   {workbench + " tools/list", workbench + ` tools/call '{"name":"calculate","arguments":{"operation":"add","a":1,"b":2}}'`},
	"watch":     {workbench, workbench + " notes://all --json"},
	"inspect":   {workbench, workbench + " --json", `-b "go run ./cmd/example -stdio"`, `"npx -y @modelcontextprotocol/server-everything"`},
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
