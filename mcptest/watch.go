package mcptest

import (
	"context"
	"fmt"
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
	waiting []client.Occurrence // that Next has not returned
	// returned are the IDs of events behind the cursor that Next has returned: where a stream
	// falls back to polls, the cursor moves only with the last event of a page.
	returned map[string]bool
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
	o := w.waiting[0]
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
		if err == nil && w.returned[o.ID] {
			continue
		}
		w.move(o.Cursor)
		if o.ID != "" {
			w.returned[o.ID] = true
		}
		return o, err
	}
	return client.Occurrence{}, ctx.Err()
}

// move moves the cursor.
func (w *Watch) move(cursor string) {
	if cursor != w.params["cursor"] {
		w.params["cursor"], w.returned = cursor, map[string]bool{}
	}
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
		c.t.Fatalf("mcptest: unexpected event %s: %s", w.waiting[0].ID, w.waiting[0].Data)
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
	for _, event := range page.Events {
		var o client.Occurrence
		if err := jsonx.Unmarshal(event, &o); err != nil {
			return false, fmt.Errorf("the event %s: %w", event, err)
		}
		if !w.returned[o.ID] {
			w.waiting = append(w.waiting, o)
		}
	}
	w.move(page.Cursor)
	return page.HasMore, nil
}
