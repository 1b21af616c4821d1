package shell

import (
	"context"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/shellwords"
)

// command is a command of the shell.
type command struct {
	name     string
	aliases  []string
	usage    string
	short    string
	online   bool // it needs a connection
	run      func(ctx context.Context, rest string) error
	complete func(typed []string) []string // candidates for the last word
}

// table is the commands in the order of the help.
type table []command

func commands(s *Shell) table {
	l, p := s.link, person{s.Console, s.Editor}
	return table{
		{name: "help", aliases: []string{"?"}, usage: "help [COMMAND]", short: "list the commands, or explain one", run: s.help,
			complete: func([]string) []string { return s.commands.names() }},
		{name: "ping", usage: "ping", short: "ask for a sign of life", online: true, run: requests{l}.ping},
		{name: "list_tools", aliases: []string{"tools"}, usage: "list_tools [TOOL]", short: "list the tools, or show one", online: true, run: tools{l, p}.list,
			complete: first(s.lists.toolNames)},
		{name: "call_tool", aliases: []string{"call"}, usage: "call_tool TOOL [NAME=value… | {…} | @FILE] [--json]", short: "call a tool; asks for what is missing", online: true, run: tools{l, p}.call,
			complete: tools{l, p}.complete},
		{name: "list_prompts", aliases: []string{"prompts"}, usage: "list_prompts", short: "list the prompts", online: true,
			run: listing(l, "prompt", (*client.Client).Prompts, l.Render.Prompts)},
		{name: "get_prompt", aliases: []string{"prompt"}, usage: "get_prompt PROMPT [NAME=value…]", short: "get a prompt; asks for what is missing", online: true, run: prompts{l, p}.get,
			complete: prompts{l, p}.complete},
		{name: "list_resources", aliases: []string{"resources"}, usage: "list_resources", short: "list the resources", online: true,
			run: listing(l, "resource", (*client.Client).Resources, l.Render.Resources)},
		{name: "templates", aliases: []string{"list_templates"}, usage: "templates", short: "list the resource templates", online: true,
			run: listing(l, "resource template", (*client.Client).Templates, l.Render.Templates)},
		{name: "read_resource", aliases: []string{"read"}, usage: "read_resource URI", short: "read a resource", online: true, run: resources{l, p}.read,
			complete: first(s.lists.uris)},
		{name: "complete", usage: "complete (PROMPT | TEMPLATE) ARGUMENT [VALUE] [NAME=value…]", short: "ask for values of an argument", online: true, run: requests{l}.complete,
			complete: requests{l}.completeReference},
		{name: "subscribe", usage: "subscribe URI", short: "be told when a resource changes", online: true, run: resources{l, p}.subscribe, complete: first(s.lists.uris)},
		{name: "unsubscribe", usage: "unsubscribe URI", short: "be told no more", online: true, run: resources{l, p}.unsubscribe, complete: first(s.lists.uris)},
		{name: "set_level", usage: "set_level LEVEL", short: "show the server's log messages of that level and worse", online: true, run: requests{l}.setLevel,
			complete: func([]string) []string { return levels() }},
		{name: "roots", usage: "roots [add DIRECTORY | remove URI | clear]", short: "list or change where the server may work", online: true, run: roots{l}.run,
			complete: roots{l}.complete},
		{name: "request", aliases: []string{"raw"}, usage: "request METHOD [JSON | NAME=value…]", short: "send a request of any method", online: true, run: requests{l}.request},
		{name: "notify", usage: "notify METHOD [JSON | NAME=value…]", short: "send a notification of any method", online: true, run: requests{l}.notify},
		{name: "initialize", aliases: []string{"connect"}, usage: "initialize", short: "connect again", run: func(ctx context.Context, _ string) error { return l.connect(ctx) }},
		{name: "show_state", aliases: []string{"state"}, usage: "show_state [-v]", short: "show the connection and what the server is", run: l.show},
		{name: "timeout", usage: "timeout [DURATION]", short: "show or set how long to wait, such as 10s; 0 waits for ever", run: s.timeout},
		{name: "history", usage: "history", short: "list the commands of before", run: s.history},
		{name: "clear", usage: "clear", short: "clear the screen", run: s.clear},
		{name: "exit", aliases: []string{"quit"}, usage: "exit", short: "leave", run: func(context.Context, string) error { return errLeave }},
	}
}

func (t table) find(name string) (command, bool) {
	i := slices.IndexFunc(t, func(c command) bool { return c.name == name || slices.Contains(c.aliases, name) })
	if i < 0 {
		return command{}, false
	}
	return t[i], true
}

func (t table) names() []string { return texts(t, func(c command) string { return c.name }) }

// complete is the editor's completer.
func (t table) complete(line string) (head string, candidates []string) {
	list := shellwords.Partial(line)
	last := list[len(list)-1]
	head = line[:last.Start]
	var found []string
	if len(list) == 1 {
		found = matching(t.names(), last.Text)
	} else if c, ok := t.find(list[0].Text); ok && c.complete != nil {
		found = matching(c.complete(shellwords.Texts(list[1:])), last.Text)
	}
	for _, text := range found {
		if quoted := shellwords.Quote(text); strings.HasSuffix(text, "=") {
			candidates = append(candidates, quoted)
		} else {
			candidates = append(candidates, quoted+" ")
		}
	}
	return head, candidates
}
