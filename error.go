package mcp

import "github.com/talaria-go/mcp/protocol"

// Error is an error with a JSON-RPC code. Returned from a handler, also wrapped
// in another, it becomes the answer as it is; see Errorf.
type Error = protocol.Error

// Code is the code of a JSON-RPC error; package protocol has all of them.
type Code = protocol.Code

// The codes that handlers use.
const (
	CodeInvalidParams = protocol.CodeInvalidParams // the request is wrong
	CodeInternal      = protocol.CodeInternal      // the server is
	CodeBusy          = protocol.CodeBusy          // worth trying again, later
)

// Errorf returns an error with a code, for a handler that wants its request
// answered with a JSON-RPC error; that of a tool, for one, then fails the call
// and is not for the model. The text goes to the client. A %w wraps a cause, as
// with fmt.Errorf, which is in the text, too.
func Errorf(code Code, format string, args ...any) *Error {
	return protocol.Errorf(code, format, args...)
}
