package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// A host shows the page for a roll, and the page rolls again; a client without views
// gets the same result, and has one tool.
func TestDice(t *testing.T) {
	s, err := newServer()
	if err != nil {
		t.Fatal(err)
	}
	plain := mcptest.New(t, s)
	host := mcptest.New(t, s, mcptest.Capabilities(protocol.ClientCapabilities{Extensions: map[string]json.RawMessage{
		"io.modelcontextprotocol/ui": json.RawMessage(`{"mimeTypes":["text/html;profile=mcp-app"]}`),
	}}))
	for c, tools := range map[*mcptest.Client]int{plain: 1, host: 2} {
		if got := c.Tools(); len(got) != tools || fmt.Sprint(got[0].Meta["ui"]) != "map[resourceUri:ui://dice/table]" {
			t.Errorf("tools %v", got)
		}
		var out Rolled
		r := c.Call("roll", Roll{Count: 3})
		if err := json.Unmarshal(r.Value, &out); err != nil || len(out.Dice) != 3 || r.Text() != fmt.Sprintf("Rolled %v: %d in all.", out.Dice, out.Sum) {
			t.Errorf("%s %v", r.Raw, err)
		}
	}
	if r := host.Call("roll_again", nil); r.IsError {
		t.Errorf("%s", r.Raw)
	}
	if r, err := plain.TryCall("roll_again", nil); err == nil {
		t.Errorf("called: %s", r.Raw)
	}
	c, err := client.Connect(t.Context(), client.Local(s.ServeConn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	read, err := c.Read(t.Context(), view)
	if err != nil || len(read.Contents) != 1 || !strings.Contains(read.Contents[0].Text, "<script>(prefix =>") || !strings.Contains(page, `callTool("roll_again"`) {
		t.Errorf("%v %v", read, err)
	}
}
