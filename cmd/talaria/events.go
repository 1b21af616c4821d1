package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
)

// eventsCommand lists event types, or prints the events of one.
func eventsCommand(c *console.Console) *cobra.Command {
	o := &once{console: c}
	from := &client.WatchOptions{}
	cmd := o.command("events TARGET [NAME] [ARGUMENT=value…]", "List event types, or print the events of one until Ctrl-C", `Events lists the event types. With NAME, it prints a line for each event of that type.

Arguments:
`+arguments.Help, eventsArgs, func(ctx context.Context, s *session, args []string) error {
		if len(args) == 0 {
			return list(s, s.Events(ctx), func(all []client.EventType) {
				var rows [][]string
				for _, e := range all {
					rows = append(rows, []string{e.Name, strings.Join(e.Delivery, " "), e.Description})
				}
				if rows == nil {
					c.Notef("no event types")
					return
				}
				c.Table([]string{"event", "delivery", "description"}, rows)
			})
		}
		return watchEvents(ctx, s, args[0], args[1:], from)
	})
	cmd.Flags().StringVar(&from.Cursor, "cursor", "", "begin at this `position`, which --json prints with each event")
	cmd.Flags().DurationVar(&from.MaxAge, "max-age", 0, "with --cursor, leave out events that are older")
	must(cmd.Flags().Set("timeout", "0s"))
	cmd.Flags().Lookup("timeout").DefValue = "0s"
	cmd.Example = `  talaria events http://127.0.0.1:8080/mcp
  talaria events http://127.0.0.1:8080/mcp comment.created document=doc_1 --json`
	return cmd
}

// eventsArgs checks the arguments of eventsCommand, and the flags that depend on them.
func eventsArgs(cmd *cobra.Command, args []string) error {
	if err := between(1, -1, "TARGET")(cmd, args); err != nil {
		return err
	}
	flags := cmd.Flags()
	if len(args) == 1 {
		return unused(flags, "has no effect without NAME", "cursor", "max-age")
	}
	if !flags.Changed("cursor") {
		return unused(flags, "has no effect without --cursor", "max-age")
	}
	if age, _ := flags.GetDuration("max-age"); age < 0 {
		return usage("--max-age %v: an age is not negative", age)
	}
	return nil
}

// watchEvents prints the events of a type.
func watchEvents(ctx context.Context, s *session, name string, typed []string, from *client.WatchOptions) error {
	types, err := terminal.All(s.Events(ctx))
	if err != nil {
		return err
	}
	object := &arguments.Object{}
	for _, e := range types {
		if e.Name != name {
			continue
		}
		if object, err = arguments.ReadObject(e.InputSchema); err != nil {
			return fmt.Errorf("event %s: %w", name, err)
		}
	}
	given, err := object.Arguments(typed)
	if err = arguments.EventFaults(name, given, err, s.asker(ctx)); err != nil {
		return asUsage(err, "talaria events TARGET --json shows the arguments")
	}
	c := s.console
	from.Moved = func(_ string, missed bool) {
		if missed {
			c.Warnf("events are missing: the server does not have them any more")
		}
	}
	c.Notef("watching; Ctrl-C ends it")
	for o, err := range s.Watch(ctx, name, given, from) {
		switch cause := context.Cause(ctx); {
		case err != nil && cause != nil && !errors.Is(cause, terminal.ErrIdle):
			return nil // Ctrl-C is how it ends
		case err != nil:
			return err
		}
		if err := printEvent(c, s.json, o); err != nil {
			return err
		}
		if c.Broken() != nil {
			return nil // run reports it
		}
	}
	return nil
}

// printEvent prints an event on one line.
func printEvent(c *console.Console, asJSON bool, o client.Occurrence) error {
	if !asJSON {
		c.Print(console.Line(fmt.Sprintf("%s %s %s", o.Time.Format(time.RFC3339), o.ID, o.Data)))
		return nil
	}
	line, err := json.Marshal(o)
	if err == nil {
		c.Print(console.JSONText(line))
	}
	return err
}
