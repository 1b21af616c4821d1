package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/protocol"
)

func callCommand(c *console.Console) *cobra.Command {
	o := &once{console: c, saves: true}
	var unchecked, strict bool
	cmd := o.command("call TARGET TOOL [NAME=value…]", "Call a tool", `Call calls a tool and prints what it returns.

Arguments:
`+arguments.Help+`
  '{…}' or @file  a whole object, which the others add to`, between(2, -1, "TARGET", "TOOL"), func(ctx context.Context, s *session, args []string) error {
		return (&call{session: s, tool: args[0], unchecked: unchecked, strict: strict}).run(ctx, args[1:])
	})
	cmd.Flags().BoolVar(&o.noTask, "no-task", false, "take no task in place of the result: the server answers the call itself")
	cmd.Flags().BoolVar(&unchecked, "no-check", false, "send the arguments as they are, and let the server judge")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 1 if the result is not what the output schema of the tool promises")
	cmd.Example = `  talaria call http://127.0.0.1:8080/mcp calculate operation=add a=1 b=2
  talaria call "npx -y server-files" read path=notes.txt --json
  talaria call URL draw bars:='[{"label":"a","value":1}]' --save /tmp`
	return cmd
}

// call is a call of a tool.
type call struct {
	*session
	tool      string
	unchecked bool            // the server checks the arguments
	strict    bool            // a result that breaks the output schema is a failure
	listed    bool            // it is a tool that the server lists
	output    json.RawMessage // its output schema; nil if there is none
	hint      string          // the way out of wrong arguments
}

func (c *call) run(ctx context.Context, typed []string) error {
	given, err := c.arguments(ctx, typed)
	if err != nil {
		return err
	}
	result, err := c.Call(ctx, c.tool, given, c.call...)
	if _, refused := errors.AsType[*protocol.Error](err); refused && !c.listed && !c.unchecked {
		return c.unknownTool(ctx, c.tool, "")
	}
	switch {
	case err != nil:
		return err
	case c.json:
		err = c.render.JSON(result.Raw)
	default:
		err = c.render.Call(c.tool, result)
	}
	switch {
	case err != nil:
		return err
	case result.IsError:
		return failed(exitTool, fmt.Errorf("the tool %q returned an error", c.tool))
	case result.Task == nil:
		return c.judge(ctx, result.Structured)
	}
	return nil
}

// check reports whether the structured content is what the tool promises.
// Revisions without structured content promise nothing.
func (c *call) judge(ctx context.Context, structured json.RawMessage) error {
	if !c.Revision().Has(protocol.FeatureStructuredContent) {
		return nil
	}
	if c.strict && c.unchecked {
		switch tool, err := c.Tool(ctx, c.tool); {
		case err == nil:
			c.output = tool.OutputSchema
		case !errors.Is(err, client.ErrNotFound):
			return err
		}
	}
	err := arguments.CheckOutput(c.output, structured)
	switch {
	case err == nil:
		return nil
	case c.strict:
		return failed(exitTool, err)
	}
	c.console.Warnf("%s", strings.ReplaceAll(err.Error(), "\n", "\n         "))
	return nil
}

// arguments makes the arguments of what was typed. A tool that is not listed may
// need more scopes than the token has: only a call tells.
func (c *call) arguments(ctx context.Context, typed []string) (json.RawMessage, error) {
	object := &arguments.Object{}
	var tool protocol.Tool
	if !c.unchecked {
		var err error
		tool, err = c.Tool(ctx, c.tool)
		switch {
		case err == nil:
			c.output = tool.OutputSchema
			c.listed, c.hint = true, "talaria tools TARGET "+c.tool+" shows the arguments"
			if object, err = arguments.ReadObject(tool.InputSchema); err != nil {
				return nil, fmt.Errorf("tool %s: %w", c.tool, err)
			}
		case !errors.Is(err, client.ErrNotFound):
			return nil, err
		case !c.authorized:
			return nil, c.unknownTool(ctx, c.tool, "; --no-check calls it nevertheless")
		}
	}
	given, err := object.Arguments(typed)
	err = arguments.ToolFaults(tool, given, err, c.asker(ctx))
	return given, asUsage(err, c.hint)
}

// asker sends requests about arguments.
func (s *session) asker(ctx context.Context) arguments.Request {
	return func(method string, params, result any) error {
		return s.Request(ctx, method, params, result, s.call...)
	}
}

func asUsage(err error, hint string) error {
	if err == nil {
		return nil
	}
	return usage("%s", strings.ReplaceAll(err.Error(), "\n", "\n       ")).with(hint)
}
