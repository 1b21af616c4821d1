package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/talaria-go/mcp/protocol"
)

// maxListed bounds what one server may put into a list.
const maxListed = 100_000

// Tools lists the tools of all servers, one server after the other. A server
// that is not ready or fails is left out; see Status. Only the end of ctx is an
// error.
func (m *Many) Tools(ctx context.Context, options ...CallOption) iter.Seq2[protocol.Tool, error] {
	return listMany(ctx, m,
		func(ctx context.Context, c *Client) iter.Seq2[protocol.Tool, error] { return c.Tools(ctx, options...) },
		func(t *protocol.Tool, prefix string) { t.Name = prefix + t.Name })
}

// Prompts lists the prompts of all servers, as Tools does.
func (m *Many) Prompts(ctx context.Context, options ...CallOption) iter.Seq2[protocol.Prompt, error] {
	return listMany(ctx, m,
		func(ctx context.Context, c *Client) iter.Seq2[protocol.Prompt, error] {
			return c.Prompts(ctx, options...)
		},
		func(p *protocol.Prompt, prefix string) { p.Name = prefix + p.Name })
}

// Resources lists the resources of all servers, as Tools does.
func (m *Many) Resources(ctx context.Context, options ...CallOption) iter.Seq2[protocol.Resource, error] {
	return listMany(ctx, m,
		func(ctx context.Context, c *Client) iter.Seq2[protocol.Resource, error] {
			return c.Resources(ctx, options...)
		},
		func(r *protocol.Resource, prefix string) { r.Name, r.URI = prefix+r.Name, prefix+r.URI })
}

// Templates lists the resource templates of all servers, as Tools does.
func (m *Many) Templates(ctx context.Context, options ...CallOption) iter.Seq2[protocol.ResourceTemplate, error] {
	return listMany(ctx, m,
		func(ctx context.Context, c *Client) iter.Seq2[protocol.ResourceTemplate, error] {
			return c.Templates(ctx, options...)
		},
		func(t *protocol.ResourceTemplate, prefix string) {
			t.Name, t.URITemplate = prefix+t.Name, prefix+t.URITemplate
		})
}

// listMany asks all servers at once and gives their lists in order.
func listMany[T any](ctx context.Context, m *Many, list func(context.Context, *Client) iter.Seq2[T, error], rename func(item *T, prefix string)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		servers := m.all()
		lists := make([][]T, len(servers))
		var group sync.WaitGroup
		for i, s := range servers {
			group.Go(func() { lists[i] = listOne(ctx, s, list) })
		}
		group.Wait()
		if ctx.Err() != nil {
			var none T
			yield(none, wrap("list", "", "", context.Cause(ctx)))
			return
		}
		for i, s := range servers {
			for _, item := range lists[i] {
				rename(&item, s.prefix)
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// listOne returns the list of one server, nil if it has none.
func listOne[T any](ctx context.Context, s *oneOfMany, list func(context.Context, *Client) iter.Seq2[T, error]) []T {
	if limit := s.many.opts.ListTimeout; limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, limit)
		defer stop()
	}
	c, err := s.connected(ctx)
	if err != nil || c.State() != StateReady {
		return nil // which the status says
	}
	var items []T
	for item, err := range list(ctx, c) {
		if err == nil && len(items) == maxListed {
			err = fmt.Errorf("its list has more than %d items", maxListed)
		}
		if errors.Is(err, ErrUnsupported) {
			s.listed(nil)
			return nil // it has no such things
		}
		if err != nil {
			s.listed(s.failed("list", err))
			return nil
		}
		items = append(items, item)
	}
	s.listed(nil)
	return items
}

// listed keeps what became of the last list for the status.
func (s *oneOfMany) listed(err error) {
	s.listMu.Lock()
	defer s.listMu.Unlock()
	s.listFault = err
}
