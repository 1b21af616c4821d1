package telemetry

import (
	"context"
	"fmt"
	"strings"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// TestInventionsOfClients: whatever a program lets a model choose, the series of a
// client stay below what an SDK takes.
func TestInventionsOfClients(t *testing.T) {
	var codes = []protocol.Code{-32700, -32600, -32601, -32602, -32603, -32002, -32020, -32021, -32022, -32001, 429, 503, 403, 401, 7}
	for _, test := range []struct {
		what string
		most int
		call func(i int) (client.CallInfo, error)
	}{
		{"methods", maxNames + 1, func(i int) (client.CallInfo, error) { return client.CallInfo{Method: fmt.Sprint("method/", i)}, nil }},
		{"tools", maxNames + 1, func(i int) (client.CallInfo, error) {
			return client.CallInfo{Method: "tools/call", Name: fmt.Sprint("tool-", i)}, nil
		}},
		{"long names", 1, func(i int) (client.CallInfo, error) {
			return client.CallInfo{Method: "tools/call", Name: strings.Repeat("x", maxName) + fmt.Sprint(i)}, nil
		}},
		{"names that are no text", 1, func(i int) (client.CallInfo, error) {
			return client.CallInfo{Method: "tools/call", Name: fmt.Sprint("\xff", i)}, nil
		}},
		{"servers", maxServers + 1, func(i int) (client.CallInfo, error) {
			return client.CallInfo{Method: "ping", URL: fmt.Sprintf("http://h%d.example/mcp", i)}, nil
		}},
		{"ports", maxServers + 1, func(i int) (client.CallInfo, error) {
			return client.CallInfo{Method: "ping", URL: fmt.Sprintf("http://h.example:%d/mcp", i+1)}, nil
		}},
		{"codes", 2, func(i int) (client.CallInfo, error) {
			return client.CallInfo{Method: "ping"}, &client.Error{Code: protocol.Code(i + 5000)}
		}},
		{"all of it", 2000, func(i int) (client.CallInfo, error) {
			return client.CallInfo{Method: []string{"tools/call", fmt.Sprint("method/", i)}[i%2], Name: fmt.Sprint("tool-", i), URL: fmt.Sprintf("http://h%d.example", i%70)}, &client.Error{Code: codes[i%len(codes)]}
		}},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			reader := sdkmetric.NewManualReader()
			var o client.Options
			Client(&o, &Options{TracerProvider: nooptrace.NewTracerProvider(), MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))})
			for i := range 10_000 {
				info, err := test.call(i)
				_ = o.Around(t.Context(), &info, func(context.Context) error { return err })
			}
			var all metricdata.ResourceMetrics
			if err := reader.Collect(t.Context(), &all); err != nil {
				t.Fatal(err)
			}
			points := all.ScopeMetrics[0].Metrics[0].Data.(metricdata.Histogram[float64]).DataPoints
			calls := uint64(0)
			for _, p := range points {
				calls += p.Count
				if _, over := p.Attributes.Value("otel.metric.overflow"); over {
					t.Error("a series overflows")
				}
			}
			if len(points) > test.most || calls != 10_000 {
				t.Errorf("%d series of %d calls, at most %d", len(points), calls, test.most)
			}
		})
	}
}

// TestUnix: an address that is unknown, or of another kind, is not trusted.
func TestUnix(t *testing.T) {
	for address, want := range map[string]bool{
		"unix:": true, "unix:@": true, "unix:/run/mcp": true,
		"": false, "@": false, "127.0.0.1:80": false, "vsock:3:1024": false, "host:80": false, "/ip4/192.0.2.7/tcp/1": false,
	} {
		if unix(address) != want {
			t.Errorf("%q: %v", address, !want)
		}
	}
}
