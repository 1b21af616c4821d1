package shell

import (
	"context"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
)

// command is a command of the shell.
type command struct {
	name     string
	aliases  []string
	usage    string
	short    string
	online   bool // it needs a connection
	run      func(s *Shell, ctx context.Context, rest string) error
	complete func(s *Shell, typed []string) []string // candidates for the last word
}

// commands lists them in the order of the help. It is a function because the
// help refers to it.
func commands() []command {
	return []command{
		{name: "help", aliases: []string{"?"}, usage: "help [COMMAND]", short: "list the commands, or explain one", run: (*Shell).help,
			complete: func(*Shell, []string) []string { return names() }},
		{name: "ping", usage: "ping", short: "ask for a sign of life", online: true, run: (*Shell).ping},
		{name: "list_tools", aliases: []string{"tools"}, usage: "list_tools [TOOL]", short: "list the tools, or show one", online: true, run: (*Shell).listTools,
			complete: completeTool},
		{name: "call_tool", aliases: []string{"call"}, usage: "call_tool TOOL [NAME=value… | {…} | @FILE] [--json]", short: "call a tool; asks for what is missing", online: true, run: (*Shell).callTool,
			complete: completeCall},
		{name: "list_prompts", aliases: []string{"prompts"}, usage: "list_prompts", short: "list the prompts", online: true, run: (*Shell).listPrompts},
		{name: "get_prompt", aliases: []string{"prompt"}, usage: "get_prompt PROMPT [NAME=value…]", short: "get a prompt; asks for what is missing", online: true, run: (*Shell).getPrompt,
			complete: completePrompt},
		{name: "list_resources", aliases: []string{"resources"}, usage: "list_resources", short: "list the resources", online: true, run: (*Shell).listResources},
		{name: "templates", aliases: []string{"list_templates"}, usage: "templates", short: "list the resource templates", online: true, run: (*Shell).listTemplates},
		{name: "read_resource", aliases: []string{"read"}, usage: "read_resource URI", short: "read a resource", online: true, run: (*Shell).readResource,
			complete: completeURI},
		{name: "complete", usage: "complete (PROMPT | TEMPLATE) ARGUMENT [VALUE] [NAME=value…]", short: "ask for values of an argument", online: true, run: (*Shell).completion,
			complete: completeReference},
		{name: "subscribe", usage: "subscribe URI", short: "be told when a resource changes", online: true, run: (*Shell).subscribe, complete: completeURI},
		{name: "unsubscribe", usage: "unsubscribe URI", short: "be told no more", online: true, run: (*Shell).unsubscribe, complete: completeURI},
		{name: "set_level", usage: "set_level LEVEL", short: "show the server's log messages of that level and worse", online: true, run: (*Shell).setLevel,
			complete: func(*Shell, []string) []string { return levels() }},
		{name: "roots", usage: "roots [add DIRECTORY | remove URI | clear]", short: "list or change where the server may work", online: true, run: (*Shell).roots,
			complete: completeRoots},
		{name: "request", aliases: []string{"raw"}, usage: "request METHOD [JSON | NAME=value…]", short: "send a request of any method", online: true, run: (*Shell).request},
		{name: "notify", usage: "notify METHOD [JSON | NAME=value…]", short: "send a notification of any method", online: true, run: (*Shell).notify},
		{name: "initialize", aliases: []string{"connect"}, usage: "initialize", short: "connect again", run: (*Shell).initialize},
		{name: "show_state", aliases: []string{"state"}, usage: "show_state [-v]", short: "show the connection and what the server is", run: (*Shell).showState},
		{name: "timeout", usage: "timeout [DURATION]", short: "show or set how long to wait, such as 10s; 0 waits for ever", run: (*Shell).timeout},
		{name: "history", usage: "history", short: "list the commands of before", run: (*Shell).history},
		{name: "clear", usage: "clear", short: "clear the screen", run: (*Shell).clear},
		{name: "exit", aliases: []string{"quit"}, usage: "exit", short: "leave", run: func(*Shell, context.Context, string) error { return errLeave }},
	}
}

func find(name string) (command, bool) {
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name || slices.Contains(c.aliases, name) })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}

func names() []string {
	var list []string
	for _, c := range commands() {
		list = append(list, c.name)
	}
	return list
}

func (s *Shell) help(_ context.Context, rest string) error {
	if rest != "" {
		c, ok := find(rest)
		if !ok {
			return wrong("unknown command %q", rest)
		}
		s.Console.Print(s.Console.Paint(console.Bold, c.usage))
		s.Console.Print("  " + c.short)
		if len(c.aliases) > 0 {
			s.Console.Print("  also: " + strings.Join(c.aliases, ", "))
		}
		if c.name == "call_tool" {
			s.Console.Print(callHelp)
		}
		return nil
	}
	var rows [][]string
	for _, c := range commands() {
		rows = append(rows, []string{c.name, c.short})
	}
	s.Console.Table([]string{"command", "what it does"}, rows)
	s.Console.Notef("help COMMAND says more. Tab completes, Ctrl-C cancels a call, Ctrl-D leaves.")
	return nil
}

const callHelp = `  name=value      read as the tool's schema says; again for one more item of a list
  name:=JSON      any JSON
  name=@file      the text of a file, or its bytes where a tool takes base64
  name:=@file     the JSON in a file
  a.b=value       a member of an object
  {…} or @file    a whole object
  Quote values with spaces: name='two words'.
  --json shows the whole result as it came.`
