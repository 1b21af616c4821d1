package mcptest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// Result is the result of a call.
type Result struct {
	Content  []protocol.Content
	Value    json.RawMessage // the structured result; nil if there is none
	IsError  bool
	Meta     map[string]any
	Progress []client.Progress // what the server told in the meantime
	Raw      json.RawMessage   // the result as it came
	t        testing.TB
}

// Text returns the text items, joined.
func (r *Result) Text() string {
	var text string
	for _, item := range r.Content {
		if item, ok := item.(protocol.TextContent); ok {
			text += item.Text
		}
	}
	return text
}

// Structured decodes the structured result into out, a pointer, and ends the
// test if that fails. Where the revision has no structured results, it takes
// the text in place of it.
func (r *Result) Structured(out any) {
	r.t.Helper()
	value := r.Value
	if value == nil && !r.IsError {
		value = json.RawMessage(r.Text())
	}
	if err := jsonx.Unmarshal(value, out); err != nil {
		r.t.Fatalf("mcptest: the result does not decode into %T: %v\n%s", out, err, r.Raw)
	}
}

// parseResult decodes the result of tools/call. Progress is left to the caller.
// t is for Structured, which ends the test on failure.
func parseResult(t testing.TB, raw json.RawMessage) (*Result, error) {
	var wire struct {
		Content           []json.RawMessage `json:"content"`
		StructuredContent json.RawMessage   `json:"structuredContent"`
		IsError           bool              `json:"isError"`
		Meta              map[string]any    `json:"_meta"`
	}
	if err := jsonx.Unmarshal(raw, &wire); err != nil {
		return nil, err
	}
	r := &Result{Value: wire.StructuredContent, IsError: wire.IsError, Meta: wire.Meta, Raw: raw, t: t}
	for i, text := range wire.Content {
		item, err := protocol.ParseContent(text)
		if err != nil {
			return nil, fmt.Errorf("content item %d: %w", i, err)
		}
		r.Content = append(r.Content, item)
	}
	return r, nil
}
