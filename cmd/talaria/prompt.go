package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/protocol"
)

func promptCommand(c *console.Console) *cobra.Command {
	return (&once{console: c}).command("prompt TARGET NAME [NAME=value…]", "Get a prompt", "", between(2, -1, "TARGET", "NAME"), func(ctx context.Context, s *session, args []string) error {
		given, err := promptArguments(ctx, s.Client, args[0], args[1:])
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

// promptArguments checks names against the prompt, if the server lists it.
func promptArguments(ctx context.Context, c *client.Client, name string, typed []string) (map[string]string, error) {
	object := &arguments.Object{}
	for p, err := range c.Prompts(ctx) {
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
	return arguments.Texts(raw)
}
