package protocol

import (
	"fmt"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Params are the members that methods share, found in one pass over the raw
// params of a request. Slices are parts of the scanned text. A method with
// members of its own decodes Raw.
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

// Meta is what the specification puts into a request's _meta.
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

// ScanParams reads the params of m, a scanned message. A member of the wrong
// type is the answer -32602.
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

// paramNames are the members that Params reads; the first stands for all
// others.
var paramNames = [...]string{"", "name", "uri", "taskId", "arguments", "cursor", "requestState", "inputResponses", "_meta"}

// index returns the place of name in names, 0 if it is not there.
func index(names []string, name []byte) int {
	for i := 1; i < len(names); i++ {
		if string(name) == names[i] {
			return i
		}
	}
	return 0
}

// nameMember returns the member that names what a method is about, and whether
// it must be a string: a method of the user may have another name. A method has
// one; others of these are not looked at, so that no gateway on the way takes one
// for what the server takes another.
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

func duplicate(where, name string) *Error {
	return Errorf(CodeInvalidParams, "duplicate member %q in %s", name, where)
}

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

// skip passes a value that Scan has checked before, so that only its end has
// to be found.
func skip(s *jsonx.Scanner, start int) []byte {
	s.SkipChecked()
	return s.Buf[start:s.Pos]
}

func asError(err error) *Error {
	if err == nil {
		return nil
	}
	return scanError(err)
}

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

// metaKey says which reserved key name is.
type metaKey byte

const (
	otherKey metaKey = iota
	versionKey
	clientInfoKey
	capabilitiesKey
	logLevelKey
	progressTokenKey
)

var metaKeyNames = [...]string{
	versionKey: MetaVersion, clientInfoKey: MetaClientInfo, capabilitiesKey: MetaCapabilities,
	logLevelKey: MetaLogLevel, progressTokenKey: "progressToken",
}

var metaKeyKinds = [...]jsonx.Kind{
	versionKey: jsonx.String, clientInfoKey: jsonx.Object, capabilitiesKey: jsonx.Object,
	logLevelKey: jsonx.String,
}

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

// fault keeps the first fault; the scan goes on to find the other members.
func (m *Meta) fault(e *Error) {
	if m.invalid == nil {
		m.invalid = e
	}
}

// revisionName returns the value of a JSON string, without a copy if it names
// a revision.
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

// CheckModern checks the metadata that a modern request must carry and
// returns its revision. supported lists what the server speaks.
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
