package registry

import (
	"bytes"
	"encoding/json"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
)

// Tool is a tool that can be listed and called.
type Tool struct {
	Definition protocol.Tool
	// Call runs the tool on the arguments of the frame's request.
	Call func(f *frame.Frame) (protocol.Result, error)
	// Headers are the arguments that clients mirror into HTTP headers.
	Headers []protocol.HeaderParam
	// Visible tells whether the tool is there for the client of f; nil means
	// for everybody.
	Visible func(f *frame.Frame) bool
	// Scopes are those that a client must have been granted to use the tool.
	Scopes []string
	// Task tells whether calls may become tasks.
	Task bool
}

// Restricted implements Restricted.
func (t *Tool) Restricted() bool { return t.Visible != nil }

// VisibleTo implements Restricted.
func (t *Tool) VisibleTo(f *frame.Frame) bool { return t.Visible == nil || t.Visible(f) }

// Needs implements Restricted.
func (t *Tool) Needs() []string { return t.Scopes }

// Key implements Entry.
func (t *Tool) Key() string { return t.Definition.Name }

// Define implements Entry.
func (t *Tool) Define(rev protocol.Revision) (json.RawMessage, error) {
	return encode(t.Definition.For(rev))
}

// encode returns the JSON of a definition.
func encode(definition any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // schemas have patterns with < and >, and models read them
	if err := enc.Encode(definition); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}
