package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/protocol"
)

// Result builds a tool's result by hand, for what a Go type cannot say:
// several items, media, links, structured content with a text of its own.
// Methods return the Result, so that they chain; a fault in one of them fails
// the call. The zero value is an empty result.
type Result struct {
	content    []protocol.Content
	structured json.RawMessage
	meta       protocol.MetaMap
	isError    bool
	err        error
}

// NewResult returns an empty Result.
func NewResult() *Result { return &Result{} }

// ErrorResult returns a Result that tells the model that the call failed, and
// why.
func ErrorResult(text string) *Result { return NewResult().Text(text).Error() }

// Add appends items of content.
func (r *Result) Add(items ...protocol.Content) *Result {
	r.content = append(r.content, items...)
	return r
}

// Text appends text.
func (r *Result) Text(text string) *Result { return r.Add(protocol.TextContent{Text: text}) }

// Textf appends formatted text.
func (r *Result) Textf(format string, args ...any) *Result {
	return r.Text(fmt.Sprintf(format, args...))
}

// JSON appends v as JSON in a text item.
func (r *Result) JSON(v any) *Result {
	text, err := encodeJSON(v)
	if err != nil {
		return r.fail(err)
	}
	return r.Text(string(text))
}

// Image appends an image; data are its bytes, not base64.
func (r *Result) Image(data []byte, mimeType string) *Result {
	return r.Add(protocol.ImageContent{Data: data, MIMEType: mimeType})
}

// Audio appends a sound; data are its bytes, not base64.
func (r *Result) Audio(data []byte, mimeType string) *Result {
	return r.Add(protocol.AudioContent{Data: data, MIMEType: mimeType})
}

// Link appends a link to a resource.
func (r *Result) Link(link protocol.ResourceLink) *Result { return r.Add(link) }

// Embed appends the contents of a resource.
func (r *Result) Embed(contents protocol.ResourceContents) *Result {
	return r.Add(protocol.EmbeddedResource{Resource: contents})
}

// Structured sets the structured content to v, encoded with encoding/json. If
// nothing else is added, its text goes out too, for clients that read text
// alone.
func (r *Result) Structured(v any) *Result {
	text, err := encodeJSON(v)
	if err != nil {
		return r.fail(err)
	}
	r.structured = text
	return r
}

// Error marks the result as a failure that the model should read.
func (r *Result) Error() *Result {
	r.isError = true
	return r
}

// Meta adds a member to the result's _meta.
func (r *Result) Meta(key string, value any) *Result {
	if r.meta == nil {
		r.meta = protocol.MetaMap{}
	}
	r.meta[key] = value
	return r
}

func (r *Result) fail(err error) *Result {
	r.err = errors.Join(r.err, err)
	return r
}

func encodeJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// build returns the result for the wire.
func (r *Result) build() (protocol.Result, error) {
	if r.err != nil {
		return nil, r.err
	}
	out := &protocol.CallToolResult{Content: r.content, IsError: r.isError, Meta: r.meta, Twin: len(r.content) == 0}
	if text := r.structured; text != nil {
		out.AppendStructured = func(dst []byte) ([]byte, error) { return append(dst, text...), nil }
	}
	return out, nil
}
