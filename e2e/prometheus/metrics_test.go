package prometheus_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/telemetry"
)

// metrics makes server tell what it does at /metrics of mux, as docs/operations.md
// has it.
func metrics(server *mcp.Server, mux *http.ServeMux) (stop func(), err error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return telemetry.Server(server, &telemetry.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(exporter))})
}

func TestMetrics(t *testing.T) {
	server := mcp.NewServer(mcp.Info{Name: "calc", Version: "1"}, nil)
	server.MustAdd(mcp.Tool("add", func(_ context.Context, in struct{ A, B int }) (int, error) { return in.A + in.B, nil }))
	mux := http.NewServeMux()
	stop, err := metrics(server, mux)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	web := httptest.NewServer(mux)
	defer web.Close()

	mcptest.New(t, server).Call("add", map[string]int{"A": 1, "B": 2})
	answer, err := http.Get(web.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`mcp_server_operation_duration_seconds_bucket{gen_ai_operation_name="execute_tool",gen_ai_tool_name="add",mcp_method_name="tools/call",mcp_protocol_version="2026-07-28",network_transport="pipe",le="0.01"} 1`,
		`mcp_server_operation_duration_seconds_count{gen_ai_operation_name="execute_tool",gen_ai_tool_name="add",mcp_method_name="tools/call",mcp_protocol_version="2026-07-28",network_transport="pipe"} 1`,
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("there is no\n%s\nin\n%s", want, text)
		}
	}
}
