package main

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestAddNote(t *testing.T) {
	s, err := newServer()
	if err != nil {
		t.Fatal(err)
	}
	near, far := mcp.NewInMemoryTransports()
	if _, err := s.Connect(t.Context(), far, nil); err != nil {
		t.Fatal(err)
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1.0.0"}, nil)
	session, err := c.Connect(t.Context(), near, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "add_note", Arguments: AddIn{"buy milk"}})
	if err != nil || result.IsError {
		t.Fatal(result, err)
	}
	added, err := decode(result)
	if err != nil || added.ID != 1 {
		t.Errorf("got %v, %v", added, err)
	}
}

func decode(result *mcp.CallToolResult) (Added, error) {
	var added Added
	text, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return added, err
	}
	return added, json.Unmarshal(text, &added)
}

func addNote(ctx context.Context, command, text string) (Added, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "adder", Version: "1.0.0"}, nil)
	session, err := c.Connect(ctx, &mcp.CommandTransport{Command: exec.Command(command)}, nil)
	if err != nil {
		return Added{}, err
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "add_note", Arguments: AddIn{text}})
	if err != nil {
		return Added{}, err
	}
	if result.IsError {
		return Added{}, errors.New("the tool failed")
	}
	return decode(result)
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
