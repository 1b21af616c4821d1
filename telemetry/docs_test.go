package telemetry_test

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/telemetry"
)

// both is the beginning of docs/telemetry.md.
func both(server *mcp.Server) error {
	stop, err := telemetry.Server(server, nil) // spans and metrics of every message; before serving
	if err != nil {
		return err
	}
	defer stop()
	options := client.Options{}
	telemetry.Client(&options, nil) // and of every call; before client.Connect
	return nil
}

// gateway is what that page says of trust and of more attributes.
func gateway(gatewayKey string) *telemetry.Options {
	o := telemetry.Options{Trust: func(f *mcp.Frame) bool { return f.Header("X-Gateway-Key") == gatewayKey }}
	o.Attributes = func(f *mcp.Frame, end mcp.Outcome) []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String("enduser.id", f.Principal())}
	}
	return &o
}

func TestDocs(t *testing.T) {
	if err := both(calc(nil)); err != nil {
		t.Fatal(err)
	}
	told := newCollector()
	c := mcptest.New(t, told.watch(t, calc(nil), gateway("key")), mcptest.OverHTTP(), mcptest.As(alice), mcptest.Header("X-Gateway-Key", "key"))
	c.Request("tools/list", rawText(`{"_meta":{"traceparent":"`+remoteParent+`"}}`))
	span := told.named("tools/list")[0]
	if span.Parent().TraceID().String() != remoteTrace || value(span, "enduser.id") != alice.Principal() {
		t.Errorf("the parent is %v, the user %q", span.Parent().TraceID(), value(span, "enduser.id"))
	}
}
