// Package frame carries one request through a handler. A Frame is the
// request's context.Context and knows who asks, in which revision, over which
// transport, and how to tell the client how far the work has come.
package frame

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// Frame is one request on its way through the server. It is a
// context.Context: it ends when the request is cancelled, times out, or the
// server gives up waiting at shutdown, so it goes straight into calls that
// take a context.
//
// A Frame belongs to one request, is safe for concurrent use, and is never
// reused, so it may outlive the handler. After the answer is sent, Progress
// and Log return ErrAnswered.
type Frame struct {
	ctx  context.Context
	root *Frame   // the Frame that WithContext copied; the fields below are read there
	as   *Request // what Request returns in place of root.request; nil unless Renamed

	request   Request
	revision  protocol.Revision
	transport Transport
	peer      Peer
	session   Session
	askers    Askers

	components Components

	level protocol.Level

	detaching sync.Mutex // serialises Detach

	mu       sync.Mutex
	own      *Assigns // assigns of a request that has no session
	progress float64  // the last value told, if told is set
	told     bool
	client   *client
	asking   Asker
	note     func(message string) error // set once the request is a task
	needs    []string                   // what NeedScopes was asked for
	keys     map[string]bool            // of the questions so far
	asked    string                     // begins the ids of URL questions; "" until there is one
}

// client is the modern client's view of itself, decoded when asked for.
type client struct {
	info         *protocol.Implementation
	capabilities *protocol.ClientCapabilities
}

// Request is what was asked.
type Request struct {
	ID     protocol.ID // zero for a notification
	Method string
	Params protocol.Params
}

// Peer takes messages for the client that relate to the current request.
// Send must not keep message after it returns. After the answer it returns
// ErrAnswered.
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
	Assigns() *Assigns
}

// Config is what a Frame is made of. The server fills it in; tests of
// handlers may, too.
type Config struct {
	Request    Request
	Revision   protocol.Revision // zero means protocol.Latest
	Transport  Transport
	Peer       Peer           // nil drops every message
	Session    Session        // nil in modern revisions
	LogLevel   protocol.Level // of a modern request; zero means none wanted
	Askers     Askers         // nil if the client cannot be asked
	Components Components     // nil if nothing can be added
}

// New returns the Frame of one request.
func New(ctx context.Context, c Config) *Frame {
	f := &Frame{
		ctx: ctx, request: c.Request, revision: c.Revision, transport: c.Transport,
		peer: c.Peer, session: c.Session, askers: c.Askers, level: c.LogLevel,
		components: c.Components,
	}
	if f.revision == 0 {
		f.revision = protocol.Latest
	}
	f.root = f
	return f
}

// WithContext returns a Frame for the same request with another context,
// which should come from f.
func (f *Frame) WithContext(ctx context.Context) *Frame {
	return &Frame{ctx: ctx, root: f.root, as: f.as}
}

// Renamed returns a Frame for the same request in which its params have another
// name: that by which a server knows what another one offers under a prefix.
func (f *Frame) Renamed(name string) *Frame {
	as := *f.Request()
	as.Params.Name = name
	return &Frame{ctx: f.ctx, root: f.root, as: &as}
}

// Deadline implements context.Context.
func (f *Frame) Deadline() (time.Time, bool) { return f.ctx.Deadline() }

// Done implements context.Context.
func (f *Frame) Done() <-chan struct{} { return f.ctx.Done() }

// Err implements context.Context.
func (f *Frame) Err() error { return f.ctx.Err() }

type frameKey struct{}

// Value implements context.Context. From finds the Frame through it.
func (f *Frame) Value(key any) any {
	if _, ok := key.(frameKey); ok {
		return f
	}
	return f.ctx.Value(key)
}

// From returns the Frame that ctx is or comes from.
func From(ctx context.Context) (f *Frame, ok bool) {
	f, ok = ctx.Value(frameKey{}).(*Frame)
	return f, ok
}

// Request returns what was asked: id, method, raw params. Nothing in it may be
// changed.
func (f *Frame) Request() *Request {
	if f.as != nil {
		return f.as
	}
	return &f.root.request
}

// Sent returns what the client asked, which Request differs from in a Frame
// that was Renamed.
func (f *Frame) Sent() *Request { return &f.root.request }

// Asked tells whether the handler has asked the client something so far, or
// kept something with Once: what it returns may then depend on the answer.
func (f *Frame) Asked() bool {
	f.root.mu.Lock()
	defer f.root.mu.Unlock()
	return f.root.asking != nil
}

// Revision returns the protocol revision of the request.
func (f *Frame) Revision() protocol.Revision { return f.root.revision }

// SessionID returns the id of the legacy session, or "" if there is none.
func (f *Frame) SessionID() string {
	if s := f.root.session; s != nil {
		return s.ID()
	}
	return ""
}

// Session returns the legacy session, or nil if there is none.
func (f *Frame) Session() Session { return f.root.session }

// Initialized tells whether the client has said notifications/initialized. A
// modern request has no such phase and is always ready.
func (f *Frame) Initialized() bool {
	s := f.root.session
	return s == nil || s.Initialized()
}

// ClientInfo returns what the client says of itself, or nil if it says
// nothing. It is not verified.
func (f *Frame) ClientInfo() *protocol.Implementation {
	if s := f.root.session; s != nil {
		return s.ClientInfo()
	}
	return f.modernClient().info
}

// ClientCapabilities returns what the client can do; never nil.
func (f *Frame) ClientCapabilities() *protocol.ClientCapabilities {
	if s := f.root.session; s != nil {
		return s.Capabilities()
	}
	return f.modernClient().capabilities
}

// modernClient decodes the client's metadata, once and only if asked for. What
// does not fit its type counts as absent.
func (f *Frame) modernClient() *client {
	root := f.root
	root.mu.Lock()
	defer root.mu.Unlock()
	if root.client == nil {
		c := &client{capabilities: &protocol.ClientCapabilities{}}
		meta := &root.request.Params.Meta
		if meta.ClientInfo != nil {
			c.info = &protocol.Implementation{}
			_ = json.Unmarshal(meta.ClientInfo, c.info)
		}
		if meta.ClientCapabilities != nil {
			_ = json.Unmarshal(meta.ClientCapabilities, c.capabilities)
		}
		root.client = c
	}
	return root.client
}

// Transport returns how the request came.
func (f *Frame) Transport() Transport { return f.root.transport }

// Header returns the first value of an HTTP request header, whatever the case
// of name, or "" if there is none or the transport has no headers.
func (f *Frame) Header(name string) string {
	if r := f.root.transport.HTTP; r != nil {
		return r.Header.Get(name)
	}
	return ""
}

// Query returns the first value of a parameter in the request's URL, and
// whether there is one.
func (f *Frame) Query(name string) (value string, ok bool) {
	values := f.root.transport.Query()[name]
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// HTTPRequest returns the HTTP request, or nil on other transports. Its body
// is read already.
func (f *Frame) HTTPRequest() *http.Request { return f.root.transport.HTTP }

// String names the request without showing any of its content.
func (f *Frame) String() string {
	return "frame(" + f.root.request.Method + " " + f.root.request.ID.String() + ", " + f.root.revision.String() + ")"
}
