package telemetry_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/telemetry"
)

// TestOutcomes: what a span and a series say of each way to end.
func TestOutcomes(t *testing.T) {
	for _, test := range []struct {
		method, params string
		span, status   string
		attributes     string // of the span, but for what says how the message came
	}{
		{"tools/call", `{"name":"add","arguments":{"a":1,"b":2}}`, "tools/call add", "Unset",
			"gen_ai.operation.name=execute_tool gen_ai.tool.name=add mcp.method.name=tools/call"},
		{"tools/call", `{"name":"add","arguments":{"a":"x","b":2}}`, "tools/call add", "Error arguments",
			"error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=add mcp.method.name=tools/call talaria.failure=arguments"},
		{"tools/call", `{"name":"fail","arguments":{"a":1,"b":2}}`, "tools/call fail", "Error tool_error",
			"error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=fail mcp.method.name=tools/call talaria.failure=tool_error"},
		{"tools/call", `{"name":"panic","arguments":{"a":1,"b":2}}`, "tools/call panic", "Error panic",
			"error.type=-32603 gen_ai.operation.name=execute_tool gen_ai.tool.name=panic mcp.method.name=tools/call rpc.response.status_code=-32603 talaria.failure=panic"},
		{"tools/call", `{"name":"code","arguments":{"a":123456,"b":2}}`, "tools/call code", "Error _OTHER",
			"error.type=_OTHER gen_ai.operation.name=execute_tool gen_ai.tool.name=code mcp.method.name=tools/call rpc.response.status_code=_OTHER talaria.failure=_OTHER"},
		{"tools/call", `{"name":"invented"}`, "tools/call", "Error invalid_params",
			"error.type=-32602 gen_ai.operation.name=execute_tool gen_ai.tool.name=_OTHER mcp.method.name=tools/call rpc.response.status_code=-32602 talaria.failure=invalid_params"},
		{"prompts/get", `{"name":"greet"}`, "prompts/get greet", "Unset",
			"gen_ai.prompt.name=greet mcp.method.name=prompts/get"},
		{"resources/read", `{"uri":"note://one"}`, "resources/read", "Unset", "mcp.method.name=resources/read"},
		{"tools/list", `{}`, "tools/list", "Unset", "mcp.method.name=tools/list"},
		{"invented/method", `{}`, "_OTHER", "Error method_not_found",
			"error.type=-32601 mcp.method.name=_OTHER rpc.response.status_code=-32601 talaria.failure=method_not_found"},
	} {
		t.Run(test.method+" "+test.params, func(t *testing.T) {
			told := newCollector()
			c := mcptest.New(t, told.watch(t, calc(nil), nil))
			before := len(told.spans.Ended())
			_, _ = c.TryRequest(test.method, rawText(test.params))
			spans := told.spans.Ended()[before:]
			if len(spans) != 1 {
				t.Fatalf("%d spans", len(spans))
			}
			span := spans[0]
			if span.Name() != test.span || span.SpanKind() != trace.SpanKindServer {
				t.Errorf("the span is %q, %v", span.Name(), span.SpanKind())
			}
			if got := strings.TrimSpace(span.Status().Code.String() + " " + span.Status().Description); got != test.status {
				t.Errorf("its status is %q, want %q", got, test.status)
			}
			if value(span, "jsonrpc.request.id") == "" {
				t.Error("it has no id")
			}
			came := "mcp.protocol.version=2026-07-28 network.transport=pipe"
			var rest []attribute.KeyValue
			for _, a := range span.Attributes() {
				if a.Key != "jsonrpc.request.id" && !strings.Contains(came, string(a.Key)+"=") {
					rest = append(rest, a)
				}
			}
			if got := text(rest); got != test.attributes {
				t.Errorf("it says\n%s, want\n%s", got, test.attributes)
			}
			want := strings.Join(sorted(append(strings.Fields(test.attributes), strings.Fields(came)...)), " ")
			if got := told.series(t, "mcp.server.operation.duration"); got[want] != 1 {
				t.Errorf("the series are %v, want one with\n%s", got, want)
			}
		})
	}
}

// TestTransports: what spans say of how a message came.
func TestTransports(t *testing.T) {
	for name, want := range map[string]string{
		"pipe":      "network.transport=pipe",
		"unix":      "network.transport=unix",
		"tcp":       "network.transport=tcp",
		"http":      "network.protocol.name=http network.protocol.version=1.1 network.transport=tcp",
		"websocket": "network.protocol.name=websocket network.transport=tcp",
	} {
		for _, rev := range eras {
			t.Run(name+" "+rev.String(), func(t *testing.T) {
				told := newCollector()
				c := connect(t, over[name](t, told.watch(t, calc(nil), nil)), rev, nil)
				if _, err := c.Call(t.Context(), "add", map[string]int{"a": 1, "b": 2}); err != nil {
					t.Fatal(err)
				}
				spans := told.named("tools/call add")
				if len(spans) != 1 {
					t.Fatalf("%d spans", len(spans))
				}
				var network []attribute.KeyValue
				for _, a := range spans[0].Attributes() {
					if strings.HasPrefix(string(a.Key), "network.") || a.Key == "mcp.protocol.version" {
						network = append(network, a)
					}
				}
				if got, want := text(network), "mcp.protocol.version="+rev.String()+" "+want; got != want {
					t.Errorf("it says %s, want %s", got, want)
				}
			})
		}
	}
}

// remote is a context of a client whose span is elsewhere, as the W3C has it.
const (
	remoteTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	remoteParent = "00-" + remoteTrace + "-00f067aa0ba902b7-01"
)

// alice is somebody, and nobody a stranger.
var alice = mcp.Identity{Subject: "alice", Issuer: "https://id.example"}

func TestTrust(t *testing.T) {
	never := func(*mcp.Frame) bool { return false }
	always := func(*mcp.Frame) bool { return true }
	for _, test := range []struct {
		name      string
		transport []mcptest.Option
		trust     func(*mcp.Frame) bool
		continued bool
	}{
		{"a pipe", nil, nil, true},
		{"a pipe, trusting nobody", nil, never, false},
		{"a stranger over HTTP", []mcptest.Option{mcptest.OverHTTP()}, nil, false},
		{"somebody over HTTP", []mcptest.Option{mcptest.OverHTTP(), mcptest.As(alice)}, nil, true},
		{"a stranger over HTTP, trusting all", []mcptest.Option{mcptest.OverHTTP()}, always, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			told := newCollector()
			s := calc(nil)
			var carried string
			s.MustAdd(mcp.Tool("carried", func(f *mcp.Frame, in struct{}) (string, error) {
				carried = baggage.FromContext(f).String()
				return "", nil
			}))
			both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
			c := mcptest.New(t, told.watch(t, s, &telemetry.Options{Trust: test.trust, Propagator: both}), test.transport...)
			c.Request("tools/call", rawText(`{"name":"carried","arguments":{},"_meta":{"traceparent":"`+remoteParent+`","tracestate":"a=b","baggage":"user=alice"}}`))
			span := told.named("tools/call carried")[0]
			if continued := span.SpanContext().TraceID().String() == remoteTrace; continued != test.continued {
				t.Errorf("continued: %v", continued)
			}
			if test.continued {
				if len(span.Links()) != 0 || carried != "user=alice" || span.Parent().TraceState().String() != "a=b" {
					t.Errorf("links %v, baggage %q, state %q", span.Links(), carried, span.Parent().TraceState())
				}
				return
			}
			if len(span.Links()) != 1 || span.Links()[0].SpanContext.TraceID().String() != remoteTrace || carried != "" || span.Parent().IsValid() {
				t.Errorf("links %v, baggage %q, parent %v", span.Links(), carried, span.Parent())
			}
		})
	}
}

// TestStrangersSampleNothing: with one call in a hundred to be sampled, the flag of
// strangers changes nothing, while that of people who are known counts.
func TestStrangersSampleNothing(t *testing.T) {
	testdep.NoRace(t, "requests, one after the other")
	const calls = 2000
	for name, as := range map[string][]mcptest.Option{"strangers": nil, "alice": {mcptest.As(alice)}} {
		told := newCollector(sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0.01))))
		c := mcptest.New(t, told.watch(t, calc(nil), nil), append(as, mcptest.OverHTTP())...)
		for i := range calls {
			c.Request("tools/list", rawText(fmt.Sprintf(`{"_meta":{"traceparent":"00-%032x-00f067aa0ba902b7-01"}}`, i+1)))
		}
		sampled := len(told.named("tools/list"))
		t.Logf("%s: %d of %d are sampled", name, sampled, calls)
		if name == "alice" && sampled != calls {
			t.Errorf("%d of %d of somebody's calls are sampled", sampled, calls)
		}
		if name == "strangers" && sampled > calls*2/100 {
			t.Errorf("%d of %d of strangers' calls are sampled", sampled, calls)
		}
	}
}

// TestAround: what is in _meta comes before a span around the message, which is
// linked to then, and that comes before the headers.
func TestAround(t *testing.T) {
	told := newCollector()
	s := told.watch(t, calc(nil), nil)
	ctx, around := told.tracer.Tracer("test").Start(t.Context(), "around")
	serve := client.Local(func(_ context.Context, conn connection) error { return s.ServeConn(ctx, conn) })
	c := connect(t, serve, protocol.Latest, nil)
	_ = c.Request(t.Context(), "tools/list", nil, nil, client.Meta("x", 1))
	_ = c.Request(t.Context(), "tools/list", nil, nil, client.Meta("traceparent", remoteParent))
	around.End()
	lists := told.named("tools/list")
	if len(lists) != 2 {
		t.Fatalf("%d spans", len(lists))
	}
	if lists[0].Parent().SpanID() != around.SpanContext().SpanID() || len(lists[0].Links()) != 0 {
		t.Errorf("without _meta the parent is %v, links %v", lists[0].Parent(), lists[0].Links())
	}
	if p := lists[1]; p.Parent().TraceID().String() != remoteTrace || len(p.Links()) != 1 || !p.Links()[0].SpanContext.Equal(around.SpanContext()) {
		t.Errorf("with _meta the parent is %v, links %v", p.Parent(), p.Links())
	}
}

func TestHeaders(t *testing.T) {
	told := newCollector()
	s := told.watch(t, calc(nil), nil)
	c := mcptest.New(t, s, mcptest.OverHTTP(), mcptest.As(alice), mcptest.Header("traceparent", remoteParent))
	c.Request("tools/list", nil)
	other := strings.Replace(remoteParent, "4bf9", "aaaa", 1)
	c.Request("tools/list", rawText(`{"_meta":{"traceparent":"`+other+`"}}`))
	lists := told.named("tools/list")
	if got := lists[0].Parent().TraceID().String(); got != remoteTrace {
		t.Errorf("the header's trace is not continued: %s", got)
	}
	if got := lists[1].Parent().TraceID().String(); !strings.HasPrefix(got, "aaaa") {
		t.Errorf("the header came before _meta: %s", got)
	}
}

// TestHostileMeta: whatever _meta says, there is a span, and the call is answered.
func TestHostileMeta(t *testing.T) {
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	told := newCollector()
	c := mcptest.New(t, told.watch(t, calc(nil), &telemetry.Options{Propagator: both}))
	for i, meta := range []string{
		`{"baggage":"` + strings.Repeat("a=b,", 1<<18) + `"}`,
		`{"baggage":"` + strings.Repeat("=", 8000) + `"}`,
		`{"baggage":"\u0000","traceparent":"\u0000"}`,
		`{"traceparent":""}`, `{"traceparent":"00"}`, `{"traceparent":7}`, `{"traceparent":null}`, `{"traceparent":{"traceparent":"` + remoteParent + `"}}`,
		`{"traceparent":"00-00000000000000000000000000000000-0000000000000000-01"}`,
		`{"traceparent":"ff-` + remoteTrace + `-00f067aa0ba902b7-01"}`,
		`{"traceparent":"` + remoteParent + strings.Repeat("-", 1000) + `"}`,
		`{"traceparent":"` + remoteParent + `","tracestate":"` + strings.Repeat("a=b,", 200) + `"}`,
	} {
		c.Request("tools/list", rawText(`{"_meta":`+meta+`}`))
		if got := len(told.named("tools/list")); got != i+1 {
			t.Fatalf("%.60s: %d spans", meta, got)
		}
	}
}

// TestOptionsThatDoNotReturn: a message whose Trust panics is refused; a panic of
// Attributes costs the attributes alone.
func TestOptionsThatDoNotReturn(t *testing.T) {
	for name, way := range map[string]func(){"panic": func() { panic("oh") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			told := newCollector()
			o := &telemetry.Options{Trust: func(*mcp.Frame) bool { way(); return true }}
			if name == "panic" { // the end of its goroutine is the end of the message, as of any End
				o.Attributes = func(*mcp.Frame, mcp.Outcome) []attribute.KeyValue { way(); return nil }
			}
			c := mcptest.New(t, told.watch(t, calc(nil), o), mcptest.OverHTTP())
			if _, err := c.TryRequest("tools/list", rawText(`{"_meta":{"traceparent":"`+remoteParent+`"}}`)); err == nil {
				t.Error("a message is served whose Trust panics")
			}
			c.Request("tools/list", nil)
			if got := len(told.named("tools/list")); got != 1 {
				t.Errorf("%d spans", got)
			}
		})
	}
}
