package streamable

import (
	"net/http"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// Call is one message that was posted, from its admission to its answer. The
// Backend's methods and the handler of the request use it; Send and CloseStream
// may be called by several goroutines at once; only the Backend calls the other
// methods.
type Call struct {
	core.Request // what the message asks, of which the Frame is made

	HTTP     *http.Request
	Message  protocol.Message
	Revision protocol.Revision // 0 for initialize, which negotiates it
	Session  *session.Session  // nil for modern requests and for initialize
	// Buffer is memory that the answer may be appended to.
	Buffer []byte
	out    *exchange
	retry  time.Duration
	paused chan struct{} // nil unless Pausable
	pause  sync.Once
	batch  bool // one of several that share out
}

// Send sends a message to the client ahead of the answer and keeps no reference
// to it. It implements core.Peer. The errors are wire.ErrAnswered,
// wire.ErrNoStream and those of writing.
func (c *Call) Send(message []byte) error { return c.out.Send(message) }

// TakesEvents reports whether the client accepts an event stream, and with it
// messages ahead of the answer.
func (c *Call) TakesEvents() bool { return c.out.events }

// InBatch reports whether c is a message of a batch; see Backend.Batch.
func (c *Call) InBatch() bool { return c.batch }

// Opens says that c opens the session with that id. If a message is sent ahead
// of the answer, the header with the id leaves with it, possibly before Serve
// returns; else Answer.Session sets it.
func (c *Call) Opens(session string) { c.out.session = session }

// Resumable makes the answer to c a stream that the client can come back for. by is
// asked for it when the first message is sent ahead of the answer. For a message of
// a batch Resumable does nothing, because the answers of a batch share a
// connection. It must be called before the handler of c runs.
func (c *Call) Resumable(by *session.Session) {
	if !c.batch {
		c.out.resuming.by, c.out.resuming.id = by, c.Message.ID
	}
}

// Pausable allows CloseStream to end the connection of c. The channel that it
// returns is closed then, whereupon Serve must return an Answer with Later,
// since the connection lasts as long as Serve does. It must be called before
// the handler of c runs.
func (c *Call) Pausable() (paused <-chan struct{}) {
	c.paused = make(chan struct{})
	return c.paused
}

// CloseStream ends the connection of c but not the stream of its answer, for
// which the client is to come back. It returns false if that is not possible or
// has already been done.
func (c *Call) CloseStream() bool {
	if c.paused == nil || !c.out.resuming.can() || c.out.writable() != nil {
		return false
	}
	stream := c.out.resuming.stream(c.out)
	if stream == nil || !stream.Pause(c.retry) {
		return false
	}
	// The stream may have another connection by now, and be paused again.
	c.pause.Do(func() { close(c.paused) })
	return true
}

// Finish sends the answer of a call whose Serve has returned with Later; nil
// means no answer.
func (c *Call) Finish(answer []byte) { c.out.answer(0, answer) }

// Waker returns the function that wakes the Wait of the Line that Answer.Stream
// gets. The function does not block and keeps nothing of the request in memory.
func (c *Call) Waker() func() {
	if c.out.line == nil {
		c.out.line = newLine(c.HTTP)
	}
	return c.out.line.Wake
}

// Answer is what the Backend returns for a request. An ordinary result needs
// only Response.
type Answer struct {
	Response []byte          // a whole JSON-RPC response
	Fault    *protocol.Error // the error in Response; nil for a result
	Refused  bool            // the Fault came before anything of the request ran
	Status   int             // HTTP status; 0 means what Fault and the revision say
	Session  string          // the session that initialize opened
	// Challenge is the value of WWW-Authenticate that goes with a Status of 401
	// or 403, unless the answer is a stream already.
	Challenge string
	Later     bool // the stream is closed (Call.CloseStream): Call.Finish sends the answer
	// Stream, if not nil, sends what comes ahead of Response, and returns when
	// that is due, or when the client is gone. It waits with the Line, which
	// needs Call.Waker before; next to nothing of the request is kept there, so
	// that thousands can wait.
	Stream func(to Line)
	// End, if there is a Stream, is called when all of it has been written:
	// net/http does not wait for connections that were taken over.
	End func()
}

// panicked is the answer to a call whose handler has ended its goroutine with
// runtime.Goexit, so that Backend.Serve did not return.
func panicked(c *Call) Answer {
	fault := &protocol.Error{Code: protocol.CodeInternal, Message: "Internal error: " + safely.Message}
	return Answer{Response: wire.AppendErrorResponse(nil, c.Message.ID, fault, c.Revision), Fault: fault}
}

// statusOf returns the HTTP status of an answer with that error, nil for a
// result. If the request was refused before a handler ran, the reason decides;
// a handler may use the same code with another meaning. Otherwise answers
// within a legacy session are always 200, while modern revisions, and an
// initialize for which no revision fits, have statuses for some codes.
func statusOf(fault *protocol.Error, rev protocol.Revision, refused bool) int {
	if fault == nil {
		return http.StatusOK
	}
	if refused {
		switch fault.Code {
		case protocol.CodeBusy, protocol.CodeUnavailable:
			return http.StatusServiceUnavailable
		case protocol.CodeSessionNotFound:
			return http.StatusNotFound
		}
	}
	if rev != 0 && !rev.Modern() {
		return http.StatusOK
	}
	switch fault.Code {
	case protocol.CodeMethodNotFound:
		return http.StatusNotFound
	case protocol.CodeMissingCapability, protocol.CodeUnsupportedVersion, protocol.CodeHeaderMismatch:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
