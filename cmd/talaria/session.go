package main

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	naming "github.com/talaria-go/mcp/internal/tooling/names"
)

// session is a connection to a server for one operation with it.
type session struct {
	*client.Client
	console    *console.Console
	render     *render.Renderer
	call       []client.CallOption // for requests that may take a while
	json       bool                // the result is to be JSON
	authorized bool                // requests have a token, which may decide about what is listed
}

// show prints a value in the form that was asked for; plainly is how people get
// it.
func (s *session) show(v any, plainly func()) error {
	if s.json {
		return s.console.JSON(v)
	}
	plainly()
	return nil
}

// raw sends a request and prints its result as it came.
func (s *session) raw(ctx context.Context, method string, params any) error {
	var result json.RawMessage
	if err := s.Request(ctx, method, params, &result, s.call...); err != nil {
		return err
	}
	return s.render.JSON(result)
}

// unknownTool is the error for a tool that the server does not list. more is
// one further hint, "" for none.
func (s *session) unknownTool(ctx context.Context, name, beside string) error {
	var names []string
	for tool, err := range s.Tools(ctx) {
		if err != nil {
			return err
		}
		names = append(names, tool.Name)
	}
	hint := "talaria tools TARGET lists them" + beside
	if near := naming.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return usage("the server has no tool %q", name).with(hint)
}

// list shows a list in the form that was asked for.
func list[T any](s *session, items iter.Seq2[T, error], plainly func([]T)) error {
	all, err := terminal.All(items)
	if err != nil && len(all) == 0 {
		return err
	}
	return errors.Join(s.show(all, func() { plainly(all) }), err) // those that the error leaves
}
