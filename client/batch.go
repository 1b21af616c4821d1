package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/talaria-go/mcp/client/internal/link"
)

// Operation is one request of a batch.
type Operation struct {
	Method  string
	Params  any // encodes to an object, or nil
	Options []CallOption
}

// BatchResult is the outcome of one request of a batch.
type BatchResult struct {
	Result json.RawMessage // nil if there is an error
	Err    error
}

// sendBatch sends the requests in one message and waits for every answer. Each
// request has its own entry in the table of calls, with its own timeout. It
// waits for all goroutines that it starts. The error is that of the sending,
// which is in the results, too.
func sendBatch(ctx context.Context, c *Client, conn *connection, requests []*request) ([]BatchResult, error) {
	results := make([]BatchResult, len(requests))
	calls := make([]*call, len(requests))
	contexts := make([]context.Context, len(requests))
	body := []byte{'['}
	// The exchange ends when none of its requests waits for a response.
	exchange, stop := context.WithCancel(ctx)
	defer stop()
	var waits atomic.Int32 // requests whose time is not over
	waits.Store(int32(len(requests)))
	for i, r := range requests {
		p := &call{method: r.method, conn: conn, progress: r.options.progress}
		if p.progress != nil && !conn.sync {
			p.wake = make(chan struct{}, 1)
		}
		var end func()
		contexts[i], end = p.begin(ctx, cmp.Or(r.options.timeout, c.opts.Timeout), c.most())
		defer end()
		defer context.AfterFunc(contexts[i], func() {
			if waits.Add(-1) == 0 {
				stop()
			}
		})()
		c.calls.enter(p)
		calls[i] = p
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, r.encode(ctx, conn, p.id, round{}, p.progress != nil)...)
	}
	for _, p := range calls {
		p.size.Store(int64(len(body)))
		p.batch.Store(calls[0].id)
	}
	var waiting sync.WaitGroup
	var sent error
	done := make(chan struct{}) // closed when the exchange is over
	waiting.Go(func() {
		defer close(done)
		sent = conn.carry(exchange, &link.Message{Body: append(body, ']'), Revision: conn.revision()})
	})
	var answered sync.WaitGroup
	for i, r := range requests {
		answered.Go(func() {
			raw, err := batchAnswer(contexts[i], calls[i], done)
			results[i] = BatchResult{raw, wrap(r.op, r.method, err)}
		})
	}
	answered.Wait()
	stop()
	waiting.Wait()
	if sent != nil && !errors.Is(sent, context.Canceled) {
		// The failure of the sending stands for those that it caused.
		for i, r := range requests {
			if results[i].Err != nil {
				results[i].Err = wrap(r.op, r.method, sent)
			}
		}
		return results, sent
	}
	return results, nil
}

// batchAnswer waits for one answer of a batch. exchange is closed when the link
// will not deliver any more of them, which only HTTP links know; with others it is closed
// when the batch is sent. A cancellation that is sent before would name no request.
func batchAnswer(ctx context.Context, p *call, exchange <-chan struct{}) (json.RawMessage, error) {
	if p.conn.sync {
		select {
		case <-p.done:
		case <-ctx.Done():
		case <-exchange:
		}
	} else {
		<-exchange
		p.wait(ctx)
	}
	return p.settle(ctx, nil)
}
