// Package frame has what a handler knows of its request. A Frame is one request
// on its way through the server: it is the request's context.Context and knows
// who asks, in which revision, over which transport, and how to tell the client
// how far the work has come.
//
//   - [Frame] is what handlers and middleware are given; [Handler] and
//     [Middleware] are their types. The server makes one for each message. Tests
//     of handlers call them through package mcptest.
//   - [Request] is what was asked, [Transport] how it came, and [Identity] who was
//     authenticated in front of the server.
//   - [Key] is a place for a value that handlers keep, for a session or a request.
//     Frame.Set keeps values by name.
//   - [Question] is something to ask the client for; mcp.Ask puts several at once.
//     [Elicited] is what a user did with a form. Sample and Roots, which revision
//     2026-07-28 deprecates, have no other name in package mcp.
//
// Package mcp has other names for most of this, by which its users know it.
//
// A Frame is safe for concurrent use. All Frames of one request, such as those that
// middleware makes with WithContext, share one state and its lock. The lock is held
// while progress and logs are sent, which keeps their order; no code of a handler
// runs with it. The values of a session, or of a request that has none, have a lock
// of their own, which is held while the functions run that Frame.GetOrSet,
// Key.GetOrSet and Key.Update are given; a value that replicas share has a separate
// lock, which is also held while the store works. Nothing here starts a goroutine.
//
// Specification: basic/patterns/progress, basic/patterns/mrtr and the pages
// below client/ of 2026-07-28, basic/utilities/progress and
// server/utilities/logging of the legacy revisions, and the extension
// io.modelcontextprotocol/tasks.
package frame

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Handler serves one request or notification: Frame.Request says which. A nil
// result without an error is an empty result; that of a notification is dropped.
type Handler func(f *Frame) (protocol.Result, error)

// Middleware wraps a Handler. It is called once when the chain is built, and its
// Handler for every request, by several goroutines at once.
type Middleware func(next Handler) Handler

// Frame is one request on its way through the server. It is a
// context.Context: it ends when the request is cancelled, times out, or the
// server gives up waiting at shutdown, so it goes straight into calls that
// take a context.
//
// A Frame belongs to one request, is safe for concurrent use, and is never
// reused, so it may outlive the handler. After the answer is sent, Progress
// and Log return ErrAnswered.
type Frame struct {
	ctx context.Context
	*state
	as *asked // in place of the state's request; nil unless renamed or nested
}

// state is what all Frames of one request share, whatever their contexts. The
// fields above the locks are set by newFrame and do not change. detaching is taken
// before mu.
type state struct {
	first Frame // which newFrame returned

	request   *Request // never nil; the reader of the message may share it
	revision  protocol.Revision
	transport core.Transport
	peer      core.Peer
	session   core.Session
	askers    core.Askers
	server    *core.Server
	level     protocol.Level
	atEnd     func(err error) // see internals.AtEnd; nil is nothing

	detaching sync.Mutex // serialises Detach

	mu       sync.Mutex
	own      *core.Values   // of a request that has no session
	progress float64        // the last value told, if told is set
	last     *wire.Progress // the newest, of a request that may become a task
	told     bool
	client   *client
	asking   core.Asker
	note     func(p wire.Progress) error // set once the request is a task, as is run
	run      func() (int, int64)
	needs    []string        // what RequireScopes was asked for
	unkept   error           // why something could not be kept that all replicas share
	keys     map[string]bool // of the questions so far
	calls    map[string]int  // nested ones that have asked or kept something; see nested.prefix
	mixed    bool            // a nested call has told progress
	asked    string          // begins the ids of URL questions; "" until there is one
}

// client is the modern client's view of itself, decoded when asked for: most
// requests never ask. capabilities is never nil; info is, if the client says
// nothing of itself.
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

// closer is a Peer whose connection can end before the answer, as that of some
// requests over HTTP can.
type closer interface{ CloseStream() bool }

// ErrAnswered is the error of messages that come after the answer.
var ErrAnswered = wire.ErrAnswered

// ErrNotDetachable is the error of detaching a request that is not a call of a
// tool with the option AsTask.
var ErrNotDetachable = errors.New("frame: only calls of tools with the option AsTask can be detached")

// newFrame returns the Frame of one request.
func newFrame(ctx context.Context, c core.Config) *Frame {
	s := &state{
		request: (*Request)(c.Request), revision: c.Revision, transport: c.Transport,
		peer: c.Peer, session: c.Session, askers: c.Askers, level: c.LogLevel,
		server: c.Server,
	}
	if s.request == nil {
		s.request = &Request{}
	}
	if s.revision == 0 {
		s.revision = protocol.Latest
	}
	s.first = Frame{ctx: ctx, state: s}
	return &s.first
}

// WithContext returns a Frame for the same request with another context,
// which should come from f.
func (f *Frame) WithContext(ctx context.Context) *Frame {
	return &Frame{ctx: ctx, state: f.state, as: f.as}
}

// Deadline implements context.Context.
func (f *Frame) Deadline() (time.Time, bool) { return f.ctx.Deadline() }

// Done implements context.Context.
func (f *Frame) Done() <-chan struct{} { return f.ctx.Done() }

// Err implements context.Context.
func (f *Frame) Err() error { return f.ctx.Err() }

// frameKey is the key under which a Frame finds itself, through any number of
// contexts that were made from it.
type frameKey struct{}

// Value implements context.Context. mcp.FromContext finds the Frame through it.
func (f *Frame) Value(key any) any {
	if _, ok := key.(frameKey); ok {
		return f
	}
	return f.ctx.Value(key)
}

// Request returns what was asked: id, method, raw params. Nothing in it may be
// changed.
func (f *Frame) Request() *Request {
	if f.as != nil {
		return f.as.Request
	}
	return f.request
}

// Outer returns the Frame whose handler has made the call of f with
// mcp.Server.Call; nil for what a client asked for.
func (f *Frame) Outer() *Frame {
	if n := f.nested(); n != nil {
		return n.outer
	}
	return nil
}

// nested returns the nested call that f belongs to, nil if there is none.
func (f *Frame) nested() *nested {
	if f.as == nil {
		return nil
	}
	return f.as.nested
}

// asks returns the request of f, or the nested call, without what Renamed does.
func (f *Frame) asks() *Request {
	if n := f.nested(); n != nil {
		return &n.request
	}
	return f.request
}

// endOf returns where f has what waits for its end: that of a nested call comes before
// that of the request.
func (f *Frame) endOf() *func(err error) {
	if n := f.nested(); n != nil {
		return &n.atEnd
	}
	return &f.atEnd
}

// keyed returns the key by which the request has what f names key: that of a nested
// call differs from those of the handlers around it.
func (f *Frame) keyed(key string) string {
	n := f.nested()
	if n == nil || key == "" {
		return key
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return n.prefix(f.state) + key
}

// Revision returns the protocol revision of the request.
func (f *Frame) Revision() protocol.Revision { return f.revision }

// SessionID returns the id of the legacy session, or "" if there is none.
func (f *Frame) SessionID() string {
	if s := f.session; s != nil {
		return s.ID()
	}
	return ""
}

// Initialized reports whether the client has said notifications/initialized.
// A modern request has no such phase and is always ready.
func (f *Frame) Initialized() bool {
	s := f.session
	return s == nil || s.Initialized()
}

// ClientInfo returns what the client says of itself, or nil if it says
// nothing. It is not verified.
func (f *Frame) ClientInfo() *protocol.Implementation {
	if s := f.session; s != nil {
		return s.ClientInfo()
	}
	return f.modernClient().info
}

// ClientCapabilities returns what the client can do; never nil.
func (f *Frame) ClientCapabilities() *protocol.ClientCapabilities {
	if s := f.session; s != nil {
		return s.Capabilities()
	}
	return f.modernClient().capabilities
}

// modernClient decodes the client's metadata, once and only if asked for. A
// value of another type counts as absent.
func (f *Frame) modernClient() *client {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.client == nil {
		c := &client{capabilities: &protocol.ClientCapabilities{}}
		meta := &f.request.Params.Meta
		if meta.ClientInfo != nil {
			c.info = &protocol.Implementation{}
			_ = jsonx.Unmarshal(meta.ClientInfo, c.info) // Manager.Frame has checked it
		}
		if meta.ClientCapabilities != nil {
			_ = jsonx.Unmarshal(meta.ClientCapabilities, c.capabilities) // the same
		}
		f.client = c
	}
	return f.client
}

// Transport returns how the request came.
func (f *Frame) Transport() Transport { return Transport(f.transport.Kind) }

// RemoteAddr returns the client's address as net/http has it, "" where there is
// none. That of a client on a Unix socket begins with "unix:", and no other does. That
// of a WebSocket, and of HTTP+SSE, is that of the request that opened the connection. A
// proxy's forwarding headers are not believed: who trusts a proxy reads them with
// Header.
func (f *Frame) RemoteAddr() string { return f.transport.RemoteAddr() }

// Header returns the first value of an HTTP request header, whatever the case
// of name, or "" if there is none or the transport has no headers.
func (f *Frame) Header(name string) string {
	if r := f.transport.HTTP; r != nil {
		return r.Header.Get(name)
	}
	return ""
}

// Query returns the first value of a parameter in the query of the URL that
// HTTPRequest has, or "" if there is none or the transport has no URLs.
func (f *Frame) Query(name string) string {
	if r := f.transport.HTTP; r != nil && r.URL != nil {
		return r.URL.Query().Get(name)
	}
	return ""
}

// HTTPRequest returns the HTTP request, or nil on other transports. Its body is
// read already. For a WebSocket it is the one that opened the connection, whose
// headers, URL and context stand for all that comes over it. For HTTP+SSE it is
// the POST that brought the message. If another replica received it, its
// credentials and the values of its context, except the identity, stayed there.
func (f *Frame) HTTPRequest() *http.Request { return f.transport.HTTP }

// String names the request without showing any of its content.
func (f *Frame) String() string {
	asked := f.asks()
	return "frame(" + asked.Method + " " + asked.ID.String() + ", " + f.revision.String() + ")"
}

// EndSession ends the legacy session of the request: what the session has in
// progress is cancelled, this request too, its streams end, Options.OnSessionEnd
// runs with reason, and a connection that has the session is closed once its calls
// have ended: mcp.Server.ServeStdio and ServeConn return reason. A nil reason means
// mcp.ErrSessionClosed. Where there is no session, or the session has ended, it
// does nothing and returns an error.
func (f *Frame) EndSession(reason error) error {
	if f.server == nil || f.session == nil {
		return errors.New("mcp: the request has no session that it could end")
	}
	return f.server.EndSession(f.session, reason)
}

// other is the label of what is not known.
const other = "_OTHER"

// Labels returns what the request may be called in a log, a metric or the name of
// a span, where names must not be a client's choice: the method, and the tool or
// prompt that it names, "" for all other methods. What the server does not have is
// "_OTHER", and so is a name after the first 500 that were asked for in the life of
// the server. Nothing else of a request is fit for labels.
func (f *Frame) Labels() (method, target string) {
	asked := f.asks()
	method, target = other, ""
	knowsMethod, knowsName := false, false
	if f.server != nil {
		knowsMethod, knowsName = f.server.Knows(asked.Method, asked.Params.Name)
	}
	if knowsMethod {
		method = asked.Method
	}
	if asked.Method == protocol.MethodToolsCall || asked.Method == protocol.MethodPromptsGet {
		if target = other; knowsName {
			target = f.Request().Params.Name
		}
	}
	return method, target
}

// CloseStream ends the connection that waits for the answer, if the client can
// come back for it: a long call then holds no connection. Later messages and
// the response wait for the client, which reconnects after a while.
//
// It returns false, and does nothing, where that is not possible: it takes a
// client of revision 2025-11-25, over HTTP, that accepts streams, and a server
// with the option Polling and with a history of events. (basic/transports of
// 2025-11-25, "Sending Messages to the Server".)
func (f *Frame) CloseStream() bool {
	peer, ok := f.peer.(closer)
	return ok && peer.CloseStream()
}

// Progress sends the progress of the request: done of total, both in any unit; a total of 0 means that
// it is unknown. It does nothing if the client did not ask for progress.
//
// done must grow from call to call, as the specification demands; one that does not is an error and is
// not sent. If nested calls (mcp.Server.Call) have sent progress, too, such a number is sent as the
// last one plus 1, without total. For a task, the message becomes that of the task's state, and the
// numbers are in the _meta of the state. The error of a disconnected client is returned too, and
// usually ignored: the Frame ends then. (basic/patterns/progress of 2026-07-28.)
func (f *Frame) Progress(done, total float64, message ...string) error {
	token := f.request.Params.Meta.ProgressToken
	quiet := token == nil || f.peer == nil
	detachable := core.TaskStarterOf(f.ctx) != nil
	if quiet && !detachable {
		return nil
	}
	if math.IsNaN(done+total) || math.IsInf(done+total, 0) {
		return fmt.Errorf("frame: progress must be a number, got %v of %v", done, total)
	}
	p := wire.Progress{Token: token, Progress: done, Total: total}
	if len(message) > 0 {
		p.Message = message[0]
	}
	// The lock is held while sending, so that values arrive in their order.
	f.mu.Lock()
	f.mixed = f.mixed || f.nested() != nil
	if f.told && done <= f.progress {
		before := f.progress
		next := max(before+1, math.Nextafter(before, math.Inf(1)))
		if !f.mixed || math.IsInf(next, 1) {
			f.mu.Unlock()
			return fmt.Errorf("frame: progress must grow, got %v after %v", done, before)
		}
		done, p.Progress, p.Total = next, next, 0
	}
	f.told, f.progress = true, done
	if note := f.note; note != nil {
		f.mu.Unlock() // it may be a store's
		return note(p)
	}
	if detachable {
		f.last = &p // for the task that it may become
	}
	if quiet {
		f.mu.Unlock()
		return nil
	}
	return f.tell(p.Append(nil, f.revision))
}

// Log sends a log message to the client, if the client wants its level. data
// is anything that encodes to JSON; logger names the part of the server, if
// given. Nothing secret belongs in it.
//
// Revision 2026-07-28 deprecates the protocol's logging in favour of standard
// error and OpenTelemetry; it works in every revision.
// (server/utilities/logging.)
func (f *Frame) Log(level protocol.Level, data any, logger ...string) error {
	if !f.LogEnabled(level) {
		return nil
	}
	name := ""
	if len(logger) > 0 {
		name = logger[0]
	}
	m, err := protocol.NewLog(level, name, data)
	if err != nil {
		return fmt.Errorf("frame: log data does not encode: %w", err)
	}
	text, err := m.MarshalJSON()
	if err != nil {
		return err
	}
	f.mu.Lock()
	if f.note != nil {
		f.mu.Unlock()
		return nil // tasks tell no logs
	}
	return f.tell(text)
}

// Notify sends a notification to the client while its request runs, on the stream of the
// response. It must relate to the request (basic/transports). method is a name of the
// program's own below notifications/, such as notifications/acme/row, and params encode
// to a JSON object; nil leaves them out.
//
// The errors are those of a method that the specification defines, of params that do not
// encode to an object, of a client that takes no event stream, and of a request that
// has become a task, which sends none. Notify is safe for concurrent use.
func (f *Frame) Notify(method string, params any) error {
	text, err := wire.CustomNotification(method, params)
	if err != nil {
		return err
	}
	f.mu.Lock()
	switch {
	case f.peer == nil:
		err = fmt.Errorf("mcp: notification %q: the client of this request receives none", method)
	case f.note != nil:
		err = fmt.Errorf("mcp: notification %q: the request has become a task, which sends none", method)
	default:
		return f.deliver(text)
	}
	f.mu.Unlock()
	return err
}

// send sends a message, and notes one that is very long. f.peer is not nil.
func (f *Frame) send(message []byte) error {
	f.sending(len(message))
	return f.peer.Send(message)
}

// sending notes that a message of size bytes is sent, if clients may not take it.
func (f *Frame) sending(size int) {
	if size > facts.MaxMessage && f.server != nil {
		method, name := f.Labels()
		f.server.SentLong(method, name, size)
	}
}

// deliver sends a message while f.mu is held, so that messages keep their order, and
// unlocks f.mu before it notes one that is very long. f.peer is not nil.
func (f *Frame) deliver(message []byte) error {
	err := func() error {
		defer f.mu.Unlock()
		return f.peer.Send(message)
	}()
	f.sending(len(message))
	return err
}

// tell is deliver for a message that a client may go without: that it takes no stream
// to send it on is not an error.
func (f *Frame) tell(message []byte) error {
	err := f.deliver(message)
	if errors.Is(err, wire.ErrNoStream) {
		return nil
	}
	return err
}

// LogEnabled reports whether Log would send a message of that level.
func (f *Frame) LogEnabled(level protocol.Level) bool {
	wanted := f.level
	if f.session != nil {
		wanted = f.session.LogLevel()
	}
	return f.peer != nil && wanted != 0 && level >= wanted && level <= protocol.LevelEmergency
}

// claim takes a key for one question of this run of the handler. Keys are of
// all Frames of the request together. A key that was taken is an error even if
// its question was answered: the second question would get the answer of the
// first when the handler runs again.
func (s *state) claim(key string) error {
	if key == "" {
		return errors.New("mcp: a question needs a key, which tells it from the others of its request")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[key] {
		return fmt.Errorf("mcp: the key %q is that of an earlier question of this request; give each a key of its own, such as %q", key, key+"2")
	}
	if s.keys == nil {
		s.keys = make(map[string]bool)
	}
	s.keys[key] = true
	return nil
}

// asker returns the Asker of f, made when it is first needed; nil if the client
// cannot be asked. It is made for the request as it came, whatever f is; once the
// request has become a task, it is that of the task.
func (f *Frame) asker() core.Asker {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asking == nil && f.askers != nil && f.peer != nil {
		f.asking = f.askers(core.AskerRequest{Context: f.first.ctx, Method: f.request.Method, Params: &f.request.Params,
			Revision: f.revision, Session: f.session, HTTP: f.transport.HTTP, Send: f.send})
	}
	return f.asking
}

// ElicitationID returns the elicitationId of the URL question with that key in
// the request of f. It is the same whenever it is asked for, and no other
// request has it. Only revision 2025-11-25 has such ids; elsewhere it is "".
//
// Once what the page is for is done, the server may tell the client, with
// Server.Notify to f.SessionID, notifications/elicitation/complete and the id
// as the member elicitationId of its params.
func (f *Frame) ElicitationID(key string) string {
	rev := f.Revision()
	if rev.Modern() || !rev.Has(protocol.FeatureElicitModes) {
		return ""
	}
	key = f.keyed(key)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked == "" {
		f.asked = rand.Text()
	}
	return f.asked + "-" + key
}

// Detach answers the request with a task, if its client takes tasks, and lets the
// handler continue: its result becomes that of the task. Questions that were asked
// before are settled by then; those that come after are put to the client through
// the task, and block. Detaching twice, or for a client that takes no tasks, does
// nothing. A call within a call (mcp.Server.Call) is a part of its request: it
// detaches that, or does nothing where that cannot become a task.
//
// (Extension io.modelcontextprotocol/tasks.)
func (f *Frame) Detach() error {
	f.detaching.Lock() // and not f.mu: Detach asks f what its client can
	defer f.detaching.Unlock()
	if f.Detached() {
		return nil
	}
	d := core.TaskStarterOf(f.ctx)
	switch {
	case d == nil && f.nested() != nil:
		return nil
	case d == nil:
		return ErrNotDetachable
	}
	known := core.Recorded{}
	f.mu.Lock()
	asking := f.asking
	f.mu.Unlock()
	if asking != nil {
		known = asking.Known()
	}
	task, err := d.Detach(known)
	if task == nil || err != nil {
		return err
	}
	// Messages from now on go to the task; one that is being sent, under the same
	// lock, still precedes the response.
	f.mu.Lock()
	f.asking, f.note, f.run = task.Asker, task.Note, task.Run
	last := f.last
	f.mu.Unlock()
	if last != nil {
		err = task.Note(*last)
	}
	task.Answer()
	return err
}

// detachToAsk makes a request a task that must be one before it asks. For all
// others, and for those that are tasks already, it does nothing.
func (f *Frame) detachToAsk() error {
	if d := core.TaskStarterOf(f.ctx); d != nil && d.Asks() {
		return f.Detach()
	}
	return nil
}

// Detached reports whether the request has become a task.
func (f *Frame) Detached() bool { return f.taskNote() != nil }

// TaskRun returns which run of its task the request is, from 1, and a token: a number
// that is greater than that of every run before, in whichever replica. A task whose
// replica is lost may be run again (mcp.TaskOptions.Replay), while the run before
// does not know yet that it is over; who writes to a system that can refuse smaller
// tokens than it has seen is safe from that. Both are 0 until the request is a
// task: see Detach.
func (f *Frame) TaskRun() (run int, token int64) {
	f.mu.Lock()
	of := f.run
	f.mu.Unlock()
	if of == nil {
		return 0, 0
	}
	return of()
}

// keep makes later rounds and runs of the request recall a value. A request that
// becomes a task takes what was kept with it, and waits for that here.
func (f *Frame) keep(key string, value json.RawMessage) error {
	f.detaching.Lock()
	asker := f.asker()
	if asker == nil || f.Detached() {
		f.detaching.Unlock()
	} else {
		defer f.detaching.Unlock()
	}
	if asker == nil {
		return nil
	}
	return asker.Keep(f, key, value)
}

// taskNote returns what takes notes of progress, nil unless f is detached. It
// must be called without f.mu, and what it returns, too, because it may use a
// store.
func (f *Frame) taskNote() func(wire.Progress) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.note
}

// values returns where f keeps values: the session if there is one, so that
// they last from call to call, else the request. It panics if there is no request.
func (f *Frame) values() *core.Values {
	if err := (internals{}).Check(f, "Get, Set, GetOrSet or Update of a value"); err != nil {
		panic(err.Error())
	}
	if f.session != nil {
		return f.session.Assigns()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.own == nil {
		f.own = &core.Values{}
	}
	return f.own
}

// change keeps what fn makes of the value at key. If the replicas of the server
// share it, it is kept for all of them when change returns. If that fails,
// Internal's Unkept has the reason, and value is the new value.
func (f *Frame) change(key any, fn func(old any, ok bool) any) (value any) {
	values := f.values()
	f.mu.Lock()
	failed := f.unkept != nil
	f.mu.Unlock()
	if _, stored := core.Stored(key); stored && failed { // the client is not kept waiting for each
		return fn(values.Get(key))
	}
	value, err := values.Change(key, fn)
	if err != nil {
		f.mu.Lock()
		f.unkept = err
		f.mu.Unlock()
	}
	return value
}

// Set keeps a value under a name: for the session in legacy revisions, for
// this request in modern ones, which have no sessions.
func (f *Frame) Set(name string, value any) { f.values().Set(name, value) }

// GetOrSet returns the value kept under a name; if there is none it keeps
// what fn returns. fn runs at most once per session, or per request in modern
// revisions, even under concurrent calls; it must not keep or get values itself.
func (f *Frame) GetOrSet(name string, fn func() any) any {
	return f.values().GetOrSet(name, fn)
}

// Get returns the value kept under a name.
func (f *Frame) Get(name string) (value any, ok bool) { return f.values().Get(name) }

// Principal returns who was authenticated, "" for an anonymous client. Two
// clients have the same principal only if they are the same subject of the same
// issuer.
func (f *Frame) Principal() string { return core.Principal(f.ctx) }

// Identity returns who the request comes from; nil for an anonymous client, and
// for what is not a request, such as the end of a session.
func (f *Frame) Identity() *Identity { return identityOf(f.ctx) }

// HasScope reports whether the request was granted all of scopes. To refuse a
// request that was not, use RequireScopes.
func (f *Frame) HasScope(scopes ...string) bool {
	return len(scopes) == 0 || f.Identity().HasScope(scopes...)
}

// RequireScopes returns nil if the request was granted all of scopes, and else the
// error to return from a handler: over HTTP it becomes the challenge by which
// clients get a token with those scopes and come again, unless the answer is a
// stream already, and everywhere it is a JSON-RPC error. Call it before anything
// is done, and with all scopes at once. It is for needs that depend on
// arguments; the option Scopes of a component is simpler. An invalid scope, such
// as one with a space from an argument, is never granted, and is not named to
// the client, which would ask its user for it.
func (f *Frame) RequireScopes(scopes ...string) error {
	if len(scopes) == 0 {
		return nil
	}
	needs := f.need(scopes)
	id := f.Identity()
	if id.HasScope(scopes...) {
		return nil
	}
	fault := &protocol.Error{Code: protocol.CodeInsufficientScope, Data: struct {
		Required []string `json:"requiredScopes"`
	}{needs}}
	switch {
	case len(needs) == 0:
		fault.Message = "this needs a scope that nobody can be granted"
	case id == nil:
		fault.Code = protocol.CodeUnauthorized
		fault.Message = "this needs an access token with scope " + strings.Join(needs, " ")
	default:
		fault.Message = "the access token lacks scope: this needs " + strings.Join(needs, " ")
	}
	return fault
}

// need notes the scopes that the request needs and returns all of them, which
// the challenge has to name: a client that requested only the last ones would
// lose the others with its new token. The slice is shared and must not be
// changed. Invalid scopes are not noted.
func (f *Frame) need(scopes []string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	needs := slices.Clip(f.needs) // who has them already keeps them
	for _, s := range scopes {
		if !slices.Contains(needs, s) && !noScope(s) {
			needs = append(needs, s)
		}
	}
	f.needs = needs
	return needs
}
