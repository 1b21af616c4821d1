package mcp

import (
	"fmt"
	"math"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/internal/ask"
	"github.com/talaria-go/mcp/internal/events"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/streamable"
	engine "github.com/talaria-go/mcp/internal/tasks"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/session"
	"github.com/talaria-go/mcp/transport"
)

// Options shape a Server. The zero value is the default, and nil stands for
// it; a Server copies what it is given.
type Options struct {
	// Instructions tell the model how to use the server as a whole.
	Instructions string
	// Revisions are the protocol revisions to serve. Empty means all.
	Revisions []protocol.Revision
	// Schema shapes the schemas and checks of tools; nil means the defaults.
	Schema *schema.Options
	// ExactSchemas sends every rule of a tool's arguments as a keyword of JSON Schema. By
	// default, what some host rejects is left out there and said in descriptions. The
	// check of a call is the same in both cases.
	ExactSchemas bool
	// Logger takes what the server has to say of itself: panics and faults of
	// handlers as errors, those of notification handlers as warnings, each request at
	// debug level with method, name,
	// duration and code, never its content. nil logs warnings and worse to
	// standard error, for people where that is a terminal; zerolog.Nop()
	// silences it. Package slogwriter leads to a slog.Handler.
	Logger *zerolog.Logger
	// MaskErrors keeps the text of ordinary errors from clients. Errors of
	// type *Error are meant for them and go out as they are.
	MaskErrors bool
	// PageSize is how many components a list page holds; 0 means 1,000.
	PageSize int
	// ListTTL is how long a client may keep lists, and what Discover says; 0
	// means not at all.
	ListTTL time.Duration
	// ListPublic lets caches between server and clients store lists and serve
	// them to all clients. Lists that differ between clients are never public.
	ListPublic bool
	// Filter decides which components the client of a request sees, by kind and
	// name, URI or URI template. Components for which it returns false are in no
	// list, and calling one is the same error as calling an unknown one. Lists are
	// then made for each request and are private; notifications of changed lists
	// still go to all clients. nil shows everything. See also VisibleTo, which hides
	// one component, and leaves the lists without such components shared.
	Filter func(f *Frame, kind Kind, name string) bool
	// Discover may change the server's description for the client of f, in each
	// response to initialize and server/discover. A capability that it removes
	// is not declared, but still served. An Info without Name or Version keeps
	// those of the server. Other results of modern revisions name the server by
	// this Info.
	Discover func(f *Frame, d *Discovery)
	// OnSessionStart runs once for each legacy session, before initialize is
	// answered. An error refuses the session: a *Error as it is, others as
	// -32603. The client cannot be asked anything yet. Sessions that come from a
	// store have had it where they were opened.
	OnSessionStart func(f *Frame) error
	// OnSessionAttach runs when a process meets a legacy session, before
	// middleware and components see the request: after OnSessionStart in the one that opens
	// it, and, with a Store, at the first request in each other one, and again when it
	// comes back after it was not used there for half of Timeouts.Session. It keeps in the
	// session what cannot be encoded, such as a connection to a database, under a key of
	// NewKey. Nothing tells it when the process lets go of the session: what has to be
	// closed belongs to the program. An error refuses the request, as that of
	// OnSessionStart does, and the next one tries again.
	OnSessionAttach func(f *Frame) error
	// OnSessionEnd runs once for each session that OnSessionStart accepted, when
	// it has ended and its last request is over, with the reason:
	// ErrSessionDeleted, ErrSessionIdle, ErrServerClosed, that of
	// Frame.EndSession, or else ErrSessionClosed or the cause that the context of
	// its connection ended for. f has the session's values and client; messages no
	// longer reach the client. It must not call Shutdown.
	//
	// With a Store, sessions survive the shutdown of the server. OnSessionEnd runs
	// once, at the replica that ends the session, and again at another one if that
	// replica dies during the call. OnSessionAttach may not have run there.
	OnSessionEnd func(f *Frame, reason error)
	// AllowedHosts are the values of Host that are served, with or without port,
	// over HTTP and WebSocket. Empty means: any, but on loopback addresses only
	// loopback names, which keeps web pages from reaching a local server by DNS
	// rebinding.
	AllowedHosts []string
	// AllowedOrigins are the values of Origin that are served, as
	// "https://app.example.com", besides the server's own; "*" means any. On
	// loopback addresses the origins of loopback names are served, too, if
	// AllowedHosts is empty.
	AllowedOrigins []string
	// StateKeys encrypt the state that modern clients carry between the rounds of
	// a request. The first key encrypts, and all of them decrypt. Servers that
	// share an endpoint must share the keys; NewServer panics if there is a Store
	// without keys. Each has 16 random bytes or more. Empty means a key that this
	// process generates.
	StateKeys [][]byte
	// Store makes this server one of several that serve the same clients, its
	// replicas: whichever of them a request reaches, it finds the session, or the
	// task. nil means that there is one process, and that what it keeps ends with it.
	//
	// All replicas have the same store, StateKeys, components and options. A
	// request that needs a session is refused with 503 while the store does not
	// answer; requests of modern revisions do not need it. With a Store the server
	// has goroutines of its own, from NewServer until Shutdown.
	Store scale.Store
	// Webhooks lets clients have events sent to URLs of theirs. With nil no event type
	// offers that.
	Webhooks *WebhookOptions
	// Limits, Timeouts and HTTP have the sizes, the durations and the options of
	// streamable HTTP.
	Limits   Limits
	Timeouts Timeouts
	HTTP     HTTPOptions
}

// Limits are the numbers by which a Server bounds what clients can take of it.
// Of each 0 means the default, and negative none.
type Limits struct {
	Message     int // bytes of one message, on every transport; 4 MiB
	Batch       int // messages of a JSON-RPC batch, in the revision that has them; 100
	Connections int // connections over sockets, WebSocket and HTTP+SSE together; 10,000
	// ConnectionsPerPrincipal limits the connections of one principal; a tenth of
	// Connections, at least one. Anonymous clients count as one principal, and so do
	// all connections of Serve. They may use all connections until the first client
	// with an identity connects, and half after that.
	ConnectionsPerPrincipal int
	// Concurrent limits the running calls of a connection, or a legacy session;
	// 256. Further requests of a connection wait, up to 16 MiB of messages, some
	// 15,000 small calls, and 256 MiB for all connections. Requests beyond that are
	// rejected with CodeBusy, as are further requests of a session over HTTP.
	// Pings, cancellations, answers to questions and the end of the connection are
	// still handled at once. Modern requests over HTTP are not counted: the
	// http.Server or a proxy limits them.
	Concurrent int

	Sessions int // legacy sessions over HTTP; 10,000
	// SessionsPerPrincipal limits the sessions of one principal; a tenth of
	// Sessions, at least one. Anonymous clients count as one principal. They may
	// use all sessions, but make room for others while they have more than half.
	// If there is no room, sessions that were never used after initialize end
	// first, the oldest first.
	SessionsPerPrincipal int
	// History is how many bytes of events each session keeps for a client that
	// comes back to a broken stream; 16 KiB. The last event is kept beyond that,
	// if it has no more than Event. A session that is not used drops them between
	// half of Timeouts.Session and the whole. Negative keeps none.
	History int
	// Event is how many bytes an event may have to be kept; 1 MiB. A client that
	// comes back for a longer one is refused, and told why.
	Event int
	// MessageMemory limits the bytes that all sessions keep of messages, in their
	// histories and while they wait for streams; 64 MiB. At the limit sessions drop
	// their histories, the least recently added to first. After that, messages outside
	// of requests are dropped, first those of the client that has read nothing for the
	// longest time. Waiting messages use at most three quarters of it. The notification
	// that a list has changed is never dropped, but may lose its params.
	//
	// One principal can use a tenth, at least 6 MiB; beyond that only its own sessions
	// make room. Anonymous clients can use half once a client with a name has come.
	// With a negative SessionsPerPrincipal there is no such share.
	MessageMemory int
	// URIMemory limits the bytes of the URIs that sessions subscribe to; 64 MiB, a tenth
	// of it per principal. Beyond it no session subscribes.
	URIMemory int
	// ClientMemory limits the bytes of the descriptions of the clients of sessions beyond
	// 2 KiB each; 64 MiB, a tenth of it per principal. If there is no room, sessions that
	// were never used after initialize end.
	ClientMemory int
	// AnswerMemory limits the bytes of the answers that Options.Store keeps for clients of
	// this process that disconnected or resume at another replica; 64 MiB, a tenth of it
	// per principal. Beyond it none is kept.
	AnswerMemory int

	Subscriptions int // subscriptions of all clients at a time; 20,000
	// SubscriptionsPerPrincipal limits the subscriptions of one principal; a tenth
	// of Subscriptions, at least one, and a tenth of the memory for their names.
	// Anonymous clients have the share that ConnectionsPerPrincipal describes.
	SubscriptionsPerPrincipal  int
	SubscriptionsPerConnection int // subscriptions of one stdio connection or the like; 100
	// ResourcesPerSubscription limits the resources of one subscription, or of one legacy session;
	// 1,000, with at most 256 KiB of URIs.
	ResourcesPerSubscription int

	Tasks        int // tasks that are kept at a time, also those that have ended; 10,000
	TasksRunning int // tasks that run at a time; 64
	// TasksPerPrincipal is how many are kept of one principal; a tenth of Tasks, at
	// least one. Anonymous clients, who are one owner, have none but Tasks.
	TasksPerPrincipal int
	// TasksRunningPerPrincipal is how many run of one principal; a quarter of
	// TasksRunning, at least one. Anonymous clients, who are one owner, have none
	// until the first client with a name has come.
	TasksRunningPerPrincipal int
	// TaskMemory is how many bytes tasks keep of results, errors and questions, and,
	// with TaskOptions.Replay, of calls, answers and what Once kept; 256 MiB. What exceeds
	// it is not kept: a task with such a result fails and says so, and no task begins while
	// three quarters are used, or by a principal who uses a tenth.
	TaskMemory int

	Rounds       int // how often one request may ask its client, in modern revisions; 10
	RequestState int // bytes of what such a client carries from round to round; 32 KiB
	Questions    int // unanswered questions of a connection or legacy session; 1,000
	File         int // bytes that File and Directory read of one file; 16 MiB
	// EventLog is how many bytes of events each event type keeps for clients that ask later;
	// 4 MiB, some 7,000 events of 500 bytes. The oldest events are dropped first. It must
	// not be negative.
	EventLog int
	// Webhooks is how many webhook subscriptions this server works for, beyond which it
	// accepts no more; 10,000. Of one principal there are at most 100.
	Webhooks int
}

// Timeouts are the durations of a Server. Of each 0 means the default, and
// negative none. Read and Write are not for standard input and output, whose
// client may have been suspended.
type Timeouts struct {
	// Call limits every tool call, resource read, prompt and method without the
	// option Timeout; the default means no limit.
	Call time.Duration
	// Grace is how long the requests of a connection (standard input and output,
	// a socket or a custom transport) may continue after the client has closed
	// its side while it may still read; 10 s. They are then cancelled. Requests
	// of a client that has disconnected, as over WebSocket and HTTP+SSE, are
	// cancelled at once.
	Grace time.Duration

	Read      time.Duration // for the rest of a message that a client has begun; 30 s
	Write     time.Duration // for a client to take an answer or an event; 30 s
	KeepAlive time.Duration // between signs of life on a quiet stream; 25 s

	Session  time.Duration // idle time after which a session ends; 30 min
	Task     time.Duration // how long a task is kept, if TaskOptions do not say; 1 h
	Question time.Duration // how long a client may take to answer one; 15 min

	// StreamAge is the age, plus or minus 10 %, at which event streams and
	// connections end, except those of standard input and output and of ServeConn.
	// Clients that reconnect then find replicas that started later. The calls of a
	// connection finish first. The default is never.
	StreamAge time.Duration
}

// HTTPOptions are what belongs to the endpoint that Server.Handler returns.
type HTTPOptions struct {
	// SSE serves the HTTP+SSE transport of revision 2024-11-05 too, to clients
	// that open a stream with GET and name no session. The stream tells them
	// where to POST: the same URL, with an id in its query, which is a secret
	// that proxies may log. Its sessions last as long as their streams.
	SSE bool
	// SSEEndpoint is what the stream names instead, as a path or a URL, where a
	// proxy serves the endpoint under another path than it is asked for.
	SSEEndpoint string
	// Polling lets handlers end the connection that waits for their answer; see
	// Frame.CloseStream. It costs each request of a session of revision
	// 2025-11-25 a goroutine of its own.
	Polling bool
	// NoHijack leaves the connections of subscriptions to net/http. They are
	// taken over from it, where HTTP/1.1 and the middleware in front allow that,
	// because it keeps much memory for each; but its Server.Close does not reach
	// them then, nor do writers that only count or log: Server.Shutdown does.
	NoHijack bool
}

// Discovery is what a server says of itself to one client.
type Discovery struct {
	Info         Info
	Capabilities protocol.ServerCapabilities // what follows from the components
	Instructions string
}

// What zero Limits and Timeouts stand for, where no other package says it.
const (
	defaultMaxSubscriptions         = 20_000
	defaultSubscriptionsPerConn     = 100
	defaultResourcesPerSubscription = 1_000
	defaultMaxConcurrent            = 256
	defaultMaxConnections           = 10_000
	defaultFile                     = 16 << 20
	defaultSessions                 = 10_000
	defaultEvent                    = 1 << 20
	defaultBudget                   = 64 << 20 // of each of the four budgets
	defaultGrace                    = 10 * time.Second
)

// noLimit and noTimeout stand for none where a number is needed; they leave
// room for arithmetic.
const (
	noLimit   = math.MaxInt / 4
	noTimeout = 100 * 365 * 24 * time.Hour
)

// complete replaces 0 with the default, and negative numbers with no limit.
// NewServer calls it once, on its copy. Other options keep their 0 and negative
// numbers, which have a meaning in the package that receives them from the
// functions below.
func (o *Options) complete() {
	if o.Limits.EventLog < 0 {
		panic(fmt.Sprintf("mcp: Options.Limits.EventLog is %d; give the bytes that each event type keeps, or 0 for the default", o.Limits.EventLog))
	}
	for _, limit := range []struct {
		value *int
		or    int
	}{
		{&o.Limits.Message, facts.MaxMessage},
		{&o.Limits.Batch, wire.DefaultMaxBatch},
		{&o.Limits.Connections, defaultMaxConnections},
		{&o.Limits.Concurrent, defaultMaxConcurrent},
		{&o.Limits.Sessions, defaultSessions},
		{&o.Limits.Event, defaultEvent},
		{&o.Limits.MessageMemory, defaultBudget},
		{&o.Limits.URIMemory, defaultBudget},
		{&o.Limits.ClientMemory, defaultBudget},
		{&o.Limits.AnswerMemory, defaultBudget},
		{&o.Limits.Subscriptions, defaultMaxSubscriptions},
		{&o.Limits.SubscriptionsPerConnection, defaultSubscriptionsPerConn},
		{&o.Limits.ResourcesPerSubscription, defaultResourcesPerSubscription},
		{&o.Limits.Tasks, engine.DefaultMax},
		{&o.Limits.TasksRunning, engine.DefaultRunning},
		{&o.Limits.TaskMemory, engine.DefaultMemory},
		{&o.Limits.Rounds, ask.DefaultMaxRounds},
		{&o.Limits.RequestState, ask.DefaultMaxState},
		{&o.Limits.Questions, ask.DefaultMaxOpen},
		{&o.Limits.File, defaultFile},
		{&o.Limits.EventLog, events.DefaultKeep},
		{&o.Limits.Webhooks, events.DefaultWebhooks},
	} {
		switch {
		case *limit.value == 0:
			*limit.value = limit.or
		case *limit.value < 0:
			*limit.value = noLimit
		}
	}
	for _, timeout := range []struct {
		value *time.Duration
		or    time.Duration
	}{
		{&o.Timeouts.Task, engine.DefaultTTL},
		{&o.Timeouts.Question, ask.DefaultExpiry},
	} {
		switch {
		case *timeout.value == 0:
			*timeout.value = timeout.or
		case *timeout.value < 0:
			*timeout.value = noTimeout
		}
	}
	if o.Timeouts.Grace == 0 {
		o.Timeouts.Grace = defaultGrace
	}
}

// listCache returns the time that lists may be cached, and whether shared caches
// may do so.
func (o *Options) listCache() protocol.Cache {
	return protocol.Cache{TTL: o.ListTTL, Public: o.ListPublic || o.ListTTL <= 0}
}

// streamable returns the options of the HTTP endpoint.
func (o *Options) streamable() streamable.Options {
	return streamable.Options{
		MaxBody: int64(o.Limits.Message), MaxBatch: o.Limits.Batch,
		ReadTimeout: o.Timeouts.Read, WriteTimeout: o.Timeouts.Write, KeepAlive: o.Timeouts.KeepAlive,
		AllowedHosts: o.AllowedHosts, AllowedOrigins: o.AllowedOrigins,
		SSE: o.HTTP.SSE, SSEEndpoint: o.HTTP.SSEEndpoint, Polling: o.HTTP.Polling, NoHijack: o.HTTP.NoHijack,
	}
}

// socket returns the options of connections over sockets and WebSocket.
func (o *Options) socket() *transport.SocketOptions {
	return &transport.SocketOptions{MaxMessage: o.Limits.Message, ReadTimeout: o.Timeouts.Read, WriteTimeout: o.Timeouts.Write, KeepAlive: o.Timeouts.KeepAlive}
}

// stream returns the options of standard input and output, which have no
// timeouts: a suspended client may continue.
func (o *Options) stream() *transport.StreamOptions {
	return &transport.StreamOptions{MaxMessage: o.Limits.Message}
}

// sessions returns the options of the table of sessions. failed is called with errors of
// the store, and dropped as session.Config.Dropped.
func (o *Options) sessions(failed func(error), dropped func(x *session.Session, n int)) session.Config {
	return session.Config{
		IdleTimeout: o.Timeouts.Session, MaxSessions: o.Limits.Sessions, MaxPerPrincipal: o.Limits.SessionsPerPrincipal,
		History: o.Limits.History, MaxEvent: o.Limits.Event,
		Memory: o.Limits.MessageMemory, URIMemory: o.Limits.URIMemory, ClientMemory: o.Limits.ClientMemory, AnswerMemory: o.Limits.AnswerMemory,
		Store: o.Store, OnStoreError: failed, Dropped: dropped,
	}
}

// sealer returns what seals values of one use with StateKeys. It panics on keys
// that cannot, as NewServer does on other faults.
func (o *Options) sealer(use string) *seal.Sealer {
	sealer, err := seal.New(use, o.StateKeys...)
	if err != nil {
		panic("mcp: Options.StateKeys: " + err.Error())
	}
	return sealer
}

// tasks returns the options of tasks; failed is called with errors of the store.
func (o *Options) tasks(failed func(error)) engine.Config {
	return engine.Config{
		TTL: o.Timeouts.Task, Max: o.Limits.Tasks, MaxRunning: o.Limits.TasksRunning,
		MaxPerOwner: o.Limits.TasksPerPrincipal, MaxRunningPerOwner: o.Limits.TasksRunningPerPrincipal, Memory: o.Limits.TaskMemory,
		StoreFailed: failed,
	}
}

// rounds returns the options of questions to modern clients.
func (o *Options) rounds() ask.AskersConfig {
	return ask.AskersConfig{Expiry: o.Timeouts.Question, MaxRounds: o.Limits.Rounds, MaxState: o.Limits.RequestState, MaxOpen: o.Limits.Questions}
}

// newRounds makes what asks modern clients. It panics on keys that cannot
// seal, as NewServer does on other faults.
func newRounds(opts Options) *ask.Askers {
	if len(opts.StateKeys) == 0 && opts.Store != nil {
		panic("mcp: NewServer: Options.Store is for servers that share their work, and they need the same Options.StateKeys: " +
			"without them no other server, nor this one after a restart, continues a request that asked its client something. " +
			"Give all of them the same secret of 16 random bytes or more")
	}
	return ask.NewAskers(opts.sealer(seal.Rounds), opts.rounds())
}
