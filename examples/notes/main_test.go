package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
)

func TestAddNote(t *testing.T) {
	mcptest.Each(t, newServer, func(t *testing.T, c *mcptest.Client) {
		if added := mcptest.Call[Added](c, "add_note", AddIn{Text: "buy milk"}); added.ID != 1 {
			t.Errorf("got %d", added.ID)
		}
	})
}

func addNote(ctx context.Context, command, text string) (Added, error) {
	c, err := client.Connect(ctx, client.Command(command), nil)
	if err != nil {
		return Added{}, err
	}
	defer c.Close()
	return client.Call[Added](ctx, c, "add_note", AddIn{Text: text})
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
