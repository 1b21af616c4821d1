package mcptest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
)

// Watch receives the events of a type; see Client.Watch. Its methods belong on the
// goroutine of the test.
type Watch struct {
	client  *Client
	params  map[string]any
	waiting []json.RawMessage // that Next has not returned
}

// watchInterval is how long Next waits between two polls.
const watchInterval = 10 * time.Millisecond

// Next returns the next event. It waits for one as long as the client waits for
// answers, and then ends the test. In revisions that have streams of events, it comes by
// one.
func (w *Watch) Next() client.Occurrence {
	c := w.client
	c.t.Helper()
	ctx, cancel := c.within("no event of " + w.params["name"].(string))
	defer cancel()
	for len(w.waiting) == 0 {
		if c.Revision().Modern() {
			o, err := w.stream(ctx)
			if err == nil {
				return o
			}
			w.fail(ctx, err)
		}
		more, err := w.poll(ctx)
		if err != nil {
			w.fail(ctx, err)
		}
		if len(w.waiting) > 0 || more {
			continue
		}
		select {
		case <-ctx.Done():
			w.fail(ctx, ctx.Err())
		case <-time.After(watchInterval):
		}
	}
	var o client.Occurrence
	err := jsonx.Unmarshal(w.waiting[0], &o)
	if err != nil {
		c.t.Fatalf("mcptest: the event %s: %v", w.waiting[0], err)
	}
	w.waiting = w.waiting[1:]
	return o
}

// fail ends the test.
func (w *Watch) fail(ctx context.Context, err error) {
	w.client.t.Helper()
	if ctx.Err() != nil {
		w.client.t.Fatalf("mcptest: %v", context.Cause(ctx))
	}
	w.client.t.Fatalf("mcptest: watching %s: %v", w.params["name"], err)
}

// stream receives one event by a stream that begins where the last poll or stream ended.
func (w *Watch) stream(ctx context.Context) (client.Occurrence, error) {
	for o, err := range w.client.client.Watch(ctx, w.params["name"].(string), w.params["arguments"], &client.WatchOptions{Cursor: w.params["cursor"].(string)}) {
		w.params["cursor"] = o.Cursor
		return o, err
	}
	return client.Occurrence{}, ctx.Err()
}

// None ends the test if the server has an event that Next would return.
func (w *Watch) None() {
	c := w.client
	c.t.Helper()
	ctx, cancel := c.within("no answer to " + wire.MethodEventsPoll)
	defer cancel()
	for more := true; more && len(w.waiting) == 0; {
		var err error
		if more, err = w.poll(ctx); err != nil {
			c.t.Fatalf("mcptest: watching %s: %v", w.params["name"], err)
		}
	}
	if len(w.waiting) > 0 {
		c.t.Fatalf("mcptest: unexpected event %s", w.waiting[0])
	}
}

// poll asks once. more reports that the server has more.
func (w *Watch) poll(ctx context.Context) (more bool, err error) {
	raw, err := w.client.RequestContext(ctx, wire.MethodEventsPoll, w.params)
	if err != nil {
		return false, err
	}
	var page wire.EventPage
	if err := jsonx.Unmarshal(raw, &page); err != nil {
		return false, err
	}
	w.params["cursor"] = page.Cursor
	w.waiting = append(w.waiting, page.Events...)
	return page.HasMore, nil
}
