// Package link is the interface between the client and what carries its
// messages: byte streams, streamable HTTP, HTTP with server-sent events.
//
// The client knows what messages mean; a link knows how they travel. Neither
// knows the other's business: a link never looks into results, and the client
// never sees an HTTP request. [OverConn] and packages httplink and
// sselink implement [Transport] and [Link]; the client implements [Receiver].
//
// A connection goes through three states. Open returns a link that is open. It
// is then either closed by the client, with Close, or lost, which the link
// reports with Receiver.Lost. A lost link is closed as well; after Close
// nothing reaches the receiver any more.
//
// Some links can do more. They implement [Synchronous], [Fallback] or [Silent],
// and a receiver that wants to know of failed answers implements [Failer].
//
// Errors have no prefix of their own: the client wraps them with the operation.
package link

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// ErrSession is the error of Link.Send when the server does not know the
// session any more: HTTP 404 to a request that named one. A new session needs a
// new link. (basic/transports of the legacy revisions.)
var ErrSession = errors.New("the server ended the session")

// ErrUnprocessed is the ErrSession of a message that the server has refused
// because of the session, or that was not sent: it can be sent again in another
// session.
var ErrUnprocessed error = unprocessed{}

// unprocessed is the type of ErrUnprocessed.
type unprocessed struct{}

// Error returns that of ErrSession.
func (unprocessed) Error() string { return ErrSession.Error() }

// Unwrap returns ErrSession.
func (unprocessed) Unwrap() error { return ErrSession }

// Transport makes links to one server.
type Transport interface {
	// Open connects and gives what the server sends to to until the link is closed.
	// It is called once per connection, and again to reconnect. ctx bounds the
	// opening, not the life of the link.
	Open(ctx context.Context, to Receiver) (Link, error)
}

// Receiver receives the messages of the server. Its methods may be called at
// the same time by several goroutines of a link.
type Receiver interface {
	// Receive takes one message or one batch. The bytes are valid during the call
	// only. during is the HTTP request whose response had the message; it is nil for
	// everything else.
	Receive(message []byte, during *Message)
	// Lost is called once when the link ended by itself: the child process
	// exited, the stream ended or stayed broken after all attempts. It is not
	// called after Close.
	Lost(err error)
}

// Failer is implemented by receivers that want to know which message of the server
// could not be taken, because it was too long. The caller of a request waits for its
// answer in vain otherwise.
type Failer interface {
	// Fail takes what is known of the message: its id, and the Kind that it has. It is
	// the zero Message if nothing is known.
	Fail(m *protocol.Message, err error)
}

// Link is one connection to a server. Its methods are safe for concurrent use.
type Link interface {
	// Send sends m. Over a byte stream it returns when m is written. Over HTTP
	// it posts m in the caller's goroutine, gives every message of the answer
	// to the receiver and returns when the answer is complete; the end of ctx
	// aborts it.
	Send(ctx context.Context, m *Message) error
	// Close ends the connection in order: a session is deleted; the standard input
	// of a child process is closed; after a wait it is terminated, and then killed.
	// ctx ends the waiting. When it returns, the receiver is not called any more.
	Close(ctx context.Context) error
}

// Synchronous is implemented by links whose Send returns when the answer has
// come: streamable HTTP. If Synchronous returns true, the client does not wait
// for an answer after Send: one that has not come by then never will.
type Synchronous interface {
	Synchronous() bool
}

// Fallback is implemented by transports that name a stand-in for servers which
// refuse initialize with status 400, 404 or 405: streamable HTTP names HTTP
// with server-sent events (basic/transports of 2025-03-26, backwards
// compatibility).
type Fallback interface {
	Fallback() Transport
}

// Sessioned is implemented by links that have sessions with ids.
type Sessioned interface {
	// SessionID returns the id of the session, "" if there is none.
	SessionID() string
}

// Gapper is implemented by receivers that want to be notified when what the
// server sends by itself may have been lost, because the stream for it broke and
// was opened again.
type Gapper interface {
	Gap()
}

// Silent is implemented by links that know something of a server which does not
// answer.
type Silent interface {
	// Silence returns the end of what the server wrote elsewhere, and the names of
	// environment variables that it may miss. ok is false for links that have
	// neither.
	Silence() (stderr string, withheld []string, ok bool)
}

// Message is one message to the server.
type Message struct {
	Body     []byte            // the JSON text; a batch is an array. It stays as it is even after Send
	ID       protocol.ID       // of a request; zero for a notification or a response
	Method   string            // "" for a response or a batch
	Name     string            // what the header Mcp-Name says, "" for none
	Revision protocol.Revision // 0 before one is agreed on
	Modern   bool              // the revision has no sessions
	Header   http.Header       // more headers: of the call, and Mcp-Param-*; may be nil
}

// TooLong tells a receiver of a message that was too long.
func TooLong(to Receiver, long *transport.TooLongError) {
	f, ok := to.(Failer)
	if !ok {
		return
	}
	text, _ := long.Message()
	m, _ := protocol.Decode(text) // has what is known also with an error
	f.Fail(&m, fmt.Errorf("a message of the server was not taken: %w", long))
}

// Callback calls a callback of options, of a client, a pool or a group, and returns
// whatever it does: panic or runtime.Goexit do not end the goroutine of a connection. A panic is logged with the name of the callback, and is the error.
// logger may be nil.
func Callback(logger *zerolog.Logger, name string, fn func()) error {
	err := safely.Apart(fn)
	if failure, ok := errors.AsType[*safely.Failure](err); ok && logger != nil {
		safely.Log(logger.Error().Str("callback", name).Str("panic", visible.Text(failure.Value, visible.Sentence)).
			Bytes("stack", failure.Stack), "a callback panicked")
	}
	return err
}

// resumedKey is the key of Resumed in a context.
type resumedKey struct{}

// Resumed returns a context for Client.Listen and client.Connect that open a subscription
// in place of one that was interrupted, at another Client: Options.OnResumed is called.
func Resumed(ctx context.Context) context.Context {
	return context.WithValue(ctx, resumedKey{}, true)
}

// IsResumed reports whether ctx is that of Resumed.
func IsResumed(ctx context.Context) bool { return ctx.Value(resumedKey{}) != nil }
