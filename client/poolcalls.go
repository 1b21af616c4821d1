package client

import (
	"context"
	"errors"
	"iter"

	"github.com/talaria-go/mcp/protocol"
)

var _ Caller = (*Pool)(nil)

// poolRetries is how many connections may be lost under one call that is safe
// to send again.
const poolRetries = 3

// onConnection makes a call on a connection. If that is lost and the call is
// safe to send again, it goes to another one.
func onConnection[T any](ctx context.Context, p *Pool, safe bool, fn func(*Client) (T, error)) (T, error) {
	for n := 0; ; n++ {
		m, c, err := p.checkout(ctx)
		if err != nil {
			var none T
			return none, err
		}
		result, err := fn(c)
		err = p.lost(m.count(err))
		m.release()
		if err == nil || !safe || n == poolRetries || !lostUnderWay(err) || ctx.Err() != nil {
			return result, err
		}
	}
}

// lost makes the end of a connection a loss, also where the pool has closed it
// because it was lost: a later call may succeed.
func (p *Pool) lost(err error) error {
	var e *Error
	if p.ctx.Err() != nil || !errors.As(err, &e) || e.lost || !errors.Is(err, ErrClosed) {
		return err
	}
	own := *e
	own.lost = true
	return &own
}

// lostUnderWay tells whether err is the loss of a connection.
func lostUnderWay(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.lost && errors.Is(err, ErrClosed)
}

// Ping asks one of the connections for a sign of life.
func (p *Pool) Ping(ctx context.Context, options ...CallOption) error {
	_, err := onConnection(ctx, p, true, func(c *Client) (struct{}, error) { return struct{}{}, c.Ping(ctx, options...) })
	return err
}

// Call is Client.Call on one of the connections. If that is lost, a call with
// the option Idempotent goes to another one.
func (p *Pool) Call(ctx context.Context, tool string, args any, options ...CallOption) (*CallToolResult, error) {
	o := newCallOptions(options)
	return onConnection(ctx, p, o.idempotent && !o.noRetry, func(c *Client) (*CallToolResult, error) {
		return c.Call(ctx, tool, args, options...)
	})
}

// Read is Client.Read on one of the connections, and on another one if that is
// lost.
func (p *Pool) Read(ctx context.Context, uri string, options ...CallOption) (*protocol.ReadResourceResult, error) {
	return onConnection(ctx, p, !newCallOptions(options).noRetry, func(c *Client) (*protocol.ReadResourceResult, error) {
		return c.Read(ctx, uri, options...)
	})
}

// GetPrompt is Client.GetPrompt on one of the connections, and on another one
// if that is lost.
func (p *Pool) GetPrompt(ctx context.Context, name string, args map[string]string, options ...CallOption) (*protocol.GetPromptResult, error) {
	return onConnection(ctx, p, !newCallOptions(options).noRetry, func(c *Client) (*protocol.GetPromptResult, error) {
		return c.GetPrompt(ctx, name, args, options...)
	})
}

// Complete is Client.Complete on one of the connections, and on another one if
// that is lost.
func (p *Pool) Complete(ctx context.Context, q Completion, options ...CallOption) (*protocol.Completion, error) {
	return onConnection(ctx, p, !newCallOptions(options).noRetry, func(c *Client) (*protocol.Completion, error) {
		return c.Complete(ctx, q, options...)
	})
}

// Tools lists the tools of one of the connections.
func (p *Pool) Tools(ctx context.Context, options ...CallOption) iter.Seq2[protocol.Tool, error] {
	return pooledList(ctx, p, func(c *Client) iter.Seq2[protocol.Tool, error] { return c.Tools(ctx, options...) })
}

// Prompts lists the prompts of one of the connections.
func (p *Pool) Prompts(ctx context.Context, options ...CallOption) iter.Seq2[protocol.Prompt, error] {
	return pooledList(ctx, p, func(c *Client) iter.Seq2[protocol.Prompt, error] { return c.Prompts(ctx, options...) })
}

// Resources lists the resources of one of the connections.
func (p *Pool) Resources(ctx context.Context, options ...CallOption) iter.Seq2[protocol.Resource, error] {
	return pooledList(ctx, p, func(c *Client) iter.Seq2[protocol.Resource, error] { return c.Resources(ctx, options...) })
}

// Templates lists the resource templates of one of the connections.
func (p *Pool) Templates(ctx context.Context, options ...CallOption) iter.Seq2[protocol.ResourceTemplate, error] {
	return pooledList(ctx, p, func(c *Client) iter.Seq2[protocol.ResourceTemplate, error] { return c.Templates(ctx, options...) })
}

// pooledList lists on one connection from beginning to end, because cursors are
// that server's own. If the connection is lost before the first item, another
// one is tried.
func pooledList[T any](ctx context.Context, p *Pool, list func(*Client) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for n := 0; ; n++ {
			m, c, err := p.checkout(ctx)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			if !listOn(m, c, n < poolRetries, list, yield) {
				return
			}
		}
	}
}

// listOn gives one connection's list to yield, and tells whether another one
// should be tried.
func listOn[T any](m *pooled, c *Client, retry bool, list func(*Client) iter.Seq2[T, error], yield func(T, error) bool) (again bool) {
	defer m.release()
	given := false
	for item, err := range list(c) {
		if err != nil {
			err = m.pool.lost(m.count(err))
			if retry && !given && lostUnderWay(err) {
				return true
			}
			yield(item, err)
			return false
		}
		given = true
		if !yield(item, nil) {
			break
		}
	}
	_ = m.count(nil)
	return false
}
