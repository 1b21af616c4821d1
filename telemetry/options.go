package telemetry

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
)

// Options are the settings of Server and Client. nil and the zero value are the
// defaults. Its funcs are called by many goroutines at once.
type Options struct {
	// TracerProvider makes the spans. nil means the global one, as it is at the first
	// message or call: if there is none by then, there are no spans. That of package
	// trace/noop turns them off.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the metrics. nil means the global one, whenever it is set.
	MeterProvider metric.MeterProvider
	// Propagator reads and writes the trace in _meta. nil means the global one at the
	// first message or call, or the W3C's trace context if that propagates nothing.
	// Baggage travels only with a propagator that has it.
	Propagator propagation.TextMapPropagator
	// Trust reports whether to continue the trace of a request's client and to take
	// its baggage; otherwise its span is linked to, and its baggage dropped. nil
	// trusts pipes, standard input, Unix sockets, and requests that have a principal:
	// an untrusted client must not control sampling. Only Server uses it.
	Trust func(f *mcp.Frame) bool
	// Attributes returns more attributes for the span of a message, when it ends; it
	// is not called for spans that are not recorded. They are exported unchanged. Only
	// Server uses it.
	Attributes func(f *mcp.Frame, o mcp.Outcome) []attribute.KeyValue
}

// filled returns a copy of o, which may be nil, with a Trust.
func (o *Options) filled() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Trust == nil {
		c.Trust = trusted
	}
	return c
}

// meter returns the meter.
func (o *Options) meter() metric.Meter {
	if o.MeterProvider != nil {
		return o.MeterProvider.Meter(scope)
	}
	return otel.GetMeterProvider().Meter(scope)
}

// trusted is the default of Options.Trust.
func trusted(f *mcp.Frame) bool {
	switch f.Transport() {
	case frame.Stdio, frame.Pipe:
		return true
	case frame.Socket:
		if unix(f.RemoteAddr()) {
			return true // its file has permissions
		}
	}
	return f.Principal() != ""
}
