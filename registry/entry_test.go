package registry

import (
	"testing"

	"github.com/talaria-go/mcp/protocol"
)

func TestToolDefine(t *testing.T) {
	tool := &protocol.Tool{
		Name: "search", Title: "Search", Description: "a < b & c",
		InputSchema:  []byte("{\n  \"type\": \"object\",\n  \"pattern\": \"^<a>$\"\n}"),
		OutputSchema: []byte(`{"type":"object"}`),
	}
	entry := &Entry{Definition: tool}
	if entry.Key() != "search" || entry.Kind() != KindTool {
		t.Errorf("Key() = %q, Kind() = %q", entry.Key(), entry.Kind())
	}
	tests := []struct {
		rev  protocol.Revision
		want string
	}{
		{protocol.V20241105, `{"name":"search","description":"a < b & c","inputSchema":{"type":"object","pattern":"^<a>$"}}`},
		{protocol.V20251125, `{"name":"search","title":"Search","description":"a < b & c","inputSchema":{"type":"object","pattern":"^<a>$"},"outputSchema":{"type":"object"}}`},
	}
	for _, tt := range tests {
		got, err := entry.define(tt.rev, true)
		if err != nil || string(got) != tt.want {
			t.Errorf("%v: %s, %v\nwant %s", tt.rev, got, err, tt.want)
		}
	}
	tool.InputSchema = []byte(`{`)
	if err := New(Config{}).Add(entry); err == nil {
		t.Error("a tool whose schema is no JSON was added")
	}
}
