package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/protocol"
)

// once is a command that connects, does one thing and ends.
type once struct {
	app   *app
	flags connectFlags
	json  bool
}

// command makes the command; its first argument is the target.
func (o *once) command(use, short, long string, args cobra.PositionalArgs, run func(ctx context.Context, s *session, args []string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, GroupID: groupOnce, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			ed := editor.New(o.app.console, "")
			defer ed.Close()
			s, err := o.app.open(cmd.Context(), &o.flags, args[:1], ed)
			if err != nil {
				return err
			}
			defer s.Close()
			defer o.app.unfit(s.terminal)
			return s.terminal.Run(cmd.Context(), func(ctx context.Context, call ...client.CallOption) error {
				s.call = call
				return run(ctx, s, args[1:])
			})
		},
	}
	o.flags.add(cmd.Flags())
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func (a *app) onceCommands() []*cobra.Command {
	return []*cobra.Command{a.callCommand(), a.toolsCommand(), a.promptsCommand(), a.promptCommand(), a.resourcesCommand(),
		a.readCommand(), a.completeCommand(), a.pingCommand(), a.requestCommand(), a.watchCommand(), a.inspectCommand()}
}

func (a *app) callCommand() *cobra.Command {
	o := &once{app: a}
	var unchecked bool
	cmd := o.command("call TARGET TOOL [NAME=value…]", "Call a tool", `Call calls a tool and prints what it returns.

`+argumentsHelp, between(2, -1, "TARGET", "TOOL"), func(ctx context.Context, s *session, args []string) error {
		given, listed, err := s.arguments(ctx, args[0], args[1:], unchecked)
		if err != nil {
			return err
		}
		result, err := s.Client.Call(ctx, args[0], given, s.call...)
		if _, refused := errors.AsType[*protocol.Error](err); refused && !listed && !unchecked {
			return s.unknownTool(ctx, args[0], "")
		}
		if err != nil {
			return err
		}
		if o.json {
			err = s.render.JSON(result.Raw)
		} else {
			err = s.render.Call(args[0], result)
		}
		if err == nil && result.IsError {
			return failed(exitTool, fmt.Errorf("the tool %s failed", args[0]))
		}
		return err
	})
	cmd.Flags().BoolVar(&o.flags.noTask, "no-task", false, "take no task in place of the result: the server answers the call itself")
	cmd.Flags().BoolVar(&unchecked, "no-check", false, "send the arguments as they are, and let the server judge")
	cmd.Example = `  talaria call http://127.0.0.1:8080/mcp calculate operation=add a=1 b=2
  talaria call "npx -y server-files" read path=notes.txt --json
  talaria call URL draw bars:='[{"label":"a","value":1}]' --save /tmp`
	return cmd
}

const argumentsHelp = `Arguments:
  name=value      read as the tool's schema says; again for one more item of a list
  name:=JSON      any JSON
  name=@file      the text of a file, or its bytes where a tool takes base64
  name:=@file     the JSON in a file
  a.b=value       a member of an object
  '{…}' or @file  a whole object, which the others add to`

// arguments makes the arguments of a tool from what was typed. A tool that is
// not listed may need more scopes than the token has: only a call tells.
func (s *session) arguments(ctx context.Context, name string, typed []string, unchecked bool) (given json.RawMessage, listed bool, err error) {
	if unchecked {
		given, err := (&arguments.Object{}).Parse(typed)
		return given, false, asUsage(err, "")
	}
	tool, err := s.Tool(ctx, name)
	if errors.Is(err, client.ErrNotFound) {
		if !s.authorized {
			return nil, false, s.unknownTool(ctx, name, "; --no-check calls it nevertheless")
		}
		given, err := (&arguments.Object{}).Parse(typed)
		return given, false, asUsage(err, "")
	}
	if err != nil {
		return nil, false, err
	}
	object, err := arguments.ReadObject(tool.InputSchema)
	if err != nil {
		return nil, true, fmt.Errorf("tool %s: %w", name, err)
	}
	hint := "talaria tools TARGET " + name + " shows the arguments"
	if given, err = object.Parse(typed); err != nil {
		return nil, true, asUsage(err, hint)
	}
	return given, true, asUsage(object.Check(given), hint)
}

func asUsage(err error, hint string) error {
	if err == nil {
		return nil
	}
	return usage("%s", strings.ReplaceAll(err.Error(), "\n", "\n       ")).with(hint)
}

// unknownTool is the error for a tool that the server does not list. beside is
// one more way out, "" if there is none.
func (s *session) unknownTool(ctx context.Context, name, beside string) error {
	var names []string
	for tool, err := range s.Tools(ctx) {
		if err != nil {
			return err
		}
		names = append(names, tool.Name)
	}
	hint := "talaria tools TARGET lists them" + beside
	if near := arguments.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return usage("the server has no tool %q", name).with(hint)
}

func (a *app) toolsCommand() *cobra.Command {
	o := &once{app: a}
	return o.command("tools TARGET [TOOL]", "List tools, or show one", "", between(1, 2, "TARGET"), func(ctx context.Context, s *session, args []string) error {
		if len(args) == 1 {
			tool, err := s.Tool(ctx, args[0])
			switch {
			case errors.Is(err, client.ErrNotFound):
				return s.unknownTool(ctx, args[0], "")
			case err != nil:
				return err
			case o.json:
				return s.app.console.JSON(tool)
			}
			return s.render.Tool(tool)
		}
		return listed(o, s, s.Tools(ctx), s.render.Tools)
	})
}

// listed shows a list in the form that was asked for.
func listed[T any](o *once, s *session, list func(func(T, error) bool), show func([]T)) error {
	items, err := collect(list)
	switch {
	case err != nil:
		return err
	case o.json:
		return s.app.console.JSON(items)
	}
	show(items)
	return nil
}

// collect returns all items; none is an empty list, which JSON shows as such.
func collect[T any](list func(func(T, error) bool)) ([]T, error) {
	items := []T{}
	for item, err := range list {
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

func (a *app) promptsCommand() *cobra.Command {
	o := &once{app: a}
	return o.command("prompts TARGET", "List prompts", "", exactly("TARGET"), func(ctx context.Context, s *session, _ []string) error {
		return listed(o, s, s.Prompts(ctx), s.render.Prompts)
	})
}

func (a *app) promptCommand() *cobra.Command {
	o := &once{app: a}
	return o.command("prompt TARGET NAME [NAME=value…]", "Get a prompt", "", between(2, -1, "TARGET", "NAME"), func(ctx context.Context, s *session, args []string) error {
		given, err := s.promptArguments(ctx, args[0], args[1:])
		if err != nil {
			return err
		}
		if o.json {
			return s.raw(ctx, protocol.MethodPromptsGet, map[string]any{"name": args[0], "arguments": given})
		}
		result, err := s.GetPrompt(ctx, args[0], given, s.call...)
		if err != nil {
			return err
		}
		return s.render.Prompt(args[0], result)
	})
}

// promptArguments checks names against the prompt, if the server lists it.
func (s *session) promptArguments(ctx context.Context, name string, typed []string) (map[string]string, error) {
	object := &arguments.Object{}
	for p, err := range s.Prompts(ctx) {
		if err != nil {
			return nil, err
		}
		if p.Name == name {
			object = render.PromptFields(p)
		}
	}
	raw, err := object.Parse(typed)
	if err != nil {
		return nil, asUsage(err, "talaria prompts TARGET shows the arguments")
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, err
	}
	given := map[string]string{}
	for name, value := range values {
		given[name] = arguments.Plain(value)
	}
	return given, nil
}

func (a *app) resourcesCommand() *cobra.Command {
	o := &once{app: a}
	var templates bool
	cmd := o.command("resources TARGET", "List resources, or resource templates", "", exactly("TARGET"), func(ctx context.Context, s *session, _ []string) error {
		if templates {
			return listed(o, s, s.Templates(ctx), s.render.Templates)
		}
		return listed(o, s, s.Resources(ctx), s.render.Resources)
	})
	cmd.Flags().BoolVar(&templates, "templates", false, "list resource templates")
	return cmd
}

func (a *app) readCommand() *cobra.Command {
	o := &once{app: a}
	var out string
	cmd := o.command("read TARGET URI", "Read a resource", "", exactly("TARGET", "URI"), func(ctx context.Context, s *session, args []string) error {
		if o.json {
			return s.raw(ctx, protocol.MethodResourcesRead, map[string]any{"uri": args[0]})
		}
		result, err := s.Read(ctx, args[0], s.call...)
		if err != nil || out == "" {
			if err == nil {
				err = s.render.Read(result)
			}
			return err
		}
		return s.write(out, result)
	})
	cmd.Flags().StringVarP(&out, "out", "o", "", "write the bytes of the resource into this `file`; - is standard output")
	return cmd
}

// write puts a resource into a file as it is.
func (s *session) write(out string, result *protocol.ReadResourceResult) error {
	var data []byte
	for _, c := range result.Contents {
		if c.Blob != nil {
			data = append(data, c.Blob...)
		} else {
			data = append(data, c.Text...)
		}
	}
	if out == "-" && s.app.console.OutTerminal {
		s.app.console.Data(string(data))
		return nil
	}
	if out == "-" {
		_, _ = s.app.console.Write(data) // run says what failed
		return nil
	}
	return os.WriteFile(out, data, 0o644)
}

// raw sends a request and prints its result as it came.
func (s *session) raw(ctx context.Context, method string, params any) error {
	var result json.RawMessage
	if err := s.Request(ctx, method, params, &result, s.call...); err != nil {
		return err
	}
	return s.render.JSON(result)
}

func (a *app) completeCommand() *cobra.Command {
	o := &once{app: a}
	return o.command("complete TARGET (PROMPT | TEMPLATE) ARGUMENT [VALUE] [NAME=value…]", "Ask for values of an argument",
		"Complete asks the server which values an argument of a prompt, or a variable of a\nresource template, can have. NAME=value are those that are filled in already.",
		between(3, -1, "TARGET", "PROMPT or TEMPLATE", "ARGUMENT"), func(ctx context.Context, s *session, args []string) error {
			q, err := completionOf(args)
			if err != nil {
				return err
			}
			result, err := s.Complete(ctx, q)
			switch {
			case err != nil:
				return err
			case o.json:
				return s.app.console.JSON(result)
			}
			s.render.Completion(result)
			return nil
		})
}

// completionOf reads: prompt or template, argument, value, and what is filled in.
func completionOf(args []string) (client.Completion, error) {
	q := client.Completion{Argument: args[1]}
	if strings.ContainsAny(args[0], "{}") || isURL(args[0]) {
		q.Template = args[0]
	} else {
		q.Prompt = args[0]
	}
	if len(args) > 2 {
		q.Value = args[2]
	}
	if len(args) > 3 {
		context, err := pairs("context", args[3:])
		if err != nil {
			return q, err
		}
		q.Context = context
	}
	return q, nil
}

func (a *app) pingCommand() *cobra.Command {
	o := &once{app: a}
	return o.command("ping TARGET", "Ask for a sign of life", "", exactly("TARGET"), func(ctx context.Context, s *session, _ []string) error {
		start := time.Now()
		if err := s.Ping(ctx); err != nil {
			return err
		}
		took := time.Since(start)
		if o.json {
			return s.app.console.JSON(map[string]any{"server": s.Server().Info, "revision": s.Revision().String(), "milliseconds": float64(took.Microseconds()) / 1000})
		}
		s.app.console.Printf("pong (%v)", took.Round(10*time.Microsecond))
		return nil
	})
}

func (a *app) requestCommand() *cobra.Command {
	o := &once{app: a}
	return o.command("request TARGET METHOD [JSON | NAME=value…]", "Send a request of any method", "Request sends a request and prints its result, as JSON.",
		between(2, -1, "TARGET", "METHOD"), func(ctx context.Context, s *session, args []string) error {
			params, err := (&arguments.Object{}).Parse(args[1:])
			if err != nil {
				return asUsage(err, "")
			}
			return s.raw(ctx, args[0], params)
		})
}
