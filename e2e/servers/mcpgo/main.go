// Mcpgo is a server made with github.com/mark3labs/mcp-go. It has what mcp-go's
// own examples lack; the server of gosdk has the same.
//
//	go run ./mcpgo [-http ADDRESS [-sse]]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
	addr := flag.String("http", "", "serve HTTP on this `address` instead of standard input and output")
	sse := flag.Bool("sse", false, "serve HTTP+SSE")
	flag.Parse()
	s := newServer()
	switch {
	case *addr == "":
		if err := server.NewStdioServer(s).Listen(context.Background(), os.Stdin, os.Stdout); err != nil {
			log.Fatal(err)
		}
	case *sse:
		log.Fatal(server.NewSSEServer(s).Start(*addr))
	default:
		log.Fatal(http.ListenAndServe(*addr, server.NewStreamableHTTPServer(s)))
	}
}

func newServer() *server.MCPServer {
	s := server.NewMCPServer("mcpgo", "1.0.0",
		server.WithToolCapabilities(true), server.WithResourceCapabilities(true, true), server.WithPromptCapabilities(true),
		server.WithCompletions(), server.WithPromptCompletionProvider(cities{}), server.WithLogging(),
		server.WithElicitation(), server.WithRoots(), server.WithPaginationLimit(2))
	s.EnableSampling()
	for i := range 5 {
		addResource(s, fmt.Sprintf("e2e://%d", i+1))
	}
	s.AddPrompt(mcp.NewPrompt("letter", mcp.WithArgument("country"), mcp.WithArgument("city")),
		func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text := mcp.NewTextContent("Write to " + r.Params.Arguments["city"])
			return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, text)}), nil
		})
	addRunning(s)
	addChanging(s)
	s.AddTool(mcp.NewTool("ask"), ask)
	return s
}

func addResource(s *server.MCPServer, uri string) {
	s.AddResource(mcp.NewResource(uri, uri), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, Text: "This is " + uri}}, nil
	})
}

// cities completes the city of a letter.
type cities struct{}

// CompletePromptArgument implements server.PromptCompletionProvider.
func (cities) CompletePromptArgument(_ context.Context, _ string, argument mcp.CompleteArgument, about mcp.CompleteContext) (*mcp.Completion, error) {
	known := []string{"Oslo", "Rome"}
	if about.Arguments["country"] == "France" {
		known = []string{"Lyon", "Paris"}
	}
	found := []string{}
	for _, city := range known {
		if strings.HasPrefix(city, argument.Value) {
			found = append(found, city)
		}
	}
	return &mcp.Completion{Values: found, Total: len(found)}, nil
}

// addRunning adds a tool that waits to be cancelled, and one that counts those
// calls.
func addRunning(s *server.MCPServer) {
	var cancelled atomic.Int64
	s.AddTool(mcp.NewTool("wait"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if r.Params.Meta != nil && r.Params.Meta.ProgressToken != nil {
			err := s.SendNotificationToClient(ctx, "notifications/progress", map[string]any{
				"progressToken": r.Params.Meta.ProgressToken, "progress": 1, "message": "waiting",
			})
			if err != nil {
				return nil, err
			}
		}
		<-ctx.Done()
		cancelled.Add(1)
		return nil, ctx.Err()
	})
	s.AddTool(mcp.NewTool("cancelled"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(fmt.Sprint(cancelled.Load())), nil
	})
}

// addChanging adds tools that change what the server offers.
func addChanging(s *server.MCPServer) {
	named := func(name string, do func(string)) {
		s.AddTool(mcp.NewTool(name, mcp.WithString("name", mcp.Required())),
			func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				do(r.GetString("name", ""))
				return mcp.NewToolResultText(name + ": done"), nil
			})
	}
	named("touch", func(uri string) {
		s.SendNotificationToAllClients("notifications/resources/updated", map[string]any{"uri": uri})
	})
	named("grow", func(name string) {
		s.AddTool(mcp.NewTool(name), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("I am new"), nil
		})
		addResource(s, "e2e://new/"+name)
	})
	named("shrink", func(name string) {
		s.DeleteTools(name)
		s.DeleteResources("e2e://new/" + name)
	})
}

// ask asks for a name, an answer of the model and the roots, in one round.
func ask(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answers := r.Params.InputResponses
	name, capital, roots := server.ElicitationResponse(answers, "name"), server.SamplingResponse(answers, "capital"), server.RootsResponse(answers, "roots")
	if name == nil || capital == nil || roots == nil {
		return server.NewInputRequestBuilder("asked").
			Elicit("name", mcp.ElicitationParams{Mode: mcp.ElicitationModeForm, Message: "Your name?", RequestedSchema: map[string]any{
				"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}, "required": []string{"name"},
			}}).
			Sample("capital", mcp.CreateMessageParams{MaxTokens: 9, Messages: []mcp.SamplingMessage{
				{Role: mcp.RoleUser, Content: mcp.NewTextContent("The capital of France?")},
			}}).
			Roots("roots").ToolResult(), nil
	}
	content, _ := name.Content.(map[string]any)
	if len(roots.Roots) == 0 {
		return mcp.NewToolResultText("got no roots"), nil
	}
	return mcp.NewToolResultText(fmt.Sprintf("%s %v says %s, in %s", name.Action, content["name"], said(capital.Content), roots.Roots[0].URI)), nil
}

// said returns the text of an answer of the model, which the retry of a modern
// client holds undecoded.
func said(content any) string {
	switch c := content.(type) {
	case mcp.TextContent:
		return c.Text
	case map[string]any:
		return fmt.Sprint(c["text"])
	}
	return fmt.Sprintf("a %T", content)
}
