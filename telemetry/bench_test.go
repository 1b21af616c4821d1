package telemetry

import (
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// captured returns the Frame of a call whose _meta has those members, too.
func captured(t testing.TB, meta map[string]any) *mcp.Frame {
	var kept *mcp.Frame
	s := mcp.NewServer(mcp.Info{Name: "calc", Version: "1"}, nil)
	s.MustAdd(mcp.Tool("add", func(f *mcp.Frame, in struct{}) (string, error) { kept = f; return "", nil }))
	c := mcptest.New(t, s)
	c.Request("tools/call", map[string]any{"name": "add", "arguments": map[string]any{}, "_meta": meta})
	return kept
}

// The kinds of telemetry, from least to most.
var kinds = []struct {
	name   string
	traced bool // the client sends its trace
	make   func() Options
}{
	{"none", false, func() Options {
		return Options{TracerProvider: nooptrace.NewTracerProvider(), MeterProvider: noopmetric.NewMeterProvider()}
	}},
	{"metrics", false, func() Options {
		return Options{TracerProvider: nooptrace.NewTracerProvider(), MeterProvider: measuring()}
	}},
	{"unsampled", false, func() Options { return Options{TracerProvider: never(), MeterProvider: measuring()} }},
	{"recorded", false, func() Options { return Options{TracerProvider: every(), MeterProvider: measuring()} }},
	{"recorded-with-parent", true, func() Options { return Options{TracerProvider: every(), MeterProvider: measuring()} }},
}

func measuring() *sdkmetric.MeterProvider {
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
}

func never() *sdktrace.TracerProvider {
	return sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
}

func every() *sdktrace.TracerProvider {
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter()))
}

// message returns what is done for one message.
func message(t testing.TB, o Options, traced bool) func() {
	meta := map[string]any{}
	if traced {
		meta["traceparent"] = parent
	}
	f := captured(t, meta)
	s := mcp.NewServer(mcp.Info{Name: "calc", Version: "1"}, nil)
	watch, stop, err := newServer(s, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	outcome := mcp.Outcome{Duration: time.Millisecond}
	do := func() {
		ctx, err := watch.begin(f)
		if err != nil {
			t.Error(err)
		}
		of := f
		if ctx != f {
			of = f.WithContext(ctx)
		}
		watch.end(of, outcome)
	}
	do() // the first finds out what there is
	return do
}

func BenchmarkServer(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			do := message(b, kind.make(), kind.traced)
			b.ReportAllocs()
			for b.Loop() {
				do()
			}
		})
	}
}

// BenchmarkFloor is what the SDK takes for the same without us: one value of a
// histogram with labels that are made already, and an empty span.
func BenchmarkFloor(b *testing.B) {
	took, err := duration(measuring().Meter(scope), serverDuration, "")
	if err != nil {
		b.Fatal(err)
	}
	e := newSeries().get(labels{method: "tools/call", target: "add", network: network{via: frame.Pipe}, revision: protocol.Latest})
	b.Run("histogram", func(b *testing.B) {
		for b.Loop() {
			took.Record(b.Context(), 0.001, e.record...)
		}
	})
	for name, provider := range map[string]*sdktrace.TracerProvider{"unsampled": never(), "recorded": every()} {
		tracer := provider.Tracer(scope)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, span := tracer.Start(b.Context(), "tools/call add", trace.WithSpanKind(trace.SpanKindServer))
				span.End()
			}
		})
	}
}

// BenchmarkNothing is what looking is, where there is nothing to do: two calls that
// inline nowhere, and in each the state or an interface asked.
func BenchmarkNothing(b *testing.B) {
	t, f := &tracing{}, captured(b, nil)
	t.known.Store(absent)
	var took metric.Float64Histogram = noopmetric.Float64Histogram{}
	for b.Loop() {
		begun, ended := nothing(t, f, nil), nothing(t, f, took)
		if begun || ended {
			b.Fatal("there is something")
		}
	}
}

//go:noinline
func nothing(t *tracing, f *mcp.Frame, took metric.Float64Histogram) bool {
	return took != nil && took.Enabled(f) || !t.off()
}

// TestAllocations: without an SDK, and for metrics alone, nothing is allocated.
func TestAllocations(t *testing.T) {
	if info, _ := debug.ReadBuildInfo(); slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector allocates, too")
	}
	most := map[string]float64{"none": 0, "metrics": 0, "unsampled": 4, "recorded": 6, "recorded-with-parent": 10}
	for _, kind := range kinds {
		do := message(t, kind.make(), kind.traced)
		got := testing.AllocsPerRun(200, do)
		t.Logf("%s: %v allocations", kind.name, got)
		if got > most[kind.name] {
			t.Errorf("%s: %v allocations, at most %v", kind.name, got, most[kind.name])
		}
	}
}
