package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/protocol"
)

func (a *app) watchCommand() *cobra.Command {
	o := &once{app: a}
	cmd := o.command("watch TARGET [URI…]", "Print what the server tells, until Ctrl-C",
		"Watch prints a line for each notification: changes of lists, and of the resources that\nare named. It ends when the server ends it, or with Ctrl-C.",
		between(1, -1, "TARGET"), func(ctx context.Context, s *session, args []string) error {
			filter := changes(s.ServerCapabilities())
			filter.ResourceSubscriptions = args
			sub, err := s.Listen(ctx, filter, func(e client.Event) { s.tell(o.json, e) })
			if err != nil {
				return err
			}
			defer sub.Close()
			if !o.json {
				a.console.Notef("watching; Ctrl-C ends it")
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-sub.Done():
				return sub.Err()
			}
		})
	must(cmd.Flags().Set("timeout", "0s"))
	cmd.Flags().Lookup("timeout").DefValue = "0s"
	return cmd
}

// changes are those of lists that a server can tell of.
func changes(have protocol.ServerCapabilities) protocol.SubscriptionFilter {
	return protocol.SubscriptionFilter{
		ToolsListChanged:     have.Tools != nil && have.Tools.ListChanged,
		PromptsListChanged:   have.Prompts != nil && have.Prompts.ListChanged,
		ResourcesListChanged: have.Resources != nil && have.Resources.ListChanged,
	}
}

// tell prints a notification on one line.
func (s *session) tell(asJSON bool, e client.Event) {
	if asJSON {
		line, err := json.Marshal(struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params,omitempty"`
		}{e.Method, e.Params})
		if err == nil {
			fmt.Fprintf(s.app.console.Out, "%s\n", line)
		}
		return
	}
	s.app.console.Print(eventText(e))
}

// eventText says what a notification tells.
func eventText(e client.Event) string {
	var params struct {
		URI string `json:"uri"`
	}
	_ = json.Unmarshal(e.Params, &params) // other methods have other params
	switch e.Method {
	case protocol.MethodResourceUpdated:
		return "resource changed: " + console.Line(params.URI)
	case protocol.MethodToolsChanged:
		return "the list of tools has changed"
	case protocol.MethodPromptsChanged:
		return "the list of prompts has changed"
	case protocol.MethodResourcesChanged:
		return "the list of resources has changed"
	}
	return console.Line(e.Method) + " " + console.Line(string(e.Params))
}
