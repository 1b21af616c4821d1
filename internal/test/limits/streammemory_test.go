package limits_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// BenchmarkIdleStream measures the memory of an idle events/stream, and of one of
// subscriptions/listen, with that of its client.
func BenchmarkIdleStream(b *testing.B) {
	for method, line := range map[string]string{
		"subscriptions/listen": harness.Listen("7", `{"eventsListChanged":true}`),
		"events/stream":        harness.Expand(`{"jsonrpc":"2.0","id":7,"method":"events/stream","params":{"name":"x","arguments":{"A":"document-1"},$META}}`, protocol.Latest),
	} {
		b.Run(method, func(b *testing.B) {
			s := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, &mcp.Options{Limits: mcp.Limits{Subscriptions: b.N, SubscriptionsPerPrincipal: -1}})
			s.MustAdd(mcp.EventType("x", func(context.Context, struct{ A string }, map[string]string) (bool, error) { return true, nil }))
			web := httptest.NewServer(s.Handler())
			defer web.Close()
			defer web.CloseClientConnections()
			header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method}}
			before := heapAndStacks()
			for range b.N {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, web.URL, strings.NewReader(line))
				if err != nil {
					b.Fatal(err)
				}
				req.Header = header
				res, err := http.DefaultTransport.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				defer res.Body.Close()
				if _, err := io.ReadFull(res.Body, make([]byte, 60)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(heapAndStacks()-before)/float64(b.N), "bytes/stream")
			if err := s.Shutdown(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
}

// heapAndStacks returns how many bytes are in use.
func heapAndStacks() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
