package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Wire describes the answer that a result becomes part of: what it must know to
// write itself.
type Wire struct {
	Revision Revision
	// Meta holds members for the _meta of every result, encoded and without
	// braces; nil for none.
	Meta []byte
}

// Result is the result of a request. Append appends it to dst as one JSON
// object in the form that to asks for, and returns nil and an error if it
// cannot be encoded. Append may be called several times and concurrently; it
// must not change the result.
type Result interface {
	Append(dst []byte, to Wire) ([]byte, error)
}

// RawResult is the whole JSON object of a result, already encoded for the
// revision of its request. Append adds nothing to it, neither resultType nor
// _meta.
type RawResult []byte

// Append implements Result.
func (r RawResult) Append(dst []byte, _ Wire) ([]byte, error) { return append(dst, r...), nil }

// EmptyResult is the result of methods that return nothing, such as ping and
// logging/setLevel.
type EmptyResult struct{}

// Append implements Result.
func (EmptyResult) Append(dst []byte, to Wire) ([]byte, error) {
	return closeResult(openResult(dst, to), nil, to)
}

// JSONResult is a result whose members come from Value. Value must encode to an
// object that has neither resultType nor _meta, which Append adds; otherwise
// Append fails, or writes a duplicate member. It is encoded by internal/jsonx,
// like the results of tools.
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

// openResult appends the opening brace of a result, with resultType if the
// revision has it.
func openResult(dst []byte, to Wire) []byte {
	if to.Revision.Has(ResultType) {
		return append(dst, `{"resultType":"complete"`...)
	}
	return append(dst, '{')
}

// separate appends the comma before a member, unless the object has none yet.
// dst must not be empty.
func separate(dst []byte) []byte {
	if dst[len(dst)-1] == '{' {
		return dst
	}
	return append(dst, ',')
}

// closeResult appends _meta, if there is anything in it, and ends the object of
// a result. meta comes from the result and to.Meta from the server; a key in
// both would occur twice, so that to.Meta has reserved keys only.
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

// CallToolResult is the result of tools/call (server/tools). Every client shows
// Content; structuredContent is for programs. The specification asks servers to
// repeat structured content as text for clients that do not read it: here, this
// text is made in the same pass from the bytes just written, so that the value
// is encoded once.
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

// Append implements [Result]. structuredContent is written before content,
// because the text item in content is made of it.
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

// appendStructured appends structuredContent, unless rev cannot carry it, and
// returns its JSON text. The text points into the old array of dst if that
// grows, or is a copy if the member was taken back; it stays valid either way,
// and its capacity is cut so that appending to dst cannot overwrite it.
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

// carries reports whether rev allows text as structuredContent: some revisions
// have none, some allow objects only, newer ones any JSON value.
func carries(rev Revision, text []byte) bool {
	return rev.Has(StructuredContent) && (rev.Has(AnyStructured) || text[0] == '{')
}

// AppendTyped appends text, a JSON object without resultType, as a result of
// that type, with meta, which may be nil, in its _meta. It is for results of
// extensions, whose types this package does not know.
func AppendTyped(dst []byte, resultType string, text []byte, meta MetaMap, to Wire) ([]byte, error) {
	dst = append(append(append(dst, `{"resultType":"`...), resultType...), '"')
	if len(text) > 2 {
		dst = append(separate(dst), text[1:len(text)-1]...)
	}
	return closeResult(dst, meta, to)
}

// Freeze encodes r once for rev, for a result that goes into many answers, such
// as that of a call which several clients share. Later changes of r do not
// reach the frozen result.
func (r *CallToolResult) Freeze(rev Revision) (*FrozenResult, error) {
	text, err := r.Append(nil, Wire{Revision: rev})
	if err != nil {
		return nil, err
	}
	return &FrozenResult{text: bytes.Clone(text), meta: len(r.Meta) > 0}, nil
}

// FrozenResult is an encoded result to which only the _meta of each answer is
// added. It does not change and is safe for concurrent use.
type FrozenResult struct {
	text []byte
	meta bool // whether text ends with a _meta
}

// Len returns the size of the encoded result in bytes, for those that keep
// results within a budget.
func (r *FrozenResult) Len() int { return len(r.text) }

// Append implements [Result]. to.Revision must be the revision that r was
// encoded for; to.Meta is put at the end of _meta, which is added if there is
// none.
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
