package mcptest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/protocol"
)

// Result is the result of a call.
type Result struct {
	Content  []protocol.Content
	Value    json.RawMessage // the structured result; nil if there is none
	IsError  bool
	Meta     protocol.MetaMap
	Progress []Progress      // what the server told meanwhile
	Raw      json.RawMessage // the result as it came
	t        testing.TB
}

// Text returns the text items, joined.
func (r *Result) Text() string { return textOf(r.Content) }

func textOf(items []protocol.Content) string {
	var text string
	for _, item := range items {
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
	if err := json.Unmarshal(value, out); err != nil {
		r.t.Fatalf("mcptest: the result does not decode into %T: %v\n%s", out, err, r.Raw)
	}
}

// Call calls a tool; nil arguments are left out. An error in place of a result
// ends the test; one that the tool returned is in Result.IsError.
func (c *Client) Call(name string, arguments any) *Result {
	c.t.Helper()
	r, err := c.TryCall(name, arguments)
	if err != nil {
		c.t.Fatalf("mcptest: calling %s: %v", name, err)
	}
	return r
}

// TryCall is Call for tests that expect an error; see Do. It may be called
// from any goroutine.
func (c *Client) TryCall(name string, arguments any) (*Result, error) {
	c.mu.Lock()
	c.tokens++
	token := fmt.Sprintf("call %d", c.tokens) // no number, as those are the client's own
	c.mu.Unlock()
	params := map[string]any{"name": name, "_meta": map[string]any{"progressToken": token}}
	if arguments != nil {
		params["arguments"] = arguments
	}
	raw, err := c.Do(protocol.MethodToolsCall, params)
	if err != nil {
		return nil, err
	}
	r, err := ParseResult(c.t, raw)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Progress = c.progress[token]
	delete(c.progress, token)
	return r, nil
}

// ParseResult reads the result of a call that was made by other means.
func ParseResult(t testing.TB, raw json.RawMessage) (*Result, error) {
	var wire struct {
		Content           json.RawMessage  `json:"content"`
		StructuredContent json.RawMessage  `json:"structuredContent"`
		IsError           bool             `json:"isError"`
		Meta              protocol.MetaMap `json:"_meta"`
	}
	err := json.Unmarshal(raw, &wire)
	r := &Result{Value: wire.StructuredContent, IsError: wire.IsError, Meta: wire.Meta, Raw: raw, t: t}
	if err == nil && wire.Content != nil {
		r.Content, err = protocol.ParseContents(wire.Content)
	}
	return r, err
}

// Prompt is what a prompt has become.
type Prompt struct {
	Description string
	Messages    []PromptMessage
}

// PromptMessage is one message of a prompt.
type PromptMessage struct {
	Role    protocol.Role
	Content protocol.Content
}

// Text returns the text of the message, "" if it is another content.
func (m PromptMessage) Text() string { return textOf([]protocol.Content{m.Content}) }

// UnmarshalJSON implements json.Unmarshaler.
func (m *PromptMessage) UnmarshalJSON(raw []byte) (err error) {
	var wire struct {
		Role    protocol.Role
		Content json.RawMessage
	}
	if err = json.Unmarshal(raw, &wire); err != nil {
		return err
	}
	m.Role = wire.Role
	m.Content, err = protocol.ParseContent(wire.Content)
	return err
}

// GetPrompt gets a prompt.
func (c *Client) GetPrompt(name string, arguments map[string]string) *Prompt {
	c.t.Helper()
	params := map[string]any{"name": name}
	if arguments != nil {
		params["arguments"] = arguments
	}
	var p Prompt
	c.into(&p, protocol.MethodPromptsGet, params)
	return &p
}

// Contents is one item of a resource. Blob holds bytes, not base64.
type Contents struct {
	URI      string           `json:"uri"`
	MIMEType string           `json:"mimeType"`
	Text     string           `json:"text"`
	Blob     []byte           `json:"blob"`
	Meta     protocol.MetaMap `json:"_meta"`
}

// Read reads a resource.
func (c *Client) Read(uri string) []Contents {
	c.t.Helper()
	var result struct{ Contents []Contents }
	c.into(&result, protocol.MethodResourcesRead, map[string]any{"uri": uri})
	return result.Contents
}

// into sends a request and decodes its result.
func (c *Client) into(out any, method string, params any) {
	c.t.Helper()
	raw := c.Request(method, params)
	if err := json.Unmarshal(raw, out); err != nil {
		c.t.Fatalf("mcptest: the result of %s: %v\n%s", method, err, raw)
	}
}

// Tools lists the tools, all pages of them.
func (c *Client) Tools() []protocol.Tool {
	c.t.Helper()
	return list[protocol.Tool](c, protocol.MethodToolsList, "tools")
}

// Resources lists the resources, all pages of them.
func (c *Client) Resources() []protocol.Resource {
	c.t.Helper()
	return list[protocol.Resource](c, protocol.MethodResourcesList, "resources")
}

// Templates lists the resource templates, all pages of them.
func (c *Client) Templates() []protocol.ResourceTemplate {
	c.t.Helper()
	return list[protocol.ResourceTemplate](c, protocol.MethodResourceTemplates, "resourceTemplates")
}

// Prompts lists the prompts, all pages of them.
func (c *Client) Prompts() []protocol.Prompt {
	c.t.Helper()
	return list[protocol.Prompt](c, protocol.MethodPromptsList, "prompts")
}

// list follows the pages of a list.
func list[T any](c *Client, method, member string) (all []T) {
	c.t.Helper()
	params := map[string]any{}
	for {
		var page map[string]json.RawMessage
		c.into(&page, method, params)
		var items []T
		if err := json.Unmarshal(page[member], &items); err != nil {
			c.t.Fatalf("mcptest: member %s of %s: %v", member, method, err)
		}
		all = append(all, items...)
		if page["nextCursor"] == nil {
			return all
		}
		params["cursor"] = page["nextCursor"]
	}
}

// Complete asks for values of a prompt's argument, or of a resource template's
// variable: of is the name of the prompt, or the template, which has braces.
// before are the arguments that are filled in already.
func (c *Client) Complete(of, argument, value string, before map[string]string) []string {
	c.t.Helper()
	ref := map[string]string{"type": protocol.RefPrompt, "name": of}
	if strings.Contains(of, "{") {
		ref = map[string]string{"type": protocol.RefResource, "uri": of}
	}
	params := map[string]any{"ref": ref, "argument": map[string]string{"name": argument, "value": value}}
	if before != nil {
		params["context"] = map[string]any{"arguments": before}
	}
	var result struct {
		Completion struct{ Values []string }
	}
	c.into(&result, protocol.MethodComplete, params)
	return result.Completion.Values
}
