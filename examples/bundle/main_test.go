package main

import (
	"testing"

	"github.com/talaria-go/mcp/mcptest"
)

func TestDefine(t *testing.T) {
	s, err := newServer("terms.json", "de")
	if err != nil {
		t.Fatal(err)
	}
	c := mcptest.New(t, s)
	if got := c.Call("define", map[string]any{"term": "bundle"}).Text(); got != "Ein Zip-Archiv mit einem Server, das ein Host mit einem Klick installiert." {
		t.Errorf("got %q", got)
	}
	if _, err := newServer("terms.json", "fr"); err == nil {
		t.Error("a language that the file does not have")
	}
}
