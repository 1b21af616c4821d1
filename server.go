package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/ask"
	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/conn"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/inflight"
	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/internal/tooling/hostrules"
	"github.com/talaria-go/mcp/internal/topics"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/session"
	"github.com/talaria-go/mcp/transport"
)

// Info names the server to its clients. Name and Version are required.
type Info = protocol.Implementation

// Server offers tools to clients of every protocol revision at once. Its
// methods are safe for concurrent use; Use must come before serving.
type Server struct {
	info   Info
	opts   Options
	logger zerolog.Logger

	// composing is taken before adding, and adding before the locks of
	// catalogs. None of them is held while a handler runs.
	catalog       *registry.Catalog
	has           atomic.Uint32                  // the features of what was ever in a catalog
	mounts        mounts                         // of this server into others
	adding        sync.Mutex                     // makes Add all or nothing
	customs       customs                        // adding is held
	sets          map[string][]string            // by name, the lists that change with a set; adding is held
	labels        atomic.Pointer[map[label]bool] // replaced as a whole
	post          *bus.Bus                       // to other replicas; nil if there are none
	topics        *topics.Hub                    // changes at those; nil, too
	sessions      *session.Manager
	rounds        *ask.Askers
	tasks         *taskExtension
	running       inflight.Tracker
	connections   *conn.Manager
	handler       *streamable.Handler
	subscriptions *subscriptions
	draining      atomic.Bool
	failures      dispatch.Failures // of the store
	events        serverEvents

	composing  sync.Mutex
	middleware []Middleware                        // composing is held
	observers  []Observer                          // composing is held
	dispatcher atomic.Pointer[dispatch.Dispatcher] // made when serving begins
}

// NewServer returns a Server without components. It panics if info lacks its
// name or version, or if opts name no revision that exists: such a server
// could never answer a client. It panics, too, if a WebsiteURL or the Src of an
// icon is nothing that clients may show.
func NewServer(info Info, opts *Options) *Server {
	if info.Name == "" || info.Version == "" {
		panic(fmt.Sprintf("mcp: NewServer needs Info with Name and Version, got %q and %q", info.Name, info.Version))
	}
	if info.WebsiteURL != "" {
		if err := wire.CheckWebURL(info.WebsiteURL); err != nil {
			panic(fmt.Sprintf("mcp: NewServer: Info.WebsiteURL is %q: %v", info.WebsiteURL, err))
		}
	}
	for i, icon := range info.Icons {
		if err := checkIcon(icon); err != nil {
			panic(fmt.Sprintf("mcp: NewServer: Info.Icons: icon %d: %v", i, err))
		}
	}
	s := &Server{info: info}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.complete()
	if s.opts.Store != nil {
		s.opts.Store = bus.Guard(s.opts.Store)
	}
	s.opts.Revisions = orderedRevisions(s.opts.Revisions)
	if s.opts.Logger != nil {
		s.logger = *s.opts.Logger
	} else {
		s.logger = zerolog.New(logTo(os.Stderr)).Level(zerolog.WarnLevel).With().Timestamp().Str("server", info.Name).Logger()
	}
	logFindings(&s.logger, hostrules.Instructions(s.opts.Instructions))
	s.rounds = newRounds(s.opts)
	s.catalog = registry.New(registry.Config{
		PageSize: s.opts.PageSize, Cache: s.opts.listCache(), Meta: metaOf(s.info), Filter: s.opts.Filter, Coming: s.declare,
		Delivery: s.opts.delivery(),
	})
	host{s}.newPost()
	s.tasks = newTaskExtension(s)
	s.sessions = host{s}.newSessions()
	s.connections = host{s}.newConnections()
	s.handler = streamable.New(s.connections.Backend(), s.opts.streamable())
	s.subscriptions = newSubscriptions(s)
	host{s}.share()
	s.catalog.Internal(facts.Private{}).Watch(host{s}.catalogChanged)
	return s
}

// orderedRevisions returns revs, or all, newest first and each once. revs is the
// caller's and is not changed. It panics on one that does not exist, as
// NewServer does on other faults.
func orderedRevisions(revs []protocol.Revision) []protocol.Revision {
	if len(revs) == 0 {
		return protocol.Revisions()
	}
	revs = slices.Clone(revs)
	slices.SortFunc(revs, func(a, b protocol.Revision) int { return int(b) - int(a) })
	for _, r := range revs {
		if r.String() == "" {
			panic(fmt.Sprintf("mcp: Options.Revisions has no such revision: %d", r))
		}
	}
	return slices.Compact(revs)
}

// Add registers components, all or none. The error lists every fault with
// type, field, tag and fix. It may be called while the server serves:
// subscribed clients are notified of the change.
func (s *Server) Add(components ...Component) error {
	c := &compiler{server: s}
	if err := c.compile(components); err != nil {
		return err
	}
	if err := c.register(""); err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	return c.logNotes()
}

// MustAdd is Add for program start: it panics with the error.
func (s *Server) MustAdd(components ...Component) {
	if err := s.Add(components...); err != nil {
		panic(err)
	}
}

// Remove removes components of one kind by name, URI or URI template, and returns
// how many there were. Subscribed clients are notified. To remove a skill, remove
// its SKILL.md as a resource.
func (s *Server) Remove(kind Kind, names ...string) int { return s.catalog.Remove(kind, names...) }

// sessionOf returns the legacy session of f, for the method caller.
func sessionOf(f *Frame, caller string) (*session.Session, error) {
	if err := frame.Internal(facts.Private{}).Check(f, caller); err != nil {
		return nil, err
	}
	x, ok := frame.Internal(facts.Private{}).Session(f).(*session.Session)
	if !ok {
		return nil, errNoSession
	}
	return x, nil
}

// errNoSession is the error of AddToSession, RemoveFromSession, EnableSet and DisableSet
// for a request that has no session.
var errNoSession = errors.New("mcp: components for one client need a legacy session: " +
	"in modern revisions lists must not differ between requests; add them to the Server")

// errShared is the error of AddToSession with Options.Store.
var errShared = errors.New("mcp: components for one client cannot be added with Options.Store: the next request may reach a replica that does not know them; " +
	"register them with Server.AddSet, and show them with Server.EnableSet")

// AddToSession adds components to the legacy session of f's request. Other
// clients do not see them, and they end with the session. All are added, or
// none; the error lists every fault, as that of Add does, and a name that the
// server or the session has already is one. The client is notified of the
// change.
//
// In modern revisions, where lists must not differ between requests, it is an
// error: add components to the Server there. With Options.Store it is one, too:
// use Set and Enable. Methods, extensions and event types cannot be added.
func (s *Server) AddToSession(f *Frame, components ...Component) error {
	x, err := sessionOf(f, "AddToSession")
	if err != nil {
		return err
	}
	if s = outermost(f, s); s.opts.Store != nil {
		return errShared
	}
	c := &compiler{server: s}
	if err := c.compile(components); err != nil {
		return err
	}
	if err := c.forServer("a session"); err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	own := x.Assigns().GetOrSet(catalogKey{}, func() any { return s.newCatalogOf(x) }).(*registry.Catalog)
	err = s.catalog.Internal(facts.Private{}).Check(c.entries...)
	if taken := own.Internal(facts.Private{}).Check(c.entries...); taken != nil {
		err = errors.Join(err, fmt.Errorf("in the session: %w", taken))
	} else if err == nil {
		err = own.Add(c.entries...)
	}
	if err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	return c.logNotes()
}

// RemoveFromSession takes components of one kind back that AddToSession has
// added to the session of f's request, by name, URI or URI template, and returns
// how many there were. It is an error where AddToSession is.
func (s *Server) RemoveFromSession(f *Frame, kind Kind, names ...string) (int, error) {
	x, err := sessionOf(f, "RemoveFromSession")
	if err != nil {
		return 0, err
	}
	own := catalogOf(x)
	if own == nil {
		return 0, nil
	}
	return own.Remove(kind, names...), nil
}

// setsKey is where a session has the sets that are enabled in it. All replicas
// share it.
var setsKey = frame.NewStoredKey[[]string]("talaria sets")

// setName returns what sessions have for a set of s: a server that is mounted has
// sets of its own.
func (s *Server) setName(name string) string { return s.info.Name + " " + name }

// AddSet registers components that only sessions see in which Enable was called for
// the name. All are registered, or none; the errors are those of Add, as names are
// unique in the server. AddSet may be called again for further components of the same
// name, and Remove removes them. With Options.Store all replicas need the same
// sets. Methods, extensions and event types cannot be in a set.
func (s *Server) AddSet(name string, components ...Component) error {
	if !validName(name) {
		return fmt.Errorf("mcp: set %q: a name has 1 to 128 letters, digits, '_', '-' or '.'", name)
	}
	c := &compiler{server: s}
	if err := c.compile(components); err != nil {
		return err
	}
	if err := c.forServer("a set"); err != nil {
		return fmt.Errorf("mcp: set %q: %w", name, err)
	}
	full := s.setName(name)
	for _, e := range c.entries {
		visible := e.Visible
		e.Visible = func(f *Frame) bool {
			enabled, _ := setsKey.Get(f)
			return slices.Contains(enabled, full) && (visible == nil || visible(f))
		}
	}
	if err := c.register(name); err != nil {
		return fmt.Errorf("mcp: set %q: %w", name, err)
	}
	return c.logNotes()
}

// EnableSet shows the components of sets to the legacy session of f's request, until
// Disable or the end of the session, at every replica. The client is notified that
// its lists have changed. Enabling a set twice does nothing. An unknown name is an
// error, and then nothing is enabled.
//
// In modern revisions, which have no sessions and where lists must not differ
// between requests, it is an error. With Options.Store it is one, too, if the store
// does not answer, and the client then receives that error in place of the
// handler's result, as with Key.Update.
func (s *Server) EnableSet(f *Frame, sets ...string) error { return s.setSets(f, sets, true) }

// DisableSet takes back what Enable did.
func (s *Server) DisableSet(f *Frame, sets ...string) error { return s.setSets(f, sets, false) }

// setSets enables or disables sets.
func (s *Server) setSets(f *Frame, sets []string, enable bool) error {
	x, err := sessionOf(f, "EnableSet and DisableSet")
	if err != nil {
		return err
	}
	var lists []string
	s.adding.Lock()
	for _, name := range sets {
		methods, known := s.sets[name]
		if !known {
			s.adding.Unlock()
			return fmt.Errorf("mcp: there is no set %q; register it with Server.AddSet", name)
		}
		lists = append(lists, methods...)
	}
	s.adding.Unlock()
	changed := false
	setsKey.Update(f, func(old []string) []string {
		enabled := slices.Clone(old)
		for _, name := range sets {
			full := s.setName(name)
			if at := slices.Index(enabled, full); enable && at < 0 {
				enabled = append(enabled, full)
			} else if !enable && at >= 0 {
				enabled = slices.Delete(enabled, at, at+1)
			}
		}
		changed = len(enabled) != len(old)
		return enabled
	})
	if err := frame.Internal(facts.Private{}).Unkept(f); err != nil {
		return fmt.Errorf("mcp: the sets of a session cannot be kept: %w", err)
	}
	if changed && f.Request().Method != protocol.MethodInitialize { // until then the client has no lists
		slices.Sort(lists)
		for _, method := range slices.Compact(lists) {
			if _, err := x.Route(f, wire.AppendNotification(nil, method, nil)); err != nil {
				return fmt.Errorf("mcp: the sets of the session have changed, but its client could not be notified: %w", err)
			}
		}
	}
	return nil
}

// newCatalogOf returns a Catalog for what one session has of its own. It runs
// with the assigns of x locked, and must not use them. Its watcher, which tells
// the client of each change, runs later and without that lock.
func (s *Server) newCatalogOf(x *session.Session) *registry.Catalog {
	own := registry.New(registry.Config{Coming: s.declare}) // views have the pages and the filter of the server's
	own.Internal(facts.Private{}).Watch(func(changed []*registry.Entry) {
		for _, method := range listsOf(changed) {
			x.Send(wire.AppendNotification(nil, method, nil))
		}
	})
	return own
}

// Tool describes a tool of the server's, if it is there for the client of
// f; those that a handler added to its session are not found. It is for
// middleware, which finds the name in f.Request().Params.Name. With a nil f it is any
// tool of the server, whoever may see it, as Tools has them.
func (s *Server) Tool(f *Frame, name string) (definition protocol.Tool, ok bool) {
	if f == nil {
		for definition = range s.Tools(nil) {
			if definition.Name == name {
				return definition, true
			}
		}
		return protocol.Tool{}, false
	}
	if frame.Internal(facts.Private{}).Check(f, "Tool") != nil {
		return protocol.Tool{}, false
	}
	tool, ok := s.catalog.View(f, nil).Get(KindTool, name)
	if own := catalogOf(frame.Internal(facts.Private{}).Session(f)); own != nil && ok {
		_, shadowed := own.Internal(facts.Private{}).Get(KindTool, name)
		ok = !shadowed
	}
	if !ok {
		return protocol.Tool{}, false
	}
	return *tool.For(f).(*protocol.Tool), true
}

// Mount also offers the components of child: its tools, prompts and event types with prefix and "_"
// before their names, as in "weather_forecast", its resources, skills and templates by their own URIs,
// and its extensions. An empty prefix leaves names as they are. Components that child adds or
// removes later appear and disappear here, and child's ResourceUpdated notifies the clients of s.
//
// A call of a component of child passes the middleware of s first, and then that of child, which
// sees the name without prefix. The filter, error masking and time limits are those of child.
// Everything else is that of s: the handshake, sessions, tasks and limits. Custom methods
// and notifications of child are not mounted. Clients of s receive the events that child emits.
// child may serve at the same time, and be mounted into several servers.
//
// A name that is taken or too long, or a circle of mounts, is an error, and nothing is mounted
// then. So is a child with the Options.Store of s: it needs a store only if it serves clients
// itself, and then a separate one. If child adds such a name later, s leaves it out and logs the
// error. Unmount removes everything.
func (s *Server) Mount(prefix string, child *Server) error {
	if child == nil {
		return fmt.Errorf("mcp: mount %q: the server is nil", prefix)
	}
	if child != s && sameStore(s.opts.Store, child.opts.Store) {
		return fmt.Errorf("mcp: mount %q: both servers have the same Options.Store, and clients would be notified of each change twice; leave it out of the mounted one, which needs none", prefix)
	}
	if prefix != "" && !validName(prefix) {
		return fmt.Errorf("mcp: mount %q: a prefix has 1 to 128 letters, digits, '_', '-' or '.', or is empty", prefix)
	}
	if prefix != "" {
		prefix += mountSeparator
	}
	m := &mount{parent: s, child: child, prefix: prefix}
	child.mounts.join(m)
	if s == child || s.mounts.reaches(child) {
		child.mounts.leave(m)
		return fmt.Errorf("mcp: mount %q: the server would offer what it offers itself; mount in one direction only", prefix)
	}
	unmount, err := s.catalog.Internal(facts.Private{}).Mount(child.catalog, prefix, m.handler, m.leftOut, m.came)
	if err != nil {
		child.mounts.leave(m)
		return fmt.Errorf("mcp: mount %q: %w", strings.TrimSuffix(prefix, mountSeparator), err)
	}
	child.mounts.done(m, unmount)
	return nil
}

// Unmount undoes a Mount with the same arguments: the components of child are
// removed from s. Running calls finish. It reports whether child was mounted
// under prefix.
func (s *Server) Unmount(prefix string, child *Server) bool {
	if child == nil {
		return false
	}
	if prefix != "" {
		prefix += mountSeparator
	}
	m := child.mounts.take(s, prefix)
	if m == nil {
		return false
	}
	m.unmount()
	return true
}

// OnNotification calls fn for each notification of that method that a client
// sends, after the server has handled it: notifications of the specification,
// such as notifications/roots/list_changed, and custom ones. Each method has
// one fn. There is no response: an error of fn is logged at warn level.
// Frame.EndSession ends the session of the client.
//
// Later messages of the connection wait for fn, to keep their order, except
// answers to questions, cancellations and pings. A name that belongs to a
// request, a second fn for a method, and a call after the server began to
// serve are errors.
func (s *Server) OnNotification(method string, fn func(f *Frame) error) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	return s.customs.notification(method, fn)
}

// Handler serves one request or notification; see frame.Handler.
type Handler = frame.Handler

// Middleware wraps the handling of every method; see frame.Middleware.
type Middleware = frame.Middleware

// Use adds middleware; what is added first is outermost. It panics if one is
// nil, and once the server serves, because the chain is composed then, once.
func (s *Server) Use(middleware ...Middleware) {
	for i, m := range middleware {
		if m == nil {
			panic(fmt.Sprintf("mcp: Use: middleware %d is nil; leave it out", i))
		}
	}
	s.composing.Lock()
	defer s.composing.Unlock()
	if s.dispatcher.Load() != nil {
		panic("mcp: Use after the server began to serve; call it before")
	}
	s.middleware = append(s.middleware, middleware...)
}

// Observe adds an observer of every message, outside of all middleware: the first one
// begins first and is notified of the end last. Observers of a mounted server are
// called for its calls, within those of the outer server, as its middleware is.
// Without observers messages cost nothing more. It panics if o has no function, and
// once the server serves.
func (s *Server) Observe(o Observer) {
	if o.Begin == nil && o.End == nil && o.Event == nil {
		panic("mcp: Observe: the observer has no function; leave it out")
	}
	s.composing.Lock()
	defer s.composing.Unlock()
	if s.dispatcher.Load() != nil {
		panic("mcp: Observe after the server began to serve; call it before")
	}
	s.observers = append(s.observers, o)
}

// dispatch returns the dispatcher, which it makes at the first request. From
// then on the middleware and the table of methods do not change; making them
// waits for a running Use or Add. The gate is always there, and the log of
// requests only at its level, since each middleware adds a cost to every
// request.
func (s *Server) dispatch() *dispatch.Dispatcher {
	if d := s.dispatcher.Load(); d != nil {
		return d
	}
	s.composing.Lock()
	defer s.composing.Unlock()
	if d := s.dispatcher.Load(); d != nil {
		return d
	}
	chain := append([]Middleware{s.gate}, s.middleware...)
	if s.logger.GetLevel() <= zerolog.DebugLevel {
		chain = append([]Middleware{logRequests(&s.logger)}, chain...)
	}
	// Middleware composes itself under the lock, once: it must not call Use.
	d := dispatch.New(dispatch.Config{
		Methods: s.methods(), Middleware: chain, Observers: s.observers, Meta: metaOf(s.info),
		MaskErrors: s.opts.MaskErrors, OnPanic: logPanic(&s.logger), OnUnasked: logUnasked(&s.logger), OnRefused: logRefused(&s.logger),
		OnInvalid: logInvalid(&s.logger),
	})
	s.dispatcher.Store(d)
	if s.topics != nil {
		s.topics.MarkServing()
		s.running.Go(func() { s.events.serve(s) }) // it asks the store
	}
	return d
}

// Handler returns the HTTP endpoint: mount it into a chi or net/http router,
// under any path and behind any middleware.
//
//	r := chi.NewRouter()
//	r.Mount("/mcp", s.Handler())
func (s *Server) Handler() http.Handler { return s.handler }

// The errors with which serving ends, and those of addressing a session.
var (
	ErrServerClosed    = conn.ErrServerClosed    // Shutdown was called
	ErrStillRunning    = conn.ErrStillRunning    // of ServeStdio and ServeConn: a call, or the writing of a response, continued after its time
	ErrSessionNotFound = conn.ErrSessionNotFound // it is not there, or has ended
	ErrSlowClient      = conn.ErrSlowClient      // the message was dropped: its client does not read what waits for it already
)

// ServeStdio serves one client over standard input and output, until the client
// closes standard input or ctx ends. Until then nothing else may write to standard
// output.
//
// At the end of input it finishes the running requests within Timeouts.Grace, and
// returns nil. When ctx ends it cancels the running requests and returns ctx's
// cause; the goroutine that waits for standard input may stay until the process
// ends, because such a read cannot be interrupted. A tool that ignores its end
// does not keep the process: two seconds after its cancellation ServeStdio
// abandons it, and returns ErrStillRunning in place of nil.
//
// While the server serves, it waits for a client that does not read standard
// output, because a suspended one may continue. At most 1 MiB and the responses of
// Limits.Concurrent calls wait, and messages outside of calls are dropped. After
// Shutdown, or the end of input, the server stops waiting when the client has read
// nothing for 30 s.
func (s *Server) ServeStdio(ctx context.Context) error { return s.serveStdio(ctx, os.Stdin, os.Stdout) }

// serveStdio is ServeStdio over any two streams, for tests.
func (s *Server) serveStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	return s.connections.ServeStdio(ctx, transport.NewStream(in, out, s.opts.stream()))
}

// ServeConn serves one client over conn, as ServeStdio does, and closes conn. When conn says
// that the client has left (transport.ErrPeerGone), it cancels the running requests and
// returns nil. It returns when every goroutine that it started has ended, or with an error
// some seconds after ctx has ended or Shutdown has given up, whatever a call does. Package
// transport says how to write a Conn, and transport/transporttest checks it.
func (s *Server) ServeConn(ctx context.Context, conn transport.Conn) error {
	if conn == nil {
		return errors.New("mcp: ServeConn: the conn is nil")
	}
	return s.connections.ServeConn(ctx, conn, core.Transport{Kind: string(frame.Pipe)})
}

// Serve accepts connections from a listener for Unix or TCP sockets and serves each as
// ServeStdio serves its one: a message is a line, and each connection has its own legacy
// session, and may also send modern requests. It adds no authentication and no encryption:
// the permissions of a Unix socket, or a TLS listener, are the caller's.
//
// It serves until ctx ends, whose cause it returns, Shutdown is called, for which it returns
// ErrServerClosed, or the listener fails. It closes the listener and returns as ServeConn
// does, when every connection has ended. Connections beyond Limits.Connections get an error
// and are closed.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	if listener == nil {
		return errors.New("mcp: Serve: the listener is nil")
	}
	return s.connections.ServeListener(ctx, listener, func(c net.Conn) transport.Conn { return transport.NewSocket(c, s.opts.socket()) })
}

// ServeUpgrade implements websocket.Server: see websocket.Handler.
func (s *Server) ServeUpgrade(w http.ResponseWriter, r *http.Request, upgrade func(*transport.SocketOptions) (transport.Conn, error)) {
	s.connections.ServeUpgrade(w, r, func() (transport.Conn, error) { return upgrade(s.opts.socket()) })
}

// Stats returns what the server does now. It may be called often.
func (s *Server) Stats() Stats {
	waiting, streams, connections := s.connections.Loads()
	l := &s.opts.Limits
	stats := Stats{
		Draining: s.draining.Load(), Waiting: Load{waiting, conn.MaxWaiting}, Sessions: Load{s.sessions.Count(), l.Sessions},
		Streams: Load{streams, 0}, Connections: Load{connections, l.Connections}, Tasks: Load{s.tasks.Running(), l.TasksRunning},
	}
	if d := s.dispatcher.Load(); d != nil {
		stats.Requests.Now = d.Serving()
	}
	return stats
}

// Drain prepares for Shutdown while everything is still served: Stats reports
// Draining, for balancers; HTTP connections close after their responses; new streams
// are rejected with 503 and a time to retry. Open streams of every kind end evenly
// until the deadline of ctx, each with a time to reconnect, so that other replicas do
// not receive all of them at once. Connections end after their calls. Tasks that
// another replica can run again (TaskOptions.Replay) are handed off at once, and this
// replica claims no more.
//
// It returns at the deadline, with nil; without one, when all streams were asked to
// end, 2,000 a second, and those tasks were handed off. If ctx is cancelled the rest
// ends at once, and its cause is the error. Use half of the time until the process is
// killed for Drain, and the rest for Shutdown, which waits for running calls.
func (s *Server) Drain(ctx context.Context) error {
	inflight.Within(ctx, inflight.Grace, s.drains) // an observer may not return
	handed := make(chan struct{})
	s.running.Go(func() { // next to the streams: the store may be slow, and Shutdown waits for the rest
		defer close(handed)
		s.events.drain()
		s.tasks.HandOver()
	})
	return s.connections.Drain(ctx, handed)
}

// drains notes that the server drains, and tells of it the first time.
func (s *Server) drains() {
	if s.draining.CompareAndSwap(false, true) {
		host{s}.tell(Event{Kind: "draining"})
	}
}

// Shutdown ends the server in order: new requests are refused with 503, open
// streams end, connections end when their calls have, running calls may finish
// until ctx ends and are then cancelled. Requests about tasks are served, and
// connections that may bring some stay, until the tasks have ended and their
// clients know how, or have not asked for an interval and a second. It returns when every
// call has returned, or ctx's error if some had to be cancelled, half a second after the end
// of ctx at the latest: a call, an observer, Options.OnSessionEnd or a Store that does
// not return is left behind. Sessions end, also those with such a call, with ErrServerClosed
// for OnSessionEnd; with Options.Store, those of HTTP live on at the other replicas, to
// which their clients come back: streams end 2,000 a second, each with a time to come back
// within five seconds. Call it before http.Server.Shutdown, which waits for streams.
func (s *Server) Shutdown(ctx context.Context) error {
	ending := inflight.NewEnding(ctx)
	returned := ending.Step(func() {
		s.drains()
		s.subscriptions.announceLast()
	})
	s.connections.Shutdown()
	s.sessions.EndStreams(ctx)
	s.subscriptions.endAllBut(taskTopic(""))
	s.tasks.Drain(ctx)
	returned = ending.Step(func() { s.events.close(ctx, s) }) && returned
	s.running.Stop()
	s.connections.Finish()
	s.subscriptions.broker.Close()
	err := s.running.Wait(ending)
	s.connections.Abandon()
	returned = ending.Step(func() { s.sessions.Close(context.WithoutCancel(ctx), ErrServerClosed) }) && returned
	returned = ending.Step(func() {
		if s.post != nil {
			s.topics.Close(ctx)
			s.post.Close(ctx)
		}
		s.tasks.Close()
		s.failures.Close(ctx) // of all that use the store
	}) && returned
	if err == nil && !returned {
		err = ctx.Err()
	}
	return err
}

// Work runs tasks that wait for a worker (TaskOptions.Worker), as many at a time as
// Limits.TasksRunning says, until ctx ends, whose cause it returns, or Shutdown is
// called, for which it returns ErrServerClosed. It needs Options.Store, and the
// components of the servers that leave it tasks. A process that serves no clients
// calls nothing else; Shutdown, also there, leaves tasks that have not ended to
// others.
//
// Tasks with TaskOptions.Replay whose replica is lost are run by any server with
// that store, also by one that does not Work.
func (s *Server) Work(ctx context.Context) error {
	if s.post == nil {
		return errors.New("mcp: Work: tasks come from other servers, by Options.Store, which is nil")
	}
	return s.tasks.Work(ctx, ErrServerClosed)
}

// ResourceUpdated notifies the clients subscribed to uri that the resource has
// changed. It does not wait for them: changes that come faster than a client
// reads are merged into one.
func (s *Server) ResourceUpdated(uri string) { s.resourceUpdated(uri, wire.ResourceUpdated(uri)) }

// resourceUpdated is ResourceUpdated with the notification that clients of this replica
// get. It returns how many sessions go without it because their clients do not read.
func (s *Server) resourceUpdated(uri string, change *wire.Change) (dropped int) {
	for _, p := range s.mounts.parents() {
		dropped += p.resourceUpdated(uri, change)
	}
	dropped += s.subscriptions.resourceChangedHere(uri, change)
	s.subscriptions.raise(topics.ResourceTopic(uri))
	return dropped
}

// Notify sends a notification to one legacy session, which Frame.SessionID names.
// params encode to a JSON object; nil leaves them out. It does not wait for the
// client: what cannot go out yet waits in a bounded queue, in which equal messages
// count as one. The errors are ErrSessionNotFound, ErrSlowClient, and those of a
// notification that a server must not send. With Options.Store the client may be at
// another replica: that of a connection, as of WebSocket, may disconnect before it
// receives the message, without an error here.
//
// Modern clients have no session: they are notified by subscriptions, of changes of
// lists and resources only.
//
// notifications/message goes out if the session wants its level, and
// notifications/resources/updated if it has subscribed to the resource.
// Progress belongs to a request: see Frame.Progress.
func (s *Server) Notify(sessionID, method string, params any) error {
	n, err := host{s}.notification(method, params)
	if err != nil {
		return err
	}
	err = host{s}.notifyOne(sessionID, &n)
	if errors.Is(err, ErrSessionNotFound) {
		if elsewhere := (host{s}).notifyElsewhere(sessionID, method, n.params); !errors.Is(elsewhere, bus.ErrNoReplica) {
			return elsewhere
		}
	}
	return err
}

// NotifyAll sends a notification to every legacy session; see Notify. Changes of lists and
// resources also go to the subscriptions of modern clients, with their params. Modern
// clients receive no other notification outside of their requests; during one,
// Frame.Notify sends it (basic/transports of 2026-07-28).
//
// The error wraps ErrSlowClient if the clients of some sessions are too far behind
// and go without the notification, and ErrSessionNotFound if there is no session that
// could receive it. A client does not miss that a list has changed, however far
// behind it is. With Options.Store the sessions are those of all replicas. Sessions without an open
// stream then go without notifications of other kinds, and NotifyAll waits for the
// store. An error of the store means that other replicas may lack the notification.
// Other replicas send changes of lists and resources without further params, which is
// an error, too.
func (s *Server) NotifyAll(method string, params any) error {
	n, err := host{s}.notification(method, params)
	if err != nil {
		return err
	}
	return host{s}.notifyAll(method, &n)
}

// WithSession runs fn in a legacy session, which Frame.SessionID names, with a Frame that
// has the session's client, principal and values, and returns its error. Use it
// to notify a client of events in the program:
//
//	err := s.WithSession(ctx, id, func(f *mcp.Frame) error {
//		return f.Log(protocol.LevelInfo, shipped, "orders")
//	})
//
// fn runs on the caller's goroutine, so that what a caller does keeps its order,
// and WithSession may be called with go; several may run in a session at once. The Frame
// ends with ctx and with the session, which stays alive until fn returns; its
// request has neither id nor method. Log, and questions to the client, go out on
// the session's stream; Frame.EndSession ends it. The errors are
// ErrSessionNotFound, ErrServerClosed, and that of fn; a panic becomes an error.
func (s *Server) WithSession(ctx context.Context, sessionID string, fn func(f *Frame) error) error {
	return s.connections.Do(ctx, sessionID, func(f *Frame) error {
		if err := s.attach(f); err != nil {
			return err
		}
		return fn(f)
	})
}

// Stats is what a server does at a moment: see Server.Stats.
type Stats struct {
	Draining    bool // Server.Drain, or Shutdown, was called
	Requests    Load // messages in progress, including handlers that continue after their time
	Waiting     Load // bytes of messages that wait for a worker of their connection
	Sessions    Load // legacy sessions that are known here
	Streams     Load // event streams; see Event
	Connections Load // other than standard input and output, and requests over HTTP
	Tasks       Load // that run here
}

// Load is how much there is of something, and how much there may be: 0 is without a
// limit of its own.
type Load struct{ Now, Max int }
