package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/cmd/talaria/internal/shell"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/internal/tooling/files"
	"github.com/talaria-go/mcp/protocol"
)

// once is a command that connects, does one thing and ends.
type once struct {
	console *console.Console
	connector
	saves bool // results have images and the like
	json  bool
}

// command makes the command; its first argument is the target, and run gets the
// others.
func (o *once) command(use, short, long string, args cobra.PositionalArgs, run func(ctx context.Context, s *session, args []string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, GroupID: groupOnce, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.saves && o.json {
				if err := unused(cmd.Flags(), "has no effect with --json", "save", "out"); err != nil {
					return err
				}
			}
			if f := cmd.Flags().Lookup("out"); o.saves && f != nil && f.Changed {
				if err := unused(cmd.Flags(), "has no effect with --out", "save"); err != nil {
					return err
				}
			}
			if f := cmd.Flags().Lookup("out"); f != nil && f.Changed {
				if err := o.spares(f.Value.String(), args[0]); err != nil {
					return err
				}
			}
			ed := editor.New(o.console, "")
			defer ed.Close()
			l, err := o.link(o.console, ed, kindAny, args[:1])
			if err != nil {
				return err
			}
			l.options.NoReconnect = true
			defer l.terminal.Catch()()
			c, err := l.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			defer l.terminal.Unfit()
			return unseen(l.transport, l.terminal.Run(cmd.Context(), func(ctx context.Context, call ...client.CallOption) error {
				return run(ctx, &session{Client: c, console: o.console, render: &render.Renderer{Console: o.console, Dir: o.save},
					call: call, json: o.json, authorized: o.authorized}, args[1:])
			}))
		},
	}
	o.add(cmd.Flags())
	o.addAnswers(cmd.Flags())
	if o.saves {
		o.addSave(cmd.Flags())
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func onceCommands(c *console.Console) []*cobra.Command {
	return []*cobra.Command{callCommand(c), toolsCommand(c), promptsCommand(c), promptCommand(c), resourcesCommand(c),
		readCommand(c), skillsCommand(c), skillCommand(c), completeCommand(c), pingCommand(c), requestCommand(c), watchCommand(c), eventsCommand(c), inspectCommand(c), lockCommand(c), lintCommand(c)}
}

func toolsCommand(c *console.Console) *cobra.Command {
	return (&once{console: c}).command("tools TARGET [TOOL]", "List tools, or show one", "", between(1, 2, "TARGET"), func(ctx context.Context, s *session, args []string) error {
		if len(args) == 0 {
			return list(s, s.Tools(ctx), s.render.Tools)
		}
		tool, err := s.Tool(ctx, args[0])
		switch {
		case errors.Is(err, client.ErrNotFound):
			return s.unknownTool(ctx, args[0], "")
		case err != nil:
			return err
		case s.json:
			return c.JSON(tool)
		}
		return s.render.Tool(tool)
	})
}

func promptsCommand(c *console.Console) *cobra.Command {
	return (&once{console: c}).command("prompts TARGET", "List prompts", "", exactly("TARGET"), func(ctx context.Context, s *session, _ []string) error {
		return list(s, s.Prompts(ctx), s.render.Prompts)
	})
}

func promptCommand(c *console.Console) *cobra.Command {
	return (&once{console: c, saves: true}).command("prompt TARGET NAME [NAME=value…]", "Get a prompt", "", between(2, -1, "TARGET", "NAME"), func(ctx context.Context, s *session, args []string) error {
		listed, err := terminal.All(s.Prompts(ctx))
		if err != nil {
			return err
		}
		raw, err := render.PromptFields(listed, args[0]).Parse(args[1:])
		if err != nil {
			return asUsage(err, "talaria prompts TARGET shows the arguments")
		}
		given, err := arguments.Texts(raw)
		if err != nil {
			return err
		}
		if s.json {
			return s.raw(ctx, protocol.MethodPromptsGet, map[string]any{"name": args[0], "arguments": given})
		}
		result, err := s.GetPrompt(ctx, args[0], given, s.call...)
		if err != nil {
			return err
		}
		return s.render.Prompt(args[0], result)
	})
}

func resourcesCommand(c *console.Console) *cobra.Command {
	var templates bool
	cmd := (&once{console: c}).command("resources TARGET", "List resources, or resource templates", "", exactly("TARGET"), func(ctx context.Context, s *session, _ []string) error {
		if templates {
			return list(s, s.Templates(ctx), s.render.Templates)
		}
		return list(s, s.Resources(ctx), s.render.Resources)
	})
	cmd.Flags().BoolVar(&templates, "templates", false, "list resource templates")
	return cmd
}

func readCommand(c *console.Console) *cobra.Command {
	var out string
	cmd := (&once{console: c, saves: true}).command("read TARGET URI", "Read a resource", "", exactly("TARGET", "URI"), func(ctx context.Context, s *session, args []string) error {
		if s.json {
			return s.raw(ctx, protocol.MethodResourcesRead, map[string]any{"uri": args[0]})
		}
		result, err := s.Read(ctx, args[0], s.call...)
		switch {
		case err != nil:
			return err
		case out == "":
			return s.render.Read(result)
		}
		return writeOut(c, out, result)
	})
	cmd.Flags().StringVarP(&out, "out", "o", "", "write the bytes of the resource into this `file`; - is standard output")
	return cmd
}

// writeOut puts a resource into a file as it is.
func writeOut(c *console.Console, out string, result *protocol.ReadResourceResult) error {
	var data []byte
	for _, item := range result.Contents {
		if item.Blob != nil {
			data = append(data, item.Blob...)
		} else {
			data = append(data, item.Text...)
		}
	}
	switch {
	case out != "-":
		return files.Replace(out, 0o644, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
	default:
		writeData(c, data)
	}
	return nil
}

// writeData writes bytes as they are, but to a terminal, for which they are cleaned.
func writeData(c *console.Console, data []byte) {
	if c.OutTerminal {
		c.Data(string(data))
		return
	}
	_, _ = c.Write(data) // run says what failed
}

func completeCommand(c *console.Console) *cobra.Command {
	return (&once{console: c}).command("complete TARGET (PROMPT | TEMPLATE) ARGUMENT [VALUE] [NAME=value…]", "Ask for values of an argument",
		"Complete asks the server which values an argument of a prompt, or a variable of a\nresource template, can have. NAME=value are those that are filled in already.",
		between(3, -1, "TARGET", "PROMPT or TEMPLATE", "ARGUMENT"), func(ctx context.Context, s *session, args []string) error {
			q, err := shell.Completion(args)
			if err != nil {
				return asUsage(err, "")
			}
			result, err := s.Complete(ctx, q)
			if err != nil {
				return err
			}
			return s.show(result, func() { s.render.Completion(result) })
		})
}

func pingCommand(c *console.Console) *cobra.Command {
	return (&once{console: c}).command("ping TARGET", "Check that a server responds", "", exactly("TARGET"), func(ctx context.Context, s *session, _ []string) error {
		start := time.Now()
		if err := s.Ping(ctx); err != nil {
			return err
		}
		took := time.Since(start)
		return s.show(map[string]any{"server": s.Server().Info, "revision": s.Revision().String(), "milliseconds": float64(took.Microseconds()) / 1000},
			func() { c.Printf("pong (%v)", took.Round(10*time.Microsecond)) })
	})
}

func requestCommand(c *console.Console) *cobra.Command {
	return (&once{console: c}).command("request TARGET METHOD [JSON | NAME=value…]", "Send a request of any method", "Request sends a request and prints its result, as JSON.",
		between(2, -1, "TARGET", "METHOD"), func(ctx context.Context, s *session, args []string) error {
			params, err := (&arguments.Object{}).Parse(args[1:])
			if err != nil {
				return asUsage(err, "")
			}
			return s.raw(ctx, args[0], params)
		})
}
