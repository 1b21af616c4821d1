package shell

import (
	"context"
	"strings"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/protocol"
)

func (s *Shell) listResources(ctx context.Context, _ string) error {
	list, err := fetch(s, ctx, s.client.Resources)
	if err != nil {
		return err
	}
	s.Console.Printf("found %s", plural(len(list), "resource"))
	s.Render.Resources(list)
	return nil
}

func (s *Shell) listTemplates(ctx context.Context, _ string) error {
	list, err := fetch(s, ctx, s.client.Templates)
	if err != nil {
		return err
	}
	s.Console.Printf("found %s", plural(len(list), "resource template"))
	s.Render.Templates(list)
	return nil
}

// uri takes the URI that follows a command, or asks for it.
func (s *Shell) uri(rest string) (string, error) {
	list, err := split(rest)
	switch {
	case err != nil:
		return "", err
	case len(list) == 0:
		return s.ask("uri", s.uris)
	case len(list) > 1:
		return "", wrong("unexpected argument %q", list[1])
	}
	return list[0], nil
}

func (s *Shell) readResource(ctx context.Context, rest string) error {
	uri, err := s.uri(rest)
	if err != nil {
		return err
	}
	var result *protocol.ReadResourceResult
	err = s.Terminal.Run(ctx, func(ctx context.Context, call ...client.CallOption) (err error) {
		result, err = s.client.Read(ctx, uri, call...)
		return err
	})
	if err != nil {
		return err
	}
	return s.Render.Read(result)
}

func (s *Shell) completion(ctx context.Context, rest string) error {
	list, err := split(rest)
	if err != nil {
		return err
	}
	if len(list) < 2 {
		return wrong("what is to be completed?")
	}
	q := client.Completion{Argument: list[1]}
	if strings.ContainsAny(list[0], "{}") || strings.Contains(list[0], "://") {
		q.Template = list[0]
	} else {
		q.Prompt = list[0]
	}
	if len(list) > 2 {
		q.Value = list[2]
	}
	for _, pair := range list[min(3, len(list)):] {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return wrong("%q is not NAME=value", pair)
		}
		if q.Context == nil {
			q.Context = map[string]string{}
		}
		q.Context[name] = value
	}
	var result *protocol.Completion
	err = s.Terminal.Run(ctx, func(ctx context.Context, _ ...client.CallOption) (err error) {
		result, err = s.client.Complete(ctx, q)
		return err
	})
	if err == nil {
		s.Render.Completion(result)
	}
	return err
}

func (s *Shell) subscribe(ctx context.Context, rest string) error {
	uri, err := s.uri(rest)
	if err != nil {
		return err
	}
	err = s.Terminal.Run(ctx, func(ctx context.Context, _ ...client.CallOption) error {
		_, err := s.subs.Add(ctx, s.client, uri)
		return err
	})
	if err == nil {
		s.Console.Printf("subscribed to %s", console.Line(uri))
	}
	return err
}

func (s *Shell) unsubscribe(ctx context.Context, rest string) error {
	uri, err := s.uri(rest)
	if err != nil {
		return err
	}
	found := false
	err = s.Terminal.Run(ctx, func(context.Context, ...client.CallOption) (err error) {
		found, err = s.subs.Remove(uri)
		return err
	})
	if err == nil && !found {
		return wrong("there is no subscription to %s", console.Line(uri))
	}
	if err == nil {
		s.Console.Printf("unsubscribed from %s", console.Line(uri))
	}
	return err
}
