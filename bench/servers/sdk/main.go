// Sdk offers the tools on github.com/modelcontextprotocol/go-sdk.
package main

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/talaria-go/mcp/bench/internal/serve"
	"github.com/talaria-go/mcp/bench/tools"
)

func add[In, Out any](s *mcp.Server, name, schema string, tool func(In) Out) error {
	var input jsonschema.Schema
	if err := json.Unmarshal([]byte(schema), &input); err != nil {
		return err
	}
	mcp.AddTool(s, &mcp.Tool{Name: name, InputSchema: &input},
		func(_ context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
			return nil, tool(in), nil
		})
	return nil
}

func newServer() (*mcp.Server, error) {
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1.0.0"}, nil)
	if err := add(s, "add", tools.AddSchema, tools.Add); err != nil {
		return nil, err
	}
	return s, add(s, "search", tools.SearchSchema, tools.Search)
}

// handler serves all revisions. The SDK wants a stateless handler for the one and
// a stateful one for the other, so the header decides between two.
func handler() (http.Handler, error) {
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	get := func(*http.Request) *mcp.Server { return s }
	modern := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	legacy := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= "2026" {
			modern.ServeHTTP(w, r)
		} else {
			legacy.ServeHTTP(w, r)
		}
	}), nil
}

func serveStdio(ctx context.Context) error {
	s, err := newServer()
	if err != nil {
		return err
	}
	return s.Run(ctx, &mcp.StdioTransport{})
}

func main() { serve.Main(serve.Server{HTTP: handler, Stdio: serveStdio}) }
