// Package upcall is what a request leads to from package frame: the parts of a
// server that carry messages, questions and values for it. They are interfaces,
// so that package frame imports none of what implements them, and they know no
// Frame, so that this package can lie below it.
//
//   - [Config] is what a Frame is made of. The connections of a server make one
//     for each message.
//   - [Peer], [Session] and [Ender] are the client, its legacy session and who
//     can end that.
//   - [Askers] makes the [Asker] of a request, which carries each [Question] of
//     its handler to the client.
//   - [Detacher] makes a request a task, and [Detachment] is one that is.
//
// The package has no state. All of it may be used by several goroutines at once.
package upcall

import (
	"context"
	"net/http"

	"github.com/talaria-go/mcp/internal/assigns"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Config is what a Frame is made of.
type Config struct {
	ID        protocol.ID // zero for a notification
	Method    string
	Params    protocol.Params
	Revision  protocol.Revision // zero means protocol.Latest
	Transport Transport
	Peer      Peer           // nil drops every message
	Session   Session        // nil in modern revisions
	LogLevel  protocol.Level // of a modern request; zero means none wanted
	Askers    Askers         // nil if the client cannot be asked
	Ender     Ender          // nil if the session cannot be ended by who handles its requests
}

// Transport is how a request came.
type Transport struct {
	Kind string // a frame.Transport
	// HTTP is the request over HTTP. For SSE and WebSocket it is the one that
	// opened the connection; on other transports it is nil.
	HTTP *http.Request
	// Remote is the client's address on a socket, "" elsewhere.
	Remote string
}

// RemoteAddr returns the client's address as net/http has it, "" if there is
// none.
func (t *Transport) RemoteAddr() string {
	if t.HTTP == nil {
		return t.Remote
	}
	return t.HTTP.RemoteAddr
}

// Peer takes messages for the client that relate to the current request. Send
// must not keep message after it returns. After the answer it returns
// wire.ErrAnswered.
type Peer interface {
	Send(message []byte) error
}

// Session is the legacy session that a request belongs to.
type Session interface {
	ID() string
	Initialized() bool
	ClientInfo() *protocol.Implementation
	Capabilities() *protocol.ClientCapabilities
	LogLevel() protocol.Level
	SetLogLevel(protocol.Level)
	Assigns() *assigns.Assigns
}

// Ender is where Frame.EndSession leads: the server.
type Ender interface {
	EndSession(s Session, reason error) error
}

// Detacher turns a request into a task; the server brings it for tools that may
// run as one.
type Detacher interface {
	// Detach makes the request a task. It returns nil if there is to be none,
	// since the client takes none or the answer is on its way.
	Detach() (*Detachment, error)
	// Asks tells whether a request that asks its client becomes a task first, so
	// that its handler waits for the answer and does not run again.
	Asks() bool
}

// Detachment is a request as a task.
type Detachment struct {
	Asker  Asker                       // takes its questions
	Note   func(p wire.Progress) error // takes its progress, whose token is not set
	Answer func()                      // answers the request; from then on nothing else can be sent for it
}

// detacherKey is the context key of the Detacher. It is in the context and not
// in the Config because only the handler of the tool that may become a task has
// one, and middleware around it has none.
type detacherKey struct{}

// WithDetacher returns a context whose Frames can be detached.
func WithDetacher(ctx context.Context, d Detacher) context.Context {
	return context.WithValue(ctx, detacherKey{}, d)
}

// DetacherOf returns what WithDetacher put into ctx; nil if that is nothing.
func DetacherOf(ctx context.Context) Detacher {
	d, _ := ctx.Value(detacherKey{}).(Detacher)
	return d
}
