package telemetry_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/telemetry"
)

// section is what the convention says of one kind of span or metric.
type section struct {
	title []string          // what, name, and the kind of the span, or instrument and unit
	level map[string]string // of an attribute: always, where or may
	typ   map[string]string
}

// convention reads testdata/convention.txt: its sections by their first two words,
// and the bounds of histograms.
func convention(t *testing.T) (sections map[string]section, buckets []float64) {
	t.Helper()
	text, err := os.ReadFile("testdata/convention.txt")
	if err != nil {
		t.Fatal(err)
	}
	sections = map[string]section{}
	var now section
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "span" || words[0] == "metric":
			now = section{words, map[string]string{}, map[string]string{}}
			sections[words[0]+" "+words[1]] = now
		case words[0] == "buckets":
			for _, word := range words[1:] {
				bound, err := strconv.ParseFloat(word, 64)
				if err != nil {
					t.Fatal(err)
				}
				buckets = append(buckets, bound)
			}
		case words[0] == "left-out":
			if len(words) < 4 {
				t.Errorf("no reason for leaving %s out", words[1])
			}
		default:
			now.level[words[1]], now.typ[words[1]] = words[0], words[2]
		}
	}
	return sections, buckets
}

// check checks attributes against a section.
func (s section) check(t *testing.T, where string, as []attribute.KeyValue) {
	t.Helper()
	there := map[string]bool{}
	for _, a := range as {
		key := string(a.Key)
		there[key] = true
		if strings.HasPrefix(key, "talaria.") {
			continue
		}
		typ := map[attribute.Type]string{attribute.STRING: "string", attribute.INT64: "int"}[a.Value.Type()]
		if s.level[key] == "" || s.typ[key] != typ {
			t.Errorf("%s has %s (%v), which the convention does not", where, key, a.Value.Type())
		}
	}
	for key, level := range s.level {
		if level == "always" && !there[key] {
			t.Errorf("%s lacks %s", where, key)
		}
	}
}

// traffic has a client of each kind do a little of everything.
func traffic(t *testing.T, told *collector) {
	t.Helper()
	s := told.watch(t, calc(nil), nil)
	for _, rev := range eras {
		for _, options := range [][]mcptest.Option{{mcptest.Revision(rev)}, {mcptest.Revision(rev), mcptest.OverHTTP()}} {
			c := mcptest.New(t, s, options...)
			c.Call("add", map[string]int{"a": 1, "b": 2})
			for _, tool := range []string{"fail", "code", "panic", "invented"} {
				_, _ = c.TryCall(tool, map[string]int{"a": 1, "b": 2})
			}
			c.GetPrompt("greet", nil)
			c.Read("note://one")
			_, _ = c.TryRequest("invented/method", nil)
			c.Notify(protocol.MethodCancelled, rawText(`{"requestId":"nobody"}`))
			c.Close()
		}
		for _, transport := range []string{"http", "websocket", "unix"} {
			o := client.Options{Timeout: time.Minute}
			telemetry.Client(&o, told.options())
			c := connect(t, over[transport](t, calc(nil)), rev, &o)
			for _, tool := range []string{"add", "fail", "code", "invented"} {
				_, _ = c.Call(t.Context(), tool, map[string]int{"a": 1, "b": 2})
			}
			_, _ = c.GetPrompt(t.Context(), "greet", nil)
			_, _ = c.Read(t.Context(), "note://one")
			_ = c.Request(t.Context(), "invented/method", nil, nil)
		}
	}
	for _, via := range []frame.Transport{frame.HTTP, frame.SSE, frame.WebSocket, frame.Stdio, frame.Socket} {
		if err := telemetry.Tell(told.meter, mcp.Event{Kind: "session.ended", Transport: via, Duration: time.Second}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestConvention: names, kinds, units, bounds and attributes are those of the
// convention, or begin with talaria.
func TestConvention(t *testing.T) {
	sections, buckets := convention(t)
	if len(sections) != 5 || len(buckets) != 14 {
		t.Fatalf("read %d sections and %d bounds", len(sections), len(buckets))
	}
	told := newCollector()
	traffic(t, told)
	seen := map[string]bool{}
	for _, span := range told.spans.Ended() {
		kind := span.SpanKind().String()
		seen["span "+kind] = true
		s, ok := sections["span "+kind]
		if !ok || s.title[2] != strings.ToUpper(kind) {
			t.Errorf("%s is %s", span.Name(), kind)
		}
		s.check(t, span.Name(), span.Attributes())
		name := value(span, "mcp.method.name")
		if target := value(span, "gen_ai.tool.name") + value(span, "gen_ai.prompt.name"); target != "" && target != "_OTHER" {
			name += " " + target
		}
		if span.Name() != name {
			t.Errorf("a span is named %q, want %q", span.Name(), name)
		}
		failed := value(span, "error.type") != ""
		if failed != (span.Status().Code.String() == "Error") {
			t.Errorf("%s: error.type is %q, the status %v", span.Name(), value(span, "error.type"), span.Status())
		}
		request := !strings.HasPrefix(span.Name(), "notifications/")
		if request != (value(span, "jsonrpc.request.id") != "") {
			t.Errorf("%s has the id %q", span.Name(), value(span, "jsonrpc.request.id"))
		}
	}
	for name, m := range told.metrics(t) {
		seen["metric "+name] = true
		s, ok := sections["metric "+name]
		if !ok {
			if !strings.HasPrefix(name, "talaria.") {
				t.Errorf("the convention has no metric %s", name)
			}
			continue
		}
		data, ok := m.Data.(metricdata.Histogram[float64])
		if !ok || m.Unit != s.title[3] || s.title[2] != "histogram" {
			t.Errorf("%s is %T in %s", name, m.Data, m.Unit)
		}
		for _, p := range data.DataPoints {
			s.check(t, name, p.Attributes.ToSlice())
			if !slices.Equal(p.Bounds, buckets) {
				t.Errorf("%s has the bounds %v", name, p.Bounds)
			}
		}
	}
	for what := range sections {
		if !seen[what] {
			t.Errorf("nothing is told of %s", what)
		}
	}
}
