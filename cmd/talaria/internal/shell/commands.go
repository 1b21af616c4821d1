package shell

import (
	"context"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
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
	r := resources{l, p}
	return table{
		{name: "help", aliases: []string{"?"}, usage: "help [COMMAND]", short: "list the commands, or explain one", run: s.help,
			complete: func([]string) []string { return s.commands.names() }},
		{name: "ping", usage: "ping", short: "check that the server responds", online: true, run: requests{l}.ping},
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
		{name: "read_resource", aliases: []string{"read"}, usage: "read_resource URI", short: "read a resource", online: true, run: r.of(r.read),
			complete: first(s.lists.uris)},
		{name: "complete", usage: "complete (PROMPT | TEMPLATE) ARGUMENT [VALUE] [NAME=value…]", short: "ask for values of an argument", online: true, run: requests{l}.complete,
			complete: requests{l}.completeReference},
		{name: "subscribe", usage: "subscribe URI", short: "be told when a resource changes", online: true, run: r.of(r.subscribe), complete: first(s.lists.uris)},
		{name: "unsubscribe", usage: "unsubscribe URI", short: "be told no more", online: true, run: r.of(r.unsubscribe), complete: first(s.lists.uris)},
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

// matching returns those that continue from what was typed.
func matching(list []string, typed string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(text string) bool { return !strings.HasPrefix(text, typed) })
}

// first completes only the first word.
func first(candidates func() []string) func(typed []string) []string {
	return func(typed []string) []string {
		if len(typed) > 1 {
			return nil
		}
		return candidates()
	}
}

// completeFields completes name= and, after it, the value. ask may know more
// values than the schema.
func completeFields(object *arguments.Object, typed []string, ask func(field, value string, before map[string]string) []string) []string {
	last := typed[len(typed)-1]
	before := map[string]string{}
	for _, text := range typed[:len(typed)-1] {
		name, value, _ := strings.Cut(text, "=")
		before[strings.TrimSuffix(name, ":")] = value
	}
	var list []string
	if name, value, ok := strings.Cut(last, "="); ok {
		f, known := object.Field(name)
		if !known {
			return nil
		}
		values := form.Values(f, value)
		if len(values) == 0 && ask != nil {
			for _, v := range ask(name, value, before) {
				values = append(values, arguments.Typed(v))
			}
		}
		for _, v := range values {
			list = append(list, name+"="+v)
		}
		return list
	}
	for _, f := range object.Fields {
		if _, given := before[f.Name]; f.Nameable() && (!given || slices.Contains(f.Types, "array")) {
			list = append(list, f.Name+"=")
		}
	}
	return list
}

// words are what follows a command that takes a name and arguments for it.
type words struct {
	name  string // "" if there is none
	typed []string
	json  bool // --json is among them
}

// wordsOf splits a line. The arguments are words, or one JSON object as it
// stands, because its quotes are its own.
func wordsOf(rest string) (words, error) {
	if name, after, _ := strings.Cut(rest, " "); strings.HasPrefix(strings.TrimSpace(after), "{") {
		object, asJSON := strings.CutSuffix(after, "--json")
		return words{name, []string{strings.TrimSpace(object)}, asJSON}, nil
	}
	list, err := split(rest)
	var w words
	for i, text := range list {
		switch {
		case i == 0:
			w.name = text
		case text == "--json":
			w.json = true
		default:
			w.typed = append(w.typed, text)
		}
	}
	return w, err
}

// split takes the words of what follows a command.
func split(rest string) ([]string, error) {
	list, err := shellwords.Split(rest)
	if err != nil {
		return nil, wrong("%v", err)
	}
	return shellwords.Texts(list), nil
}
