package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// Result builds a tool's result by hand, for what a Go type cannot say:
// several items, media, links, structured content with a text of its own.
// Methods return the Result, so that they chain; a fault in one of them fails
// the call. The zero value is an empty result.
type Result struct {
	content    []protocol.Content
	structured json.RawMessage
	meta       map[string]any
	isError    bool
	err        error
}

// NewResult returns an empty Result.
func NewResult() *Result { return &Result{} }

// Add appends items of content, such as a [ResourceLink] with a description.
func (r *Result) Add(items ...Content) *Result {
	r.content = append(r.content, items...)
	return r
}

// Text appends text.
func (r *Result) Text(text string) *Result { return r.Add(protocol.TextContent{Text: text}) }

// Textf appends formatted text.
func (r *Result) Textf(format string, args ...any) *Result {
	return r.Text(fmt.Sprintf(format, args...))
}

// Image appends an image; data are its bytes, not base64. An empty mimeType is
// found by them; see [ImageContent].
func (r *Result) Image(data []byte, mimeType string) *Result {
	return r.Add(protocol.ImageContent{Data: data, MIMEType: mimeType})
}

// Audio appends a sound; data are its bytes, not base64. An empty mimeType is
// found by them; see [AudioContent].
func (r *Result) Audio(data []byte, mimeType string) *Result {
	return r.Add(protocol.AudioContent{Data: data, MIMEType: mimeType})
}

// JSON appends v as text in JSON, encoded as Structured encodes it.
func (r *Result) JSON(v any) *Result {
	text, err := jsonx.Append(nil, v)
	if err != nil {
		return r.broken(fmt.Errorf("Result.JSON: %w", err))
	}
	return r.Text(string(text))
}

// ResourceLink appends a link to a resource that the client may read; neither uri
// nor name may be empty. Add takes a [ResourceLink] that says more.
func (r *Result) ResourceLink(uri, name string) *Result {
	if uri == "" || name == "" {
		return r.broken(fmt.Errorf("Result.ResourceLink(%q, %q): a link needs a URI and a name", uri, name))
	}
	return r.Add(protocol.ResourceLink{URI: uri, Name: name})
}

// EmbeddedResource appends the contents of a resource, whose URI must not be
// empty. The client need not read that resource, and it need not be listed
// anywhere.
func (r *Result) EmbeddedResource(contents ResourceContents) *Result {
	if contents.URI == "" {
		return r.broken(errors.New("Result.EmbeddedResource: the contents need a URI"))
	}
	return r.Add(protocol.EmbeddedResource{Resource: contents})
}

// Structured sets the structured content to v, encoded as what a func returns:
// like encoding/json, but nil slices and maps are empty ones, and a time.Duration
// has the form that it has in arguments. If nothing else is added, its text goes
// out too, for clients that read text alone. The schema of structured content
// follows from a type; see [ResultOf].
func (r *Result) Structured(v any) *Result {
	text, err := jsonx.Append(nil, v)
	if err != nil {
		return r.broken(err)
	}
	r.structured = text
	return r
}

// Fail marks the result as a failure that the model should read. For one that
// has nothing but a text, return an error in place of a Result.
func (r *Result) Fail() *Result {
	r.isError = true
	return r
}

// Meta adds a member to the result's _meta.
func (r *Result) Meta(key string, value any) *Result {
	if r.meta == nil {
		r.meta = map[string]any{}
	}
	r.meta[key] = value
	return r
}

// broken makes the result one that fails its call with err. Methods that chain
// have no error to return.
func (r *Result) broken(err error) *Result {
	r.err = errors.Join(r.err, err)
	return r
}

// ResultOf is a Result whose structured content is a T, with a schema made from
// the type and the text that repeats it, as of a func that returns T itself;
// items of content come after that text. A result that is marked with Fail goes
// without Value. The zero value has the zero T. Some hosts give models the
// structured content alone; see [Text].
//
//	r := &mcp.ResultOf[Stats]{Value: Stats{Mean: mean}}
//	r.Image(picture, "image/png")
//	return r, nil
type ResultOf[T any] struct {
	Result
	Value T
}

// typedResult is a *ResultOf of any type, for Tool, which has to tell it from
// other types and to make a schema of its T without knowing that.
type typedResult interface {
	valueType() reflect.Type // also of a nil pointer
	parts() (r *Result, value any)
}

// valueType implements typedResult.
func (r *ResultOf[T]) valueType() reflect.Type { return reflect.TypeFor[T]() }

// parts returns the items, and a pointer to the value; nil if r is nil.
func (r *ResultOf[T]) parts() (*Result, any) {
	if r == nil {
		return nil, nil
	}
	return &r.Result, &r.Value
}

// build returns the result for the wire.
func (r *Result) build() (protocol.Result, error) {
	if r.err != nil {
		return nil, r.err
	}
	out := &protocol.CallToolResult{Content: r.content, IsError: r.isError, Meta: r.meta, RepeatStructured: len(r.content) == 0}
	if text := r.structured; text != nil {
		out.AppendStructured = func(dst []byte) ([]byte, error) { return append(dst, text...), nil }
	}
	return out, nil
}
