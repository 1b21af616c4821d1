package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/telemetry"
	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/websocket"
)

// collector keeps what it is told, as a backend would.
type collector struct {
	spans  *tracetest.SpanRecorder
	tracer *sdktrace.TracerProvider
	reader *sdkmetric.ManualReader
	meter  *sdkmetric.MeterProvider
}

func newCollector(options ...sdktrace.TracerProviderOption) *collector {
	c := &collector{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	c.tracer = sdktrace.NewTracerProvider(append(options, sdktrace.WithSpanProcessor(c.spans))...)
	c.meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(c.reader))
	return c
}

// options returns the options that tell c.
func (c *collector) options() *telemetry.Options {
	return &telemetry.Options{TracerProvider: c.tracer, MeterProvider: c.meter}
}

// watch makes s tell c, and o if it is not nil says how.
func (c *collector) watch(t testing.TB, s *mcp.Server, o *telemetry.Options) *mcp.Server {
	t.Helper()
	if o == nil {
		o = &telemetry.Options{}
	}
	o.TracerProvider, o.MeterProvider = c.tracer, c.meter
	stop, err := telemetry.Server(s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s
}

// metrics returns what was measured, by the names of the instruments.
func (c *collector) metrics(t testing.TB) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := c.reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]metricdata.Metrics{}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			found[m.Name] = m
		}
	}
	return found
}

// series returns the labels of an instrument, one text a series, with their counts.
func (c *collector) series(t testing.TB, name string) map[string]int {
	t.Helper()
	found := map[string]int{}
	switch data := c.metrics(t)[name].Data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			found[text(p.Attributes.ToSlice())] = int(p.Count)
		}
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			found[text(p.Attributes.ToSlice())] = int(p.Value)
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			found[text(p.Attributes.ToSlice())] = int(p.Value)
		}
	}
	return found
}

// text returns attributes as text, sorted.
func text(as []attribute.KeyValue) string {
	var list []string
	for _, a := range as {
		list = append(list, string(a.Key)+"="+a.Value.String())
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// value returns an attribute of a span, "" if it has none.
func value(span sdktrace.ReadOnlySpan, key string) string {
	for _, a := range span.Attributes() {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// named returns the spans of a name.
func (c *collector) named(name string) []sdktrace.ReadOnlySpan {
	var found []sdktrace.ReadOnlySpan
	for _, s := range c.spans.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	return found
}

// tree returns the spans as a tree, one a line, siblings by their names. A span whose
// parent is not there is marked as an orphan.
func (c *collector) tree() string {
	spans := c.spans.Ended()
	known := map[trace.SpanID]bool{}
	for _, s := range spans {
		known[s.SpanContext().SpanID()] = true
	}
	var b strings.Builder
	var below func(parent trace.SpanID, depth int)
	below = func(parent trace.SpanID, depth int) {
		var lines []sdktrace.ReadOnlySpan
		for _, s := range spans {
			p := s.Parent().SpanID()
			if p == parent || !parent.IsValid() && !known[p] {
				lines = append(lines, s)
			}
		}
		slices.SortStableFunc(lines, func(a, b sdktrace.ReadOnlySpan) int { return strings.Compare(a.Name(), b.Name()) })
		for _, s := range lines {
			orphan := ""
			if s.Parent().IsValid() && !known[s.Parent().SpanID()] {
				orphan = " ORPHAN"
			}
			fmt.Fprintf(&b, "%s%s %s%s\n", strings.Repeat("  ", depth), s.Name(), strings.ToUpper(s.SpanKind().String()), orphan)
			below(s.SpanContext().SpanID(), depth+1)
		}
	}
	below(trace.SpanID{}, 0)
	return b.String()
}

// calc is a server with a tool for each way to end.
func calc(o *mcp.Options) *mcp.Server {
	if o == nil {
		o = &mcp.Options{}
	}
	nop := zerolog.Nop()
	o.Logger = &nop
	s := mcp.NewServer(mcp.Info{Name: "calc", Version: "1"}, o)
	type in struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	type out struct {
		Sum int `json:"sum"`
	}
	s.MustAdd(
		mcp.Tool("add", func(f *mcp.Frame, in in) (out, error) { return out{in.A + in.B}, nil }),
		mcp.Tool("fail", func(f *mcp.Frame, in in) (out, error) { return out{}, errors.New("the database is down") }),
		mcp.Tool("code", func(f *mcp.Frame, in in) (out, error) {
			return out{}, &mcp.Error{Code: protocol.Code(in.A), Message: "no"}
		}),
		mcp.Tool("panic", func(f *mcp.Frame, in in) (out, error) { panic("oh") }),
		mcp.Prompt("greet", func(f *mcp.Frame, in struct{}) (string, error) { return "Hello", nil }),
		mcp.Resource("note://one", func(f *mcp.Frame) (string, error) { return "text", nil }, mcp.MIME("text/plain")),
	)
	return s
}

// over are the transports, each of which connects a client to a server.
var over = map[string]func(t *testing.T, s *mcp.Server) client.Transport{
	"pipe": func(t *testing.T, s *mcp.Server) client.Transport { return client.Local(s.ServeConn) },
	"http": func(t *testing.T, s *mcp.Server) client.Transport {
		web := httptest.NewServer(s.Handler())
		t.Cleanup(web.Close)
		return client.HTTP(web.URL, nil)
	},
	"websocket": func(t *testing.T, s *mcp.Server) client.Transport {
		web := httptest.NewServer(websocket.Handler(s))
		t.Cleanup(web.Close)
		return client.WebSocket(strings.Replace(web.URL, "http", "ws", 1), nil)
	},
	"unix": func(t *testing.T, s *mcp.Server) client.Transport { return socket(t, s, "unix", t.TempDir()+"/s") },
	"tcp":  func(t *testing.T, s *mcp.Server) client.Transport { return socket(t, s, "tcp", "127.0.0.1:0") },
}

func socket(t *testing.T, s *mcp.Server, network, address string) client.Transport {
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	t.Cleanup(func() { cancel(); <-served })
	return client.Dial(network, listener.Addr().String(), nil)
}

// connect connects a client, in one revision.
func connect(t testing.TB, to client.Transport, rev protocol.Revision, o *client.Options) *client.Client {
	t.Helper()
	if o == nil {
		o = &client.Options{}
	}
	o.Revisions = []protocol.Revision{rev}
	c, err := client.Connect(t.Context(), to, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// eras are a revision of each kind.
var eras = []protocol.Revision{protocol.Latest, protocol.V20250618}

// rawText is params as they stand.
type rawText string

// MarshalJSON implements json.Marshaler.
func (r rawText) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// connection is what servers serve.
type connection = transport.Conn

// logText is a log that several goroutines may write to.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
