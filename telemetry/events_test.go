package telemetry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/telemetry"
)

// TestEvents: which series an event counts in; none has its id or its error's text.
func TestEvents(t *testing.T) {
	for _, test := range []struct {
		event        mcp.Event
		metric, want string
	}{
		{mcp.Event{Kind: "refused", Reason: "too_long", Transport: frame.HTTP, Err: errors.New("secret")}, "talaria.server.refused",
			"network.protocol.name=http network.transport=tcp talaria.refusal=too_long"},
		{mcp.Event{Kind: "session.ended", ID: "secret", Reason: "client", Transport: frame.HTTP}, "mcp.server.session.duration",
			"network.protocol.name=http network.transport=tcp"},
		{mcp.Event{Kind: "session.ended", ID: "secret", Reason: "expired", Transport: frame.Stdio, Err: errors.New("secret")}, "mcp.server.session.duration",
			"error.type=expired network.transport=pipe"},
		{mcp.Event{Kind: "stream.ended", ID: "secret", Reason: "slow", Transport: frame.WebSocket}, "talaria.server.stream.duration",
			"network.protocol.name=websocket network.transport=tcp talaria.stream.end=slow"},
		{mcp.Event{Kind: "task.started", ID: "secret", Name: "import", Reason: "replay"}, "talaria.server.task.starts",
			"gen_ai.tool.name=import talaria.task.start=replay"},
		{mcp.Event{Kind: "task.ended", ID: "secret", Name: "import", Reason: "failed"}, "talaria.server.task.duration",
			"gen_ai.tool.name=import talaria.task.status=failed"},
		{mcp.Event{Kind: "delivery.done", ID: "secret", Name: "comment.created"}, "talaria.server.webhook.deliveries",
			"talaria.delivery=done talaria.event=comment.created"},
		{mcp.Event{Kind: "delivery.dropped", ID: "secret", Name: "comment.created", Reason: "gone"}, "talaria.server.webhook.deliveries",
			"talaria.delivery=gone talaria.event=comment.created"},
		{mcp.Event{Kind: "webhook.opened", ID: "secret", Name: "comment.created"}, "talaria.server.webhook.subscriptions",
			"talaria.event=comment.created talaria.webhook=opened"},
		{mcp.Event{Kind: "webhook.ended", ID: "secret", Name: "comment.created", Reason: "expired"}, "talaria.server.webhook.subscriptions",
			"talaria.event=comment.created talaria.webhook=expired"},
		{mcp.Event{Kind: "store.failed", Reason: "sessions", Err: errors.New("secret")}, "talaria.store.failures", "talaria.store=sessions"},
		{mcp.Event{Kind: "another"}, "talaria.store.failures", ""},
	} {
		told := newCollector()
		test.event.Duration = time.Second
		if err := telemetry.Tell(told.meter, test.event); err != nil {
			t.Fatal(err)
		}
		series := told.series(t, test.metric)
		if want := test.want; want == "" && len(series) != 0 || want != "" && (len(series) != 1 || series[want] != 1) {
			t.Errorf("%s: %s has %v", test.event.Kind, test.metric, series)
		}
	}
}

// TestEventStreams: a stream of events has no span. Over HTTP it counts as a stream; a
// connection is one with all that it carries, until it is closed; a pipe is none.
func TestEventStreams(t *testing.T) {
	for name, to := range over {
		t.Run(name, func(t *testing.T) {
			told := newCollector()
			s := told.watch(t, calc(nil), nil)
			s.MustAdd(mcp.EventType("news", func(context.Context, struct{}, map[string]string) (bool, error) { return true, nil }))
			ended := make(chan string, 1)
			s.Observe(mcp.Observer{Event: func(e mcp.Event) {
				if e.Kind == "stream.ended" {
					select {
					case ended <- e.Reason:
					default: // one is enough
					}
				}
			}})
			c := connect(t, to(t, s), protocol.V20260728, nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			emit := func(string, bool) {
				if err := s.Emit(ctx, mcp.Occurrence{Name: "news", Data: map[string]string{}, ID: "one"}); err != nil {
					t.Error(err)
				}
			}
			for o, err := range c.Watch(ctx, "news", nil, &client.WatchOptions{Moved: emit}) {
				if err != nil || o.ID != "one" {
					t.Errorf("received %+v, %v", o, err)
				}
				break
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			streams := 0
			if name != "pipe" {
				streams = 1
				select {
				case <-ended:
				case <-ctx.Done():
					t.Fatal("the stream has not ended")
				}
			}
			if n := len(told.named("events/stream")) + len(told.named("events/poll")); n != 0 {
				t.Errorf("%d spans", n)
			}
			if series := told.series(t, "talaria.server.stream.duration"); len(series) != streams {
				t.Errorf("the series of streams are %v", series)
			}
			for series := range told.series(t, "mcp.server.operation.duration") {
				if strings.Contains(series, "events/") {
					t.Errorf("it is counted as a request: %s", series)
				}
			}
		})
	}
}
