package main

import (
	"slices"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
)

func TestGateway(t *testing.T) {
	files := mcp.NewServer(mcp.Info{Name: "files", Version: "1"}, nil)
	for _, name := range []string{"read_text", "write_text"} {
		files.MustAdd(mcp.Tool(name, func(*mcp.Frame, struct{}) (string, error) { return "text", nil }))
	}
	s, g, err := newGateway(client.Local(files.ServeConn))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := g.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := client.Connect(t.Context(), client.Local(s.ServeConn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	var names []string
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if want := []string{"files_read_text", "notes_find"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	r, err := c.Call(t.Context(), "notes_find", map[string]string{"query": "lunch"})
	if err != nil || r.Text() != "work: nothing about lunch" {
		t.Errorf("got %v %v", r, err)
	}
}
