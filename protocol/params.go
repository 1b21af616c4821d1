package protocol

import (
	"strings"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
)

// Params are the members of params that several methods share, found in one
// pass. Slices are parts of the scanned text. A method with members of its own
// decodes Raw, in which they were skipped.
type Params struct {
	Raw            []byte // the whole object, nil if absent
	Name           string // name, or uri or taskId for methods that have one; "" if a method of the user has another there
	Arguments      []byte // nil if absent
	Cursor         []byte // the JSON text; nil if absent
	InputResponses []byte // nil if absent
	RequestState   string
	Meta           Meta
}

// Meta holds the keys of a request's _meta that the specification reserves.
// Other keys are in Raw, unread. A fault in _meta is reported by DecodeParams
// only when the whole object has been read, so that what is right in it, such as
// the revision, is known when the error is answered.
type Meta struct {
	Raw                []byte // the whole object, nil if absent
	ProtocolVersion    string // "" if absent
	ClientInfo         []byte // nil if absent
	ClientCapabilities []byte // nil if absent
	LogLevel           []byte // the JSON text; nil if absent
	ProgressToken      []byte // the JSON text of a string or an integer; nil if absent
}

// DecodeParams reads the params of m into p. A member of the wrong type, or a
// duplicate one, is an *Error with the code CodeInvalidParams.
func (m *Message) DecodeParams(p *Params) error {
	raw := m.Params
	*p = Params{Raw: raw}
	if raw == nil {
		return nil
	}
	s := jsonx.Scanner{Buf: raw, MaxDepth: len(raw)}
	var d paramsDecoder
	d.named, d.text = nameMember(m.Method)
	if fault := d.members(&s, p); fault != nil {
		return fault
	}
	return nil
}

// paramsDecoder is what DecodeParams keeps while it reads. The scanner and the
// params are not part of it, so that they stay on the stack.
type paramsDecoder struct {
	named   string // the member that Name is read from
	text    bool   // it must be a string
	seen    uint   // bits of the keys of _meta that were there
	invalid *Error // the first fault in _meta; the scan continues with its other members
}

// members reads the object of the params into p. The fault is the first of a
// member of its own, which ends the scan, or else the first in _meta, which does
// not. s is before the object. Decode has checked its syntax, so that an error
// of the scanner means that m was not read by Decode.
func (d *paramsDecoder) members(s *jsonx.Scanner, p *Params) *Error {
	var seen uint
	more, err := s.ObjectStart()
	for more && err == nil {
		var name []byte
		if name, err = s.Name(); err != nil {
			break
		}
		bit := uint(1) << index(paramNames[:], name)
		if seen&bit&^1 != 0 {
			return duplicate("params", paramNames[index(paramNames[:], name)])
		}
		seen |= bit
		if fault := d.member(s, p, name); fault != nil {
			return fault
		}
		more, err = s.ObjectNext()
	}
	if err != nil {
		return scanError(err)
	}
	return d.invalid
}

// paramNames are the members that Params reads. Their index is their bit in the
// set of those that were seen; index 0 stands for all other names, of which
// duplicates are not looked for.
var paramNames = [...]string{"", "name", "uri", "taskId", "arguments", "cursor", "requestState", "inputResponses", "_meta"}

// index returns the index of name in names, or 0, which stands for every other
// name. The lists are so short that a map would be slower.
func index(names []string, name []byte) int {
	for i := 1; i < len(names); i++ {
		if string(name) == names[i] {
			return i
		}
	}
	return 0
}

// nameMember returns the member that names what a request of method is about,
// and whether it must be a string: in a method that the user has defined, name
// may be something else.
//
// Each method has exactly one such member and the others are ignored. If
// tools/call took its name from uri as well, a gateway that checks name could
// be led to let pass what the server takes for another tool.
func nameMember(method string) (member string, text bool) {
	switch group, _, _ := strings.Cut(method, "/"); group {
	case "resources", "skills":
		return "uri", true
	case "tasks":
		return "taskId", true
	case "tools", "prompts", "events":
		return "name", true
	}
	return "name", false
}

// duplicate is the error for a member that occurs twice in the object that
// where names. JSON leaves open which of the two counts, and two programs on
// the way of a request must not differ about it.
func duplicate(where, name string) *Error {
	return Errorf(CodeInvalidParams, "duplicate member %q in %s", name, where)
}

// member reads the value of one member, before which s stands, and passes it. The
// value null counts as none. Values that only a method itself understands are not
// looked into: arguments other than an object are a fault of the call and not of
// the message.
func (d *paramsDecoder) member(s *jsonx.Scanner, p *Params, name []byte) *Error {
	kind := s.Peek()
	start := s.Pos
	if kind == jsonx.Null {
		skip(s, start)
		return nil
	}
	switch string(name) {
	case d.named:
		if kind != jsonx.String && !d.text {
			skip(s, start)
			return nil
		}
		if kind != jsonx.String {
			return Errorf(CodeInvalidParams, "params.%s must be a string, got %s", name, kind)
		}
		text, err := s.Str()
		p.Name = string(text)
		return asError(err)
	case "requestState":
		if kind != jsonx.String {
			return Errorf(CodeInvalidParams, "params.requestState must be a string, got %s", kind)
		}
		text, err := s.Str()
		p.RequestState = string(text)
		return asError(err)
	case "arguments":
		p.Arguments = skip(s, start)
	case "cursor":
		p.Cursor = skip(s, start)
	case "inputResponses":
		if kind != jsonx.Object {
			return Errorf(CodeInvalidParams, "params.inputResponses must be an object, got %s", kind)
		}
		p.InputResponses = skip(s, start)
	case "_meta":
		if kind != jsonx.Object {
			return Errorf(CodeInvalidParams, "params._meta must be an object, got %s", kind)
		}
		return d.meta(s, &p.Meta)
	default:
		skip(s, start)
	}
	return nil
}

// skip passes a value that Decode has checked before, so that only its end has
// to be found.
func skip(s *jsonx.Scanner, start int) []byte {
	s.SkipChecked()
	return s.Buf[start:s.Pos]
}

// asError is scanError for an error that may be nil. It keeps a nil error from
// becoming a non-nil *Error.
func asError(err error) *Error {
	if err == nil {
		return nil
	}
	return scanError(err)
}

// meta reads the object of _meta into m, and keeps its whole text in m.Raw.
// Faults of meaning go to d.invalid; meta returns only faults of syntax.
func (d *paramsDecoder) meta(s *jsonx.Scanner, m *Meta) *Error {
	start := s.Pos
	more, err := s.ObjectStart()
	for more && err == nil {
		var name []byte
		if name, err = s.Name(); err != nil {
			break
		}
		d.metaMember(s, m, name)
		more, err = s.ObjectNext()
	}
	m.Raw = s.Buf[start:s.Pos]
	return asError(err)
}

// metaKey says which reserved key a member of _meta is. It is the index into
// the tables below and the bit in paramsDecoder.seen.
type metaKey byte

const (
	otherKey metaKey = iota
	versionKey
	clientInfoKey
	capabilitiesKey
	logLevelKey
	progressTokenKey
)

// metaKeyNames are the keys as they are written in _meta. otherKey has no name.
var metaKeyNames = [...]string{
	versionKey: facts.MetaVersion, clientInfoKey: facts.MetaClientInfo, capabilitiesKey: facts.MetaCapabilities,
	logLevelKey: facts.MetaLogLevel, progressTokenKey: "progressToken",
}

// metaKeyKinds are the JSON types that the values must have. progressToken has
// two and is checked by scanMember.
var metaKeyKinds = [...]jsonx.Kind{
	versionKey: jsonx.String, clientInfoKey: jsonx.Object, capabilitiesKey: jsonx.Object,
	logLevelKey: jsonx.String,
}

// metaMember reads the value of one key of _meta, before which s stands, and passes it. A value of
// the wrong type, other than null, is a fault and leaves its field as if the key were absent.
// ClientInfo and ClientCapabilities stay encoded: most requests end without a use of them.
func (d *paramsDecoder) metaMember(s *jsonx.Scanner, m *Meta, name []byte) {
	key := metaKey(index(metaKeyNames[:], name))
	if d.seen&(1<<key)&^1 != 0 {
		d.fault(duplicate("params._meta", metaKeyNames[key]))
	}
	d.seen |= 1 << key
	kind := s.Peek()
	text := skip(s, s.Pos)
	switch {
	case key == otherKey || kind == jsonx.Null:
		return
	case key == progressTokenKey:
		if _, err := scanID(&jsonx.Scanner{Buf: text}); err != nil {
			d.fault(Errorf(CodeInvalidParams, "params._meta.progressToken %w", err))
			return
		}
		m.ProgressToken = text
		return
	}
	if want := metaKeyKinds[key]; kind != want {
		d.fault(Errorf(CodeInvalidParams, "params._meta[%q] must be of type %s, got %s", metaKeyNames[key], want, kind))
		return
	}
	switch key {
	case versionKey:
		m.ProtocolVersion = revisionName(text)
	case clientInfoKey:
		m.ClientInfo = text
	case capabilitiesKey:
		m.ClientCapabilities = text
	case logLevelKey:
		m.LogLevel = text
	}
}

// fault keeps e if it is the first fault in _meta.
func (d *paramsDecoder) fault(e *Error) {
	if d.invalid == nil {
		d.invalid = e
	}
}

// revisionName returns the value of a JSON string. It makes no copy if that is
// the name of a known revision; escapes in a name are legal but not worth the
// fast path. It returns "" for text that is not a valid string.
func revisionName(text []byte) string {
	for r := Latest; r > 0; r-- {
		if name := revisionNames[r]; len(text) == len(name)+2 && string(text[1:len(text)-1]) == name {
			return name
		}
	}
	s := jsonx.Scanner{Buf: text}
	value, err := s.Str()
	if err != nil {
		return ""
	}
	return string(value)
}
