package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/internal/wire"
)

func watchCommand(c *console.Console) *cobra.Command {
	cmd := (&once{console: c}).command("watch TARGET [URI…]", "Print the notifications of a server, until Ctrl-C",
		"Watch prints a line for each notification: changes of lists, and of the resources that\nare named. It ends when the server ends it, or with Ctrl-C.",
		between(1, -1, "TARGET"), func(ctx context.Context, s *session, args []string) error {
			filter, _ := wire.ListChanges(s.Server().Capabilities)
			filter.ResourceSubscriptions = args
			broken := make(chan struct{}, 1)
			sub, err := s.Listen(ctx, filter, func(e client.Notification) {
				tell(c, s.json, e)
				if c.Broken() != nil {
					select {
					case broken <- struct{}{}:
					default:
					}
				}
			})
			if err != nil {
				return err
			}
			defer sub.Close()
			c.Notef("watching; Ctrl-C ends it")
			select {
			case <-ctx.Done():
				if cause := context.Cause(ctx); errors.Is(cause, terminal.ErrIdle) {
					return cause
				}
				return nil // Ctrl-C is how it ends
			case <-broken:
				return nil // run says it
			case <-sub.Done():
				return sub.Err()
			}
		})
	must(cmd.Flags().Set("timeout", "0s"))
	cmd.Flags().Lookup("timeout").DefValue = "0s"
	return cmd
}

// tell prints a notification on one line.
func tell(c *console.Console, asJSON bool, e client.Notification) {
	if !asJSON {
		c.Print(render.Event(e))
		return
	}
	line, err := json.Marshal(struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params,omitempty"`
	}{e.Method, e.Params})
	if err == nil {
		c.Print(console.JSONText(line))
	}
}
