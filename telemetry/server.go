package telemetry

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
)

// Server exports every message that s serves to OpenTelemetry: a span of the kind
// SERVER and a duration each, below the span of the client that its _meta names, and
// what s counts. It has to be called before s serves, and only for the outer server
// of a mounted one. o may be nil.
//
// stop ends the gauges, which ask s for as long as metrics are read; it may be called
// more than once. The error is that of instruments that the MeterProvider refuses.
//
// The span of subscriptions/listen or events/stream would end before its stream begins,
// so that there is none; how long streams live is counted.
func Server(s *mcp.Server, o *Options) (stop func(), err error) {
	t, stop, err := newServer(s, o)
	if err != nil {
		return nil, err
	}
	s.Observe(mcp.Observer{Begin: t.begin, End: t.end, Event: t.events.tell})
	return stop, nil
}

// duration returns a histogram of seconds.
func duration(meter metric.Meter, name, description string) (metric.Float64Histogram, error) {
	return meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(buckets()...))
}

// server is the observer of one server.
type server struct {
	tracing
	series *series
	took   metric.Float64Histogram
	events *events
	kind   []trace.SpanStartOption // of every span
}

// running is the context of a message that has a span. Other observers and middleware
// may put spans of their own into contexts that come from it.
type running struct {
	context.Context
	owner *server
	span  trace.Span
	room  []attribute.KeyValue // for those of a span that is recorded
}

// newRunning returns what is one allocation, with the room or without.
func newRunning(ctx context.Context, t *server, span trace.Span) *running {
	if !span.IsRecording() {
		return &running{Context: ctx, owner: t, span: span}
	}
	r := &struct {
		running
		room [12]attribute.KeyValue // no span has more of ours
	}{running: running{Context: ctx, owner: t, span: span}}
	r.running.room = r.room[:0]
	return &r.running
}

// newServer returns the observer of s, and what ends its gauges.
func newServer(s *mcp.Server, o *Options) (t *server, stop func(), err error) {
	t = &server{tracing: tracing{options: o.filled()}, series: newSeries()}
	meter := t.options.meter()
	if t.took, err = duration(meter, serverDuration, "How long a request or notification took."); err != nil {
		return nil, nil, err
	}
	if t.events, err = newEvents(meter); err != nil {
		return nil, nil, err
	}
	if stop, err = gauges(meter, s); err != nil {
		return nil, nil, err
	}
	t.kind = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}
	return t, stop, nil
}

// runningKey is the key under which the context of an owner's message is found.
type runningKey struct{ owner *server }

// Value implements context.Context.
func (r *running) Value(key any) any {
	if k, ok := key.(runningKey); ok && k.owner == r.owner {
		return r
	}
	return r.Context.Value(key)
}

// opensStream reports whether f is about a request for a stream.
func opensStream(f *mcp.Frame) bool {
	method := f.Request().Method
	return method == protocol.MethodListen || method == "events/stream"
}

// begin is the Begin of the observer.
func (t *server) begin(f *mcp.Frame) (context.Context, error) {
	if t.idle() || opensStream(f) {
		return f, nil
	}
	return t.open(f)
}

// open begins the span of f, if there are any.
func (t *server) open(f *mcp.Frame) (context.Context, error) {
	ctx, linked := t.origin(f)
	if t.off() {
		return ctx, nil
	}
	options := t.kind
	if linked.IsValid() {
		options = append(options[:len(options):len(options)], trace.WithLinks(trace.Link{SpanContext: linked}))
	}
	method, target := f.Labels()
	ctx, span := t.start(ctx, t.series.name(method, target), options...)
	if span == nil {
		return ctx, nil
	}
	return newRunning(ctx, t, span), nil
}

// origin returns the context whose span is the parent of that of f, and the span that
// is linked to.
//
// The trace in _meta comes before the active span of the program, as otelhttp does,
// since one HTTP request is not one message; and that comes before the headers.
// Baggage comes with the trace or not at all.
//
// A call that a handler makes (mcp.Server.Call) is below the span of that.
func (t *server) origin(f *mcp.Frame) (context.Context, trace.SpanContext) {
	if f.Outer() != nil {
		return f, trace.SpanContext{}
	}
	around := trace.SpanContextFromContext(f)
	said := fromMeta(f.Request().Params.Meta.Raw, t.fields)
	if said == nil && !around.IsValid() && (f.Transport() == frame.HTTP || f.Transport() == frame.SSE) {
		if r := f.HTTPRequest(); r != nil {
			said = fromHeader(r.Header, t.fields)
		}
	}
	if said == nil {
		return f, trace.SpanContext{}
	}
	remote := t.propagator.Extract(f, said)
	client := trace.SpanContextFromContext(remote)
	if client.Equal(around) {
		client, around = trace.SpanContext{}, trace.SpanContext{} // it has only baggage
	}
	if t.options.Trust(f) {
		return remote, around
	}
	return f, client
}

// end is the End of the observer. It is apart from what costs something.
func (t *server) end(f *mcp.Frame, o mcp.Outcome) {
	if counted := t.took.Enabled(f); counted || !t.off() {
		t.close(f, o, counted)
	}
}

// close counts f and ends its span.
func (t *server) close(f *mcp.Frame, o mcp.Outcome, counted bool) {
	var run *running
	if !t.off() {
		run, _ = f.Value(runningKey{t}).(*running)
	}
	if run == nil && !counted || opensStream(f) {
		return
	}
	l := labels{revision: f.Revision(), network: networkOf(f), status: o.Status, failed: o.Failed(), code: codeLabel(o.Code)}
	l.method, l.target = f.Labels()
	if l.failed {
		l.kind = o.Status
		if l.method == protocol.MethodToolsCall {
			l.kind = toolError // a result with isError, whatever the reason
		}
	}
	e := t.series.get(l)
	if counted {
		ctx := context.Context(f)
		if run != nil {
			ctx = run // for exemplars
		}
		t.took.Record(ctx, o.Duration.Seconds(), e.record...)
	}
	if run == nil {
		return
	}
	defer run.span.End() // also if Attributes panics
	if !run.span.IsRecording() {
		return
	}
	if l.failed {
		// Not the error's text, which is a handler's own and may say anything.
		run.span.SetStatus(codes.Error, o.Status)
	}
	attributes := append(run.room, e.attributes...)
	if id := f.Request().ID; !id.IsZero() {
		attributes = append(attributes, keyRequestID.String(idText(id)))
	}
	if t.options.Attributes != nil {
		attributes = append(attributes, t.options.Attributes(f, o)...)
	}
	run.span.SetAttributes(attributes...)
}

// maxID is how many bytes of an id are exported.
const maxID = 128

// idText returns the value of a request's id.
func idText(id protocol.ID) string {
	text := id.String()
	if text[0] == '"' {
		text = unquote([]byte(text))
	}
	return strings.ToValidUTF8(text[:min(len(text), maxID)], "")
}
