package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/cmd/talaria/internal/shellwords"
	"github.com/talaria-go/mcp/protocol"
)

// errTool is the error of a tool that says that it failed.
var errTool = errors.New("the tool failed")

// ToolFailed tells whether err is that of a tool which says that it failed.
func ToolFailed(err error) bool { return errors.Is(err, errTool) }

func (s *Shell) ping(ctx context.Context, _ string) error {
	start := time.Now()
	err := s.Terminal.Run(ctx, func(ctx context.Context, _ ...client.CallOption) error { return s.client.Ping(ctx) })
	if err == nil {
		s.Console.Printf("pong (%v)", time.Since(start).Round(10*time.Microsecond))
	}
	return err
}

// split takes the words of what follows a command.
func split(rest string) ([]string, error) {
	list, err := shellwords.Split(rest)
	if err != nil {
		return nil, wrong("%v", err)
	}
	return shellwords.Texts(list), nil
}

// nameAndArguments splits a name from arguments, which are words, or one JSON
// object as it stands, because its quotes are its own.
func nameAndArguments(rest string) (name string, typed []string, asJSON bool, err error) {
	list, err := shellwords.Split(rest)
	if len(list) > 0 {
		name = list[0].Text
	}
	if _, after, ok := strings.Cut(strings.TrimSpace(rest), " "); ok && strings.HasPrefix(strings.TrimSpace(after), "{") {
		after, asJSON = strings.CutSuffix(strings.TrimSpace(after), "--json")
		name, _, _ = strings.Cut(strings.TrimSpace(rest), " ")
		return name, []string{strings.TrimSpace(after)}, asJSON, nil
	}
	if err != nil {
		return "", nil, false, wrong("%v", err)
	}
	for i, text := range shellwords.Texts(list) {
		switch {
		case i == 0:
		case text == "--json":
			asJSON = true
		default:
			typed = append(typed, text)
		}
	}
	return name, typed, asJSON, nil
}

func (s *Shell) callTool(ctx context.Context, rest string) error {
	name, typed, asJSON, err := nameAndArguments(rest)
	if err != nil {
		return err
	}
	if name == "" {
		if name, err = s.ask("tool", func() []string { return s.toolNames() }); err != nil {
			return err
		}
	}
	tool, unknown := s.tool(ctx, name)
	if unknown != nil && !(s.Authorized && Wrong(unknown)) {
		return unknown
	}
	object := &arguments.Object{}
	if unknown == nil {
		if object, err = arguments.ReadObject(tool.InputSchema); err != nil {
			return fmt.Errorf("tool %s: %w", name, err)
		}
	}
	given, err := s.fill(object, typed)
	if err != nil {
		return err
	}
	var result *client.CallToolResult
	err = s.Terminal.Run(ctx, func(ctx context.Context, call ...client.CallOption) (err error) {
		result, err = s.client.Call(ctx, name, given, call...)
		return err
	})
	if _, refused := errors.AsType[*protocol.Error](err); refused && unknown != nil {
		return unknown
	}
	switch {
	case err != nil:
		return err
	case asJSON:
		err = s.Render.JSON(result.Raw)
	default:
		err = s.Render.Call(name, result)
	}
	if err == nil && result.IsError {
		err = errTool
	}
	return err
}

// ask asks for something that was not typed.
func (s *Shell) ask(what string, values func() []string) (string, error) {
	if !s.Console.Interactive() {
		return "", wrong("%s is missing", what)
	}
	text, err := s.Editor.Ask(what+": ", func(typed string) []string { return matching(values(), typed) })
	if text = strings.TrimSpace(text); err == nil && text == "" {
		err = form.ErrCancel
	}
	return text, err
}

// fill makes the arguments of what was typed, and asks for the rest if a person
// is there.
func (s *Shell) fill(object *arguments.Object, typed []string) (json.RawMessage, error) {
	given, err := object.Parse(typed)
	if err != nil {
		return nil, wrong("%s", strings.ReplaceAll(err.Error(), "\n", "\n       "))
	}
	if s.Console.Interactive() && missing(object, given, len(typed) == 0) {
		if given, err = form.Fill(s.Editor, object, given, false); err != nil {
			return nil, err
		}
	}
	if err := object.Check(given); err != nil {
		return nil, wrong("%s", strings.ReplaceAll(err.Error(), "\n", "\n       "))
	}
	return given, nil
}

// missing tells whether a required field is, or any if nothing was typed.
func missing(object *arguments.Object, given json.RawMessage, nothing bool) bool {
	var have map[string]json.RawMessage
	if json.Unmarshal(given, &have) != nil {
		return false
	}
	for _, f := range object.Fields {
		if _, ok := have[f.Name]; !ok && (f.Required || nothing) {
			return true
		}
	}
	return false
}

// tool returns the definition of a tool.
func (s *Shell) tool(ctx context.Context, name string) (tool protocol.Tool, err error) {
	err = s.Terminal.Run(ctx, func(ctx context.Context, _ ...client.CallOption) (err error) {
		tool, err = s.client.Tool(ctx, name)
		return err
	})
	if errors.Is(err, client.ErrNotFound) {
		text := fmt.Sprintf("the server has no tool %q", name)
		if near := arguments.Nearest(name, s.toolNames()); near != "" {
			text += "; did you mean " + near + "?"
		}
		return tool, &usageError{text, "list_tools lists them"}
	}
	return tool, err
}

func (s *Shell) listTools(ctx context.Context, rest string) error {
	if rest != "" {
		tool, err := s.tool(ctx, rest)
		if err != nil {
			return err
		}
		return s.Render.Tool(tool)
	}
	list, err := fetch(s, ctx, s.client.Tools)
	if err != nil {
		return err
	}
	s.Console.Printf("found %s", plural(len(list), "tool"))
	s.Render.Tools(list)
	return nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (s *Shell) listPrompts(ctx context.Context, _ string) error {
	list, err := fetch(s, ctx, s.client.Prompts)
	if err != nil {
		return err
	}
	s.Console.Printf("found %s", plural(len(list), "prompt"))
	s.Render.Prompts(list)
	return nil
}

func (s *Shell) getPrompt(ctx context.Context, rest string) error {
	name, typed, _, err := nameAndArguments(rest)
	if err != nil {
		return err
	}
	if name == "" {
		if name, err = s.ask("prompt", s.promptNames); err != nil {
			return err
		}
	}
	object := &arguments.Object{}
	list, err := fetch(s, ctx, s.client.Prompts)
	if err != nil {
		return err
	}
	for _, p := range list {
		if p.Name == name {
			object = render.PromptFields(p)
		}
	}
	raw, err := s.fill(object, typed)
	if err != nil {
		return err
	}
	given, err := arguments.Texts(raw)
	if err != nil {
		return err
	}
	var result *protocol.GetPromptResult
	err = s.Terminal.Run(ctx, func(ctx context.Context, call ...client.CallOption) (err error) {
		result, err = s.client.GetPrompt(ctx, name, given, call...)
		return err
	})
	if err != nil {
		return err
	}
	return s.Render.Prompt(name, result)
}

func levels() []string {
	var list []string
	for l := protocol.LevelDebug; l <= protocol.LevelEmergency; l++ {
		list = append(list, l.String())
	}
	return list
}

func (s *Shell) setLevel(ctx context.Context, rest string) error {
	level, fault := protocol.ParseLevel(rest)
	if fault != nil {
		return wrong("%q is no level; there are %s", rest, strings.Join(levels(), ", "))
	}
	err := s.Terminal.Run(ctx, func(ctx context.Context, _ ...client.CallOption) error { return s.client.SetLevel(ctx, level) })
	if err == nil {
		s.told = level
		s.Terminal.ShowLogs(level)
		s.Console.Printf("level %s and worse", level)
	}
	return err
}

// request sends what has no command of its own.
func (s *Shell) request(ctx context.Context, rest string) error {
	method, params, err := methodAndParams(rest)
	if err != nil {
		return err
	}
	var result json.RawMessage
	err = s.Terminal.Run(ctx, func(ctx context.Context, call ...client.CallOption) error {
		return s.client.Request(ctx, method, params, &result, call...)
	})
	if err != nil {
		return err
	}
	return s.Render.JSON(result)
}

func methodAndParams(rest string) (string, json.RawMessage, error) {
	method, typed, _, err := nameAndArguments(rest)
	if err != nil {
		return "", nil, err
	}
	if method == "" {
		return "", nil, wrong("METHOD is missing")
	}
	params, err := (&arguments.Object{}).Parse(typed)
	if err != nil {
		return "", nil, wrong("%v", err)
	}
	return method, params, nil
}

func (s *Shell) notify(ctx context.Context, rest string) error {
	method, params, err := methodAndParams(rest)
	if err != nil {
		return err
	}
	return s.Terminal.Run(ctx, func(ctx context.Context, _ ...client.CallOption) error { return s.client.Notify(ctx, method, params) })
}
