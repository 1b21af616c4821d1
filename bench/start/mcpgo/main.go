// Mcpgo is the same stdio server on github.com/mark3labs/mcp-go.
package main

import (
	"context"
	"log"
	"os"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

type pair struct {
	A int `json:"a" jsonschema:"the first number"`
	B int `json:"b" jsonschema:"the second number"`
}

type sum struct {
	Sum int `json:"sum"`
}

func add(_ context.Context, _ mcp.CallToolRequest, in pair) (sum, error) {
	return sum{in.A + in.B}, nil
}

func subtract(_ context.Context, _ mcp.CallToolRequest, in pair) (sum, error) {
	return sum{in.A - in.B}, nil
}

func tool(name, doc string, fn mcp.StructuredToolHandlerFunc[pair, sum]) server.ServerTool {
	return server.ServerTool{
		Tool:    mcp.NewTool(name, mcp.WithDescription(doc), mcp.WithInputSchema[pair](), mcp.WithOutputSchema[sum]()),
		Handler: mcp.NewStructuredToolHandler(fn),
	}
}

func main() {
	s := server.NewMCPServer("start", "1.0.0")
	s.AddTools(tool("add", "Adds two numbers", add), tool("subtract", "Subtracts two numbers", subtract))
	if err := server.NewStdioServer(s).Listen(context.Background(), os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}
