package protocol

import (
	"errors"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Message is one JSON-RPC message, scanned but not decoded. Params, Result
// and Error are parts of the scanned text and live as long as it does.
type Message struct {
	ID     ID
	Method string // "" in a response
	Params []byte // nil if absent; always an object otherwise
	Result []byte // nil if absent
	Error  []byte // nil if absent
}

// IsRequest tells whether m wants an answer.
func (m *Message) IsRequest() bool { return m.Method != "" && !m.ID.IsZero() }

// IsNotification tells whether m wants none.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID.IsZero() }

// IsResponse tells whether m answers a request of ours.
func (m *Message) IsResponse() bool { return m.Method == "" }

// MeantAsResponse tells whether m is a response, or would be one if Scan had not
// refused it. Nobody answers one: its id is that of a request of the other
// direction, and two sides that do would never end.
func (m *Message) MeantAsResponse() bool {
	return m.Method == "" && (m.Result != nil || m.Error != nil)
}

// Limits bound what Scan accepts. The zero value means the defaults.
type Limits struct {
	Depth int // nesting of the whole message; 0 means 64
}

// maxMethod is how many bytes the name of a method may have.
const maxMethod = 1 << 10

// members of the envelope, to find duplicates with one bit each.
const (
	hasVersion = 1 << iota
	hasID
	hasMethod
	hasParams
	hasResult
	hasError
)

// Scan reads one message from text. The whole text is checked: syntax,
// Unicode, depth, duplicate members, nothing after the message. Duplicates
// inside params are left to what reads them, which can name the place. What fails is returned as the error to answer with; m.ID is set
// whenever it could be read, so that the answer finds its request.
//
// It follows basic/index of every revision: jsonrpc must be "2.0", ids are
// strings or integers and never null, params is an object.
func Scan(text []byte, limits Limits, m *Message) *Error {
	*m = Message{}
	s := jsonx.Scanner{Buf: text, MaxDepth: limits.Depth}
	if kind := s.Peek(); kind != jsonx.Object {
		if _, err := s.Skip(); err != nil {
			return scanError(err)
		}
		if kind == jsonx.Array {
			return Errorf(CodeInvalidRequest, "batches are not supported here: send one message at a time")
		}
		return Errorf(CodeInvalidRequest, "a message must be a JSON object, got %s", kind)
	}
	invalid, seen, err := scanMembers(&s, m)
	if err == nil {
		err = s.End()
	}
	if err != nil {
		return scanError(err)
	}
	if invalid != nil {
		return invalid
	}
	return m.checkShape(seen)
}

// scanMembers reads the members. A fault of meaning is kept while the scan
// goes on, because the id may still come; a fault of syntax ends it.
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

func scanMember(s *jsonx.Scanner, m *Message, name []byte) (bit int, fault *Error, err error) {
	switch string(name) {
	case "jsonrpc":
		text, err := s.Skip()
		if err == nil && string(text) != `"2.0"` {
			fault = Errorf(CodeInvalidRequest, `jsonrpc must be "2.0"`)
		}
		return hasVersion, fault, err
	case "id":
		fault, err = m.scanID(s)
		return hasID, fault, err
	case "method":
		if s.Peek() != jsonx.String {
			_, err = s.Skip()
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
		if kind != jsonx.Object {
			fault = Errorf(CodeInvalidRequest, "params must be an object, got %s", kind)
		}
		return hasParams, fault, err
	case "result":
		m.Result, err = s.Skip()
		return hasResult, nil, err
	case "error":
		m.Error, err = s.Skip()
		return hasError, nil, err
	}
	// JSON-RPC 2.0 has no other members; extensions that add some are ignored.
	_, err = s.Skip()
	return 0, nil, err
}

// scanID keeps what can be kept of the id; errors of syntax are the caller's.
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

func (m *Message) checkShape(seen int) *Error {
	switch {
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

// scanError turns a scanner's error into the answer for it.
func scanError(err error) *Error {
	var depth *jsonx.DepthError
	var duplicate *jsonx.DuplicateError
	switch {
	case errors.As(err, &depth), errors.As(err, &duplicate):
		return &Error{Code: CodeInvalidRequest, Message: "Invalid request: " + err.Error(), Err: err}
	}
	return &Error{Code: CodeParseError, Message: "Parse error: " + err.Error(), Err: err}
}

// methodName returns the method as a string, without a copy for the ones that
// the specification names.
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
