// Mcpgo is the server of docs/from-mcp-go.md as it is with
// github.com/mark3labs/mcp-go.
package main

import (
	"context"
	"fmt"
	"log"
	"strconv"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
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
	Text string `json:"text"`
}

type Added struct {
	ID int `json:"id"`
}

func (n *notebook) add(_ context.Context, _ mcp.CallToolRequest, in AddIn) (Added, error) {
	return Added{n.append(in.Text)}, nil
}

func (n *notebook) addTool(s *server.MCPServer) {
	s.AddTool(
		mcp.NewTool("add_note",
			mcp.WithDescription("Keeps a note"),
			mcp.WithString("text", mcp.Required(), mcp.Description("what to remember"), mcp.MinLength(1), mcp.MaxLength(200)),
			mcp.WithOutputSchema[Added]()),
		mcp.NewStructuredToolHandler(n.add))
}

func (n *notebook) read(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	id, err := strconv.Atoi(strings.TrimPrefix(r.Params.URI, "notes://"))
	if err != nil {
		return nil, server.ErrResourceNotFound
	}
	text, ok := n.find(id)
	if !ok {
		return nil, server.ErrResourceNotFound
	}
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, Text: text}}, nil
}

func summarize(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	text := "Summarize my notes as a " + r.Params.Arguments["style"] + "."
	return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(text))}), nil
}

func (n *notebook) delete(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	id, err := r.RequireInt("id")
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	answer := server.ElicitationResponse(r.Params.InputResponses, "sure")
	if answer == nil {
		return server.NewInputRequestBuilder("").Elicit("sure", mcp.ElicitationParams{
			Mode:    mcp.ElicitationModeForm,
			Message: fmt.Sprintf("Delete note %d?", id),
			RequestedSchema: map[string]any{
				"type":       "object",
				"properties": map[string]any{"sure": map[string]any{"type": "boolean"}},
				"required":   []string{"sure"},
			},
		}).ToolResult(), nil
	}
	content, _ := answer.Content.(map[string]any)
	if sure, _ := content["sure"].(bool); answer.Action != mcp.ElicitationResponseActionAccept || !sure {
		return mcp.NewToolResultText("kept"), nil
	}
	n.remove(id)
	return mcp.NewToolResultText("deleted"), nil
}

func newServer() *server.MCPServer {
	n := &notebook{}
	s := server.NewMCPServer("notes", "1.0.0", server.WithInputSchemaValidation(), server.WithElicitation())
	n.addTool(s)
	s.AddResourceTemplate(mcp.NewResourceTemplate("notes://{id}", "note"), n.read)
	s.AddPrompt(mcp.NewPrompt("summarize", mcp.WithPromptDescription("Summarizes the notes"),
		mcp.WithArgument("style", mcp.ArgumentDescription("such as haiku"), mcp.RequiredArgument())), summarize)
	s.AddTool(mcp.NewTool("delete_note", mcp.WithDescription("Deletes a note"), mcp.WithInteger("id", mcp.Required())), n.delete)
	return s
}

func main() {
	if err := server.ServeStdio(newServer()); err != nil {
		log.Fatal(err)
	}
}
