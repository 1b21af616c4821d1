package telemetry_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// TestMounted: what is called of a mounted server has one span, with the name that
// the host gives it, around its handler.
func TestMounted(t *testing.T) {
	host, child := calc(nil), mcp.NewServer(mcp.Info{Name: "child", Version: "1"}, nil)
	var within trace.SpanContext
	child.MustAdd(mcp.Tool("look", func(f *mcp.Frame, in struct{}) (string, error) {
		within = trace.SpanContextFromContext(f)
		return "", nil
	}))
	if err := host.Mount("child", child); err != nil {
		t.Fatal(err)
	}
	told := newCollector()
	c := mcptest.New(t, told.watch(t, host, nil))
	const name = "child_look"
	told.spans.Reset()
	c.Call(name, nil)
	spans := told.spans.Ended()
	if len(spans) != 1 || spans[0].Name() != "tools/call "+name || !spans[0].SpanContext().Equal(within) {
		t.Errorf("the spans are\n%s, and the handler is in %v", told.tree(), within)
	}
}

// TestOthers: spans that other observers and middleware put into the context do not
// take the place of ours.
func TestOthers(t *testing.T) {
	told := newCollector()
	s := told.watch(t, calc(nil), nil)
	tracer := told.tracer.Tracer("others")
	s.Use(func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			ctx, span := tracer.Start(f, "middleware")
			defer span.End()
			return next(f.WithContext(ctx))
		}
	})
	s.Observe(mcp.Observer{
		Begin: func(f *mcp.Frame) (context.Context, error) {
			ctx, _ := tracer.Start(f, "observer")
			return ctx, nil
		},
		End: func(f *mcp.Frame, _ mcp.Outcome) { trace.SpanFromContext(f).End() },
	})
	c := mcptest.New(t, s)
	told.spans.Reset()
	c.Call("add", map[string]int{"a": 1, "b": 2})
	const want = "tools/call add SERVER\n  observer INTERNAL\n    middleware INTERNAL\n"
	if got := told.tree(); got != want {
		t.Errorf("the tree is\n%s, want\n%s", got, want)
	}
	if got := told.named("tools/call add")[0]; value(got, "gen_ai.tool.name") != "add" {
		t.Errorf("the span has %v", got.Attributes())
	}
}

// TestWithin: a call that a handler makes in place of its client has a span below that of
// the handler, whatever trace the client names.
func TestWithin(t *testing.T) {
	told := newCollector()
	s := told.watch(t, calc(nil), nil)
	s.MustAdd(mcp.Tool("outer", func(f *mcp.Frame, _ struct{}) (protocol.Result, error) {
		return s.Call(f, "add", map[string]int{"a": 1, "b": 2})
	}))
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	for _, rev := range protocol.Revisions() {
		c := mcptest.New(t, s, mcptest.Revision(rev))
		told.spans.Reset()
		c.Request(protocol.MethodToolsCall, map[string]any{"name": "outer", "_meta": map[string]any{"traceparent": "00-" + traceID + "-00f067aa0ba902b7-01"}})
		outer, inner := told.named("tools/call outer"), told.named("tools/call add")
		if len(outer) != 1 || len(inner) != 1 || inner[0].Parent().SpanID() != outer[0].SpanContext().SpanID() || outer[0].Parent().TraceID().String() != traceID {
			t.Errorf("%v: the spans are\n%s", rev, told.tree())
		}
	}
}
