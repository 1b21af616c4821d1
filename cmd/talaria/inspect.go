package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/protocol"
)

// offer is everything that a server offers.
type offer struct {
	Server       protocol.Implementation     `json:"server"`
	Revision     string                      `json:"revision"`
	Instructions string                      `json:"instructions,omitempty"`
	Capabilities protocol.ServerCapabilities `json:"capabilities"`
	Tools        []protocol.Tool             `json:"tools"`
	Prompts      []protocol.Prompt           `json:"prompts"`
	Resources    []protocol.Resource         `json:"resources"`
	Templates    []protocol.ResourceTemplate `json:"resourceTemplates"`
}

func (a *app) inspectCommand() *cobra.Command {
	o := &once{app: a}
	return o.command("inspect TARGET", "Show everything that a server offers", "", exactly("TARGET"), func(ctx context.Context, s *session, _ []string) error {
		all, err := s.offer(ctx)
		if o.json {
			return errors.Join(a.console.JSON(all), err)
		}
		s.showOffer(all)
		return err
	})
}

// offer asks for all lists. Those that the server does not have are empty, and so
// are those of the error.
func (s *session) offer(ctx context.Context) (*offer, error) {
	all := &offer{Server: s.Server().Info, Revision: s.Revision().String(), Instructions: s.Server().Instructions, Capabilities: s.Server().Capabilities}
	var faults [4]error
	all.Tools, faults[0] = offered(s.Tools(ctx))
	all.Prompts, faults[1] = offered(s.Prompts(ctx))
	all.Resources, faults[2] = offered(s.Resources(ctx))
	all.Templates, faults[3] = offered(s.Templates(ctx))
	return all, errors.Join(faults[:]...)
}

func offered[T any](list func(func(T, error) bool)) ([]T, error) {
	items, err := collect(list)
	if errors.Is(err, client.ErrUnsupported) {
		return []T{}, nil
	}
	if err != nil {
		items = []T{}
	}
	return items, err
}

func (s *session) showOffer(all *offer) {
	c := s.app.console
	c.Print(c.Paint(console.Bold, render.Server(all.Server)))
	c.Printf("speaks revision %s and offers: %s", all.Revision, strings.Join(render.Capabilities(all.Capabilities), ", "))
	if all.Instructions != "" {
		c.Print(c.Wrap(all.Instructions, "  "))
	}
	section(c, "Tools", all.Tools, s.render.Tools)
	section(c, "Prompts", all.Prompts, s.render.Prompts)
	section(c, "Resources", all.Resources, s.render.Resources)
	section(c, "Resource templates", all.Templates, s.render.Templates)
}

// section shows a list under its heading, if there is anything in it.
func section[T any](c *console.Console, heading string, list []T, show func([]T)) {
	if len(list) == 0 {
		return
	}
	c.Printf("\n%s", c.Paint(console.Bold, heading))
	show(list)
}
