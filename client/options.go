package client

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Options are the settings of a client. The zero value is the default of all;
// Connect copies it.
type Options struct {
	// Info names the client to servers. Without a name it is "talaria".
	Info Info
	// Revisions are the revisions that the client speaks; nil means all. A single
	// one pins it.
	Revisions []protocol.Revision

	// Timeout is how long a request waits for its answer or for the next
	// progress, and how long a connection may take to open; 0 means 30
	// seconds, less than 0 no limit. While a call is a task, it bounds each
	// look at that.
	Timeout time.Duration
	// MaxTimeout is how long a request waits in total, whatever progress comes; 0
	// means 10 minutes, less than 0 no limit. It includes the task that a call may
	// become and the attempts of Retry, and excludes what the server asks in the
	// meantime; the pages of a list are one request here. To say it, be it 10
	// minutes, asks the server for the progress of every tool call.
	MaxTimeout time.Duration
	// ProbeTimeout is how long Connect waits for the answer to server/discover
	// before it tries initialize as well, or over HTTP server/discover again; 0
	// means 5 seconds. Over HTTP silence does not make a server a legacy one.
	ProbeTimeout time.Duration
	// ConnectTimeout is how long connecting may take as a whole, at Connect and
	// at each attempt to reconnect; 0 means no limit but those of its steps. The
	// time for which a user is asked to log in does not count, here and in the
	// fields above.
	ConnectTimeout time.Duration

	// Roots are the places that servers may work in. Not nil, even if empty, it
	// declares that the client has roots. Client.SetRoots changes them.
	Roots []Root
	// Sample answers sampling/createMessage; nil declares that the client has
	// no model. It is called by several goroutines at once.
	Sample func(ctx context.Context, q *SampleParams) (*SampleResult, error)
	// SampleTools declares that Sample understands tools.
	SampleTools bool
	// Elicit answers elicitation/create of a form; Accept, Decline and Cancel
	// make its answer. Defaults of the form are filled in after it and the
	// answer is checked against the requested schema. It may be called by
	// several goroutines at once.
	Elicit func(ctx context.Context, q *ElicitParams) (*ElicitResult, error)
	// ElicitURL answers elicitation/create of a URL: it shows the user the
	// whole address, and opens it only with their consent. It is called, too,
	// for the URLs that a server of 2025-11-25 says a request needs; when the
	// server tells that they were visited, the request is made again.
	ElicitURL func(ctx context.Context, q *ElicitParams) (*ElicitResult, error)
	// Capabilities are declared next to those that the fields above make. Roots
	// without ListChanged are never told to change.
	Capabilities protocol.ClientCapabilities
	// OnRequest answers the requests of the server, of every method but ping, in
	// place of the fields above: with a value that encodes as the result, or
	// with an error, which goes out as it is if it is a *protocol.Error. params
	// are as they came, and nothing of the answer is filled in or checked. Only
	// Capabilities are declared, unchanged, in every revision, and the extension of
	// the transport's logins. It is called by several goroutines at once.
	OnRequest func(ctx context.Context, method string, params json.RawMessage) (result any, err error)
	// AroundServerRequest is called around the answer to each request of the server,
	// in every revision, whatever answers it: next does, and returns the error that
	// the server gets. Pings are answered without it. The error that
	// AroundServerRequest returns is answered in place of the result; where it
	// returns none, that of next counts. It is called by several goroutines at once.
	AroundServerRequest func(ctx context.Context, r *ServerRequest, next func(context.Context) error) error
	// MaxRounds is how often a server may want more input for one request; 0
	// means 10, less than 0 turns it off: such a result is an
	// *InputRequiredError.
	MaxRounds int

	// OnNotification receives every notification of the server but progress, which
	// belongs to a call, one after the other in their order. One that is slow delays
	// the others, and past 1024 that wait the oldest are dropped, but not that a list
	// has changed.
	OnNotification func(Notification)
	// OnLog receives the log messages of the server, as OnNotification does.
	// Without it they go to Logger.
	OnLog func(LogEntry)
	// LogLevel is the least severe level that the server shall log; zero leaves
	// that to the server, which in modern revisions means nothing.
	LogLevel protocol.Level
	// Listen has the subscription from the start; nil means none in modern
	// revisions. Legacy servers announce changed lists without a subscription. A server
	// that refuses it, or does not answer it within Timeout, is a line in the log of Logger.
	Listen *Filter
	// OnResumed is called when a subscription is open again after it was
	// interrupted, also by a pool or a group at another connection. Changes in between
	// were not notified: read again what matters. What the client has cached of the
	// server is dropped before. It may be called by several goroutines at once.
	OnResumed func(s *Subscription)
	// Trace receives every message, or batch, that comes or goes, as JSON text
	// that is valid during the call only: one of the server before anything else
	// is done with it, one to the server before it is sent. It is called by
	// several goroutines at once.
	Trace func(fromServer bool, message []byte)
	// Around is called around each call of the API that asks the server something, on
	// the goroutine of its caller: next makes the call, with all that it takes:
	// rounds, attempts, looks at its task. The error that Around returns is the
	// call's; if it returns nil, that of next counts. A list is one call for each
	// page. A subscription, and requests that the client sends on its own, are not
	// calls.
	Around func(ctx context.Context, call *CallInfo, next func(context.Context) error) error
	// Inject adds members to the _meta of every request and notification that goes
	// to the server, those of the handshake and of lists included, by calling set,
	// which it must not do later. What the caller or the protocol has put there
	// stays. The Cache does not look at it. It is called by several goroutines at
	// once, just before a message is sent, with the context of the call if there is
	// one.
	Inject func(ctx context.Context, set func(key, value string))
	// Logger gets the client's own warnings and the server's log messages; nil
	// means none.
	Logger *zerolog.Logger

	// CheckArguments checks arguments against the tool's schema before they are
	// sent. References to other documents are never followed: a tool whose
	// schema has one fails the check.
	CheckArguments bool
	// Pin is what the server's tools have to be; nil means that they may be anything.
	// A tool that is new or differs is left out of Tools, with a line in the log, and
	// a call of it is ErrChanged before anything is sent. Connecting to a server
	// whose instructions differ is ErrChanged, too. The tools are listed before the
	// first call, and again after the server says that they have changed, after a
	// lost connection, at the end of the time for which they are fresh, and otherwise
	// after five minutes. A change between two lists is not seen if the server does not
	// notify of it; nor is what a tool does. Prompts and resources are not pinned.
	Pin *Lock
	// LaxCapabilities sends requests even if the server did not declare what
	// they need.
	LaxCapabilities bool
	// Cache keeps results for as long as servers say, and which of them are
	// legacy ones; nil means a cache of the client's own.
	Cache *Cache
	// NoCache keeps no results.
	NoCache bool
	// CacheKey names the authorization of this client, such as the user. Two clients
	// with the same one share private results in a common Cache; "" shares none.
	// Call Cache.Clear after a change of a client's authorization.
	CacheKey string
	// Tasks says what to do with calls that become tasks.
	Tasks TaskMode

	// Reconnect says how to come back after the connection was lost; nil means
	// the zero Backoff.
	Reconnect *Backoff
	// NoReconnect stays disconnected after that. A session that the server has ended
	// is renewed nevertheless, unless the call that finds it out has Retry(1).
	NoReconnect bool
	// ReconnectWait is how long a request waits for a connection while the client
	// reconnects; 0 means Timeout.
	ReconnectWait time.Duration
	// HealthCheck is how often a connection on which nothing has come since the last
	// time is pinged; 0 means never. One that does not answer within HealthTimeout,
	// 0 meaning 5 seconds, is lost.
	HealthCheck, HealthTimeout time.Duration
	// OnState receives every change of state, one after the other. err says why the
	// client is disconnected.
	OnState func(state State, err error)
	// CloseTimeout is how long Close waits for the transport's orderly end; 0
	// means 10 seconds.
	CloseTimeout time.Duration
}

// TaskMode says what a client does with tasks
// (the extension io.modelcontextprotocol/tasks).
type TaskMode int

// The modes.
const (
	// TasksWait waits for the result of a call that became a task, and
	// answers what the task asks. MaxTimeout bounds that: the call then fails
	// with ErrTimeout, and the task is cancelled at the server.
	TasksWait TaskMode = iota
	// TasksReturn returns such a call at once, as Detached does.
	TasksReturn
	// TasksOff does not declare the extension, so that no call becomes a task.
	// Where Options.Capabilities declare it, this is TasksReturn.
	TasksOff
)

// filled returns a copy of o in which zero values have been replaced by the
// defaults. o may be nil.
func (o *Options) filled() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Info.Name == "" {
		c.Info.Name = "talaria"
	}
	if c.Info.Version == "" {
		c.Info.Version = "1"
	}
	c.Revisions = slices.Clone(c.Revisions)
	if len(c.Revisions) == 0 {
		c.Revisions = protocol.Revisions()
	}
	slices.SortFunc(c.Revisions, func(a, b protocol.Revision) int { return int(b) - int(a) })
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, 5*time.Second)
	c.HealthTimeout = cmp.Or(c.HealthTimeout, 5*time.Second)
	c.CloseTimeout = cmp.Or(c.CloseTimeout, 10*time.Second)
	c.MaxRounds = cmp.Or(c.MaxRounds, 10)
	if c.Cache == nil {
		c.Cache = NewCache(0)
	}
	if c.Logger == nil {
		nop := zerolog.Nop()
		c.Logger = &nop
	}
	if c.Roots != nil {
		c.Roots = slices.Clone(c.Roots)
	}
	return c
}

// newest returns the newest modern, or legacy, revision of the client; 0 if
// there is none.
func (o *Options) newest(modern bool) protocol.Revision {
	for _, rev := range o.Revisions {
		if rev.Modern() == modern {
			return rev
		}
	}
	return 0
}

// mutual returns the newest modern, or legacy, revision among names that the
// client speaks; 0 if there is none.
func (o *Options) mutual(names []string, modern bool) protocol.Revision {
	for _, rev := range o.Revisions {
		if rev.Modern() == modern && slices.Contains(names, rev.String()) {
			return rev
		}
	}
	return 0
}

// tasksExtension is declared in the capabilities of clients that accept tasks.
const tasksExtension = wire.TasksExtension

// capabilities returns what the client declares: Options.Capabilities and what
// the handlers and the extension of the transport's logins imply.
func (o *Options) capabilities(login string) protocol.ClientCapabilities {
	caps := o.Capabilities
	if _, ok := caps.Extensions[login]; login != "" && !ok {
		caps.Extensions = mergeRaw(caps.Extensions, map[string]json.RawMessage{login: json.RawMessage("{}")})
	}
	if o.OnRequest != nil {
		return caps
	}
	if o.Roots != nil && caps.Roots == nil {
		caps.Roots = &protocol.ListCapability{ListChanged: true}
	}
	if o.Sample != nil && caps.Sampling == nil {
		caps.Sampling = &protocol.SamplingCapability{}
	}
	if o.Sample != nil && o.SampleTools {
		sampling := *caps.Sampling
		sampling.Tools = &struct{}{}
		caps.Sampling = &sampling
	}
	if o.Elicit != nil || o.ElicitURL != nil {
		var can protocol.ElicitationCapability
		if caps.Elicitation != nil {
			can = *caps.Elicitation
		}
		if o.Elicit != nil {
			can.Form = &struct{}{}
		}
		if o.ElicitURL != nil {
			can.URL = &struct{}{}
		}
		caps.Elicitation = &can
	}
	if o.Tasks != TasksOff {
		caps.Extensions = mergeRaw(caps.Extensions, map[string]json.RawMessage{tasksExtension: json.RawMessage("{}")})
	}
	return caps
}

// mergeRaw returns the members of both maps without changing either. Members of
// b win.
func mergeRaw(a, b map[string]json.RawMessage) map[string]json.RawMessage {
	if len(b) == 0 {
		return a
	}
	a = maps.Clone(a)
	if a == nil {
		a = map[string]json.RawMessage{}
	}
	maps.Copy(a, b)
	return a
}
