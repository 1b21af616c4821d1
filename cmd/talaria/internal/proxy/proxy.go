// Package proxy offers one MCP server again, over another transport and in
// every revision.
//
// The proxy is a server of its own towards its clients, and a client of the
// server behind it. Calls, lists, reads, completion, progress, log messages and
// changes pass; so do questions of the server, where there is one client that
// can be asked.
package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// Connect makes a connection to the server behind.
type Connect func(ctx context.Context, o *client.Options) (*client.Client, error)

// Options shape a Proxy.
type Options struct {
	// Connect is called once, and over HTTP again for each session: what a session
	// does is its own. The options have a Timeout, of the handshake and of what the
	// proxy itself asks for, which Connect may change; what is passed on has none. A
	// connection that is lost is tried again for as long as the proxy lives, unless
	// Connect changes that, too. Swap replaces Connect.
	Connect Connect
	// One means that there is only one client, as over standard input and output. It
	// can be asked, and everything that it does shares a connection.
	One bool
	// Refused finds the answer to an error that is not one of the server's, such
	// as what to run where a login is wanted; nil means that there is none. A nil
	// Refused finds none.
	Refused func(error) *protocol.Error
	// Sessions is how many sessions over HTTP there are at a time, and so how many
	// connections to the server behind; 0 means 32. Idle ends a session that is not used
	// for so long; 0 means 5 minutes. Calls is how many requests a session has at a time;
	// 0 means 32.
	Sessions, Calls int
	Idle            time.Duration
	// Once sends no request again that was lost with its connection, also if it is
	// harmless: it may be what ends a server that is worked on.
	Once bool
	// Logs declares that there are log messages, whatever the server behind says. Log
	// sends some.
	Logs bool
	// Logger takes what the proxy has to say; nil is nothing.
	Logger *zerolog.Logger
}

// The defaults of Options.
const (
	DefaultSessions = 32
	DefaultCalls    = 32
	DefaultIdle     = 5 * time.Minute
)

// Proxy is a server in front of another. Close ends it.
type Proxy struct {
	opts     Options
	way      atomic.Pointer[Connect]
	has      protocol.ServerCapabilities // what there is something of; see pretend
	server   atomic.Pointer[mcp.Server]
	asker    asker // of the one client
	backends backends
}

// New connects to the server behind and returns a Proxy for it.
func New(ctx context.Context, opts Options) (*Proxy, error) {
	if opts.Logger == nil {
		none := zerolog.Nop()
		opts.Logger = &none
	}
	p := &Proxy{opts: opts}
	p.way.Store(&opts.Connect)
	shared, err := p.connect(ctx, "")
	if err != nil {
		return nil, err
	}
	p.backends = backends{connect: p.connect, one: opts.One, shared: shared, sessions: map[string]*opening{}}
	hello, _ := shared.server()
	info := hello.Info
	if info.Name == "" {
		info.Name = "proxy"
	}
	if info.Version == "" {
		info.Version = "unknown"
	}
	server := mcp.NewServer(info, &mcp.Options{
		Discover: func(_ *mcp.Frame, d *mcp.Discovery) {
			now, offers := shared.server()
			if offers.Logging == nil && opts.Logs {
				offers.Logging = &struct{}{}
			}
			d.Info, d.Instructions, d.Capabilities = now.Info, now.Instructions, offers
		},
		Limits:       mcp.Limits{Sessions: cmp.Or(opts.Sessions, DefaultSessions), Concurrent: cmp.Or(opts.Calls, DefaultCalls)},
		Timeouts:     mcp.Timeouts{Session: cmp.Or(opts.Idle, DefaultIdle)},
		Logger:       opts.Logger,
		OnSessionEnd: func(f *mcp.Frame, _ error) { p.warn(p.backends.leave(f.SessionID()), "closing a connection") },
	})
	server.Use(p.forward)
	p.server.Store(server) // the server behind may tell of something already
	return p, p.pretend()
}

// pretend adds something of each kind that the server behind has, so that the proxy's own
// server declares it and takes subscriptions. No client sees it: lists and calls are passed
// on.
func (p *Proxy) pretend() error {
	type none struct{}
	stands := mcp.Doc("It stands for what the server behind has.")
	_, have := p.backends.shared.server()
	var list []mcp.Component
	if have.Tools != nil && p.has.Tools == nil {
		list = append(list, mcp.Tool("none", func(*mcp.Frame, none) (string, error) { return "", mcp.ErrNotFound }, stands))
		p.has.Tools = have.Tools
	}
	if have.Prompts != nil && p.has.Prompts == nil {
		list = append(list, mcp.Prompt("none", func(*mcp.Frame, none) (string, error) { return "", mcp.ErrNotFound }, stands))
		p.has.Prompts = have.Prompts
	}
	if have.Resources != nil && p.has.Resources == nil {
		list = append(list, mcp.Resource("proxy:none", func(*mcp.Frame) (string, error) { return "", mcp.ErrNotFound }, stands))
		p.has.Resources = have.Resources
	}
	return p.Server().Add(list...)
}

// Swap replaces the server behind: it connects by way, and later connections are made so,
// too. Requests in progress have Grace to end; all others go to the new server, and each
// session keeps its log level and its subscriptions. Clients are notified that the lists
// have changed. Nothing changes if the new server cannot be reached or does not list its
// tools. One Swap runs at a time.
func (p *Proxy) Swap(ctx context.Context, way Connect) error {
	next, err := p.open(ctx, "", way)
	if err != nil {
		return err
	}
	if err := listed(ctx, next.Client); err != nil {
		return errors.Join(err, next.Close())
	}
	p.way.Store(&way)
	p.backends.shared.replace(ctx, next, p.warn)
	p.backends.opened(ctx, func(b *backend) {
		if c, err := p.open(ctx, b.session, way); err != nil {
			p.warn(err, "connecting a session to the new server")
		} else {
			b.replace(ctx, c, p.warn)
		}
	})
	err = p.pretend()
	p.again("")
	return err
}

// listed reports what is wrong with the list of tools of a server.
func listed(ctx context.Context, c *client.Client) error {
	if c.Server().Capabilities.Tools == nil {
		return nil
	}
	for _, err := range c.Tools(ctx, client.NoCache()) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Log sends a log message of the proxy itself to the clients that have a session.
func (p *Proxy) Log(level protocol.Level, logger, text string) {
	err := p.Server().NotifyAll(protocol.MethodLog, map[string]any{"level": level, "logger": logger, "data": visible.Text(text, 0)})
	if !errors.Is(err, mcp.ErrSessionNotFound) {
		p.warn(err, "sending a log message")
	}
}

// connect makes the connection of a session.
func (p *Proxy) connect(ctx context.Context, session string) (*backend, error) {
	c, err := p.open(ctx, session, *p.way.Load())
	if err != nil {
		return nil, err
	}
	return &backend{session: session, ended: make(chan struct{}), now: c}, nil
}

// open connects to the server behind. The connection is opened again, however
// long the server is unavailable.
func (p *Proxy) open(ctx context.Context, session string, way Connect) (*connection, error) {
	c := &connection{idle: make(chan struct{})}
	o := &client.Options{Timeout: 30 * time.Second, MaxTimeout: -1, Roots: nil, Logger: p.opts.Logger, LaxCapabilities: true,
		Tasks:     client.TasksOff, // they end here: the proxy's own clients could not ask about them
		Reconnect: &client.Backoff{Attempts: -1}}
	o.OnState = func(state client.State, err error) {
		if c.state(state, err) {
			p.again(session)
		}
	}
	o.OnNotification = func(e client.Notification) { p.tell(session, e) }
	o.OnResumed = func(s *client.Subscription) { p.missed(session, s.Accepted()) }
	if session == "" {
		o.Listen = &client.Filter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true}
		// Clients of revisions without sessions answer in a later request; the
		// handlers are for the one client of older revisions.
		o.Elicit, o.ElicitURL, o.Sample = p.asker.elicit, p.asker.elicit, p.asker.sample
	}
	var err error
	c.Client, err = way(ctx, o)
	return c, err
}

// Server returns what clients talk to.
func (p *Proxy) Server() *mcp.Server { return p.server.Load() }

// Behind describes the server behind.
func (p *Proxy) Behind() client.Server {
	hello, _ := p.backends.shared.server()
	return hello
}

// Conn returns conn as the connection to the one client.
func (p *Proxy) Conn(conn transport.Conn) transport.Conn { return p.asker.attach(conn) }

// Close ends every connection to the server behind.
func (p *Proxy) Close() error { return p.backends.close() }

// warn logs a failure that no caller waits for.
func (p *Proxy) warn(err error, what string) {
	if err != nil {
		p.opts.Logger.Warn().Err(visible.Error(err)).Msg(what)
	}
}

// forward is the middleware that takes requests to the server behind.
func (p *Proxy) forward(next mcp.Handler) mcp.Handler {
	return func(f *mcp.Frame) (protocol.Result, error) {
		method := f.Request().Method
		switch method {
		case protocol.MethodToolsList, protocol.MethodToolsCall, protocol.MethodPromptsList, protocol.MethodPromptsGet,
			protocol.MethodResourcesList, protocol.MethodResourceTemplates, protocol.MethodResourcesRead, protocol.MethodComplete:
			return p.pass(f)
		case protocol.MethodSubscribe, protocol.MethodUnsubscribe, protocol.MethodListen:
			return p.subscribe(f, next)
		case protocol.MethodSetLevel:
			b, err := p.backends.of(f)
			if err != nil {
				return nil, p.fault(err)
			}
			var level struct {
				Level protocol.Level `json:"level"`
			}
			if err := jsonx.Unmarshal(f.Request().Params.Raw, &level); err == nil {
				if err := b.setLevel(f, level.Level); err != nil && !errors.Is(err, client.ErrUnsupported) {
					return nil, p.fault(err)
				}
			}
		}
		return next(f)
	}
}

// pass sends a request on and brings the result back.
func (p *Proxy) pass(f *mcp.Frame) (protocol.Result, error) {
	b, err := p.backends.of(f)
	if err != nil {
		return nil, p.fault(err)
	}
	c, err := b.use(f)
	if err != nil {
		return nil, p.fault(err)
	}
	defer b.done(c)
	request := f.Request()
	options := []client.CallOption{client.NoCache(), client.Timeout(-1)} // who calls has limits of its own
	if request.Params.Meta.ProgressToken != nil {
		options = append(options, client.OnProgress(func(now client.Progress) {
			_ = f.Progress(now.Progress, now.Total, now.Message) // a client that is gone ends f
		}))
	}
	if p.opts.Once {
		options = append(options, client.Retry(1))
	}
	modern := f.Revision().Modern()
	if modern {
		options = append(options, client.NoRounds()) // its own client answers
	}
	params, err := withoutToken(request.Params.Raw)
	if err != nil {
		return nil, p.fault(err)
	}
	pages := cursors{front: modern, behind: c.Revision().Modern()}
	pages.in(params)
	var raw json.RawMessage
	err = c.Request(f, request.Method, params, &raw, options...)
	if asks, ok := errors.AsType[*client.InputRequiredError](err); ok && modern {
		return &protocol.InputRequiredResult{Requests: asks.Requests, State: asks.State}, nil
	}
	if err != nil {
		err, missing := p.fault(c.explain(err)), errors.Is(err, client.ErrNotFound)
		if fault, ok := errors.AsType[*protocol.Error](err); ok && request.Method == protocol.MethodResourcesRead {
			return nil, wire.PassReadError(fault, f.Revision(), request.Params.Name, missing)
		}
		return nil, err
	}
	return result(raw, f.Revision(), request.Method, pages)
}

// withoutToken takes the progress token out of params: each side has its own.
func withoutToken(raw []byte) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(raw) > 0 {
		if err := jsonx.Unmarshal(raw, &members); err != nil {
			return nil, err
		}
	}
	meta := map[string]json.RawMessage{}
	if len(members["_meta"]) == 0 || jsonx.Unmarshal(members["_meta"], &meta) != nil {
		return members, nil
	}
	delete(meta, "progressToken")
	text, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	members["_meta"] = text
	return members, nil
}

// result makes a result for a client's revision: what newer revisions have next
// to the members that all know is left out or filled in.
func result(raw json.RawMessage, rev protocol.Revision, method string, pages cursors) (protocol.Result, error) {
	members := map[string]json.RawMessage{}
	if err := jsonx.Unmarshal(raw, &members); err != nil {
		return nil, broken(fmt.Errorf("the server's result is not an object: %w", err))
	}
	var meta map[string]any
	_ = jsonx.Unmarshal(members["_meta"], &meta)                                                                      // absent, or of no use
	maps.DeleteFunc(meta, func(key string, _ any) bool { return strings.HasPrefix(key, "io.modelcontextprotocol/") }) // the proxy has its own
	delete(members, "_meta")
	delete(members, "resultType")
	pages.out(members)
	cached := method != protocol.MethodToolsCall && method != protocol.MethodPromptsGet && method != protocol.MethodComplete
	switch _, known := members["ttlMs"]; {
	case !rev.Has(protocol.FeatureCacheHints):
		delete(members, "ttlMs")
		delete(members, "cacheScope")
	case cached && !known:
		members["ttlMs"], members["cacheScope"] = json.RawMessage("0"), json.RawMessage(`"private"`)
	}
	return protocol.JSONResult{Value: members, Meta: meta}, nil
}

// fault turns an error of the client into an answer.
func (p *Proxy) fault(err error) error {
	if p.opts.Refused != nil {
		if refused := p.opts.Refused(err); refused != nil {
			return refused
		}
	}
	if wire, ok := errors.AsType[*protocol.Error](err); ok {
		return wire
	}
	if errors.Is(err, client.ErrUnsupported) {
		return protocol.Errorf(protocol.CodeMethodNotFound, "the server behind this proxy does not have that: %w", visible.Error(err))
	}
	if p.opts.One {
		return broken(err)
	}
	// The standard error of a command, and names of missing environment variables,
	// are not for every client of the proxy.
	silent, isSilent := errors.AsType[*client.SilentError](err)
	exit, hasEnded := errors.AsType[*transport.ExitError](err)
	switch {
	case isSilent:
		p.warn(silent, "the server does not answer")
		err = errors.New("it does not answer; the log of the proxy says more")
	case hasEnded:
		p.warn(fmt.Errorf("command %q: %v", exit.Name, exit.State), "the server has ended") // what it wrote is in the log already
		err = fmt.Errorf("its process has ended: %v; the log of the proxy says more", exit.State)
	}
	return broken(err)
}

func broken(err error) error {
	return protocol.Errorf(protocol.CodeInternal, "the server behind this proxy cannot be reached: %w", visible.Error(err))
}

// subscribe brings changes of resources here before it lets the client
// subscribe to them.
func (p *Proxy) subscribe(f *mcp.Frame, next mcp.Handler) (protocol.Result, error) {
	b, err := p.backends.of(f)
	if err != nil {
		return nil, p.fault(err)
	}
	request := f.Request()
	var params struct {
		URI string `json:"uri"`
	}
	_ = jsonx.Unmarshal(request.Params.Raw, &params) // next says what is wrong
	remove := func(c *connection) error {
		_, err := c.subs.Remove(params.URI)
		return err
	}
	switch request.Method {
	case protocol.MethodUnsubscribe:
		if err := b.apply(f, remove); err != nil {
			return nil, p.fault(err)
		}
	case protocol.MethodSubscribe:
		added := false
		if err := b.apply(f, func(c *connection) (err error) {
			now, err := c.subs.Add(f, c.Client, params.URI)
			added = added || now
			return err
		}); err != nil {
			return nil, p.fault(err)
		}
		result, err := next(f)
		if err != nil && added { // it is one too many for the proxy
			p.warn(b.apply(f, remove), "ending a subscription")
		}
		return result, err
	default:
		var filter protocol.SubscriptionFilter
		if wire.ScanFilter(request.Params.Raw, maxWatched, &filter) != nil {
			break // next says what is wrong
		}
		for _, uri := range filter.ResourceSubscriptions {
			p.warn(b.watch(f, uri), "subscribing")
		}
	}
	return next(f)
}

// again notifies clients that the lists may have changed: a server that has come back
// may have changed.
func (p *Proxy) again(session string) {
	server := p.server.Load()
	if server == nil {
		return // it is not yet served
	}
	for _, method := range []string{protocol.MethodToolsChanged, protocol.MethodPromptsChanged, protocol.MethodResourcesChanged} {
		if session == "" {
			p.warn(server.NotifyAll(method, nil), "notifying of a server that has come back")
		} else if err := server.Notify(session, method, nil); !errors.Is(err, mcp.ErrSessionNotFound) {
			p.warn(err, "notifying of a server that has come back")
		}
	}
}

// missed notifies clients of what may have changed while the server behind did not notify.
func (p *Proxy) missed(session string, of protocol.SubscriptionFilter) {
	if of.ToolsListChanged || of.PromptsListChanged || of.ResourcesListChanged {
		p.again(session)
	}
	if server := p.server.Load(); server != nil {
		for _, uri := range of.ResourceSubscriptions {
			server.ResourceUpdated(uri)
		}
	}
}

// tell passes a notification on.
func (p *Proxy) tell(session string, e client.Notification) {
	server := p.server.Load()
	if server == nil {
		return // it is not yet served
	}
	var err error
	switch e.Method {
	case protocol.MethodResourceUpdated:
		var params struct {
			URI string `json:"uri"`
		}
		if jsonx.Unmarshal(e.Params, &params) == nil {
			server.ResourceUpdated(params.URI)
		}
	case protocol.MethodToolsChanged, protocol.MethodPromptsChanged, protocol.MethodResourcesChanged:
		if session != "" {
			return // the shared connection tells it, too
		}
		err = server.NotifyAll(e.Method, nil)
	case protocol.MethodLog:
		if session != "" {
			err = server.Notify(session, e.Method, e.Params)
		} else if p.opts.One {
			err = server.NotifyAll(e.Method, e.Params)
		}
	}
	if err != nil && !errors.Is(err, mcp.ErrSessionNotFound) {
		p.opts.Logger.Debug().Err(visible.Error(err)).Str("method", visible.Line(e.Method, visible.Name)).Msg("a notification was not passed on")
	}
}
