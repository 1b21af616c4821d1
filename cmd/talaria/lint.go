package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/internal/tooling/hostrules"
)

const lintHelp = `Lint checks the definitions of a server's tools, and its instructions, against what
hosts and model providers accept. Each line says what they do (refuse, change, or charge
for it), the rule, the place and the fix. docs/hosts.md has the rules, with sources.

A finding makes lint exit with 1, unless --allow accepts it: a rule for all tools, or
for one, as in --allow name:weather.now. --notes prints what only costs tokens or
confirmations, or what few hosts refuse. Hosts write the name that a server has in their
configuration before the names of tools: --as NAME counts it, too.`

// lintCommand checks what hosts accept of the tools.
func lintCommand(c *console.Console) *cobra.Command {
	var allow []string
	var as string
	var notes bool
	var allowed hostrules.Allowed
	cmd := (&once{console: c}).command("lint TARGET", "Check the tools against what hosts accept", lintHelp, exactly("TARGET"), func(ctx context.Context, s *session, _ []string) error {
		tools, err := terminal.All(s.Tools(ctx, client.NoCache()))
		if err != nil {
			return err
		}
		list := []hostrules.Row{}
		var lines []string
		fails := 0
		for _, f := range hostrules.Server(as, tools, s.Server().Instructions) {
			if allowed.Has(f) || !f.Rule.Fails && !notes {
				continue
			}
			if f.Rule.Fails {
				fails++
			}
			list, lines = append(list, f.Row()), append(lines, f.Line())
		}
		err = s.show(list, func() {
			for _, line := range lines {
				s.console.Print(line)
			}
			switch {
			case len(lines) > 0:
			case len(tools) == 1:
				s.console.Print("every host accepts the tool")
			default:
				s.console.Printf("every host accepts the %d tools", len(tools))
			}
		})
		if err == nil && fails > 0 {
			err = failed(exitTool, fmt.Errorf("some hosts do not accept the tools: %s", console.Count(fails, "finding"))).with("--allow RULE or RULE:TOOL accepts one")
		}
		return err
	})
	cmd.PreRunE = func(*cobra.Command, []string) (err error) {
		if allowed, err = hostrules.Allow(allow); err != nil {
			return usage("--allow: %w", err)
		}
		return nil
	}
	cmd.Flags().StringArrayVar(&allow, "allow", nil, "`RULE[:TOOL]` that may be broken (repeatable)")
	cmd.Flags().StringVar(&as, "as", "", "`NAME` of the server in the configuration of hosts")
	cmd.Flags().BoolVar(&notes, "notes", false, "print findings that fail nothing, too")
	return cmd
}
