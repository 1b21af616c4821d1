package telemetry_test

import (
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/telemetry"
)

// TestGlobal: the SDK that is set up before the first message counts, also if that
// is after Server; without one there are no spans. This test alone changes what is
// global, which can be set once.
func TestGlobal(t *testing.T) {
	watched := func() *mcp.Server {
		s := calc(nil)
		stop, err := telemetry.Server(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		return s
	}
	without, with := mcptest.New(t, watched()), watched()
	without.Tools()

	told := newCollector()
	otel.SetTracerProvider(told.tracer)
	otel.SetMeterProvider(told.meter)
	t.Cleanup(func() { otel.SetTracerProvider(nooptrace.NewTracerProvider()) })

	without.Tools()
	if got := len(told.spans.Ended()); got != 0 {
		t.Errorf("%d spans of a server whose first message found no SDK", got)
	}
	c := mcptest.New(t, with)
	c.Request("tools/list", rawText(`{"_meta":{"traceparent":"`+remoteParent+`"}}`))
	if got := told.named("tools/list"); len(got) != 1 || got[0].Parent().TraceID().String() != remoteTrace {
		t.Errorf("the spans are %v; the global propagator has no fields, that of the W3C stands in", got)
	}
	total := 0
	for _, n := range told.series(t, "mcp.server.operation.duration") {
		total += n
	}
	if total < 2 {
		t.Errorf("%d values are recorded; the first server's count from the time there is an SDK", total)
	}
}

// TestPassedOn: a server without spans passes the client's trace on to its handlers
// if it has been given a propagator, and else does nothing.
func TestPassedOn(t *testing.T) {
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	for name, propagator := range map[string]propagation.TextMapPropagator{"given": both, "none": nil} {
		s := calc(nil)
		var parent trace.SpanContext
		var carried string
		s.MustAdd(mcp.Tool("look", func(f *mcp.Frame, in struct{}) (string, error) {
			parent, carried = trace.SpanContextFromContext(f), baggage.FromContext(f).String()
			return "", nil
		}))
		told := newCollector()
		stop, err := telemetry.Server(s, &telemetry.Options{TracerProvider: nooptrace.NewTracerProvider(), MeterProvider: told.meter, Propagator: propagator})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		c := mcptest.New(t, s)
		for range 2 { // the first finds out that there is no SDK
			parent = trace.SpanContext{}
			c.Request("tools/call", rawText(`{"name":"look","arguments":{},"_meta":{"traceparent":"`+remoteParent+`","baggage":"user=alice"}}`))
		}
		if got := parent.TraceID().String() == remoteTrace && carried == "user=alice"; got != (name == "given") {
			t.Errorf("%s: the handler has the trace %v and the baggage %q", name, parent.TraceID(), carried)
		}
	}
}
