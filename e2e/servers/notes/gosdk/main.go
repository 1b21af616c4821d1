// Gosdk is the server of docs/from-go-sdk.md as it is with the official Go SDK.
package main

import (
	"context"
	"fmt"
	"log"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type notebook struct {
	mu    sync.Mutex
	notes []string
}

func (n *notebook) append(text string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notes = append(n.notes, text)
	return len(n.notes)
}

// find returns the note with that number, which is "" if it was deleted.
func (n *notebook) find(id int) (text string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id < 1 || id > len(n.notes) {
		return "", false
	}
	return n.notes[id-1], true
}

func (n *notebook) remove(id int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id >= 1 && id <= len(n.notes) {
		n.notes[id-1] = ""
	}
}

type AddIn struct {
	Text string `json:"text" jsonschema:"what to remember"`
}

type Added struct {
	ID int `json:"id"`
}

func (n *notebook) add(_ context.Context, _ *mcp.CallToolRequest, in AddIn) (*mcp.CallToolResult, Added, error) {
	return nil, Added{n.append(in.Text)}, nil
}

func (n *notebook) addTool(s *mcp.Server) error {
	schema, err := jsonschema.For[AddIn](nil)
	if err != nil {
		return err
	}
	schema.Properties["text"].MinLength = jsonschema.Ptr(1)
	schema.Properties["text"].MaxLength = jsonschema.Ptr(200)
	mcp.AddTool(s, &mcp.Tool{Name: "add_note", Description: "Keeps a note", InputSchema: schema}, n.add)
	return nil
}

func (n *notebook) read(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	id, err := strconv.Atoi(strings.TrimPrefix(r.Params.URI, "notes://"))
	if err != nil {
		return nil, mcp.ResourceNotFoundError(r.Params.URI)
	}
	text, ok := n.find(id)
	if !ok {
		return nil, mcp.ResourceNotFoundError(r.Params.URI)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: text}}}, nil
}

func summarize(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	text := "Summarize my notes as a " + r.Params.Arguments["style"] + "."
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
}

type NoteIn struct {
	ID int `json:"id"`
}

func (n *notebook) delete(_ context.Context, r *mcp.CallToolRequest, in NoteIn) (*mcp.CallToolResult, any, error) {
	answer, ok := r.Params.InputResponses["sure"].(*mcp.ElicitResult)
	if !ok {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{
			"sure": &mcp.ElicitParams{Message: fmt.Sprintf("Delete note %d?", in.ID), RequestedSchema: &jsonschema.Schema{
				Type:       "object",
				Properties: map[string]*jsonschema.Schema{"sure": {Type: "boolean"}},
				Required:   []string{"sure"},
			}},
		}}, nil, nil
	}
	if sure, _ := answer.Content["sure"].(bool); answer.Action != "accept" || !sure {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "kept"}}}, nil, nil
	}
	n.remove(in.ID)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "deleted"}}}, nil, nil
}

func newServer() (*mcp.Server, error) {
	n := &notebook{}
	s := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1.0.0"}, nil)
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "notes://{id}", Name: "note"}, n.read)
	s.AddPrompt(&mcp.Prompt{Name: "summarize", Description: "Summarizes the notes", Arguments: []*mcp.PromptArgument{
		{Name: "style", Description: "such as haiku", Required: true},
	}}, summarize)
	mcp.AddTool(s, &mcp.Tool{Name: "delete_note", Description: "Deletes a note"}, n.delete)
	return s, n.addTool(s)
}

func main() {
	s, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}
