package telemetry

import (
	"context"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// tracing is the tracer and the propagator, which are looked up when they are first
// needed: a program may set its SDK up after its server. It is safe for concurrent
// use.
type tracing struct {
	options Options

	once       sync.Once
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	fields     []string // of propagator
	chosen     bool     // the propagator is not our default

	// known is how the first span turned out: the API does not tell otherwise
	// whether there is an SDK behind it.
	known atomic.Int32
}

// The values of tracing.known.
const (
	unknown int32 = iota
	absent
	present
)

// resolve looks up what Options leave to the global state.
func (t *tracing) resolve() {
	t.once.Do(func() {
		provider := t.options.TracerProvider
		if provider == nil {
			provider = otel.GetTracerProvider()
		}
		t.tracer = provider.Tracer(scope)
		t.propagator, t.chosen = t.options.Propagator, true
		if t.propagator == nil {
			t.propagator = otel.GetTextMapPropagator()
		}
		if t.fields = t.propagator.Fields(); len(t.fields) == 0 {
			t.propagator, t.chosen = propagation.TraceContext{}, false
			t.fields = t.propagator.Fields()
		}
	})
}

// off reports whether there are no spans, since there is no SDK.
func (t *tracing) off() bool { return t.known.Load() == absent }

// idle reports whether there is nothing to do: no span, and no foreign trace to
// propagate. Without an SDK, a program propagates only if it has chosen a
// propagator. It looks up unknown facts.
func (t *tracing) idle() bool {
	if t.off() {
		return !t.chosen
	}
	t.resolve()
	return false
}

// start begins a span, unless there is no SDK: then it returns ctx and nil.
func (t *tracing) start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if t.off() {
		return ctx, nil
	}
	started, span := t.tracer.Start(ctx, name, options...)
	if t.known.Load() == unknown {
		// An SDK gives every span an id, also one that is not sampled. Without one
		// the span has that of its parent, or none.
		now := absent
		if span.SpanContext().IsValid() && span.SpanContext().SpanID() != trace.SpanContextFromContext(ctx).SpanID() {
			now = present
		}
		t.known.CompareAndSwap(unknown, now)
	}
	if t.off() {
		return ctx, nil
	}
	return started, span
}
