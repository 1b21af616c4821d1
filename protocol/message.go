package protocol

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
)

// Message is one JSON-RPC message: a request, a notification or a response.
// Decode reads one, NewRequest, NewNotification, NewProgress, NewResponse and
// NewErrorResponse make one, and encoding it is MarshalJSON. Of a message that
// Decode has read, Params, Result and Error are parts of the text and live as
// long as it does.
type Message struct {
	// ID is zero in notifications and in error responses to messages that could
	// not be read.
	ID     ID
	Method string // "" in a response
	Params []byte // nil if absent; always an object otherwise
	Result []byte // nil if absent
	Error  []byte // nil if absent
}

// Kind says what a Message is. The zero Kind is invalid: neither method nor
// result nor error is there.
type Kind uint8

// The kinds of messages.
const (
	KindRequest      Kind = iota + 1 // wants an answer
	KindNotification                 // wants none
	KindResponse                     // answers a request, with a result or an error
)

var kindNames = [...]string{"invalid message", KindRequest: "request", KindNotification: "notification", KindResponse: "response"}

// String returns the name of the kind, such as "request".
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		k = 0
	}
	return kindNames[k]
}

// Kind returns what m is. Of a message that Decode has refused it is what that
// would be, as far as it was read.
func (m *Message) Kind() Kind {
	switch {
	case m.Method != "" && !m.ID.IsZero():
		return KindRequest
	case m.Method != "":
		return KindNotification
	case m.Result != nil || m.Error != nil:
		return KindResponse
	}
	return 0
}

// maxMethod is how many bytes the name of a method may have.
const maxMethod = 1 << 10

// The members of the envelope, one bit each, so that a duplicate is found
// without a map and checkShape can compare sets.
const (
	hasVersion = 1 << iota
	hasID
	hasMethod
	hasParams
	hasResult
	hasError
	hasNullID // in addition to hasID
)

// Decode reads one message from text, which may begin with a byte order mark. Bytes that
// are not UTF-8 are read as U+FFFD, as encoding/json does; the Message is then of a copy.
// The whole text is checked: syntax, at most 64 levels of nesting, duplicate members,
// nothing after the message. Duplicates inside params are left to what reads them, which can name
// the place. An error is an *Error, which is what to answer with; the message's
// ID is set whenever it could be read, so that the answer finds its request.
//
// It follows basic/index of every revision: jsonrpc must be "2.0", ids are
// strings or integers, params is an object. The id null is that of an error
// response to a message whose id could not be read, and becomes the zero ID. Other
// members that are null count as absent, except for a result without an error.
// What revisions have rules of their own for, Validate checks.
func Decode(text []byte) (Message, error) {
	m, err := decode(text)
	if err != nil && !utf8.Valid(text) {
		return decode(jsonx.UTF8(text))
	}
	return m, err
}

// decode is Decode for text in UTF-8; other text is an error.
func decode(text []byte) (Message, error) {
	var m Message
	s := jsonx.Scanner{Buf: jsonx.Document(text)}
	if kind := s.Peek(); kind != jsonx.Object {
		if _, err := s.Skip(); err != nil {
			return m, scanError(err)
		}
		if kind == jsonx.Array {
			return m, Errorf(CodeInvalidRequest, "batches are not supported here: send one message at a time")
		}
		return m, Errorf(CodeInvalidRequest, "a message must be a JSON object, got %s", kind)
	}
	invalid, seen, err := scanMembers(&s, &m)
	if err == nil {
		err = s.End()
	}
	if err != nil {
		return m, scanError(err)
	}
	if seen&(hasMethod|hasError) != 0 && string(m.Result) == "null" {
		seen, m.Result = seen&^hasResult, nil
	}
	if invalid == nil {
		invalid = checkShape(seen)
	}
	if invalid != nil {
		return m, invalid
	}
	return m, nil
}

// scanMembers reads the members of the envelope. There are two kinds of fault:
// one of meaning (invalid) is remembered while the scan continues, because the
// id may still follow; one of syntax (err) ends the scan. Only the first fault
// of meaning is kept.
func scanMembers(s *jsonx.Scanner, m *Message) (invalid *Error, seen int, err error) {
	more, err := s.ObjectStart()
	for more && err == nil {
		var name []byte
		if name, err = s.Name(); err != nil {
			return nil, 0, err
		}
		bit, fault, err := scanMember(s, m, name)
		if err != nil {
			return nil, 0, err
		}
		if seen&bit != 0 {
			fault = Errorf(CodeInvalidRequest, "duplicate member in the message")
		}
		seen |= bit
		if invalid == nil {
			invalid = fault
		}
		if more, err = s.ObjectNext(); err != nil {
			return nil, 0, err
		}
	}
	return invalid, seen, err
}

// scanMember reads the value of one member into m. bit is the member's bit, 0
// for names that JSON-RPC does not define. The method is shortened to maxMethod
// bytes when it is too long, because it is written to the log even so.
func scanMember(s *jsonx.Scanner, m *Message, name []byte) (bit int, fault *Error, err error) {
	switch string(name) {
	case "jsonrpc":
		text, err := s.Skip()
		if err == nil && string(text) != `"2.0"` {
			fault = Errorf(CodeInvalidRequest, `jsonrpc must be "2.0"`)
		}
		return hasVersion, fault, err
	case "id":
		if s.Peek() == jsonx.Null {
			_, err = s.Skip()
			return hasID | hasNullID, nil, err
		}
		fault, err = m.scanID(s)
		return hasID, fault, err
	case "method":
		if kind := s.Peek(); kind != jsonx.String {
			if _, err = s.Skip(); kind == jsonx.Null {
				return 0, nil, err
			}
			return hasMethod, Errorf(CodeInvalidRequest, "method must be a string"), err
		}
		method, err := s.Str()
		switch {
		case len(method) == 0:
			fault = Errorf(CodeInvalidRequest, "method must not be empty")
		case len(method) > maxMethod:
			fault, method = Errorf(CodeInvalidRequest, "method is longer than %d bytes", maxMethod), method[:maxMethod]
		}
		m.Method = methodName(method)
		return hasMethod, fault, err
	case "params":
		kind := s.Peek()
		s.AllowDuplicates = true
		m.Params, err = s.Skip()
		s.AllowDuplicates = false
		switch kind {
		case jsonx.Object:
		case jsonx.Null:
			m.Params = nil
		default:
			fault = Errorf(CodeInvalidRequest, "params must be an object, got %s", kind)
		}
		return hasParams, fault, err
	case "result":
		m.Result, err = s.Skip()
		return hasResult, nil, err
	case "error":
		if m.Error, err = s.Skip(); string(m.Error) == "null" {
			m.Error = nil
			return 0, nil, err
		}
		return hasError, nil, err
	}
	// JSON-RPC 2.0 has no other members; extensions that add some are ignored.
	_, err = s.Skip()
	return 0, nil, err
}

// scanID reads the id into m. It skips the value first, so that the scan can
// continue after an id that is not allowed, and then reads the same bytes again
// as an ID.
func (m *Message) scanID(s *jsonx.Scanner) (*Error, error) {
	if kind := s.Peek(); kind != jsonx.String && kind != jsonx.Number {
		_, err := s.Skip()
		return Errorf(CodeInvalidRequest, "id must be a string or an integer, got %s", kind), err
	}
	start := s.Pos
	if _, err := s.Skip(); err != nil {
		return nil, err
	}
	sub := jsonx.Scanner{Buf: s.Buf[:s.Pos], Pos: start}
	id, err := scanID(&sub)
	if err != nil {
		return Errorf(CodeInvalidRequest, "id %w", err), nil
	}
	m.ID = id
	return nil, nil
}

// checkShape returns the fault of an envelope that has those members, nil if it
// is that of a request, a notification or a response. seen is a set of the bits
// above. It runs after all members have been read, since they may come in any
// order.
func checkShape(seen int) *Error {
	switch {
	case seen&hasNullID != 0 && (seen&hasError == 0 || seen&hasMethod != 0):
		return Errorf(CodeInvalidRequest, "id must be a string or an integer, got null")
	case seen&hasVersion == 0:
		return Errorf(CodeInvalidRequest, `member jsonrpc is missing; it must be "2.0"`)
	case seen&hasMethod != 0 && seen&(hasResult|hasError) != 0:
		return Errorf(CodeInvalidRequest, "a message has either method or result or error")
	case seen&hasMethod != 0:
		return nil
	case seen&(hasResult|hasError) == 0:
		return Errorf(CodeInvalidRequest, "member method is missing")
	case seen&hasResult != 0 && seen&hasError != 0:
		return Errorf(CodeInvalidRequest, "a response has either result or error")
	case seen&hasID == 0 && seen&hasError == 0:
		return Errorf(CodeInvalidRequest, "member id is missing")
	}
	return nil
}

// scanError turns an error of the scanner into the answer for it: text that is
// valid JSON but too deep or with duplicate members is an invalid request
// (-32600), everything else a parse error (-32700).
func scanError(err error) *Error {
	var depth *jsonx.DepthError
	var duplicate *jsonx.DuplicateError
	switch {
	case errors.As(err, &depth), errors.As(err, &duplicate):
		return &Error{Code: CodeInvalidRequest, Message: "Invalid request: " + err.Error(), Err: err}
	}
	return &Error{Code: CodeParseError, Message: "Parse error: " + err.Error(), Err: err}
}

// methodName returns the method as a string. For the common methods it returns
// the constant, which saves an allocation for each message.
func methodName(b []byte) string {
	switch string(b) {
	case MethodToolsCall:
		return MethodToolsCall
	case MethodToolsList:
		return MethodToolsList
	case MethodInitialize:
		return MethodInitialize
	case MethodInitialized:
		return MethodInitialized
	case MethodPing:
		return MethodPing
	case MethodDiscover:
		return MethodDiscover
	case MethodResourcesRead:
		return MethodResourcesRead
	case MethodPromptsGet:
		return MethodPromptsGet
	case MethodComplete:
		return MethodComplete
	}
	return string(b)
}

// maxLine is how many bytes a line of DecodeLines may have.
const maxLine = 4 << 20

// DecodeLines reads the messages of a stream as standard input and output carry
// it: one on each line, or a batch of them. An invalid line yields the error of
// Decode, and the stream continues; an error of reading, such as
// bufio.ErrTooLong for a line of more than 4 MiB, is the last that is yielded.
func DecodeLines(r io.Reader) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			text := bytes.TrimSpace(jsonx.Document(lines.Bytes()))
			if len(text) == 0 {
				continue
			}
			text = bytes.Clone(text) // messages outlive the buffer
			if text[0] != '[' {
				if !yield(Decode(text)) {
					return
				}
				continue
			}
			for m, err := range DecodeBatch(text, V20250326) {
				if !yield(m, err) {
					return
				}
			}
		}
		if err := lines.Err(); err != nil {
			yield(Message{}, err)
		}
	}
}

// DecodeBatch reads the messages of a JSON array. One that is not valid yields
// the error of Decode, and the others follow; what is wrong with the array
// itself is the only thing that is yielded then: it is not JSON, it is empty,
// or rev has no batches. Only revision 2025-03-26 has them.
func DecodeBatch(text []byte, rev Revision) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		messages, _, err := internals{}.SplitBatch(text, rev, len(text))
		if err != nil {
			yield(Message{}, err)
		}
		for _, message := range messages {
			if !yield(Decode(message)) {
				return
			}
		}
	}
}

// NewRequest makes a request. params must encode to a JSON object; nil leaves
// them out.
func NewRequest(id ID, method string, params any) (Message, error) {
	if id.IsZero() {
		return Message{}, errors.New("protocol: a request needs an id")
	}
	m, err := NewNotification(method, params)
	m.ID = id
	return m, err
}

// NewNotification makes a notification. params must encode to a JSON object; nil
// leaves them out.
func NewNotification(method string, params any) (Message, error) {
	if method == "" {
		return Message{}, errors.New("protocol: a message needs a method")
	}
	m := Message{Method: method}
	var err error
	if params != nil {
		m.Params, err = object("params", params)
	}
	return m, err
}

// NewProgress makes a notification of progress: done of total, of which 0 means
// that it is unknown. token is the one of the request, as
// Params.Meta.ProgressToken has it; message may be "".
func NewProgress(token []byte, done, total float64, message string) (Message, error) {
	if _, err := parseID(token); err != nil {
		return Message{}, fmt.Errorf("protocol: progress token %w", err)
	}
	if math.IsNaN(done+total) || math.IsInf(done+total, 0) {
		return Message{}, fmt.Errorf("protocol: progress must be a number, got %v of %v", done, total)
	}
	return NewNotification(MethodProgress, struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress float64         `json:"progress"`
		Total    float64         `json:"total,omitempty"`
		Message  string          `json:"message,omitempty"`
	}{token, done, total, message})
}

// NewLog makes a notification of a log message (server/utilities/logging). data
// encodes to JSON; logger names the part of the server that logs, and may be "".
func NewLog(level Level, logger string, data any) (Message, error) {
	return NewNotification(MethodLog, struct {
		Level  Level  `json:"level"`
		Logger string `json:"logger,omitempty"`
		Data   any    `json:"data"`
	}{level, logger, data})
}

// NewResponse makes the response to the request with that id. result must encode
// to a JSON object.
func NewResponse(id ID, result any) (Message, error) {
	if id.IsZero() {
		return Message{}, errors.New("protocol: a response needs the id of its request")
	}
	text, err := object("result", result)
	return Message{ID: id, Result: text}, err
}

// NewErrorResponse makes the response that refuses the request with that id, the
// zero ID if it could not be read.
func NewErrorResponse(id ID, e *Error) Message {
	text, _ := e.MarshalJSON() // never fails
	return Message{ID: id, Error: text}
}

// object encodes v, which must be a JSON object.
func object(what string, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err == nil && text[0] != '{' {
		err = fmt.Errorf("must be a JSON object, %T encodes to %.20s", v, text)
	}
	if err != nil {
		return nil, fmt.Errorf("protocol: %s: %w", what, err)
	}
	return jsonx.Paired(text), nil
}

// MarshalJSON implements json.Marshaler. json.Marshal escapes <, > and & in what
// it returns; calling it keeps ids and params as they came, byte for byte.
func (m Message) MarshalJSON() ([]byte, error) {
	if m.Kind() == 0 {
		return nil, errors.New("protocol: a message has a method, a result or an error")
	}
	dst := []byte(`{"jsonrpc":"2.0"`)
	if !m.ID.IsZero() {
		dst = append(append(dst, `,"id":`...), m.ID.text...)
	}
	if m.Method != "" {
		dst = jsonx.AppendString(append(dst, `,"method":`...), m.Method)
	}
	for _, member := range []struct {
		name string
		text []byte
	}{{`,"params":`, m.Params}, {`,"result":`, m.Result}, {`,"error":`, m.Error}} {
		if member.text != nil {
			dst = append(append(dst, member.name...), member.text...)
		}
	}
	return append(dst, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler; it is Decode.
func (m *Message) UnmarshalJSON(text []byte) (err error) {
	*m, err = Decode(bytes.Clone(text))
	return err
}

// span says in which revisions a method of the specification is, and that it is
// a request unless its name says otherwise.
type span struct{ first, last Revision }

var (
	always   = span{V20241105, Latest}
	sessions = span{V20241105, LatestLegacy}
	stateful = span{V20250618, LatestLegacy}
	modern   = span{V20260728, Latest}
)

// spans has the methods of every revision, from both sides.
var spans = map[string]span{
	MethodInitialize: sessions, MethodInitialized: sessions, MethodPing: sessions, MethodSetLevel: sessions,
	MethodSubscribe: sessions, MethodUnsubscribe: sessions, MethodSample: sessions, MethodRoots: sessions,
	MethodRootsChanged: sessions,
	MethodElicit:       stateful,
	MethodDiscover:     modern, MethodListen: modern, MethodAcknowledged: modern,
	MethodToolsList: always, MethodToolsCall: always, MethodResourcesList: always, MethodResourceTemplates: always,
	MethodResourcesRead: always, MethodPromptsList: always, MethodPromptsGet: always, MethodComplete: always,
	MethodCancelled: always, MethodProgress: always, MethodLog: always, MethodToolsChanged: always,
	MethodResourcesChanged: always, MethodPromptsChanged: always, MethodResourceUpdated: always,
}

// Validate checks m by the rules of rev beyond those of Decode: methods of the
// specification are in the revisions that have them, requests with an id and
// notifications without; the params that methods share have their types; modern
// requests carry their _meta; results are objects, which since 2026-07-28 say
// what they are; errors have a code and a message. Methods that no revision has
// are those of extensions and pass. An error is an *Error, which is what to
// answer with if m is a request.
func (m *Message) Validate(rev Revision) error {
	switch m.Kind() {
	case 0:
		return Errorf(CodeInvalidRequest, "member method is missing")
	case KindResponse:
		return m.validateResponse(rev)
	}
	if s, known := spans[m.Method]; known {
		if rev < s.first || rev > s.last {
			return Errorf(CodeMethodNotFound, "Method not found: %s is not in revision %s", m.Method, rev)
		}
		if notification := strings.HasPrefix(m.Method, "notifications/"); notification != (m.Kind() == KindNotification) {
			if notification {
				return Errorf(CodeInvalidRequest, "%s is a notification: it has no id", m.Method)
			}
			return Errorf(CodeInvalidRequest, "%s is a request: member id is missing", m.Method)
		}
	}
	var p Params
	if err := m.DecodeParams(&p); err != nil {
		return err
	}
	if !rev.Modern() || m.Kind() == KindNotification {
		return nil
	}
	switch {
	case p.Meta.ProtocolVersion != rev.String():
		return Errorf(CodeInvalidParams, "params._meta[%q] must be %q, got %q", facts.MetaVersion, rev, p.Meta.ProtocolVersion)
	case p.Meta.ClientCapabilities == nil:
		return Errorf(CodeInvalidParams, "params._meta[%q] is missing; every request must carry it", facts.MetaCapabilities)
	}
	return nil
}

// validateResponse is Validate for a response. Which request it answers is not
// known here, so that a result is held to what all results of rev have in
// common.
func (m *Message) validateResponse(rev Revision) error {
	switch {
	case len(m.Result) == 0 && len(m.Error) == 0:
		return Errorf(CodeInvalidRequest, "a response has either result or error")
	case len(m.Result) > 0:
		if jsonx.KindOf(m.Result[0]) != jsonx.Object {
			return Errorf(CodeInvalidRequest, "result must be an object, got %s", jsonx.KindOf(m.Result[0]))
		}
		if rev.Modern() && jsonx.Lookup(m.Result, []string{"resultType"}) == nil {
			return Errorf(CodeInvalidRequest, "result.resultType is missing; every result of revision %s has it", rev)
		}
		return nil
	}
	if kind := jsonx.KindOf(m.Error[0]); kind != jsonx.Object {
		return Errorf(CodeInvalidRequest, "error must be an object, got %s", kind)
	}
	code := jsonx.Scanner{Buf: jsonx.Lookup(m.Error, []string{"code"})}
	if _, err := scanInteger(&code); err != nil {
		return Errorf(CodeInvalidRequest, "error.code must be an integer")
	}
	if message := jsonx.Lookup(m.Error, []string{"message"}); message == nil || message[0] != '"' {
		return Errorf(CodeInvalidRequest, "error.message must be a string")
	}
	return nil
}
