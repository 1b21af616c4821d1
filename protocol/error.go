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
	// CodeUnavailable answers requests that the server cannot serve for now,
	// whoever sends them: what it needs for that does not answer.
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
	case strings.HasPrefix(message, name):
		return message
	}
	return name + ": " + message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Append appends e as a JSON object. Data that encoding/json rejects is left
// out: an error must be sent in any case. RetryAfter is rounded up, so that a
// client which waits that long is never too early.
func (e *Error) Append(dst []byte) []byte {
	code, message := e.Code, e.Message
	if code == 0 {
		code = CodeInternal
	}
	if message == "" {
		message = code.String()
	}
	dst = fmt.Appendf(dst, `{"code":%d,"message":`, int(code))
	dst = jsonx.AppendString(dst, message)
	switch {
	case e.Data == nil && e.RetryAfter > 0:
		dst = fmt.Appendf(dst, `,"data":{"retryAfterMs":%d}`, (e.RetryAfter-1)/time.Millisecond+1)
	case e.Data != nil:
		if data, err := json.Marshal(e.Data); err == nil {
			dst = append(dst, `,"data":`...)
			dst = append(dst, data...)
		}
	}
	return append(dst, '}')
}

// AppendErrorResponse appends a whole error response. A zero id means that the
// id of the request could not be read: it is written as null, or left out in
// revisions that allow that (OptionalErrorID).
func AppendErrorResponse(dst []byte, id ID, e *Error, rev Revision) []byte {
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if !id.IsZero() || !rev.Has(OptionalErrorID) {
		dst = append(dst, `,"id":`...)
		dst = id.Append(dst)
	}
	dst = append(dst, `,"error":`...)
	dst = e.Append(dst)
	return append(dst, '}')
}

// UnsupportedVersion returns the error for a revision that the server does not
// serve (basic/versioning of 2026-07-28). Data lists those that it does serve,
// in the order of supported, so that the client can choose one of them.
func UnsupportedVersion(requested string, supported []Revision) *Error {
	return &Error{
		Code:    CodeUnsupportedVersion,
		Message: fmt.Sprintf("Unsupported protocol version %q", requested),
		Data: struct {
			Supported []string `json:"supported"`
			Requested string   `json:"requested"`
		}{RevisionNames(supported), requested},
	}
}

// MethodNotFound returns the error for a method that the server does not have,
// or not in the revision of the request.
func MethodNotFound(method string) *Error {
	return Errorf(CodeMethodNotFound, "Method not found: %s", method)
}
