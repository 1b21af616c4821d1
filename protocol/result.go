package protocol

import (
	"bytes"
	"encoding/json"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Result is the result of a request. Append adds it to dst as one JSON object
// that suits rev; on an error what it returns is nil.
type Result interface {
	Append(dst []byte, rev Revision) ([]byte, error)
}

// RawResult is a result that is JSON already: an object.
type RawResult []byte

// Append implements Result.
func (r RawResult) Append(dst []byte, _ Revision) ([]byte, error) { return append(dst, r...), nil }

// EmptyResult is the result of methods that return nothing.
type EmptyResult struct{}

// Append implements Result.
func (EmptyResult) Append(dst []byte, rev Revision) ([]byte, error) {
	if rev.Has(ResultType) {
		return append(dst, `{"resultType":"complete"}`...), nil
	}
	return append(dst, "{}"...), nil
}

// JSONResult is a result that encoding/json encodes to an object; resultType
// is added where the revision wants it.
type JSONResult struct{ Value any }

// Append implements Result.
func (r JSONResult) Append(dst []byte, rev Revision) ([]byte, error) {
	text, err := json.Marshal(r.Value)
	if err != nil {
		return nil, err
	}
	return AppendResultType(dst, text, rev), nil
}

// AppendResultType appends the object text with resultType "complete" as its
// first member, if rev has that and text does not have it.
func AppendResultType(dst, text []byte, rev Revision) []byte {
	if !rev.Has(ResultType) || bytes.Contains(text, []byte(`"resultType":`)) {
		return append(dst, text...)
	}
	dst = append(dst, `{"resultType":"complete"`...)
	if rest := bytes.TrimLeft(text[1:], " \t\r\n"); rest[0] != '}' {
		dst = append(dst, ',')
	}
	return append(dst, text[1:]...)
}

// CallToolResult is the result of tools/call.
//
// Structured content goes out with its text twin, in one pass: the twin is
// made from the bytes just written.
type CallToolResult struct {
	Content []Content
	IsError bool
	Meta    MetaMap

	// AppendStructured appends structuredContent's JSON text; nil means that
	// there is none.
	AppendStructured func(dst []byte) ([]byte, error)
	// Twin adds the structured content as a text item before Content, for
	// clients that do not read it.
	Twin bool
}

// Append implements Result.
func (r *CallToolResult) Append(dst []byte, rev Revision) ([]byte, error) {
	dst = append(dst, '{')
	if rev.Has(ResultType) {
		dst = append(dst, `"resultType":"complete",`...)
	}
	var structured []byte
	if r.AppendStructured != nil {
		var err error
		if dst, structured, err = r.appendStructured(dst, rev); err != nil {
			return nil, err
		}
	}
	dst = append(dst, `"content":[`...)
	if structured != nil && r.Twin {
		dst = append(dst, `{"type":"text","text":`...)
		dst = jsonx.AppendStringBytes(dst, structured)
		dst = append(dst, '}')
		if len(r.Content) > 0 {
			dst = append(dst, ',')
		}
	}
	dst, err := appendItems(dst, r.Content, rev)
	if err != nil {
		return nil, err
	}
	dst = append(dst, ']')
	if r.IsError {
		dst = append(dst, `,"isError":true`...)
	}
	return closeContent(dst, nil, r.Meta, rev)
}

// appendStructured appends the member structuredContent, if rev can carry it,
// and returns its text, which stays valid while dst grows.
func (r *CallToolResult) appendStructured(dst []byte, rev Revision) (grown, text []byte, err error) {
	start := len(dst)
	dst = append(dst, `"structuredContent":`...)
	at := len(dst)
	if dst, err = r.AppendStructured(dst); err != nil {
		return nil, nil, err
	}
	text = dst[at:len(dst):len(dst)]
	if rev.Has(StructuredContent) && (rev.Has(AnyStructured) || text[0] == '{') {
		return append(dst, ','), text, nil
	}
	text = bytes.Clone(text)
	return dst[:start], text, nil
}
