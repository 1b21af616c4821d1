package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/visible"
)

// Code is a JSON-RPC error code.
type Code int

// The codes of JSON-RPC 2.0, of the specification, and of this module.
const (
	CodeParseError     Code = -32700 // the text is not JSON
	CodeInvalidRequest Code = -32600 // the JSON is not a request
	CodeMethodNotFound Code = -32601 // there is no such method
	CodeInvalidParams  Code = -32602 // the params do not fit the method
	CodeInternal       Code = -32603 // the server failed

	CodeResourceNotFound   Code = -32002 // legacy revisions only
	CodeHeaderMismatch     Code = -32020 // headers and body disagree
	CodeMissingCapability  Code = -32021 // the client did not declare what is needed
	CodeUnsupportedVersion Code = -32022 // the server does not speak that revision

	// CodeSessionNotFound answers requests of a session that is not there, in
	// legacy revisions. None defines a code for it; the HTTP status 404 decides.
	CodeSessionNotFound Code = -32001

	// What no revision defines has the number of the HTTP status that says the
	// same: 2026-07-28 wants new codes outside the range of JSON-RPC
	// (basic/index, "Error Codes"). Handlers had better not give these numbers
	// another meaning.

	// CodeBusy answers requests beyond a limit of the server.
	CodeBusy Code = 429
	// CodeUnavailable answers requests that the server cannot serve for now, from
	// any client: a service that it needs does not answer.
	CodeUnavailable Code = 503
	// CodeInsufficientScope answers requests whose access token lacks a scope.
	// Over HTTP, status 403 and WWW-Authenticate say the same.
	CodeInsufficientScope Code = 403
	// CodeUnauthorized answers requests that need an access token and have
	// none, or one that has ended since. Over HTTP, that is status 401.
	CodeUnauthorized Code = 401
)

// codeNames are the texts that an error without a message is sent with, and the
// prefix of Error's text. Those of the first five codes come from JSON-RPC 2.0.
var codeNames = map[Code]string{
	CodeParseError:         "Parse error",
	CodeInvalidRequest:     "Invalid request",
	CodeMethodNotFound:     "Method not found",
	CodeInvalidParams:      "Invalid params",
	CodeInternal:           "Internal error",
	CodeResourceNotFound:   "Resource not found",
	CodeHeaderMismatch:     "Header mismatch",
	CodeMissingCapability:  "Missing required client capability",
	CodeUnsupportedVersion: "Unsupported protocol version",
	CodeSessionNotFound:    "Session not found",
	CodeBusy:               "Too many requests",
	CodeUnavailable:        "Service unavailable",
	CodeInsufficientScope:  "Insufficient scope",
	CodeUnauthorized:       "Unauthorized",
}

// String returns the name of the code, or its number if it has none.
func (c Code) String() string {
	if name, ok := codeNames[c]; ok {
		return name
	}
	return fmt.Sprintf("error %d", int(c))
}

// Error is a JSON-RPC error as it is sent. An *Error anywhere in the chain of
// an error that a handler returns becomes the answer; the dispatcher turns
// every other error into one with CodeInternal. An Error must not be changed
// once it has been returned.
type Error struct {
	Code    Code   // 0 is sent as CodeInternal
	Message string // "" is sent as the code's name
	Data    any    // encoded with encoding/json; nil is left out
	// RetryAfter is when the same request may pass; 0 if that is not known. It
	// is sent as retryAfterMs, in whole milliseconds, in place of a nil Data;
	// over HTTP it is the header Retry-After, too.
	RetryAfter time.Duration
	// Err is the cause. It is for errors.Is and the log and never sent.
	Err error
}

// Errorf returns an Error with that code and a message formatted as by
// fmt.Errorf. The operand of %w becomes Err, the cause, whose text is then part
// of the message that is sent.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Error returns the message with the name of the code before it, unless the
// message begins with that already. Control characters and invisible ones,
// which a peer may have put there to deceive the reader of a log, are replaced;
// Message keeps them.
func (e *Error) Error() string {
	name, message := e.Code.String(), visible.Text(e.Message, 0)
	switch {
	case message == "":
		return name
	case strings.HasPrefix(message, name), e.Code == CodeSessionNotFound: // other SDKs give that number another meaning
		return message
	}
	return name + ": " + message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// MarshalJSON implements json.Marshaler. Data that does not encode is left out.
func (e *Error) MarshalJSON() ([]byte, error) {
	code, message := e.Code, e.Message
	if code == 0 {
		code = CodeInternal
	}
	if message == "" {
		message = code.String()
	}
	dst := fmt.Appendf(nil, `{"code":%d,"message":`, int(code))
	dst = jsonx.AppendString(dst, message)
	switch {
	case e.Data == nil && e.RetryAfter > 0:
		dst = fmt.Appendf(dst, `,"data":{"retryAfterMs":%d}`, (e.RetryAfter-1)/time.Millisecond+1)
	case e.Data != nil:
		if data, err := json.Marshal(e.Data); err == nil {
			dst = append(append(dst, `,"data":`...), jsonx.Paired(data)...)
		}
	}
	return append(dst, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler. Data becomes a json.RawMessage, and
// RetryAfter is what it says.
func (e *Error) UnmarshalJSON(text []byte) error {
	var object struct {
		Code    Code            `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}
	if err := jsonx.Unmarshal(text, &object); err != nil {
		return err
	}
	*e = Error{Code: object.Code, Message: object.Message}
	if object.Data != nil {
		e.Data = object.Data
		var wait struct {
			RetryAfter int64 `json:"retryAfterMs"`
		}
		if jsonx.Unmarshal(object.Data, &wait) == nil && wait.RetryAfter > 0 {
			e.RetryAfter = time.Duration(wait.RetryAfter) * time.Millisecond
		}
	}
	return nil
}
