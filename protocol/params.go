package protocol

import (
	"fmt"
	"strings"

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
	named          string // the member that Name is read from
	text           bool   // it must be a string
}

// Meta holds the keys of a request's _meta that the specification reserves.
// Other keys are in Raw, unread. A fault in _meta is kept in invalid and
// reported by ScanParams when the whole object has been read, so that what is
// right in it, such as the revision, is known when the error is answered.
type Meta struct {
	Raw                []byte // the whole object, nil if absent
	ProtocolVersion    string // "" if absent
	ClientInfo         []byte // nil if absent
	ClientCapabilities []byte // nil if absent
	LogLevel           []byte // the JSON text; nil if absent
	ProgressToken      []byte // the JSON text of a string or an integer; nil if absent
	invalid            *Error
	seen               uint // bits of the keys that were there
}

// Keys of _meta that the specification reserves (basic/index of 2026-07-28).
const (
	metaPrefix       = "io.modelcontextprotocol/"
	MetaVersion      = metaPrefix + "protocolVersion"
	MetaClientInfo   = metaPrefix + "clientInfo"
	MetaCapabilities = metaPrefix + "clientCapabilities"
	MetaLogLevel     = metaPrefix + "logLevel"
	MetaServerInfo   = metaPrefix + "serverInfo"
)

// ScanParams reads the params of m, which Scan has accepted, into p. A shared
// member of the wrong type or that occurs twice is answered with -32602; p then
// holds what was read before it. Params that are absent leave p empty and are
// not an error: whether a method needs some is for the method to say.
func ScanParams(m *Message, p *Params) *Error {
	raw := m.Params
	*p = Params{Raw: raw}
	p.named, p.text = nameMember(m.Method)
	if raw == nil {
		return nil
	}
	s := jsonx.Scanner{Buf: raw, MaxDepth: len(raw)}
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
		if fault := p.scanMember(&s, name); fault != nil {
			return fault
		}
		more, err = s.ObjectNext()
	}
	if err != nil {
		return scanError(err)
	}
	return p.Meta.invalid
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
	case "resources":
		return "uri", true
	case "tasks":
		return "taskId", true
	case "tools", "prompts":
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

// scanMember reads the value of the member name into p. Values of names that p
// does not keep are skipped.
func (p *Params) scanMember(s *jsonx.Scanner, name []byte) *Error {
	kind := s.Peek()
	start := s.Pos
	switch string(name) {
	case p.named:
		if kind != jsonx.String && !p.text {
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
		return p.Meta.scan(s)
	default:
		skip(s, start)
	}
	return nil
}

// skip passes a value that Scan has checked, so that only its end has to be
// found, and returns the text from start on.
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

// scan reads the object _meta, at whose start s is. The error is one of syntax
// only; see Meta for faults of meaning.
func (m *Meta) scan(s *jsonx.Scanner) *Error {
	start := s.Pos
	more, err := s.ObjectStart()
	for more && err == nil {
		var name []byte
		if name, err = s.Name(); err != nil {
			break
		}
		m.scanMember(s, name)
		more, err = s.ObjectNext()
	}
	m.Raw = s.Buf[start:s.Pos]
	return asError(err)
}

// metaKey says which reserved key a member of _meta is. It is the index into
// the tables below and the bit in Meta.seen.
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
	versionKey: MetaVersion, clientInfoKey: MetaClientInfo, capabilitiesKey: MetaCapabilities,
	logLevelKey: MetaLogLevel, progressTokenKey: "progressToken",
}

// metaKeyKinds are the JSON types that the values must have. progressToken has
// two and is checked by scanMember.
var metaKeyKinds = [...]jsonx.Kind{
	versionKey: jsonx.String, clientInfoKey: jsonx.Object, capabilitiesKey: jsonx.Object,
	logLevelKey: jsonx.String,
}

// scanMember reads one member of _meta. A fault does not end the scan.
func (m *Meta) scanMember(s *jsonx.Scanner, name []byte) {
	key := metaKey(index(metaKeyNames[:], name))
	if m.seen&(1<<key)&^1 != 0 {
		m.fault(duplicate("params._meta", metaKeyNames[key]))
	}
	m.seen |= 1 << key
	kind := s.Peek()
	text := skip(s, s.Pos)
	switch key {
	case otherKey:
		return
	case progressTokenKey:
		if _, err := scanID(&jsonx.Scanner{Buf: text}); err != nil {
			m.fault(Errorf(CodeInvalidParams, "params._meta.progressToken %w", err))
			return
		}
		m.ProgressToken = text
		return
	}
	if want := metaKeyKinds[key]; kind != want {
		m.fault(Errorf(CodeInvalidParams, "params._meta[%q] must be of type %s, got %s", metaKeyNames[key], want, kind))
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

// fault records a fault unless there is one already; the scan goes on to find
// the other members.
func (m *Meta) fault(e *Error) {
	if m.invalid == nil {
		m.invalid = e
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

// CheckModern checks the metadata that every request of a modern revision must
// carry: the revision, which must be among supported, and the client's
// capabilities (basic/index of 2026-07-28, "Per-Request Metadata"). It returns
// the revision. The order matters: a client that is told the versions can mend
// its request, whatever else is missing in it.
func (m *Meta) CheckModern(supported []Revision) (Revision, *Error) {
	if m.ProtocolVersion == "" {
		return 0, missingMeta(MetaVersion)
	}
	rev, ok := ParseRevision(m.ProtocolVersion)
	if !ok || !contains(supported, rev) || !rev.Has(PerRequestMeta) {
		return 0, UnsupportedVersion(m.ProtocolVersion, supported)
	}
	if m.ClientCapabilities == nil {
		return 0, missingMeta(MetaCapabilities)
	}
	return rev, nil
}

// missingMeta is the error for a required key of _meta.
func missingMeta(key string) *Error {
	return &Error{Code: CodeInvalidParams, Message: fmt.Sprintf("params._meta[%q] is missing; every request must carry it", key)}
}

func contains(revs []Revision, rev Revision) bool {
	for _, r := range revs {
		if r == rev {
			return true
		}
	}
	return false
}
