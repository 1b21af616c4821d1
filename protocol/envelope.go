package protocol

import (
	"errors"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Message is one JSON-RPC message, scanned but not decoded. Params, Result and
// Error are parts of the scanned text and valid for as long as that is; ID and
// Method are copies. Which members are set tells a request (method and id), a
// notification (method alone) and a response (neither method nor params). A
// Message that Scan has refused holds what was read before the fault.
type Message struct {
	// ID is zero in notifications and in error responses to messages that could
	// not be read.
	ID     ID
	Method string // "" in a response
	Params []byte // nil if absent; always an object otherwise
	Result []byte // nil if absent
	Error  []byte // nil if absent
}

// IsRequest reports whether m must be answered.
func (m *Message) IsRequest() bool { return m.Method != "" && !m.ID.IsZero() }

// IsNotification reports whether m has a method but wants no answer.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID.IsZero() }

// IsResponse reports whether m answers a request that this side has sent.
func (m *Message) IsResponse() bool { return m.Method == "" }

// MeantAsResponse reports whether m is a response, or was meant as one when
// Scan refused it. An invalid response must not be answered with an error: its
// id belongs to a request of the opposite direction, and two peers that
// answered each other's faults would never stop.
func (m *Message) MeantAsResponse() bool {
	return m.Method == "" && (m.Result != nil || m.Error != nil)
}

// Limits bound what Scan accepts. The zero value means the defaults.
type Limits struct {
	Depth int // nesting of the whole message; 0 means 64
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
)

// Scan reads one message from text. It checks the whole of it: JSON syntax,
// UTF-8, nesting depth, duplicate members, and that nothing follows. Duplicate
// members within params are the exception; ScanParams and the decoders of
// arguments find those and can say where they are.
//
// What is wrong is returned as the error to answer with. m.ID is set whenever
// the id could be read, even when the error lies elsewhere, so that the answer
// reaches the request that it is for.
//
// Scan enforces basic/index of every revision: jsonrpc must be "2.0", ids are
// strings or integers and never null, params is an object. Batches are refused
// here; a transport that accepts them splits them first (see batch.go).
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

// scanMembers reads the members of the envelope. There are two kinds of fault:
// one of meaning (invalid) is remembered while the scan goes on, because the id
// may still follow; one of syntax (err) ends the scan. Only the first fault of
// meaning is kept.
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

// scanID reads the id into m. It skips the value first, so that the scan can go
// on behind an id that is not allowed, and then reads the same bytes again as
// an ID.
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

// checkShape checks that the members in seen make a request, a notification or
// a response and no mixture. An error response may lack its id: that is how a
// peer answers a message that it could not read.
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
