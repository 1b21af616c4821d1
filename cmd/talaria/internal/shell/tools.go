package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	naming "github.com/talaria-go/mcp/internal/tooling/names"
	"github.com/talaria-go/mcp/protocol"
)

// errTool is the error of a tool that says that it failed.
var errTool = errors.New("the tool failed")

const callHelp = arguments.Help + `
  {…} or @file    a whole object
  Quote values with spaces: name='two words'.
  --json shows the whole result as it came.`

// tools are the commands for tools.
type tools struct {
	*link
	person
}

func (t tools) list(ctx context.Context, rest string) error {
	if rest == "" {
		return listing(t.link, "tool", (*client.Client).Tools, t.Render.Tools)(ctx, rest)
	}
	tool, err := t.find(ctx, rest)
	if err != nil {
		return err
	}
	return t.Render.Tool(tool)
}

func (t tools) call(ctx context.Context, rest string) error {
	w, err := wordsOf(rest)
	if err == nil && w.name == "" {
		w.name, err = t.ask("tool", t.lists.toolNames)
	}
	if err != nil {
		return err
	}
	tool, unknown := t.find(ctx, w.name)
	if unknown != nil && !(t.Authorized && Wrong(unknown)) {
		return unknown
	}
	object := &arguments.Object{}
	if unknown == nil {
		if object, err = arguments.ReadObject(tool.InputSchema); err != nil {
			return fmt.Errorf("tool %s: %w", w.name, err)
		}
	}
	given, faults := t.fill(object, w.typed)
	if faults != nil {
		return t.faults(ctx, tool, given, faults)
	}
	result, err := terminal.Get(ctx, t.Terminal, func(ctx context.Context, call ...client.CallOption) (*client.CallToolResult, error) {
		return t.client.Call(ctx, w.name, given, call...)
	})
	if _, refused := errors.AsType[*protocol.Error](err); refused && unknown != nil {
		return unknown
	}
	switch {
	case err != nil:
		return err
	case w.json:
		err = t.Render.JSON(result.Raw)
	default:
		err = t.Render.Call(w.name, result)
	}
	switch {
	case err != nil:
		return err
	case result.IsError:
		return errTool
	case result.Task == nil && t.client.Revision().Has(protocol.FeatureStructuredContent):
		if err := arguments.CheckOutput(tool.OutputSchema, result.Structured); err != nil {
			t.Console.Warnf("%v", err)
		}
	}
	return nil
}

// faults returns all faults of arguments.
func (t tools) faults(ctx context.Context, tool protocol.Tool, given json.RawMessage, faults error) error {
	all := arguments.ToolFaults(tool, given, faults, func(method string, params, result any) error {
		return t.Terminal.Run(ctx, func(ctx context.Context, call ...client.CallOption) error {
			return t.client.Request(ctx, method, params, result, call...)
		})
	})
	if errors.Is(all, faults) {
		return faults
	}
	return misused(all)
}

// find returns the definition of a tool.
func (t tools) find(ctx context.Context, name string) (protocol.Tool, error) {
	tool, err := terminal.Get(ctx, t.Terminal, func(ctx context.Context, _ ...client.CallOption) (protocol.Tool, error) {
		return t.client.Tool(ctx, name)
	})
	if errors.Is(err, client.ErrNotFound) {
		text := fmt.Sprintf("the server has no tool %q", name)
		if near := naming.Nearest(name, t.lists.toolNames()); near != "" {
			text += "; did you mean " + near + "?"
		}
		err = &usageError{text, "list_tools lists them"}
	}
	return tool, err
}

// complete completes what follows call_tool.
func (t tools) complete(typed []string) []string {
	if len(typed) == 1 {
		return t.lists.toolNames()
	}
	for _, tool := range t.lists.tools.get(t.client, (*client.Client).Tools) {
		if tool.Name != typed[0] {
			continue
		}
		object, err := arguments.ReadObject(tool.InputSchema)
		if err != nil {
			return nil
		}
		return append(completeFields(object, typed[1:], nil), "--json")
	}
	return nil
}
