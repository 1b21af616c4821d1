package shell

import (
	"context"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/protocol"
)

// resources are the commands for a resource.
type resources struct {
	*link
	person
}

// of makes a command of what is done with a URI, which follows it or is asked for.
func (r resources) of(do func(ctx context.Context, uri string) error) func(ctx context.Context, rest string) error {
	return func(ctx context.Context, rest string) error {
		list, err := split(rest)
		switch {
		case err != nil:
			return err
		case len(list) > 1:
			return wrong("unexpected argument %q", list[1])
		case len(list) == 1:
			return do(ctx, list[0])
		}
		uri, err := r.ask("uri", r.lists.uris)
		if err != nil {
			return err
		}
		return do(ctx, uri)
	}
}

func (r resources) read(ctx context.Context, uri string) error {
	result, err := terminal.Get(ctx, r.Terminal, func(ctx context.Context, call ...client.CallOption) (*protocol.ReadResourceResult, error) {
		return r.client.Read(ctx, uri, call...)
	})
	if err != nil {
		return err
	}
	return r.Render.Read(result)
}

func (r resources) subscribe(ctx context.Context, uri string) error {
	err := r.Terminal.Run(ctx, func(ctx context.Context, _ ...client.CallOption) error {
		_, err := r.subs.Add(ctx, r.client, uri)
		return err
	})
	if err == nil {
		r.Console.Printf("subscribed to %s", console.Line(uri))
	}
	return err
}

func (r resources) unsubscribe(ctx context.Context, uri string) error {
	found, err := terminal.Get(ctx, r.Terminal, func(context.Context, ...client.CallOption) (bool, error) { return r.subs.Remove(uri) })
	switch {
	case err != nil:
		return err
	case !found:
		return wrong("there is no subscription to %s", console.Line(uri))
	}
	r.Console.Printf("unsubscribed from %s", console.Line(uri))
	return nil
}
