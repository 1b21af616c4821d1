package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/talaria-go/mcp/protocol"
)

var _ Caller = (*Many)(nil)

// route finds the server of a name or URI, and what it calls that itself.
func (m *Many) route(op, full string) (s *oneOfMany, name string, err error) {
	servers := m.all()
	for _, s := range servers { // at most one fits: see checkName
		if name, ok := strings.CutPrefix(full, s.prefix); ok {
			return s, name, nil
		}
	}
	m.mu.Lock()
	closed := m.closed
	m.mu.Unlock()
	if closed {
		return nil, "", &Error{Op: op + " " + full, kind: ErrClosed, Err: errManyClosed}
	}
	names := "there is none"
	for i, s := range servers {
		if i == 0 {
			names = "the servers are " + s.name
		} else {
			names += ", " + s.name
		}
	}
	return nil, "", &Error{Op: op + " " + full, kind: ErrNotFound,
		Err: fmt.Errorf("it does not begin with the name of a server and %q; %s", m.opts.Separator, names)}
}

// onServer makes a call to the server that full names.
func onServer[T any](ctx context.Context, m *Many, op, full string, fn func(c *Client, s *oneOfMany, name string) (T, error)) (T, error) {
	var none T
	s, name, err := m.route(op, full)
	if err != nil {
		return none, err
	}
	c, err := s.connected(ctx)
	if err != nil {
		return none, err
	}
	result, err := fn(c, s, name)
	return result, s.failed(op+" "+name, err)
}

// Ping asks every server for a sign of life, all at once. The error joins those
// of the servers that gave none.
func (m *Many) Ping(ctx context.Context, options ...CallOption) error {
	servers := m.all()
	faults := make([]error, len(servers))
	var group sync.WaitGroup
	for i, s := range servers {
		group.Go(func() {
			c, err := s.connected(ctx)
			if err != nil {
				faults[i] = err
				return
			}
			faults[i] = s.failed("ping", c.Ping(ctx, options...))
		})
	}
	group.Wait()
	return errors.Join(faults...)
}

// Call calls a tool, such as weather.forecast. URIs in the content of the
// result have the server's prefix; Raw is as it came.
func (m *Many) Call(ctx context.Context, tool string, args any, options ...CallOption) (*CallToolResult, error) {
	return onServer(ctx, m, "call", tool, func(c *Client, s *oneOfMany, name string) (*CallToolResult, error) {
		result, err := c.Call(ctx, name, args, options...)
		if result == nil {
			return nil, err
		}
		own := *result
		own.Content = s.contents(slices.Clone(own.Content))
		return &own, err
	})
}

// Read reads a resource, such as weather.config://app.
func (m *Many) Read(ctx context.Context, uri string, options ...CallOption) (*protocol.ReadResourceResult, error) {
	return onServer(ctx, m, "read", uri, func(c *Client, s *oneOfMany, name string) (*protocol.ReadResourceResult, error) {
		result, err := c.Read(ctx, name, options...)
		if result == nil {
			return nil, err
		}
		own := *result
		own.Contents = slices.Clone(own.Contents)
		for i := range own.Contents {
			own.Contents[i].URI = s.prefix + own.Contents[i].URI
		}
		return &own, err
	})
}

// GetPrompt gets a prompt, such as weather.report.
func (m *Many) GetPrompt(ctx context.Context, name string, args map[string]string, options ...CallOption) (*protocol.GetPromptResult, error) {
	return onServer(ctx, m, "get prompt", name, func(c *Client, s *oneOfMany, name string) (*protocol.GetPromptResult, error) {
		result, err := c.GetPrompt(ctx, name, args, options...)
		if result == nil {
			return nil, err
		}
		own := *result
		own.Messages = slices.Clone(own.Messages)
		for i := range own.Messages {
			own.Messages[i].Content = s.content(own.Messages[i].Content)
		}
		return &own, err
	})
}

// Complete asks what an argument of a prompt or a template can be.
func (m *Many) Complete(ctx context.Context, q Completion, options ...CallOption) (*protocol.Completion, error) {
	full := q.Prompt
	if full == "" {
		full = q.Template
	}
	return onServer(ctx, m, "complete", full, func(c *Client, _ *oneOfMany, name string) (*protocol.Completion, error) {
		own := q
		if q.Prompt != "" {
			own.Prompt = name
		} else {
			own.Template = name
		}
		return c.Complete(ctx, own, options...)
	})
}

// Subscribe asks the server of a resource to tell of its changes; see
// Client.Subscribe.
func (m *Many) Subscribe(ctx context.Context, uri string) error {
	_, err := onServer(ctx, m, "subscribe to", uri, func(c *Client, _ *oneOfMany, name string) (struct{}, error) {
		return struct{}{}, c.Subscribe(ctx, name)
	})
	return err
}

// Unsubscribe ends what Subscribe began.
func (m *Many) Unsubscribe(ctx context.Context, uri string) error {
	_, err := onServer(ctx, m, "unsubscribe from", uri, func(c *Client, _ *oneOfMany, name string) (struct{}, error) {
		return struct{}{}, c.Unsubscribe(ctx, name)
	})
	return err
}
