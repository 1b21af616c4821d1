package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/internal/tooling/toollock"
)

const lockHelp = `Lock writes the definitions of a server's tools, and its instructions, into a file
that a person reviews and keeps: mcp.lock. With --check it compares them with the file
instead, prints what differs and exits with 1 if anything does. A difference is breaking
if a call that was right, or a reader of results, may fail now; it changes words that
models read; or it is compatible.

A Go client takes the file as its Options.Pin, and does not call a tool that differs.
What the file has is of one identity: a server that shows other tools to others needs a
file for each.`

// lockDifference is one as JSON.
type lockDifference struct {
	Class string `json:"class"`
	Tool  string `json:"tool,omitempty"`
	Text  string `json:"text"`
}

// lockCommand writes or checks a lock.
func lockCommand(c *console.Console) *cobra.Command {
	var file string
	var check bool
	cmd := (&once{console: c}).command("lock TARGET", "Keep the definitions of tools in a file, or compare them with it", lockHelp, exactly("TARGET"), func(ctx context.Context, s *session, _ []string) error {
		if err := named("out", file, "lock"); err != nil {
			return err
		}
		var old *toollock.Lock
		if check {
			var err error
			if old, err = toollock.Read(file); err != nil {
				return usage("--check: %w", err).with("talaria lock TARGET writes the file")
			}
		}
		tools, err := terminal.All(s.Tools(ctx, client.NoCache()))
		if err != nil {
			return err
		}
		server := s.Server()
		now, err := toollock.New(server.Info.Name, server.Instructions, tools)
		if err != nil {
			return err
		}
		if !check {
			if err := now.Write(file); err != nil {
				return err
			}
			return s.show(map[string]any{"file": file, "tools": now.Len()}, func() {
				c.Printf("%s %s: %s", c.Paint(console.Good, "wrote"), file, console.Count(now.Len(), "tool"))
			})
		}
		return checkLock(s, toollock.Compare(old, now), file)
	})
	cmd.Flags().StringVarP(&file, "out", "o", "mcp.lock", "the `file`")
	cmd.Flags().BoolVar(&check, "check", false, "compare with the file, and write nothing")
	return cmd
}

// checkLock prints differences. Any is a failure.
func checkLock(s *session, found []toollock.Difference, file string) error {
	list := make([]lockDifference, len(found))
	for i, d := range found {
		list[i] = lockDifference{d.Class.String(), d.Tool, d.Text}
	}
	err := s.show(list, func() {
		for _, d := range found {
			s.console.Print(d.String())
		}
		if len(found) == 0 {
			s.console.Printf("the tools are those of %s", file)
		}
	})
	if err == nil && len(found) > 0 {
		err = failed(exitTool, fmt.Errorf("the tools are not those of %s", file)).with("without --check, talaria lock accepts them")
	}
	return err
}
