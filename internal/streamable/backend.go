package streamable

import (
	"net/http"
	"time"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// Backend is the server behind the endpoint. Its functions are called on the
// goroutine of the HTTP request and concurrently.
type Backend struct {
	// Revisions are what the server speaks, newest first.
	Revisions []protocol.Revision
	// Serve answers a request. The answer's Response is nil when the client
	// cancelled the request and wants none.
	Serve func(c *Call) Answer
	// Notify takes a notification or a response of the client. A fault says why
	// it could not for now, and is the answer.
	Notify func(c *Call) *protocol.Error
	// Batch begins a batch of a session's messages: the Calls of it, which say so,
	// come until end is called. end saves what they have changed in the session; a
	// fault means that it was not saved, and is the response to all that have run.
	Batch func(x *session.Session) (end func() *protocol.Error)
	// Session finds a legacy session of the caller's, once for each request. The
	// fault says why there is none: CodeSessionNotFound, or CodeUnavailable for one
	// that may be there later.
	Session func(id string, r *http.Request) (*session.Session, *protocol.Error)
	// EndSession ends a session that Session found. A fault says why it could
	// not, and is the answer.
	EndSession func(x *session.Session) *protocol.Error
	// Listen opens to and sends the messages of a session that belong to no request,
	// or continues with the stream that to.Last names, until the session or the
	// stream ends, or to fails. A fault that it returns before it opens to is the
	// answer.
	Listen func(x *session.Session, to *Events) *protocol.Error
	// Connect serves a connection of HTTP+SSE that r opens, until it ends.
	// open begins its stream and returns it. A fault before that is the answer.
	Connect func(r *http.Request, open func(o Opening) (*Posted, error)) *protocol.Error
	// Refused is called for everything that the endpoint itself rejects, and for faults of
	// Notify: a message, a batch, or a request that brings none. r is its HTTP request.
	// sse is set for HTTP+SSE.
	Refused func(r *http.Request, sse bool, fault *protocol.Error)
	// Draining reports whether connections are to be closed after their answers.
	Draining func() bool
	// HeaderParams returns which arguments of the tool that c calls are mirrored
	// into headers: none if there is no such tool for its client.
	HeaderParams func(c *Call) []facts.Header
}

// Opening is what the Backend knows of a stream of HTTP+SSE that is about to open.
type Opening struct {
	ID   string                   // unguessable id that the client POSTs to
	Ours func(*http.Request) bool // tells whether a request is of the same client
}

// Line is the client's end of a stream that waits for something to send. One
// goroutine uses it at a time.
type Line interface {
	// Send sends a message.
	Send(message []byte) error
	// ComeBack tells the client after what time to come back, where that can be
	// said.
	ComeBack(retry time.Duration)
	// KeepAlive sends a sign of life, which clients ignore, once a message has
	// made the answer a stream.
	KeepAlive() error
	// Wait returns true when the Wake of the Call was called since it returned
	// last, and false when the client is gone.
	Wait() bool
}
