package frame

import (
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// Outcome is how a message ended in its handler. The changes of its session are
// saved in mcp.Options.Store only after that: if that fails, the client gets
// protocol.CodeInternal although the handler succeeded, and the Event
// store.failed reports it.
type Outcome struct {
	// Duration is the time from before the first Begin until the answer was made. That
	// of subscriptions/listen is the time that opening took.
	Duration time.Duration
	// Status is "" for success, otherwise one of these words, so that it can be a
	// label:
	//
	//	tool_error      a tool said that it failed
	//	arguments       the arguments did not fit their schema
	//	timeout         the call had used up its time
	//	cancelled       the client cancelled the request, or has left
	//	down            the server shut down before it had ended
	//	panic           the handler panicked, or ended its goroutine
	//	input_required  the client is to answer questions, and to come again
	//	task            the call has become a task, and continues
	//
	// or the word for Code: parse_error, invalid_request, method_not_found,
	// invalid_params, internal, resource_not_found, header_mismatch,
	// missing_capability, unsupported_version, session_not_found, busy, unavailable,
	// insufficient_scope, unauthorized, and _OTHER for any code of a handler's own.
	Status string
	// Code is that of the error that was made for an answer, 0 for a result. A
	// handler can choose any.
	Code protocol.Code
	// Err is the error of the handler, also of a tool that failed, before its text
	// was kept from the client (mcp.Options.MaskErrors); nil if there was none. It
	// may hold secrets.
	Err error
}

// Failed reports whether Status is an error of the server, of a handler or of
// the request: it is false for success, if the client disconnected, and for
// calls that continue.
func (o Outcome) Failed() bool {
	switch o.Status {
	case "", "cancelled", "input_required", "task":
		return false
	}
	return true
}
