package telemetry_test

import (
	"errors"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
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
