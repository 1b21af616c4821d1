// Mcpgo offers the tools on github.com/mark3labs/mcp-go.
package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/talaria-go/mcp/bench/internal/serve"
	"github.com/talaria-go/mcp/bench/tools"
)

func add[In, Out any](s *server.MCPServer, name, schema string, tool func(In) Out) {
	s.AddTool(
		mcp.NewTool(name, mcp.WithRawInputSchema(json.RawMessage(schema)), mcp.WithOutputSchema[Out]()),
		mcp.NewStructuredToolHandler(func(_ context.Context, _ mcp.CallToolRequest, in In) (Out, error) {
			return tool(in), nil
		}))
}

// newServer checks inputs, which is off by default but what the rules of the
// tools ask for.
func newServer() *server.MCPServer {
	s := server.NewMCPServer("bench", "1.0.0", server.WithInputSchemaValidation())
	add(s, "add", tools.AddSchema, tools.Add)
	add(s, "search", tools.SearchSchema, tools.Search)
	return s
}

func main() {
	serve.Main(serve.Server{
		HTTP: func() (http.Handler, error) { return server.NewStreamableHTTPServer(newServer()), nil },
		Stdio: func(ctx context.Context) error {
			return server.NewStdioServer(newServer()).Listen(ctx, os.Stdin, os.Stdout)
		},
	})
}
