package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Wire is what a result has to know of the answer it goes into.
type Wire struct {
	Revision Revision
	// Meta holds members for the _meta of every result, encoded and without
	// braces; nil for none.
	Meta []byte
}

// Result is the result of a request. Append adds it to dst as one JSON object
// that suits the wire; on an error what it returns is nil.
type Result interface {
	Append(dst []byte, to Wire) ([]byte, error)
}

// RawResult is a result that is encoded already, whole.
type RawResult []byte

// Append implements Result.
func (r RawResult) Append(dst []byte, _ Wire) ([]byte, error) { return append(dst, r...), nil }

// EmptyResult is the result of methods that return nothing.
type EmptyResult struct{}

// Append implements Result.
func (EmptyResult) Append(dst []byte, to Wire) ([]byte, error) {
	return closeResult(openResult(dst, to), nil, to)
}

// JSONResult is a result whose members come from Value, encoded as what a tool
// returns; it must encode to an object without resultType and _meta: those are added.
type JSONResult struct {
	Value any
	Meta  MetaMap
}

// Append implements Result.
func (r JSONResult) Append(dst []byte, to Wire) ([]byte, error) {
	text, err := jsonx.Append(nil, r.Value)
	if err != nil {
		return nil, err
	}
	if len(text) < 2 || text[0] != '{' {
		return nil, fmt.Errorf("a result must be a JSON object, %T encodes to %.20s", r.Value, text)
	}
	dst = openResult(dst, to)
	if len(text) > 2 {
		dst = append(separate(dst), text[1:len(text)-1]...)
	}
	return closeResult(dst, r.Meta, to)
}

// openResult starts the object of a result.
func openResult(dst []byte, to Wire) []byte {
	if to.Revision.Has(ResultType) {
		return append(dst, `{"resultType":"complete"`...)
	}
	return append(dst, '{')
}

// separate appends the comma between members, unless none came before.
func separate(dst []byte) []byte {
	if dst[len(dst)-1] == '{' {
		return dst
	}
	return append(dst, ',')
}

// closeResult adds _meta, if there is any, and ends the object of a result.
func closeResult(dst []byte, meta MetaMap, to Wire) ([]byte, error) {
	if len(meta) == 0 && len(to.Meta) == 0 {
		return append(dst, '}'), nil
	}
	dst = append(separate(dst), `"_meta":{`...)
	if len(meta) > 0 {
		text, err := json.Marshal(meta)
		if err != nil {
			return nil, err
		}
		dst = append(dst, text[1:len(text)-1]...)
	}
	if len(to.Meta) > 0 {
		dst = append(separate(dst), to.Meta...)
	}
	return append(dst, "}}"...), nil
}

// CallToolResult is the result of tools/call.
//
// Structured content goes out with its text twin, in one pass: the twin is
// made from the bytes just written.
type CallToolResult struct {
	Content []Content
	IsError bool
	Meta    MetaMap
	// Err is the error of a handler that IsError tells of, for middleware and
	// the log; nil if the handler made the result itself. It is never sent.
	Err error

	// AppendStructured appends structuredContent's JSON text; nil means that
	// there is none.
	AppendStructured func(dst []byte) ([]byte, error)
	// Twin adds the structured content as a text item before Content, for
	// clients that do not read it. Where a revision cannot carry the structured
	// content, and there is no other, the text is there without it.
	Twin bool
}

// Append implements Result.
func (r *CallToolResult) Append(dst []byte, to Wire) ([]byte, error) {
	dst = openResult(dst, to)
	var structured []byte
	if r.AppendStructured != nil {
		var err error
		if dst, structured, err = r.appendStructured(dst, to.Revision); err != nil {
			return nil, err
		}
	}
	dst = append(separate(dst), `"content":[`...)
	if structured != nil && (r.Twin || len(r.Content) == 0 && !carries(to.Revision, structured)) {
		dst = append(dst, `{"type":"text","text":`...)
		dst = jsonx.AppendStringBytes(dst, structured)
		dst = append(dst, '}')
		if len(r.Content) > 0 {
			dst = append(dst, ',')
		}
	}
	dst, err := appendItems(dst, r.Content, to.Revision)
	if err != nil {
		return nil, err
	}
	dst = append(dst, ']')
	if r.IsError {
		dst = append(dst, `,"isError":true`...)
	}
	return closeResult(dst, r.Meta, to)
}

// appendStructured appends the member structuredContent, if rev can carry it,
// and returns its text, which stays valid while dst grows.
func (r *CallToolResult) appendStructured(dst []byte, rev Revision) (grown, text []byte, err error) {
	start := len(dst)
	dst = append(separate(dst), `"structuredContent":`...)
	at := len(dst)
	if dst, err = r.AppendStructured(dst); err != nil {
		return nil, nil, err
	}
	text = dst[at:len(dst):len(dst)]
	if carries(rev, text) {
		return dst, text, nil
	}
	return dst[:start], bytes.Clone(text), nil
}

// carries tells whether rev can carry text as structured content.
func carries(rev Revision, text []byte) bool {
	return rev.Has(StructuredContent) && (rev.Has(AnyStructured) || text[0] == '{')
}

// AppendTyped appends the JSON object text as a result of that type, with meta,
// which may be nil, in its _meta.
func AppendTyped(dst []byte, resultType string, text []byte, meta MetaMap, to Wire) ([]byte, error) {
	dst = append(append(append(dst, `{"resultType":"`...), resultType...), '"')
	if len(text) > 2 {
		dst = append(separate(dst), text[1:len(text)-1]...)
	}
	return closeResult(dst, meta, to)
}

// Freeze encodes r for rev, for a result that goes into many answers. The
// original is not needed any more.
func (r *CallToolResult) Freeze(rev Revision) (*FrozenResult, error) {
	text, err := r.Append(nil, Wire{Revision: rev})
	if err != nil {
		return nil, err
	}
	return &FrozenResult{text: bytes.Clone(text), meta: len(r.Meta) > 0}, nil
}

// FrozenResult is a result that is encoded but for the _meta of its answer. It
// does not change and is safe for concurrent use.
type FrozenResult struct {
	text []byte
	meta bool // whether text ends with a _meta
}

// Len returns its size in bytes.
func (r *FrozenResult) Len() int { return len(r.text) }

// Append implements Result. to must have the revision that r was encoded for.
func (r *FrozenResult) Append(dst []byte, to Wire) ([]byte, error) {
	if len(to.Meta) == 0 {
		return append(dst, r.text...), nil
	}
	if r.meta {
		dst = append(append(dst, r.text[:len(r.text)-2]...), ',')
	} else {
		dst = append(append(dst, r.text[:len(r.text)-1]...), `,"_meta":{`...)
	}
	return append(append(dst, to.Meta...), "}}"...), nil
}
