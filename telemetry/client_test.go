package telemetry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/telemetry"
)

// TestCalls: what the span of a call says, in both eras.
func TestCalls(t *testing.T) {
	call := func(tool string, a int) func(ctx context.Context, c *client.Client) error {
		return func(ctx context.Context, c *client.Client) error {
			_, err := c.Call(ctx, tool, map[string]int{"a": a, "b": 2})
			return err
		}
	}
	for _, test := range []struct {
		span       string
		do         func(ctx context.Context, c *client.Client) error
		status     string
		attributes string
	}{
		{"tools/call add", call("add", 1), "Unset",
			"gen_ai.operation.name=execute_tool gen_ai.tool.name=add mcp.method.name=tools/call talaria.requests=1"},
		{"tools/call fail", call("fail", 1), "Error tool_error",
			"error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=fail mcp.method.name=tools/call talaria.failure=tool_error talaria.requests=1"},
		{"tools/call code", call("code", 4711), "Error _OTHER",
			"error.type=_OTHER gen_ai.operation.name=execute_tool gen_ai.tool.name=code mcp.method.name=tools/call rpc.response.status_code=_OTHER talaria.failure=_OTHER talaria.requests=1"},
		{"prompts/get greet", func(ctx context.Context, c *client.Client) error {
			_, err := c.GetPrompt(ctx, "greet", nil)
			return err
		}, "Unset", "gen_ai.prompt.name=greet mcp.method.name=prompts/get talaria.requests=1"},
		{"resources/read", func(ctx context.Context, c *client.Client) error {
			_, err := c.Read(ctx, "note://one")
			return err
		}, "Unset", "mcp.method.name=resources/read talaria.requests=1"},
		{"tools/call add", func(ctx context.Context, c *client.Client) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return call("add", 1)(ctx, c)
		}, "Unset", "gen_ai.operation.name=execute_tool gen_ai.tool.name=add mcp.method.name=tools/call talaria.failure=cancelled talaria.requests=0"},
	} {
		for _, rev := range eras {
			told := newCollector()
			var o client.Options
			telemetry.Client(&o, told.options())
			c := connect(t, over["http"](t, calc(nil)), rev, &o)
			_ = test.do(t.Context(), c)
			spans := told.named(test.span)
			if len(spans) != 1 || spans[0].SpanKind().String() != "client" {
				t.Errorf("%s: %d spans", test.span, len(spans))
				continue
			}
			var said []string
			for _, word := range strings.Fields(text(spans[0].Attributes())) {
				if !strings.HasPrefix(word, "server.") && !strings.HasPrefix(word, "jsonrpc.") && word != "mcp.protocol.version="+rev.String() {
					said = append(said, word)
				}
			}
			if got := strings.Join(said, " "); got != test.attributes {
				t.Errorf("%s says\n%s, want\n%s", test.span, got, test.attributes)
			}
			if got := strings.TrimSpace(spans[0].Status().Code.String() + " " + spans[0].Status().Description); got != test.status {
				t.Errorf("%s: the status is %q, want %q", test.span, got, test.status)
			}
			if value(spans[0], "server.address") != "127.0.0.1" || value(spans[0], "server.port") == "" {
				t.Errorf("%s: the server is %s:%s", test.span, value(spans[0], "server.address"), value(spans[0], "server.port"))
			}
		}
	}
}

// TestWaited: what people take is not in the duration, and is told apart.
func TestWaited(t *testing.T) {
	told := newCollector()
	o := client.Options{Elicit: func(ctx context.Context, _ *client.ElicitParams) (*client.ElicitResult, error) {
		return client.Accept(map[string]string{"name": "Ann"})
	}}
	telemetry.Client(&o, told.options())
	c := connect(t, client.Local(worker().ServeConn), protocol.Latest, &o)
	if _, err := c.Call(t.Context(), "ask", map[string]any{}); err != nil {
		t.Fatal(err)
	}
	span := told.named("tools/call ask")[0]
	if got := value(span, "talaria.requests"); got != "3" {
		t.Errorf("it took %s requests, of three rounds", got)
	}
	if value(span, "talaria.waited") == "" {
		t.Errorf("the span does not tell what people took: %s", text(span.Attributes()))
	}
}

// TestInjected: every message has the trace of its call, the handshake and
// notifications too; baggage goes along where the propagator has it.
func TestInjected(t *testing.T) {
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	for _, rev := range eras {
		told := newCollector()
		said := make(chan string, 1000)
		options := told.options()
		options.Propagator = both
		o := client.Options{Trace: func(fromServer bool, message []byte) {
			if !fromServer {
				said <- string(message)
			}
		}}
		telemetry.Client(&o, options)
		ctx, root := told.tracer.Tracer("test").Start(t.Context(), "root")
		o.Revisions = []protocol.Revision{rev}
		c, err := client.Connect(ctx, client.Local(calc(nil).ServeConn), &o)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Call(ctx, "add", map[string]int{"a": 1, "b": 2})
		_ = c.Notify(ctx, "notifications/mine", map[string]any{"x": 1, "_meta": map[string]any{"y": 2}})
		_ = c.Notify(ctx, "notifications/none", nil)
		for _, err := range c.Tools(ctx) {
			if err != nil {
				t.Fatal(err)
			}
		}
		root.End()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		close(said)
		messages := 0
		for message := range said {
			messages++
			if !strings.Contains(message, `"traceparent":"00-`+root.SpanContext().TraceID().String()) {
				t.Errorf("%v: no trace in %s", rev, message)
			}
		}
		if messages < 5 {
			t.Errorf("%v: %d messages", rev, messages)
		}
	}
}

// TestInventedCalls: a model that makes names of tools up makes no series, and codes of
// servers neither.
func TestInventedCalls(t *testing.T) {
	testdep.NoRace(t, "calls, one after the other")
	told := newCollector()
	var o client.Options
	telemetry.Client(&o, told.options())
	c := connect(t, client.Local(calc(nil).ServeConn), protocol.Latest, &o)
	for i := range 2000 {
		_, _ = c.Call(t.Context(), fmt.Sprintf("tool-%d", i), nil)
		_, _ = c.Call(t.Context(), "code", map[string]int{"a": i + 5000, "b": 0})
	}
	series := told.series(t, "mcp.client.operation.duration")
	if len(series) > 510 {
		t.Errorf("%d series", len(series))
	}
	for labels := range series {
		if strings.Contains(labels, "overflow") {
			t.Errorf("a series overflows: %s", labels)
		}
	}
}

// TestRetried: the attempts of a call are spans of the server below one of the client.
func TestRetried(t *testing.T) {
	to := &backend{}
	s := calc(nil)
	busy := true
	s.MustAdd(mcp.Tool("busy", func(*mcp.Frame, struct{}) (string, error) {
		if busy {
			busy = false
			return "", mcp.Errorf(mcp.CodeBusy, "later")
		}
		return "done", nil
	}))
	stop, err := telemetry.Server(s, trusting(to))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	plan(t, to, func(ctx context.Context) {
		o := client.Options{Reconnect: &client.Backoff{Base: time.Millisecond}}
		telemetry.Client(&o, to.options())
		c, err := client.Connect(ctx, client.Local(s.ServeConn), &o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Call(ctx, "busy", nil, client.Retry(2), client.Idempotent()); err != nil {
			t.Error(err)
		}
		_ = c.Close()
	})
	const want = "  tools/call busy CLIENT\n    tools/call busy SERVER\n    tools/call busy SERVER\n"
	if got := to.tree(t); !strings.Contains(got, want) {
		t.Errorf("the tree is\n%s, want in it\n%s", got, want)
	}
}

// TestNestedCalls: what a handler of the client calls is a call of its own, below the
// one that it answers a question of; and its time is waited.
func TestNestedCalls(t *testing.T) {
	told := newCollector()
	var c *client.Client
	o := client.Options{Elicit: func(ctx context.Context, _ *client.ElicitParams) (*client.ElicitResult, error) {
		if _, err := c.Call(ctx, "nested", nil); err == nil {
			t.Error("there is a tool")
		}
		return client.Accept(map[string]string{"name": "Ann"})
	}}
	telemetry.Client(&o, told.options())
	c = connect(t, client.Local(worker().ServeConn), protocol.Latest, &o)
	if _, err := c.Call(t.Context(), "ask", map[string]any{}); err != nil {
		t.Fatal(err)
	}
	outer, inner := told.named("tools/call ask"), told.named("tools/call nested")
	if len(outer) != 1 || len(inner) != 2 {
		t.Fatalf("%d calls, %d nested ones", len(outer), len(inner))
	}
	if inner[0].Parent().SpanID() != outer[0].SpanContext().SpanID() || value(outer[0], "talaria.requests") != "3" {
		t.Errorf("the call says %s, the nested one %s", text(outer[0].Attributes()), text(inner[0].Attributes()))
	}
}
