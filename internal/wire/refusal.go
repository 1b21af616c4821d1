package wire

import (
	"fmt"

	"github.com/talaria-go/mcp/protocol"
)

// Refusal is the word for why something is refused before a handler or an observer
// could see it, in a fault whose code does not tell. frame.Event has the list.
type Refusal string

// Error implements error.
func (r Refusal) Error() string { return string(r) }

// Refused returns the error for what is refused for a reason that code does not tell.
func Refused(why Refusal, code protocol.Code, format string, args ...any) *protocol.Error {
	return &protocol.Error{Code: code, Message: fmt.Sprintf(format, args...), Err: why}
}
