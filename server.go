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

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/internal/conn"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/hub"
	"github.com/talaria-go/mcp/internal/peer"
	"github.com/talaria-go/mcp/internal/rounds"
	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/session"
	"github.com/talaria-go/mcp/tasks"
)

// Info names the server to its clients. Name and Version are required.
type Info = protocol.Implementation

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
	announcers  map[string]*announcer // by method; it does not change
	rounds      *rounds.Askers
	tasks       *tasks.Manager
	hasTasks    atomic.Bool // a tool with AsTask was registered
	scoped      atomic.Bool // a component with Scopes was
	running     peer.Tracker
	connections *conn.Manager
	handler     *streamable.Handler

	composing  sync.Mutex
	middleware []Middleware                        // composing is held
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
		if err := protocol.CheckWebURL(info.WebsiteURL); err != nil {
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
	s.opts.Revisions = orderedRevisions(s.opts.Revisions)
	if s.opts.Logger != nil {
		s.logger = *s.opts.Logger
	} else {
		s.logger = zerolog.New(logTo(os.Stderr)).Level(zerolog.WarnLevel).With().Timestamp().Str("server", info.Name).Logger()
	}
	s.rounds = newRounds(s.opts)
	s.tasks = tasks.NewManager(s.opts.tasks(func(err error) { s.logStore("task store", err) }), s.taskChanged)
	s.tools = registry.NewList[*registry.Tool](registry.Config{
		Member: "tools", PageSize: s.opts.PageSize, Cache: s.opts.listCache(), Meta: s.serverMeta(),
	})
	s.sessions = (*host)(s).newSessions()
	s.connections = (*host)(s).newConnections()
	s.handler = streamable.New(s.connections.Endpoint(), s.opts.streamable())
	s.hub = hub.New(s.opts.Limits.Subscriptions, s.opts.Limits.SubscriptionsPerPrincipal, s.handler.KeepAlive())
	s.announcers = s.newAnnouncers()
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

// Remove removes components of one kind by name, URI or URI template, and
// returns how many there were. Clients that want to know are told.
func (s *Server) Remove(kind Kind, names ...string) int {
	switch kind {
	case KindTool:
		return s.tools.Remove(names...)
	case KindResource:
		return s.resources.Remove(names...)
	case KindTemplate:
		return s.templates.Remove(names...)
	case KindPrompt:
		return s.prompts.Remove(names...)
	}
	return 0
}

// Handler serves one request or notification: f.Request says which.
type Handler = dispatch.Handler

// Middleware wraps the handling of every method.
type Middleware = dispatch.Middleware

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

// dispatch returns the dispatcher, which it makes at the first request.
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
		chain = append([]Middleware{s.logRequests}, chain...)
	}
	// Middleware composes itself under the lock, once: it must not call Use.
	d := dispatch.New(dispatch.Config{
		Methods: s.methods(), Middleware: chain, Meta: s.serverMeta(),
		MaskErrors: s.opts.MaskErrors, OnPanic: s.logPanic,
	})
	s.dispatcher.Store(d)
	return d
}

// Handler returns the HTTP endpoint: mount it into a chi or net/http router,
// under any path and behind any middleware.
//
//	r := chi.NewRouter()
//	r.Mount("/mcp", s.Handler())
func (s *Server) Handler() http.Handler { return s.handler }

// Shutdown ends the server in order: new requests are refused with 503, open
// streams end, connections end when their calls have, running calls may finish
// until ctx ends and are then cancelled. Requests about tasks are served, and
// connections that may bring some stay, until the tasks have ended and their
// clients know how, or have not asked for an interval and a second. It returns when every call has
// returned, or ctx's error if some had to be cancelled; for calls of a
// connection that ignore their end, Serve and ServeConn wait. Sessions end, with
// ErrServerClosed for Options.OnSessionEnd; with Options.SessionStore, those of
// HTTP are saved instead, and another process goes on with them. Call it before
// http.Server.Shutdown, which waits for streams.
func (s *Server) Shutdown(ctx context.Context) error {
	for _, a := range s.announcers {
		a.close()
	}
	s.connections.Shutdown()
	s.sessions.EndStreams()
	s.drain(ctx)
	s.running.Stop()
	s.connections.Finish()
	s.hub.Close()
	err := s.running.Wait(ctx)
	s.sessions.Close(ErrServerClosed)
	return err
}

// toolsChanged tells legacy sessions that the list of tools is another.
func (s *Server) toolsChanged() {
	s.announce(protocol.MethodToolsChanged)
}
