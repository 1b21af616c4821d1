package docs_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/toolsearch"
)

func searchable(s *mcp.Server) error {
	return toolsearch.Add(s, &toolsearch.Options{
		Pinned: []string{"issues_create"},
		Words:  map[string]string{"ticket": "issue", "ci": "workflow run, check"},
		When:   func(f *mcp.Frame) bool { return f.ClientInfo().Name != "claude-code" },
	})
}

func TestSearchable(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "issues", Version: "1"}, nil)
	did := func(_ context.Context, _ struct{}) (string, error) { return "done", nil }
	for _, name := range []string{"issues_create", "issues_close", "workflow_cancel_run"} {
		s.MustAdd(mcp.Tool(name, did))
	}
	if err := searchable(s); err != nil {
		t.Fatal(err)
	}
	c := mcptest.New(t, s)
	var names []string
	for _, tool := range c.Tools() {
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, []string{"call_read_tool", "call_tool", "issues_create", "search_tools"}) {
		t.Errorf("the list has %v", names)
	}
	for query, want := range map[string]string{
		"close my ticket":  "\n{\"name\":\"issues_close\"",
		"stop the CI":      "\n{\"name\":\"workflow_cancel_run\"",
		"send the invoice": "No tool has the words: send, invoice. Search again in other words.",
	} {
		if got := c.Call("search_tools", map[string]string{"query": query}).Text(); !strings.Contains(got, want) {
			t.Errorf("%s: %s", query, got)
		}
	}
	if r := c.Call("call_read_tool", map[string]string{"name": "issues_close"}); r.Text() != "issues_close changes things: use call_tool" {
		t.Errorf("got %s", r.Text())
	}
	whole := mcptest.New(t, s, mcptest.Info(protocol.Implementation{Name: "claude-code", Version: "1"}))
	if n := len(whole.Tools()); n != 3 {
		t.Errorf("the whole list has %d tools", n)
	}
}
