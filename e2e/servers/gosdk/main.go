// Gosdk is a server made with github.com/modelcontextprotocol/go-sdk. It has what
// the SDK's own examples lack; the server of mcpgo has the same.
//
//	go run ./gosdk [-http ADDRESS [-stateless | -sse]]
//
//lint:file-ignore SA1019 sampling and roots are deprecated, but still to be answered
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	addr := flag.String("http", "", "serve HTTP on this `address` instead of standard input and output")
	stateless := flag.Bool("stateless", false, "serve HTTP without sessions, as modern revisions want it")
	sse := flag.Bool("sse", false, "serve HTTP+SSE")
	flag.Parse()
	s := newServer()
	get := func(*http.Request) *mcp.Server { return s }
	switch {
	case *addr == "":
		if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			log.Fatal(err)
		}
	case *sse:
		log.Fatal(http.ListenAndServe(*addr, mcp.NewSSEHandler(get, nil)))
	default:
		log.Fatal(http.ListenAndServe(*addr, mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
			Stateless: *stateless, EventStore: mcp.NewMemoryEventStore(nil), PropagateRequestCancellation: true,
		})))
	}
}

type none = struct{}

// NameIn has the argument of several tools.
type NameIn struct {
	Name string `json:"name"`
}

func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "gosdk", Version: "1.0.0"}, &mcp.ServerOptions{
		PageSize:           2,
		CompletionHandler:  complete,
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	for i := range 5 {
		addResource(s, fmt.Sprintf("e2e://%d", i+1))
	}
	s.AddPrompt(&mcp.Prompt{Name: "letter", Arguments: []*mcp.PromptArgument{{Name: "country"}, {Name: "city"}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text := "Write to " + r.Params.Arguments["city"]
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
		})
	addRunning(s)
	addChanging(s)
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, ask)
	return s
}

func text(format string, values ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, values...)}}}
}

func addResource(s *mcp.Server, uri string) {
	s.AddResource(&mcp.Resource{URI: uri, Name: uri}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, Text: "This is " + uri}}}, nil
	})
}

func complete(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	cities := []string{"Oslo", "Rome"}
	if r.Params.Context != nil && r.Params.Context.Arguments["country"] == "France" {
		cities = []string{"Lyon", "Paris"}
	}
	found := []string{}
	for _, city := range cities {
		if strings.HasPrefix(city, r.Params.Argument.Value) {
			found = append(found, city)
		}
	}
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: found, Total: len(found)}}, nil
}

// addRunning adds a tool that waits to be cancelled, and one that counts those
// calls.
func addRunning(s *mcp.Server) {
	var cancelled atomic.Int64
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, r *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
		if token := r.Params.GetProgressToken(); token != nil {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1, Message: "waiting"}); err != nil {
				return nil, nil, err
			}
		}
		<-ctx.Done()
		cancelled.Add(1)
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(s, &mcp.Tool{Name: "cancelled"}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		return text("%d", cancelled.Load()), nil, nil
	})
}

// addChanging adds tools that change what the server offers.
func addChanging(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{Name: "touch"}, func(ctx context.Context, _ *mcp.CallToolRequest, in NameIn) (*mcp.CallToolResult, any, error) {
		return text("touched"), nil, s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: in.Name})
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(_ context.Context, _ *mcp.CallToolRequest, in NameIn) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, &mcp.Tool{Name: in.Name}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
			return text("I am new"), nil, nil
		})
		addResource(s, "e2e://new/"+in.Name)
		return text("grown"), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "shrink"}, func(_ context.Context, _ *mcp.CallToolRequest, in NameIn) (*mcp.CallToolResult, any, error) {
		s.RemoveTools(in.Name)
		s.RemoveResources("e2e://new/" + in.Name)
		return text("shrunk"), nil, nil
	})
}

// ask asks for a name, an answer of the model and the roots, in one round.
func ask(_ context.Context, r *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
	answers := r.Params.InputResponses
	if len(answers) == 0 {
		return &mcp.CallToolResult{RequestState: "asked", InputRequests: mcp.InputRequestMap{
			"name": &mcp.ElicitParams{Message: "Your name?", RequestedSchema: &jsonschema.Schema{
				Type: "object", Properties: map[string]*jsonschema.Schema{"name": {Type: "string"}}, Required: []string{"name"},
			}},
			"capital": &mcp.CreateMessageParams{MaxTokens: 9, Messages: []*mcp.SamplingMessage{
				{Role: "user", Content: &mcp.TextContent{Text: "The capital of France?"}},
			}},
			"roots": &mcp.ListRootsParams{},
		}}, nil, nil
	}
	name, ok := answers["name"].(*mcp.ElicitResult)
	roots, rooted := answers["roots"].(*mcp.ListRootsResult)
	if !ok || !rooted || len(roots.Roots) == 0 {
		return text("got %T and %T", answers["name"], answers["roots"]), nil, nil
	}
	var capital mcp.Content
	switch sampled := answers["capital"].(type) {
	case *mcp.CreateMessageResult:
		capital = sampled.Content
	case *mcp.CreateMessageWithToolsResult:
		capital = sampled.Content[0]
	}
	said, ok := capital.(*mcp.TextContent)
	if !ok {
		return text("got %T", answers["capital"]), nil, nil
	}
	return text("%v %v says %s, in %s", name.Action, name.Content["name"], said.Text, roots.Roots[0].URI), nil, nil
}
