package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// To is what a result has to know of the answer it goes into.
type To struct {
	Revision protocol.Revision
	// Meta holds members for the _meta of every result, encoded and without
	// braces; nil for none.
	Meta []byte
}

// Result is a result that package protocol does not know. It embeds a
// protocol.Result, which may be nil, because that is sealed.
type Result interface {
	protocol.Result
	// Append adds the result to dst as one JSON object that suits the answer; on
	// an error what it returns is nil.
	Append(dst []byte, to To) ([]byte, error)
}

// Unfinished is a Result that is not the end of what was asked for. Status is the
// word of frame.Outcome for it.
type Unfinished interface {
	Result
	Status() string
}

// Wrapper is a Result around another one.
type Wrapper interface {
	Result
	Unwrap() protocol.Result
}

// Unwrap returns the result that the handler returned, out of as many Wrappers as
// there are around it; a nil result stays nil.
func Unwrap(result protocol.Result) protocol.Result {
	for {
		w, ok := result.(Wrapper)
		if !ok {
			return result
		}
		result = w.Unwrap()
	}
}

// AppendResult appends r as one JSON object that suits the answer; on an error
// what it returns is nil.
func AppendResult(dst []byte, r protocol.Result, to To) ([]byte, error) {
	switch r := r.(type) {
	case *protocol.CallToolResult:
		return appendToolResult(dst, r, to)
	case Result:
		return r.Append(dst, to)
	case protocol.RawResult:
		return append(dst, jsonx.Paired(r)...), nil
	case protocol.JSONResult:
		return appendJSONResult(dst, r, to)
	case *protocol.ReadResourceResult:
		return appendReadResult(dst, r, to)
	case *protocol.GetPromptResult:
		return appendPromptResult(dst, r, to)
	case *protocol.InputRequiredResult:
		return appendInputRequired(dst, r, to)
	case *protocol.JSONResult:
		return appendJSONResult(dst, *r, to)
	case *protocol.RawResult:
		return append(dst, jsonx.Paired(*r)...), nil
	}
	return nil, fmt.Errorf("a result must be one of package protocol, such as JSONResult; %T is not", r)
}

// EmptyResult is the result of methods that return nothing, such as ping and
// logging/setLevel.
type EmptyResult struct{ protocol.Result }

// Append implements [Result].
func (EmptyResult) Append(dst []byte, to To) ([]byte, error) {
	return closeResult(openResult(dst, to), nil, to)
}

// appendJSONResult appends the members of r.Value between those that are the
// protocol's own. The value is encoded apart, since its braces have to go.
func appendJSONResult(dst []byte, r protocol.JSONResult, to To) ([]byte, error) {
	text, err := jsonx.Append(nil, r.Value)
	if err != nil {
		return nil, err
	}
	if len(text) < 2 || text[0] != '{' {
		return nil, fmt.Errorf("a result must be a JSON object, %T encodes to %.20s", r.Value, text)
	}
	if bytes.Contains(text, []byte(`"_meta"`)) || bytes.Contains(text, []byte(`"resultType"`)) {
		return appendMembers(dst, text, r.Meta, to)
	}
	dst = openResult(dst, to)
	if len(text) > 2 {
		dst = append(separate(dst), text[1:len(text)-1]...)
	}
	return closeResult(dst, r.Meta, to)
}

// appendMembers appends a result whose text may have members that are the protocol's own:
// its resultType stays, and its _meta is added to meta, whose members win.
func appendMembers(dst, text []byte, meta map[string]any, to To) ([]byte, error) {
	var members, own map[string]json.RawMessage
	if err := jsonx.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	if raw, ok := members["_meta"]; ok {
		if err := jsonx.Unmarshal(raw, &own); err != nil {
			return nil, fmt.Errorf("_meta of a result must be an object: %w", err)
		}
		delete(members, "_meta")
		all := make(map[string]any, len(own)+len(meta))
		for name, value := range own {
			all[name] = value
		}
		maps.Copy(all, meta)
		meta = all
	}
	if _, typed := members["resultType"]; typed {
		dst = append(dst, '{')
	} else {
		dst = openResult(dst, to)
	}
	rest, err := jsonx.Append(nil, members)
	if err != nil {
		return nil, err
	}
	if len(rest) > 2 {
		dst = append(separate(dst), rest[1:len(rest)-1]...)
	}
	return closeResult(dst, meta, to)
}

// openResult appends the opening brace of a result, with resultType if the
// revision has it.
func openResult(dst []byte, to To) []byte {
	if to.Revision.Has(protocol.FeatureResultType) {
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
// a result. meta comes from the result and to.Meta from the server.
func closeResult(dst []byte, meta map[string]any, to To) ([]byte, error) {
	meta = ownMeta(meta, to.Revision)
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

// ownMeta returns the _meta of a result without what it says of its server in a modern
// revision, as one that came from another server may: To.Meta says it.
func ownMeta(meta map[string]any, rev protocol.Revision) map[string]any {
	if _, named := meta[facts.MetaServerInfo]; named && rev.Modern() {
		meta = maps.Clone(meta)
		delete(meta, facts.MetaServerInfo)
	}
	return meta
}

// appendToolResult appends the result of tools/call. structuredContent comes
// first, so that the text item that repeats it can be made from the bytes just
// written. Whether that item is there at all depends on RepeatStructured, on what
// else there is, and on whether the revision could carry the structured content;
// see protocol.CallToolResult.
func appendToolResult(dst []byte, r *protocol.CallToolResult, to To) ([]byte, error) {
	dst = openResult(dst, to)
	var structured []byte
	if r.AppendStructured != nil {
		var err error
		if dst, structured, err = appendStructured(dst, r, to.Revision); err != nil {
			return nil, err
		}
	}
	dst = append(separate(dst), `"content":[`...)
	if structured != nil && (r.RepeatStructured || len(r.Content) == 0 && !carries(to.Revision, structured)) {
		dst = append(dst, `{"type":"text","text":`...)
		if structured[0] == '"' { // a string is its own text, without further quotes
			dst = append(dst, structured...)
		} else {
			dst = jsonx.AppendStringBytes(dst, structured)
		}
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
func appendStructured(dst []byte, r *protocol.CallToolResult, rev protocol.Revision) (grown, text []byte, err error) {
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
func carries(rev protocol.Revision, text []byte) bool {
	return rev.Has(protocol.FeatureStructuredContent) && (rev.Has(protocol.FeatureAnyStructured) || text[0] == '{')
}

// AppendTyped appends text, a JSON object without resultType, as a result of
// that type, with meta, which may be nil, in its _meta. It is for results of
// extensions, whose types this package does not know.
func AppendTyped(dst []byte, resultType string, text []byte, meta map[string]any, to To) ([]byte, error) {
	dst = append(append(append(dst, `{"resultType":"`...), resultType...), '"')
	if len(text) > 2 {
		dst = append(separate(dst), text[1:len(text)-1]...)
	}
	return closeResult(dst, meta, to)
}

// Freeze encodes r once for rev, for a result that goes into many answers, such
// as that of a call which several clients share. Later changes of r do not
// reach the frozen result.
func Freeze(r *protocol.CallToolResult, rev protocol.Revision) (*FrozenResult, error) {
	text, err := appendToolResult(nil, r, To{Revision: rev})
	if err != nil {
		return nil, err
	}
	return &FrozenResult{text: bytes.Clone(text), meta: len(ownMeta(r.Meta, rev)) > 0}, nil
}

// FrozenResult is an encoded result to which only the _meta of each answer is
// added. It does not change and is safe for concurrent use.
type FrozenResult struct {
	protocol.Result
	text []byte
	meta bool // whether text ends with a _meta
}

// Len returns the size of the encoded result in bytes, for those that keep
// results within a budget.
func (r *FrozenResult) Len() int { return len(r.text) }

// Append implements [Result]. to.Revision must be the revision that r was
// encoded for; to.Meta is put at the end of _meta, which is added if there is
// none.
func (r *FrozenResult) Append(dst []byte, to To) ([]byte, error) {
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

// appendPromptResult appends the result of prompts/get. A message without
// content, or with an invalid role, is an error of the handler that made it: the
// schema demands both.
func appendPromptResult(dst []byte, r *protocol.GetPromptResult, to To) ([]byte, error) {
	dst = openResult(dst, to)
	if r.Description != "" {
		dst = jsonx.AppendString(append(separate(dst), `"description":`...), r.Description)
	}
	dst = append(separate(dst), `"messages":[`...)
	for i, m := range r.Messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		if m.Role != protocol.RoleUser && m.Role != protocol.RoleAssistant {
			return nil, fmt.Errorf("message %d has role %q; it must be %q or %q", i, m.Role, protocol.RoleUser, protocol.RoleAssistant)
		}
		if m.Content == nil {
			return nil, fmt.Errorf("message %d has no content", i)
		}
		dst = append(append(dst, `{"role":"`...), m.Role...)
		var err error
		if dst, err = appendItem(append(dst, `","content":`...), m.Content, to.Revision); err != nil {
			return nil, err
		}
		dst = append(dst, '}')
	}
	return closeResult(append(dst, ']'), r.Meta, to)
}

// appendReadResult appends the result of resources/read.
func appendReadResult(dst []byte, r *protocol.ReadResourceResult, to To) ([]byte, error) {
	dst = append(separate(openResult(dst, to)), `"contents":[`...)
	for i, c := range r.Contents {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = protocol.Internal(facts.Private{}).AppendResource(dst, c); err != nil {
			return nil, err
		}
	}
	dst = append(dst, ']')
	if to.Revision.Has(protocol.FeatureCacheHints) {
		dst = AppendCache(dst, r.Cache)
	}
	return closeResult(dst, r.Meta, to)
}

// appendInputRequired appends the result that asks the client. inputRequests is
// an object and Go maps have no order, so that the entries are written one by
// one in the order of Requests.
func appendInputRequired(dst []byte, r *protocol.InputRequiredResult, to To) ([]byte, error) {
	requests := []byte{'{'}
	for _, q := range r.Requests {
		entry, err := json.Marshal(struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}{q.Method, q.Params})
		if err != nil {
			return nil, err
		}
		key, err := json.Marshal(q.Key)
		if err != nil {
			return nil, err
		}
		requests = append(append(append(separate(requests), key...), ':'), entry...)
	}
	dst = append(dst, `{"resultType":"input_required"`...)
	if len(r.Requests) > 0 {
		dst = append(append(append(dst, `,"inputRequests":`...), requests...), '}')
	}
	if r.State != "" {
		dst = jsonx.AppendString(append(dst, `,"requestState":`...), r.State)
	}
	return closeResult(dst, nil, to)
}

// AppendContent appends items as a JSON array in the form of rev. An empty or
// nil list is an empty array. It fails, and returns nil, if an item is nil or
// has metadata that encoding/json rejects.
func AppendContent(dst []byte, items []protocol.Content, rev protocol.Revision) ([]byte, error) {
	dst, err := appendItems(append(dst, '['), items, rev)
	if err != nil {
		return nil, err
	}
	return append(dst, ']'), nil
}

// appendItems appends items, separated by commas, without brackets: the caller
// may have written an item before. A nil item is an error.
func appendItems(dst []byte, items []protocol.Content, rev protocol.Revision) ([]byte, error) {
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		if item == nil {
			return nil, fmt.Errorf("content item %d is nil", i)
		}
		var err error
		if dst, err = appendItem(dst, item, rev); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// appendItem appends one item in the form of rev, which must not be nil.
func appendItem(dst []byte, item protocol.Content, rev protocol.Revision) ([]byte, error) {
	return protocol.Internal(facts.Private{}).AppendContent(dst, contentFor(item, rev))
}
