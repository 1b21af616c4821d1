package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/hub"
	"github.com/talaria-go/mcp/internal/peer"
	"github.com/talaria-go/mcp/internal/rounds"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/session"
	"github.com/talaria-go/mcp/tasks"
	"github.com/talaria-go/mcp/transport/streamable"
	"github.com/talaria-go/mcp/transport/websocket"
)

// Info names the server to its clients. Name and Version are required.
type Info = protocol.Implementation

// Options shape a Server. The zero value is the default, and nil stands for
// it; a Server copies what it is given.
type Options struct {
	// Instructions tell the model how to use the server as a whole.
	Instructions string
	// Revisions are the protocol revisions to serve. Empty means all.
	Revisions []protocol.Revision
	// Logger takes what the server has to say of itself: panics and faults of
	// handlers as errors, each request at debug level with method, name,
	// duration and code, never its content. nil logs warnings and worse to
	// standard error; zerolog.Nop() silences it.
	Logger *zerolog.Logger
	// MaskErrors keeps the text of ordinary errors from clients. Errors of
	// type *Error are meant for them and go out as they are.
	MaskErrors bool
	// NoLogging leaves the logging capability out.
	NoLogging bool
	// PageSize is how many components a list page holds; 0 means 1,000.
	PageSize int
	// ListCache says how long, and for whom, clients may keep lists. The zero
	// value means not at all, for anybody.
	ListCache protocol.Cache
	// Schema shapes the schemas and checks of tools; nil means the defaults.
	Schema *schema.Options
	// HTTP shapes the endpoint that Handler returns.
	HTTP streamable.Options
	// Sessions limit legacy HTTP sessions.
	Sessions session.Config
	// Init runs once for each legacy session, before initialize is answered. An
	// error refuses the session: a *Error as it is, others as -32603. The
	// client cannot be asked anything yet. Sessions that come from a store have
	// had it where they were opened.
	Init func(f *Frame) error
	// Terminate runs once for each session that Init let in, when it has ended
	// and its last request is over, with the reason: ErrSessionDeleted,
	// ErrSessionIdle, ErrServerClosed, that of Stop, or else ErrSessionClosed or
	// the cause that the context of its connection ended for. The session's
	// assigns and client are in f; nothing reaches the client any more. It must
	// not call Shutdown.
	//
	// With Sessions.Store, a session that lives when the server shuts down has
	// not ended: it is saved, and Terminate runs in the process that ends it,
	// also of one that moved while this process lives. A session that no process
	// takes up again is forgotten by the store, and Terminate does not run. What
	// belongs to a process is better kept elsewhere than in such sessions.
	Terminate func(f *Frame, reason error)
	// Subscriptions limit what clients may subscribe to.
	Subscriptions SubscriptionLimits
	// Timeout limits every tool call, resource read and prompt that has no
	// limit of its own; 0 means no limit.
	Timeout time.Duration
	// MaxArguments limits the arguments of a call, in bytes; 0 means 1 MiB.
	MaxArguments int
	// StateKeys seal what modern clients carry for a request that asked them
	// something, with the first key; the others open what they sealed before.
	// Servers that share the work of an endpoint must share them. Each has 16
	// random bytes or more. Empty means a key that this process makes.
	StateKeys [][]byte
	// Tasks bound what runs and is kept for tools with the option AsTask.
	Tasks tasks.Config
	// Rounds bound how often and how long a request may ask its client.
	Rounds Rounds
	// MaxConcurrent limits the calls that a stdio connection, or a legacy
	// session, has under way; 0 means 256. Further messages of a connection
	// wait; further requests of a session are refused.
	MaxConcurrent int
	// MaxConnections limits the connections that the server has at a time over
	// sockets, WebSocket and HTTP+SSE together; 0 means 10,000.
	MaxConnections int
	// Grace is how long the requests of a connection, over standard input and
	// output, a socket or a transport of your own, may go on after the client
	// has ended its side while it may still read. They are cancelled then. 0
	// means DefaultGrace; negative means no limit. Clients that have left
	// altogether, as all of WebSocket and HTTP+SSE do, get none.
	Grace time.Duration
	// Sockets shapes the connections that Serve accepts.
	Sockets SocketOptions
	// Filter decides which components are there for the client of a request: of
	// which kind, and by which name, URI or URI template. Those for which it
	// returns false are in no list, and calling them is the same error as
	// calling what does not exist. Lists are then made for each request, and
	// are for its client alone; announcements that a list has changed still go
	// to everybody. nil shows everything. See also VisibleTo, which hides one
	// component, and leaves the lists without such components shared.
	Filter func(f *Frame, kind ComponentKind, name string) bool
	// OnEvent takes the events that Server.Post brings into sessions. See Post,
	// and Stop, which ends the session.
	OnEvent func(f *Frame, event any) error
	// InfoFunc says what the server is, for each initialize and server/discover
	// anew; a Name or Version that it leaves out is that of Info. Further
	// results of modern revisions name the server as Info does. nil stands for
	// Info.
	InfoFunc func(f *Frame) Info
	// CapabilitiesFunc says what the server declares, for each initialize and
	// server/discover anew. derived is what follows from what is registered;
	// what it adds or leaves out is declared, or not, but still served. nil
	// stands for derived.
	CapabilitiesFunc func(f *Frame, derived ServerCapabilities) ServerCapabilities
	// WebSocket shapes the connections of WebSocketHandler.
	WebSocket websocket.Options
	// MaxBatch limits how many messages a JSON-RPC batch may hold, in the
	// revision that has batches; 0 means 100. HTTP.MaxBatch overrides it.
	MaxBatch int
}

// The limits that zero Options stand for.
const (
	DefaultMaxArguments  = 1 << 20
	DefaultMaxConcurrent = 256
)

// Server offers tools to clients of every protocol revision at once. Its
// methods are safe for concurrent use; Use must come before serving.
type Server struct {
	info   Info
	opts   Options
	logger zerolog.Logger
	tools  *registry.List[*registry.Tool]
	offers
	adding      sync.Mutex // makes Add all or nothing
	mounts      []*mount   // of others into this one; adding is held
	customs     customs    // adding is held
	family      family
	sessions    *session.Manager
	hub         *hub.Hub
	rounds      *rounds.Askers
	tasks       *tasks.Manager
	hasTasks    atomic.Bool // a tool with AsTask was registered
	scoped      atomic.Bool // a component with Scopes was
	running     peer.Tracker
	connections *connections
	handler     *streamable.Handler

	middleware []Middleware
	build      sync.Once // makes dispatcher when serving begins
	dispatcher *dispatch.Dispatcher
}

// NewServer returns a Server without components. It panics if info lacks its
// name or version, or if opts name no revision that exists: such a server
// could never answer a client.
func NewServer(info Info, opts *Options) *Server {
	if info.Name == "" || info.Version == "" {
		panic(fmt.Sprintf("mcp: NewServer needs Info with Name and Version, got %q and %q", info.Name, info.Version))
	}
	s := &Server{info: info}
	if opts != nil {
		s.opts = *opts
	}
	s.connections = newConnections(s.opts.MaxConnections)
	s.opts.Revisions = orderedRevisions(s.opts.Revisions)
	if s.opts.Grace == 0 {
		s.opts.Grace = DefaultGrace
	}
	if s.opts.MaxArguments <= 0 {
		s.opts.MaxArguments = DefaultMaxArguments
	}
	if s.opts.MaxConcurrent <= 0 {
		s.opts.MaxConcurrent = DefaultMaxConcurrent
	}
	if s.opts.ListCache.Scope == "" {
		s.opts.ListCache.Scope = protocol.CachePublic
	}
	if s.opts.Logger != nil {
		s.logger = *s.opts.Logger
	} else {
		s.logger = zerolog.New(os.Stderr).Level(zerolog.WarnLevel).With().Timestamp().Str("server", info.Name).Logger()
	}
	s.rounds = newRounds(s.opts)
	s.tasks = tasks.NewManager(s.opts.Tasks, s.taskChanged)
	s.tools = registry.NewList[*registry.Tool](registry.Config{
		Member: "tools", PageSize: s.opts.PageSize, Cache: s.opts.ListCache, Meta: s.serverMeta(),
	})
	s.sessions = s.newSessions()
	s.opts.Subscriptions = s.opts.Subscriptions.orDefaults()
	if s.opts.HTTP.MaxBatch == 0 {
		s.opts.HTTP.MaxBatch = s.opts.MaxBatch
	}
	s.handler = streamable.New((*endpoint)(s), s.opts.HTTP)
	s.hub = hub.New(s.opts.Subscriptions.Max, s.handler.KeepAlive())
	s.tools.Watch(s.toolsChanged)
	s.newOffers()
	return s
}

// orderedRevisions returns revs, or all, newest first.
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

// Info returns what the server says of itself.
func (s *Server) Info() Info { return s.info }

// Add registers components, all or none. The error lists every fault with
// type, field, tag and fix. It may be called while the server serves: clients
// that want to know are told of the change.
func (s *Server) Add(components ...Component) error {
	all, err := s.compile(components)
	if err != nil {
		return err
	}
	return s.add(all)
}

// compile checks components and makes them ready.
func (s *Server) compile(components []Component) (*offer, error) {
	var faults []error
	var all offer
	for i, c := range components {
		if c == nil {
			faults = append(faults, fmt.Errorf("mcp: component %d is nil", i))
			continue
		}
		if err := c.compile(s, &all); err != nil {
			faults = append(faults, err)
		}
	}
	return &all, errors.Join(faults...)
}

// MustAdd is Add for program start: it panics with the error.
func (s *Server) MustAdd(components ...Component) {
	if err := s.Add(components...); err != nil {
		panic(err)
	}
}

// RemoveTools removes tools by name and returns how many there were.
func (s *Server) RemoveTools(names ...string) int { return s.tools.Remove(names...) }

// Handler serves one request or notification: f.Request says which.
type Handler = dispatch.Handler

// Middleware wraps the handling of every method.
type Middleware = dispatch.Middleware

// Use adds middleware; what is added first is outermost. It panics if one is
// nil, and once the server serves, because the chain is composed then, once.
func (s *Server) Use(middleware ...Middleware) {
	if s.dispatcher != nil {
		panic("mcp: Use after the server began to serve; call it before")
	}
	for i, m := range middleware {
		if m == nil {
			panic(fmt.Sprintf("mcp: Use: middleware %d is nil; leave it out", i))
		}
	}
	s.middleware = append(s.middleware, middleware...)
}

// dispatch returns the dispatcher, which it makes at the first request.
func (s *Server) dispatch() *dispatch.Dispatcher {
	s.build.Do(func() {
		chain := append([]Middleware{s.gate}, s.middleware...)
		if s.logger.GetLevel() <= zerolog.DebugLevel {
			chain = append([]Middleware{s.logRequests}, chain...)
		}
		s.dispatcher = dispatch.New(dispatch.Config{
			Methods: s.methods(), Middleware: chain, Meta: s.serverMeta(),
			MaskErrors: s.opts.MaskErrors, OnPanic: s.logPanic,
		})
	})
	return s.dispatcher
}

// Handler returns the HTTP endpoint: mount it into a chi or net/http router,
// under any path and behind any middleware.
//
//	r := chi.NewRouter()
//	r.Mount("/mcp", s.Handler())
func (s *Server) Handler() http.Handler { return s.handler }

// Shutdown ends the server in order: new requests are refused with 503, open
// streams end, connections end when their calls have, running calls may finish
// until ctx ends and are then cancelled. It returns when every call has
// returned, or ctx's error if some had to be cancelled; for calls of a
// connection that ignore their end, Serve and ServeConn wait. Sessions end, with
// ErrServerClosed for Options.Terminate; with Options.Sessions.Store, those of
// HTTP are saved instead, and another process goes on with them. Call it before
// http.Server.Shutdown, which waits for streams.
func (s *Server) Shutdown(ctx context.Context) error {
	s.running.Stop()
	s.connections.shutdown()
	s.hub.Close()
	s.sessions.EndStreams()
	err := s.running.Wait(ctx)
	s.sessions.Close(ErrServerClosed)
	return err
}

// toolsChanged tells legacy sessions that the list of tools is another.
func (s *Server) toolsChanged() {
	s.announce(protocol.MethodToolsChanged)
}

// Frame carries one request; see package frame.
type Frame = frame.Frame

// Error is an error with a JSON-RPC code. Returned from a handler, it becomes
// the answer as it is.
type Error = protocol.Error

// Key is a typed place for a value that handlers keep; see frame.Key.
type Key[T any] = frame.Key[T]

// NewKey returns a new Key; see frame.NewKey.
func NewKey[T any](name string) Key[T] { return frame.NewKey[T](name) }
