// Package conn serves the clients of one server, over connections of whole
// messages (standard input and output, sockets, WebSockets, HTTP+SSE) and over
// Streamable HTTP. It receives messages, keeps their order, enforces the limits
// and sends the responses. The [dispatch.Dispatcher] of its [Hooks] knows the
// methods.
//
// # Parts
//
//   - [Manager] belongs to one server. It counts its connections, serves
//     listeners and upgraded requests, makes the Frame of each message, and
//     shuts everything down.
//   - [Conn] is one connection. It has a goroutine that reads, workers that
//     serve requests, and queues between them (requestQueue towards the
//     workers, writeQueue towards the client). conn.go draws its states.
//   - request is one message that is being served on a Conn: it knows the
//     revision and session that the message belongs to and owes a request
//     exactly one reply.
//   - endpoint is the Manager as the HTTP transport in internal/streamable sees
//     it. Every request has a goroutine of its own there, that of net/http, so
//     that it needs no queues.
//   - serverStream, [Subscription] and boundedAsker carry what a server sends
//     without being asked: changes, subscriptions, and requests to the client.
//
// # Sessions and revisions
//
// A connection begins without session. A legacy client opens one with
// initialize, and everything else that it sends then belongs to it. A modern
// request names its revision in _meta and never has a session, even on a
// connection that has one. request.admit decides which of the two a message is;
// it runs when everything that was read before has been served or handed to a
// worker, because an initialize that waits decides about the messages behind
// it.
//
// # Goroutines and locks
//
// The goroutine that reads a connection never waits for a handler or a client,
// with one bounded exception (see Conn). Handlers run on workers and on
// goroutines of their own, because one may call runtime.Goexit or panic.
//
// Conn.mu, requestQueue.mu, writeQueue.mu and batch.mu are held for short steps
// that wait for nothing; Conn.mu is taken before the locks of a session.
// request.mu is held while a message of the request is being written, so that
// none can follow its answer.
//
// What a server has in progress is counted by its [inflight.Tracker], so that
// Shutdown can wait for it. What a single connection has in progress is counted
// by Conn.running.
//
// Specification: basic/index, basic/lifecycle, basic/transports,
// basic/utilities/cancellation of every revision, and basic/patterns of
// 2026-07-28.
package conn

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/inflight"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/share"
	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
	"github.com/talaria-go/mcp/transport"
)

// Hooks are what a Manager asks of the server, as the functions of it. They are called
// concurrently.
type Hooks struct {
	// Server is the *mcp.Server.
	Server any
	// Dispatcher returns what serves requests, the same one at every call.
	Dispatcher func() *dispatch.Dispatcher
	// InitializesSlowly reports whether users' code, which may take its time, has a
	// part in serving initialize.
	InitializesSlowly func() bool
	// Names reports whether name is that of a component that a method names; see
	// core.Server.
	Names func(method, name string) bool
	// Opened is called when initialize has been served for a session.
	Opened func(x *session.Session)
	// HeaderParams returns which arguments of a tool are mirrored into headers, none
	// if there is no such tool, and whether that is so for every client alike.
	HeaderParams func(tool string) (params []facts.Header, forAll bool)
	// Offers reports whether a tool is there for the client of f.
	Offers func(f *frame.Frame, tool string) bool
}

// Config shapes a Manager. Every field must be set; there are no defaults here,
// the options of the server have them.
type Config struct {
	Hooks     Hooks
	Running   *inflight.Tracker   // counts what is in progress
	Sessions  *session.Manager    // those of HTTP; those of connections are attached to it
	Askers    core.Askers         // ask the clients of modern requests
	Revisions []protocol.Revision // that are served, newest first
	Guard     streamable.Guard    // of requests that are upgraded
	Post      *bus.Bus            // reaches the other replicas; nil if there are none
	Logger    zerolog.Logger

	Max             int // connections, other than standard input and output
	MaxPerPrincipal int // of them
	Concurrent      int // calls in progress of a connection or a session
	Subscriptions   int // of a connection
	Batch           int // messages of a batch
	Questions       int // unanswered questions of a session
	QuestionTimeout time.Duration
	Grace           time.Duration // for calls whose client has ended its side; negative means none
	StreamAge       time.Duration // after which streams end, about; 0 means never
	Polling         bool          // handlers may let the connection of their request go
}

// Manager serves the clients of one server. At first it serves everything;
// after Shutdown only requests about tasks, on connections that may have some;
// after Finish, and once Running is stopped, nothing. It is safe for concurrent
// use.
type Manager struct {
	Config
	shares  *share.Shares
	seldom  safely.Seldom // lines of the log that clients can cause
	long    sync.Map      // what SentLong has logged
	waiting atomic.Int64  // bytes of what waits in the queues of connections

	streamSet streamSet
	draining  atomic.Bool // Drain was called, or Shutdown

	down     chan struct{} // closed when the server shuts down
	downOnce sync.Once
	last     chan struct{} // closed when no tasks are left either that a client could ask for
	lastOnce sync.Once

	abandoned context.Context // ends with Abandon
	abandon   context.CancelFunc

	upcalls *core.Server // m as its Frames see it
	askers  core.Askers  // asker
}

// ErrServerClosed is returned by what serves connections when it ends because
// the server was shut down, and at once if that had happened before. It is the
// cause of contexts that Shutdown cancels.
var ErrServerClosed = inflight.ErrShutdown

// errShutsDown answers requests that come after Shutdown.
var errShutsDown = wire.Refused("down", protocol.CodeBusy, "the server shuts down")

// errDrains answers what would open a stream after Drain.
var errDrains = &protocol.Error{Code: protocol.CodeUnavailable, Message: "the server is about to shut down and opens no streams", RetryAfter: retryAfter, Err: wire.Refusal("draining")}

// NewManager returns a Manager without connections.
func NewManager(c Config) *Manager {
	abandoned, abandon := context.WithCancel(context.Background())
	m := &Manager{Config: c, abandoned: abandoned, abandon: abandon, streamSet: streamSet{age: c.StreamAge, tell: func(e frame.Event) { c.Hooks.Dispatcher().Tell(e) }}, shares: share.New("connections", c.Max, c.MaxPerPrincipal, share.Half), down: make(chan struct{}), last: make(chan struct{})}
	m.upcalls = &core.Server{EndSession: m.endSession, Knows: m.knows, SentLong: m.sentLong, Owner: c.Hooks.Server}
	m.askers = m.asker
	if c.Post != nil {
		for _, kind := range []string{letterEnded, letterSubscribed, letterCancel, letterAnswer} {
			c.Post.Handle(kind, m.replicas().handleMessage)
		}
	}
	return m
}

// Drain refuses streams from now on, makes connections of HTTP close after their
// answers, and ends all streams evenly until the deadline of ctx, for which it
// waits; without one as fast as their clients can come back elsewhere, and then it
// waits for others to be closed. The error is the cause of a ctx that was cancelled.
func (m *Manager) Drain(ctx context.Context, others <-chan struct{}) error {
	m.draining.Store(true)
	m.streamSet.drain(ctx)
	if _, ok := ctx.Deadline(); ok {
		others = nil // calls are served until then
	}
	select {
	case <-others:
	case <-ctx.Done():
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Cause(ctx)
	}
	return nil
}

// Loads returns how many bytes wait for workers, and how many streams and
// connections there are.
func (m *Manager) Loads() (waiting, streams, connections int) {
	return int(m.waiting.Load()), m.streamSet.count(), m.shares.Used()
}

// Shutdown ends the connections whose clients cannot have tasks, which are
// those with a session, and makes requests that are not about tasks fail from
// now on. It does not wait and may be called again.
func (m *Manager) Shutdown() { m.downOnce.Do(func() { close(m.down) }) }

// Finish ends the connections that Shutdown has left, once no task is in
// progress any more. It does not wait and may be called again.
func (m *Manager) Finish() { m.lastOnce.Do(func() { close(m.last) }) }

// Abandon is for a shutdown whose time is over: connections wait a second more for calls
// that ignore their end. It does not wait and may be called again.
func (m *Manager) Abandon() { m.abandon() }

// Down returns a channel that is closed by Shutdown.
func (m *Manager) Down() <-chan struct{} { return m.down }

// IsDown reports whether Shutdown was called.
func (m *Manager) IsDown() bool {
	select {
	case <-m.down:
		return true
	default:
		return false
	}
}

// refuses reports whether a request with that method is refused because of a
// shutdown. Methods of tasks are served until the last task has ended.
// subscriptions/listen is let through, too, because only its handler knows
// whether it is about tasks.
func (m *Manager) refuses(method string) bool {
	return m.IsDown() && !strings.HasPrefix(method, "tasks/") && method != protocol.MethodListen
}

// enter counts a new connection of a principal, "" for none, or fails if there
// are as many as allowed; the text of the error is for the client. leave must
// be called exactly once when the connection has ended.
func (m *Manager) enter(principal string) (leave func(), err error) {
	if err := m.shares.Take(principal, 1); err != nil {
		return nil, err
	}
	return func() { m.shares.Give(principal, 1) }, nil
}

// serve serves one client over c until its input ends or ctx does. It does not
// close c. The Conn that it returns, nil if the server was shut down before,
// has a wait for the goroutines that serve leaves behind.
func (m *Manager) serve(ctx context.Context, c transport.Conn, opts options) (*Conn, error) {
	ctx, done, ok := m.Running.Start(ctx)
	if !ok {
		return nil, ErrServerClosed
	}
	defer done()
	served := newConn(ctx, m, c, opts)
	if kind := frame.Transport(opts.via.Kind); kind == frame.Stdio || kind == frame.Pipe { // of one client, who has nowhere else to go
		return served, served.serve(ctx)
	}
	open := m.streamSet.enter(streamConnection, frame.Transport(opts.via.Kind), "", served.drain)
	var err error
	defer func() { open.leave(err) }()
	err = served.serve(ctx)
	return served, err
}

// ServeStdio serves one client over c. It neither closes c nor waits for
// handlers that ignore their end: the process is about to exit, and reading
// standard input cannot be interrupted. The error is ErrStillRunning if
// something was left behind.
func (m *Manager) ServeStdio(ctx context.Context, c transport.Conn) error {
	_, err := m.serve(ctx, c, options{via: core.Transport{Kind: string(frame.Stdio)}})
	return err
}

// ServeConn serves one client over c, closes c, and waits for every goroutine
// that it has started, after the end of ctx or Abandon no longer than settleTime.
// Closing c must end a Read and a Write that are in progress.
func (m *Manager) ServeConn(ctx context.Context, c transport.Conn, via core.Transport) error {
	return m.serveConn(ctx, c, options{via: via})
}

// serveConn is ServeConn with all options. Panics of c become errors.
func (m *Manager) serveConn(ctx context.Context, c transport.Conn, opts options) error {
	c = guarded{c}
	served, err := m.serve(ctx, c, opts)
	closeErr := c.Close()
	return errors.Join(served.wait(ctx, err), closeErr)
}

// ServeUpgrade serves one client over the WebSocket that upgrade makes of r. It
// answers r itself if a connection is not allowed, with 403 for a host or
// origin that is not allowed and with 503 for a lack of room or a shutdown;
// upgrade answers r if it fails.
func (m *Manager) ServeUpgrade(w http.ResponseWriter, r *http.Request, upgrade func() (transport.Conn, error)) {
	if why, fault := m.Guard.Check(r); why != "" {
		http.Error(w, fault, http.StatusForbidden)
		m.upgradeRefused(r, wire.Refused(wire.Refusal(why), protocol.CodeInvalidRequest, "%s", fault))
		return
	}
	switch {
	case m.IsDown():
		m.unavailable(w, r, errShutsDown)
		return
	case m.draining.Load():
		m.unavailable(w, r, errDrains)
		return
	}
	leave, err := m.enter(core.Principal(r.Context()))
	if err != nil {
		m.unavailable(w, r, protocol.Errorf(protocol.CodeBusy, "%w", err))
		return
	}
	defer leave()
	made, err := upgrade()
	if err != nil {
		m.upgradeRefused(r, wire.Refused("upgrade", protocol.CodeInvalidRequest, "%v", err))
		return
	}
	c := guarded{made}
	via := core.Transport{Kind: string(frame.WebSocket), HTTP: r}
	served, err := m.serve(r.Context(), c, options{via: via})
	switch {
	case errors.Is(err, ErrServerClosed):
		_ = c.GoAway("the server shuts down") // a disconnected client does not receive it
	case err != nil && r.Context().Err() != nil:
		_ = c.GoAway("the connection was ended") // the same
	default:
		_ = c.Close() // it has ended already
	}
	m.logEnd(via, served.wait(r.Context(), err))
}

// upgradeRefused returns why r did not get a WebSocket.
func (m *Manager) upgradeRefused(r *http.Request, fault *protocol.Error) {
	m.refused(core.Transport{Kind: string(frame.WebSocket), HTTP: r}, "", fault)
}

// unavailable answers a request with 503 and asks the client to come again in a
// second.
func (m *Manager) unavailable(w http.ResponseWriter, r *http.Request, fault *protocol.Error) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, fault.Message, http.StatusServiceUnavailable)
	m.upgradeRefused(r, fault)
}

// refused tells the observers and the log of what does not come to the dispatcher.
// session is the one that it names, "" for none. It must be called without a lock. The log
// has few lines for each reason, as clients can cause any number.
func (m *Manager) refused(via core.Transport, session string, fault *protocol.Error) {
	why := dispatch.Why(fault)
	if skipped, due := m.seldom.Due(why, peer(via)); due {
		line := m.Logger.Info
		if fault.Code == protocol.CodeBusy || fault.Code == protocol.CodeUnavailable {
			line = m.Logger.Warn // a limit of the server, and not the client's doing
		}
		e := from(line(), via, session, skipped).Str("why", why).Int("code", int(fault.Code))
		safely.Log(e.Str("error", visible.Line(fault.Message, visible.Sentence)), "refused")
	}
	m.Hooks.Dispatcher().Refused(frame.Transport(via.Kind), why, fault)
}

// unasked tells the log, at level debug, of an answer to no question that waits: its caller
// may have given up.
func (m *Manager) unasked(via core.Transport, session string, answer *protocol.Message) {
	if skipped, due := m.seldom.Due("unasked", peer(via)); due {
		e := from(m.Logger.Debug(), via, session, skipped).Str("id", visible.Line(answer.ID.String(), visible.Name))
		safely.Log(e, "an answer to no question that waits")
	}
}

// from adds to e where something came from, and how many lines like it were skipped.
func from(e *zerolog.Event, via core.Transport, session string, skipped safely.Skipped) *zerolog.Event {
	e = e.Str("transport", via.Kind)
	if remote := via.RemoteAddr(); remote != "" {
		e = e.Str("remote", remote)
	}
	if via.HTTP != nil {
		if name := core.Principal(via.HTTP.Context()); name != "" {
			e = e.Str("principal", visible.Line(name, visible.Name))
		}
	}
	if session != "" {
		e = e.Str("session", visible.Line(session, visible.Name))
	}
	if skipped.Lines > 0 {
		e = e.Int("skipped", skipped.Lines)
	}
	if skipped.Others > 0 {
		e = e.Int("skipped_of_others", skipped.Others)
	}
	return e
}

// peer tells clients apart as far as the log can: by their principal, or by their address
// without its port, which differs for each connection.
func peer(via core.Transport) string {
	if via.HTTP != nil {
		if name := core.Principal(via.HTTP.Context()); name != "" {
			return "principal " + name
		}
	}
	remote := via.RemoteAddr()
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}

// ServeListener serves every client that listener accepts, over the connection
// that open makes of it, until ctx ends, Shutdown is called, or accepting
// fails. It closes listener and returns when all its connections have ended;
// the error is never nil.
func (m *Manager) ServeListener(ctx context.Context, listener net.Listener, open func(net.Conn) transport.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var closing sync.WaitGroup
	closing.Go(func() {
		select {
		case <-ctx.Done():
		case <-m.down:
		}
		// Accept fails then; who closed the listener before has done the same.
		_ = safely.Try(listener.Close)
	})
	var serving sync.WaitGroup
	err := m.accept(ctx, listener, func(c net.Conn) { serving.Go(func() { m.serveSocket(ctx, c, open) }) })
	serving.Wait()
	cancel()
	closing.Wait()
	return err
}

// accept accepts connections and hands them to serve, which must not wait, until
// that fails, and returns the reason. Like net/http it tries again when
// descriptors have run out.
func (m *Manager) accept(ctx context.Context, listener net.Listener, serve func(net.Conn)) error {
	for wait := minAcceptWait; ; {
		var c net.Conn
		err := safely.Known(safely.Try(func() (err error) { c, err = listener.Accept(); return err }))
		switch {
		case m.IsDown():
			closeAccepted(c, err)
			return ErrServerClosed
		case ctx.Err() != nil:
			closeAccepted(c, err)
			return context.Cause(ctx)
		case isTransient(err):
			// As net/http does: another try finds descriptors free again.
			safely.Log(m.Logger.Warn().Err(visible.Error(err)), "accept failed; trying again")
			pause(ctx, m.down, wait)
			wait = min(2*wait, maxAcceptWait)
			continue
		case err != nil:
			return fmt.Errorf("mcp: Serve cannot accept connections: %w", err)
		}
		wait = minAcceptWait
		serve(c)
	}
}

// closeAccepted closes a connection that was accepted while the server was
// ending. err is that of Accept; c is valid if it is nil.
func closeAccepted(c net.Conn, err error) {
	if err == nil {
		_ = safely.Try(c.Close) // it was never used
	}
}

// isTransient reports whether accepting may succeed a little later: no file
// descriptor was free, or the client gave up first.
func isTransient(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED)
}

// pause waits for d, or less if ctx ends or down is closed.
func pause(ctx context.Context, down <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-down:
	}
}

// serveSocket serves one accepted connection. If there are too many, the client
// gets an error that belongs to no request, and the connection is closed.
func (m *Manager) serveSocket(ctx context.Context, accepted net.Conn, open func(net.Conn) transport.Conn) {
	var remote string
	_ = safely.Try(func() error { // the connection lives without
		peer := accepted.RemoteAddr()
		remote = strings.TrimPrefix(peer.String(), "unix:")
		if peer.Network() == "unix" {
			remote = "unix:" + remote
		}
		return nil
	})
	c := open(accepted)
	via := core.Transport{Kind: string(frame.Socket), Remote: remote}
	if m.draining.Load() {
		m.refuse(guarded{c}, via, errDrains)
		return
	}
	leave, err := m.enter("") // the client has not identified itself
	if err != nil {
		m.refuse(guarded{c}, via, protocol.Errorf(protocol.CodeBusy, "%w", err))
		return
	}
	defer leave()
	m.logEnd(via, m.ServeConn(ctx, c, via))
}

// refuse tells a client why it is not served over c, and closes that.
func (m *Manager) refuse(c transport.Conn, via core.Transport, fault *protocol.Error) {
	m.refused(via, "", fault)
	// Whether the client receives it does not matter to others.
	_ = c.Write(wire.AppendErrorResponse(nil, protocol.ID{}, fault, protocol.Latest))
	_ = c.Flush()
	_ = c.Close()
}

// logEnd writes to the log, at level debug, why a connection ended, unless it
// ended in order or by a shutdown.
func (m *Manager) logEnd(via core.Transport, err error) {
	if err == nil || errors.Is(err, ErrServerClosed) {
		return
	}
	safely.Log(m.Logger.Debug().Err(visible.Error(err)).Str("transport", via.Kind).Str("remote", via.RemoteAddr()), "connection ended")
}

// Frame makes the Frame of a message. x is the session that it belongs to, nil
// for a modern message, whose _meta is then checked and read; that the session takes
// over the identity of the message is left to the caller. c holds what the caller
// knows of the message; Frame fills in the rest.
func (m *Manager) Frame(ctx context.Context, x *session.Session, c core.Config) (*frame.Frame, *protocol.Error) {
	c.Askers, c.Server = m.askers, m.upcalls
	meta := &c.Request.Params.Meta
	if x != nil {
		c.Session = x
	} else if fault := tooMuch("the clientInfo and clientCapabilities of params._meta", meta.ClientInfo, meta.ClientCapabilities); fault != nil {
		return nil, fault
	} else if raw := meta.LogLevel; raw != nil {
		level, fault := logLevel(raw)
		if fault != nil {
			return nil, fault
		}
		c.LogLevel = level
	}
	return frame.Internal(facts.Private{}).New(ctx, c), nil
}

// Upcalls returns m as its Frames see it.
func (m *Manager) Upcalls() *core.Server { return m.upcalls }

// notify serves a notification and returns when its handler has. Its error is
// only logged, since a notification has no response. The handler runs on a
// separate goroutine, because it may end that.
func (m *Manager) notify(f *frame.Frame) {
	var err error
	_ = safely.Apart(func() { err = m.Hooks.Dispatcher().Notify(f) }) // a failure is in the log
	if err != nil {
		safely.Log(m.Logger.Debug().Str("method", visible.Line(f.Request().Method, visible.Name)).Err(visible.Error(err)), "notification")
	}
}

// Session finds a legacy session by its id, of HTTP or of a connection. Those
// of connections are searched one by one: only the server's own code asks for
// them. The error is ErrSessionNotFound or that of the store.
func (m *Manager) Session(ctx context.Context, id string) (*session.Session, error) {
	if x, err := m.Sessions.Find(ctx, id); x != nil || err != nil {
		return x, err
	}
	var found *session.Session
	m.Sessions.Each(func(x *session.Session) {
		if x.ID() == id && id != "" {
			found = x
		}
	})
	if found == nil {
		return nil, fmt.Errorf("%w: %q", ErrSessionNotFound, id)
	}
	return found, nil
}

// newID returns an unguessable id for the session of a connection. With several
// replicas, it begins with the name of this one.
func (m *Manager) newID() string {
	if m.Post == nil {
		return rand.Text()
	}
	return m.Post.ReplicaID() + "." + rand.Text()
}

// Elsewhere returns the other replica at which a session of a connection is, or was.
func (m *Manager) Elsewhere(id string) (node string, ok bool) {
	node, _, ok = strings.Cut(id, ".")
	return node, ok && m.Post != nil && node != m.Post.ReplicaID() && bus.IsReplicaID(node)
}

// Do runs fn with a Frame of the session with that id. The Frame ends with ctx,
// with the session and with the server. The Frame has no request, so that what
// fn sends goes out on the stream of the session.
func (m *Manager) Do(ctx context.Context, id string, fn func(f *frame.Frame) error) (err error) {
	x, err := m.Session(ctx, id)
	if err != nil {
		return err
	}
	x.Use()
	defer func() {
		if kept := x.Release(); err == nil {
			err = kept
		}
	}()
	ctx, done, ok := m.Running.Start(ctx)
	if !ok {
		return ErrServerClosed
	}
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := x.Context()
	defer context.AfterFunc(ended, func() { cancel(context.Cause(ended)) })()
	if ended.Err() != nil {
		return fmt.Errorf("%w: %q", ErrSessionNotFound, id)
	}
	f := frame.Internal(facts.Private{}).New(core.WithPrincipal(ctx, x.Principal()), core.Config{
		Revision: x.Revision(), Session: x, Askers: m.askers, Peer: sessionPeer{x}, Server: m.upcalls,
	})
	_, err = m.Hooks.Dispatcher().Guard(f, func(f *frame.Frame) (protocol.Result, error) { return nil, fn(f) })
	return cmp.Or(err, frame.Internal(facts.Private{}).Unkept(f))
}

// Backend returns the side of m that the HTTP transport serves its requests
// with.
func (m *Manager) Backend() streamable.Backend {
	e := endpoint{m}
	return streamable.Backend{
		Revisions: m.Revisions, Serve: e.serve, Notify: e.notify, Batch: e.batch, Session: e.session, EndSession: e.endSession,
		Listen: e.listen, Connect: e.connect, Refused: e.refused, Draining: m.draining.Load, HeaderParams: e.headerParams,
	}
}

// replicas returns what m exchanges with other replicas.
func (m *Manager) replicas() Replicas { return Replicas{m} }

// knows is what core.Server calls Knows.
func (m *Manager) knows(method, name string) (knowsMethod, knowsName bool) {
	return m.Hooks.Dispatcher().Knows(method), m.Hooks.Names(method, name)
}

// sentLong logs each method and name once, of which there are as many as
// Frame.Labels has.
func (m *Manager) sentLong(method, name string, size int) {
	if _, known := m.long.LoadOrStore(method+" "+name, true); known {
		return
	}
	safely.Log(m.Logger.Warn().Str("method", method).Str("name", name).Int("bytes", size),
		fmt.Sprintf("a message is longer than the %d bytes that clients take by default: send less, such as a page or a link to a resource, or raise the limit of the client", facts.MaxMessage))
}

// endSession ends a session of HTTP. A nil reason is core.ErrSessionClosed.
func (m *Manager) endSession(s core.Session, reason error) error {
	x, ok := s.(*session.Session)
	if !ok || x.Context().Err() != nil {
		return ErrSessionNotFound
	}
	if reason == nil {
		reason = core.ErrSessionClosed
	}
	return m.Sessions.Stop(x, reason)
}

// asker makes the Asker of a request. The client of a legacy session is asked as the
// session itself does, within the limits that the Manager has for the number of
// unanswered questions and for the time.
func (m *Manager) asker(of core.AskerRequest) core.Asker {
	if x, ok := of.Session.(*session.Session); ok {
		return &boundedAsker{x.Asker(of), x, m}
	}
	return m.Askers(of)
}
