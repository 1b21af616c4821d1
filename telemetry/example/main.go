// Command example shows one trace across a client, a proxy and a server, each with
// an SDK of its own, as if they were three programs:
//
//	go run ./telemetry/example
//
// The proxy is a server whose tool calls another server. Where this has a collector
// in memory, a program has an exporter.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/telemetry"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

type addIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

type totalIn struct {
	Prices []int `json:"prices"`
}

type sum struct {
	Sum int `json:"sum"`
}

// run lets an agent ask the proxy for a total, and prints the trace.
func run(ctx context.Context, out io.Writer) error {
	spans := &collector{}

	calculator := mcp.NewServer(mcp.Info{Name: "calculator", Version: "1"}, nil)
	calculator.MustAdd(mcp.Tool("add", func(_ context.Context, in addIn) (sum, error) { return sum{in.A + in.B}, nil }))
	behind, err := serve(calculator, spans.program("calculator"))
	if err != nil {
		return err
	}
	defer behind.Close()

	toCalculator, err := connect(ctx, behind.URL, spans.program("shop"))
	if err != nil {
		return err
	}
	defer toCalculator.Close()
	shop := mcp.NewServer(mcp.Info{Name: "shop", Version: "1"}, nil)
	shop.MustAdd(mcp.Tool("total", func(f *mcp.Frame, in totalIn) (sum, error) {
		var total sum
		for _, price := range in.Prices {
			// f is a context with the span of this call, so that the next is below it.
			if total, err = client.Call[sum](f, toCalculator, "add", addIn{total.Sum, price}); err != nil {
				return total, err
			}
		}
		return total, nil
	}))
	front, err := serve(shop, spans.program("shop"))
	if err != nil {
		return err
	}
	defer front.Close()

	agent := spans.program("agent")
	toShop, err := connect(ctx, front.URL, agent)
	if err != nil {
		return err
	}
	defer toShop.Close()
	spans.forget() // what opening the connections took
	ctx, plan := agent.TracerProvider.Tracer("example").Start(ctx, "plan")
	total, err := client.Call[sum](ctx, toShop, "total", totalIn{[]int{5, 7}})
	plan.End()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The total is %d.\n\n", total.Sum)
	spans.print(out)
	return nil
}

// serve serves s over HTTP, with telemetry.
func serve(s *mcp.Server, o *telemetry.Options) (*httptest.Server, error) {
	// Only our own programs call these servers. On the internet, leave Trust
	// unset.
	o.Trust = func(*mcp.Frame) bool { return true }
	if _, err := telemetry.Server(s, o); err != nil {
		return nil, err
	}
	return httptest.NewServer(s.Handler()), nil
}

// connect returns a client with telemetry.
func connect(ctx context.Context, url string, o *telemetry.Options) (*client.Client, error) {
	var options client.Options
	telemetry.Client(&options, o)
	c, err := client.Connect(ctx, client.HTTP(url, nil), &options)
	if err != nil {
		return nil, err
	}
	for _, err := range c.Tools(ctx) { // as a program does that offers them to a model
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// collector keeps the spans of all programs.
type collector struct {
	mu    sync.Mutex
	spans []trace.ReadOnlySpan
}

// program returns the options of a program of that name.
func (c *collector) program(name string) *telemetry.Options {
	about := resource.NewSchemaless(attribute.String("service.name", name))
	return &telemetry.Options{TracerProvider: trace.NewTracerProvider(trace.WithSyncer(c), trace.WithResource(about))}
}

// ExportSpans implements trace.SpanExporter.
func (c *collector) ExportSpans(_ context.Context, spans []trace.ReadOnlySpan) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans = append(c.spans, spans...)
	return nil
}

// Shutdown implements trace.SpanExporter.
func (c *collector) Shutdown(context.Context) error { return nil }

// forget drops what was collected.
func (c *collector) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans = nil
}

// print prints the spans as a tree, in the order in which they began.
func (c *collector) print(out io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(c.spans, func(a, b trace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	var below func(parent string, depth int)
	below = func(parent string, depth int) {
		for _, s := range c.spans {
			if s.Parent().SpanID().String() != parent {
				continue
			}
			name, _ := s.Resource().Set().Value("service.name")
			fmt.Fprintf(out, "%-36s %-8s %s\n", strings.Repeat("  ", depth)+s.Name(), s.SpanKind(), name.AsString())
			below(s.SpanContext().SpanID().String(), depth+1)
		}
	}
	below(strings.Repeat("0", 16), 0)
}
