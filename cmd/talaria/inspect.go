package main

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/protocol"
)

const inspectHelp = `Inspect prints everything that a server offers.

With -b it opens a page in the browser, in which its tools can be called: with
forms made of their schemas, the server's questions, the messages that go over the
wire, and what the server writes to standard error. The page is for you alone: its link has a
code that is good once, and it listens on 127.0.0.1.

With -b and --config and without TARGET the page has all servers of the file, each of
which is connected to when you choose it. What the file asks for with ${input:NAME} is
asked in the terminal, at the start.

With -b and --file it shows a recording instead of a server: what talaria tap has
written, or mcptest.Record in a test that failed. With a TARGET besides, each of its calls can be
made again there, and the results be compared.

With -b and --watch the TARGET is a Go package, such as . or ./cmd/weather. It is built, and again
after each change of its sources; then the last call is made again, if its tool says
that it is read-only or not destructive.`

func inspectCommand(c *console.Console) *cobra.Command {
	o := &once{console: c}
	return (&inBrowser{once: o}).add(o.command("inspect TARGET", "Show everything that a server offers, or try it in the browser", inspectHelp, exactly("TARGET"), func(ctx context.Context, s *session, _ []string) error {
		all, err := offerOf(ctx, s.Client)
		return errors.Join(s.show(all, func() { all.show(s.render) }), err)
	}))
}

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

// offerOf asks for all lists. Those that the server does not have are empty, and
// those of the error have what came.
func offerOf(ctx context.Context, c *client.Client) (*offer, error) {
	all := &offer{Server: c.Server().Info, Revision: c.Revision().String(), Instructions: c.Server().Instructions, Capabilities: c.Server().Capabilities}
	var faults [4]error
	all.Tools, faults[0] = offered(c.Tools(ctx))
	all.Prompts, faults[1] = offered(c.Prompts(ctx))
	all.Resources, faults[2] = offered(c.Resources(ctx))
	all.Templates, faults[3] = offered(c.Templates(ctx))
	return all, errors.Join(faults[:]...)
}

func offered[T any](items iter.Seq2[T, error]) ([]T, error) {
	all, err := terminal.All(items)
	if errors.Is(err, client.ErrUnsupported) {
		return []T{}, nil
	}
	return all, err
}

func (o *offer) show(r *render.Renderer) {
	c := r.Console
	c.Print(c.Paint(console.Bold, render.Server(o.Server)))
	c.Printf("speaks revision %s and offers: %s", o.Revision, strings.Join(render.Capabilities(o.Capabilities), ", "))
	if o.Instructions != "" {
		c.Print(c.Wrap(o.Instructions, "  "))
	}
	section(c, "Tools", o.Tools, r.Tools)
	section(c, "Prompts", o.Prompts, r.Prompts)
	section(c, "Resources", o.Resources, r.Resources)
	section(c, "Resource templates", o.Templates, r.Templates)
}

// section shows a list under its heading, if there is anything in it.
func section[T any](c *console.Console, heading string, list []T, show func([]T)) {
	if len(list) == 0 {
		return
	}
	c.Printf("\n%s", c.Paint(console.Bold, heading))
	show(list)
}
