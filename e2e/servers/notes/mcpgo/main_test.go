package main

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func TestAddNote(t *testing.T) {
	c, err := client.NewInProcessClient(newServer())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	added, err := callAdd(t.Context(), c, "buy milk")
	if err != nil || added.ID != 1 {
		t.Errorf("got %v, %v", added, err)
	}
}

func callAdd(ctx context.Context, c *client.Client, text string) (Added, error) {
	var added Added
	hello := mcp.InitializeRequest{}
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "adder", Version: "1.0.0"}
	if _, err := c.Initialize(ctx, hello); err != nil {
		return added, err
	}
	call := mcp.CallToolRequest{}
	call.Params.Name = "add_note"
	call.Params.Arguments = map[string]any{"text": text}
	result, err := c.CallTool(ctx, call)
	if err != nil {
		return added, err
	}
	if result.IsError {
		return added, errors.New("the tool failed")
	}
	encoded, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return added, err
	}
	return added, json.Unmarshal(encoded, &added)
}

func addNote(ctx context.Context, command, text string) (Added, error) {
	c, err := client.NewStdioMCPClient(command, nil)
	if err != nil {
		return Added{}, err
	}
	defer c.Close()
	return callAdd(ctx, c, text)
}

func TestClient(t *testing.T) {
	program := filepath.Join(t.TempDir(), "notes.exe")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if added, err := addNote(t.Context(), program, "buy milk"); err != nil || added.ID != 1 {
		t.Errorf("got %v, %v", added, err)
	}
}

// TestErrors: what the guide says of errors, which are no errors of the call in
// handlers of Talaria.
func TestErrors(t *testing.T) {
	fails := errors.New("the account is closed")
	plain := func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, fails }
	typed := func(context.Context, mcp.CallToolRequest, AddIn) (*mcp.CallToolResult, error) { return nil, fails }
	structured := func(context.Context, mcp.CallToolRequest, AddIn) (Added, error) { return Added{}, fails }
	for name, tt := range map[string]struct {
		handler  server.ToolHandlerFunc
		protocol bool
	}{
		"plain":      {plain, true},
		"typed":      {mcp.NewTypedToolHandler(typed), true},
		"structured": {mcp.NewStructuredToolHandler(structured), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := server.NewMCPServer("errors", "1.0.0")
			s.AddTool(mcp.NewTool("fail"), tt.handler)
			answer := s.HandleMessage(t.Context(), json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fail","arguments":{}}}`))
			if _, failed := answer.(mcp.JSONRPCError); failed != tt.protocol {
				t.Errorf("%T: %+v", answer, answer)
			}
		})
	}
}
