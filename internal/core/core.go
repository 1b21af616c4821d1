// Package core is what a request leads to from package frame: the parts of a
// server that carry messages, questions and values for it. They have no Frame,
// so that this package can lie below frame, and frame imports none of what
// implements them.
//
//   - [Config] is what a Frame is made of. The connections of a server make one
//     for each message.
//   - [Peer] is the client, [Session] its legacy session, of the [ClientInfo] that
//     initialize has described, and [Server] the server.
//   - [Grant] is who a request comes from, [Values] is what handlers keep, and a
//     [Key] is the place of one value.
//   - [Askers] makes the [Asker] of a request, which carries each [Question] of
//     its handler to the client.
//   - [TaskStarter] makes a request a task, and [StartedTask] is one that is.
//   - [AnswerStream] is an answer that a client can come back for, [EventWriter] and
//     [StreamConn] are the connections that carry it.
//
// The package has no state and starts no goroutines. All of it may be used by
// several goroutines at once. The lock of Values is held while the functions that
// GetOrSet and Update are given run, and while values are encoded and decoded, all
// of which is code of users.
package core

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Config is what a Frame is made of.
type Config struct {
	Request   *Request          // which must not change any more; nil for a Frame without
	Revision  protocol.Revision // zero means protocol.Latest
	Transport Transport
	Peer      Peer           // nil drops every message
	Session   Session        // nil in modern revisions
	LogLevel  protocol.Level // of a modern request; zero means none wanted
	Askers    Askers         // nil if the client cannot be asked
	Server    *Server        // nil if there is none: then no session can be ended, and nothing is known of names
}

// Request is the frame.Request of a Frame, in the memory of the reader of the
// message.
type Request struct {
	ID     protocol.ID // zero for a notification
	Method string
	Params protocol.Params
}

// Read makes r what m asks. A fault is one of the params; all else of r is right
// then.
func (r *Request) Read(m *protocol.Message) *protocol.Error {
	r.ID, r.Method = m.ID, m.Method
	return wire.ScanParams(m, &r.Params)
}

// Initializes reports whether r opens a legacy session. It does, whatever revision _meta
// names, if it says which revision the session shall have. Without that it is, with a modern
// revision in _meta, a method that the revision no longer has (basic/versioning of
// 2026-07-28).
func (r *Request) Initializes() bool {
	return r.Method == protocol.MethodInitialize && (r.Params.Meta.ProtocolVersion == "" || wire.NamesVersion(r.Params.Raw))
}

// Transport is how a request came.
type Transport struct {
	Kind string // a frame.Transport
	// HTTP is the request over HTTP. For SSE and WebSocket it is the one that
	// opened the connection; on other transports it is nil.
	HTTP *http.Request
	// Remote is the client's address on a socket, behind "unix:" for a Unix socket;
	// "" elsewhere.
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
	Assigns() *Values
}

// ClientInfo is what initialize says of the client of a session.
type ClientInfo struct {
	Revision     protocol.Revision
	Info         *protocol.Implementation
	Capabilities *protocol.ClientCapabilities // nil means none
	Principal    string                       // who opens the session; "" for an anonymous client
	// Cost is what Info and Capabilities take, in bytes, as ClientCost tells; see
	// session.Config.Memory.
	Cost int
}

// ClientCost returns about how many bytes the parts of initialize take when they
// are decoded.
func ClientCost(parts ...[]byte) (bytes int) {
	for _, text := range parts {
		bytes += len(text)
		for _, c := range text {
			if c == ',' { // it parts members and items
				bytes += 112
			}
		}
	}
	return bytes
}

// The reasons for which sessions end; package mcp exports them. All of them are
// ErrSessionClosed to errors.Is.
var (
	ErrSessionClosed  = errors.New("session: closed")
	ErrSessionDeleted = fmt.Errorf("%w by its client", ErrSessionClosed)
	ErrSessionIdle    = fmt.Errorf("%w because it was not used", ErrSessionClosed)
)

// ErrTooManySessions is the error of opening a session beyond the maximum.
var ErrTooManySessions = errors.New("session: too many sessions")

// Server is where Frame.EndSession, Frame.Labels and what a Frame sends lead. It does
// not change.
type Server struct {
	EndSession func(s Session, reason error) error
	// Knows reports whether there is such a method, and whether name is that of
	// something registered that the method names, and one of the first that were
	// asked for, up to a limit.
	Knows func(method, name string) (knowsMethod, knowsName bool)
	// SentLong notes that a message to a client is longer than what clients take by
	// default. method and name are those of Frame.Labels.
	SentLong func(method, name string, size int)
	// Owner is the *mcp.Server.
	Owner any
}

// EventWriter is a connection that takes events. After an error it is of no further
// use.
type EventWriter interface {
	// Event sends a message, or for a nil one nothing but the id: that gives
	// the client something to come back with. An event with an empty id has none.
	Event(id string, message []byte) error
	// Pause tells the client when to come back; nothing follows on this
	// connection.
	Pause(retry time.Duration) error
}

// StreamConn is where a stream of a session continues.
type StreamConn interface {
	EventWriter
	// Open begins it. It is called before anything is sent but what was missed.
	Open() error
	// Waker returns the function that makes Wait return. It does not block.
	Waker() func()
	// Wait returns true when the Waker was called since it returned last, or now
	// and then, and false when the connection is over.
	Wait() bool
}

// AnswerStream is an answer that a client can come back for when its connection is
// lost: it keeps what is sent and forwards it to the connection that it has, if
// any.
type AnswerStream interface {
	// Send sends a message ahead of the answer. That the client is disconnected is
	// not an error: it may come back for the message.
	Send(message []byte) error
	// End sends the answer, nil for none, and ends the stream.
	End(answer []byte)
	// Pause ends the connection but not the stream: the client is to come back
	// after retry. It returns false if there is no connection.
	Pause(retry time.Duration) bool
}

// TaskStarter turns a request into a task; the server brings it for tools that may
// run as one.
type TaskStarter interface {
	// Detach makes the request a task, which knows what the request has learned. It
	// returns nil if the client takes no tasks, or the response is on its way.
	Detach(known Recorded) (*StartedTask, error)
	// Asks reports whether a request that asks its client becomes a task first,
	// so that its handler waits for the answer and does not run again.
	Asks() bool
}

// StartedTask is a request as a task.
type StartedTask struct {
	Asker  Asker                       // takes its questions
	Note   func(p wire.Progress) error // takes its progress, whose token is not set
	Run    func() (int, int64)         // which run of the task this is, and its token
	Answer func()                      // answers the request; from then on nothing else can be sent for it
}

// taskStarterKey is the context key of the TaskStarter. It is in the context and not
// in the Config because only the handler of the tool that may become a task has
// one, and middleware around it has none.
type taskStarterKey struct{}

// WithTaskStarter returns a context whose Frames can be detached.
func WithTaskStarter(ctx context.Context, d TaskStarter) context.Context {
	return context.WithValue(ctx, taskStarterKey{}, d)
}

// TaskStarterOf returns what WithTaskStarter put into ctx; nil if that is nothing.
func TaskStarterOf(ctx context.Context) TaskStarter {
	d, _ := ctx.Value(taskStarterKey{}).(TaskStarter)
	return d
}
