package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
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

// Structured sets the structured content to v, encoded like the result of a
// function: like encoding/json, but nil slices and maps are empty ones, and a
// time.Duration has the form that it has in arguments. If nothing else is added,
// its JSON is also sent as text, for clients that read only text. The schema of
// structured content follows from a type; see [ResultOf].
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
// the type and the text that repeats it, as for a function that returns T;
// items of content come after that text. A result that is marked with Fail goes
// without Value. The zero value has the zero T. Some hosts pass only the
// structured content to models; see [Text].
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

// build returns the result for the wire, if none of the methods has failed.
func (r *Result) build() *protocol.CallToolResult {
	out := &protocol.CallToolResult{Content: r.content, IsError: r.isError, Meta: r.meta, RepeatStructured: len(r.content) == 0}
	if text := r.structured; text != nil {
		out.AppendStructured = func(dst []byte) ([]byte, error) { return append(dst, text...), nil }
	}
	return out
}

// Paged is a page of a list, as [Page] makes it: the result of a tool. The zero value is
// the end of a list.
type Paged[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next_cursor,omitempty" jsonschema_description:"call again with this as cursor for what follows; absent at the end"`
}

// defaultPage is how many bytes a page has, if nothing else is said. At 2.5 bytes a token
// that stays below 10,000 tokens, at which hosts warn.
const defaultPage = 24_000

// Page collects items until their JSON takes limit bytes; 0 or less means 24,000. key returns the
// cursor after which the next page begins, such as a name by which the list is sorted. A larger item
// is a page by itself.
//
//	type PodsIn struct {
//		Namespace string `json:"namespace"`
//		Cursor    string `json:"cursor,omitempty" jsonschema_description:"next_cursor of the page before"`
//	}
//	func pods(f *mcp.Frame, in PodsIn) (mcp.Paged[Pod], error) {
//		after := cluster.Pods(f, in.Namespace, in.Cursor) // sorted by name
//		return mcp.Page(after, func(p Pod) string { return p.Name }, 0)
//	}
//
// Page reads one item more than there is room for, and stops items then. The model returns the cursor
// unchanged. It is input like any other, so the function checks rights with each call. An error of
// items is Page's: a page is never shorter for it. An item without key, or with that of the one
// before, is an error, as a page that ends there would lose one.
func Page[T any](items iter.Seq2[T, error], key func(T) string, limit int) (Paged[T], error) {
	if items == nil || key == nil {
		return Paged[T]{}, errors.New("mcp: Page: items or key is nil")
	}
	if limit <= 0 {
		limit = defaultPage
	}
	page, size, last, n := Paged[T]{Items: []T{}}, len("[]"), "", 0
	var text []byte
	for item, err := range items {
		if err != nil {
			return Paged[T]{}, err
		}
		n++
		at := key(item)
		switch {
		case at == "":
			return Paged[T]{}, fmt.Errorf("mcp: Page: item %d has no key, after which the next page could begin", n)
		case at == last:
			return Paged[T]{}, fmt.Errorf("mcp: Page: items %d and %d have the key %q, and a page that ends between them would lose one", n-1, n, at)
		}
		if text, err = jsonx.Append(text[:0], item); err != nil {
			return Paged[T]{}, fmt.Errorf("mcp: Page: item %d: %w", n, err)
		}
		size += len(text) + len(",")
		if len(page.Items) > 0 && size-len(",") > limit {
			page.Next = last
			break
		}
		page.Items, last = append(page.Items, item), at
	}
	return page, nil
}
