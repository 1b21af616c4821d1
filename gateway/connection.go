package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/group"
	"github.com/talaria-go/mcp/internal/clients/subscriptions"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
)

// connKey names a connection to an upstream: callers with equal keys share it.
type connKey struct {
	list    bool // the list connection
	modern  bool // several sessions may share it, as the upstream has none
	stdio   bool // the client is the one at standard input and output
	caller  string
	session string
	caps    string // what can be asked, as JSON
}

// person reports whether all that use the connection are the same person.
func (k connKey) person() bool { return k.session != "" || k.stdio }

// quiet is how long after a change of its lists an upstream is listed: others follow.
const quiet = 100 * time.Millisecond

// connection is a connection to an upstream, of one caller or of several. mu guards the
// fields after it; pool.mu guards busy, used and dropped.
type connection struct {
	upstream *upstream
	is       atomic.Pointer[connKey] // changes once at most, see pool.share
	group    *group.Group            // of the one server; it keeps the connection open
	caps     protocol.ClientCapabilities
	began    time.Time
	cancel   context.CancelFunc
	ended    chan struct{}
	again    chan struct{} // has a value when the lists may have changed
	changes  atomic.Int64  // how often they may have
	wasReady atomic.Bool   // the client was connected once, for the first list
	catalog  atomic.Pointer[catalog]
	late     atomic.Bool   // a client has seen a list without this connection
	level    atomic.Uint32 // of the session's log; 0 and info are what legacy upstreams send by themselves
	leveling sync.Mutex    // held while level is set at an upstream that has just connected
	leveled  atomic.Pointer[client.Client]

	busy    int // requests that use it
	used    time.Time
	dropped bool // closed as soon as busy is 0

	mu      sync.Mutex
	seen    int64         // the changes before the last attempt to list; 0 before the first has ended
	turn    chan struct{} // closed when the next attempt has ended
	fault   error         // why there is no list
	runs    []*run        // in progress at a legacy upstream, the newest last
	unclear bool          // a question may be of a run that was cancelled
	watched subscriptions.Recent
}

// errOpening is the error of a connection that is not open yet.
var errOpening = errors.New("the connection is being opened")

// newConnection returns a connection that opens in the background. level is the log level of
// its session, 0 for none.
func newConnection(u *upstream, key connKey, t client.Transport, caps protocol.ClientCapabilities, level protocol.Level) *connection {
	c := &connection{upstream: u, caps: caps, began: time.Now(), ended: make(chan struct{}), again: make(chan struct{}, 1), turn: make(chan struct{})}
	c.is.Store(&key)
	c.level.Store(uint32(level))
	c.change()
	c.group = group.New(nil)
	// A group of one server, and a name that is not empty, take any.
	_ = c.group.Add(c.serverName(), t, c.options())
	ctx, cancel := context.WithCancel(u.ctx)
	c.cancel = cancel
	u.gateway.tasks.Go(func() { // the caller has seen that the Gateway is not closed
		defer close(c.ended)
		c.keep(ctx)
		_ = c.group.Close() // a callback that does not return is in the log of the client
	})
	return c
}

// key returns the key of the connection.
func (c *connection) key() connKey { return *c.is.Load() }

// serverName is the name of the upstream in the group.
func (c *connection) serverName() string { return cmp.Or(c.upstream.name, "upstream") }

// options returns the options of the client.
func (c *connection) options() *client.Options {
	g, o := c.upstream.gateway, c.upstream.gateway.opts.Client
	if o.Info.Name == "" {
		o.Info = client.Info{Name: "talaria-gateway", Version: "1"}
	}
	o.Roots, o.Sample, o.SampleTools, o.Elicit, o.ElicitURL = nil, nil, false, nil, nil
	o.Capabilities, o.OnRequest = c.caps, c.asked
	o.Tasks, o.LaxCapabilities, o.NoCache, o.Cache, o.Pin, o.CheckArguments = client.TasksOff, true, true, nil, nil, false
	o.Logger, o.ReconnectWait = g.log, listWait
	o.Listen = &client.Filter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true}
	state, notified, resumed := o.OnState, o.OnNotification, o.OnResumed
	o.OnState = func(s client.State, err error) {
		if s == client.StateReady && (c.wasReady.Swap(true) || c.listFault() != nil) {
			c.change() // the server may have changed, or can be listed now
		}
		if state != nil {
			state(s, err)
		}
	}
	o.OnNotification = func(n client.Notification) {
		c.notified(n)
		if notified != nil {
			notified(n)
		}
	}
	o.OnResumed = func(s *client.Subscription) {
		c.missed(s.Accepted())
		if resumed != nil {
			resumed(s)
		}
	}
	o.OnLog = c.logged
	return &o
}

// client returns the client, after the first attempt to connect.
func (c *connection) client(ctx context.Context) (*client.Client, error) {
	cl, err := c.group.Client(ctx, c.serverName())
	if err == nil && c.leveled.Load() != cl {
		c.openLevel(ctx, cl)
	}
	return cl, err
}

// ready is client for a request of a client. One that reconnects has listWait.
func (c *connection) ready(ctx context.Context) (*client.Client, error) {
	cl, err := c.client(ctx)
	if err != nil || cl.State() == client.StateReady {
		return cl, err
	}
	ctx, stop := context.WithTimeoutCause(ctx, listWait, fmt.Errorf("no connection within %v", listWait))
	defer stop()
	return cl, cl.WaitReady(ctx)
}

// openLevel sets the log level of the session at an upstream that has just connected, before
// anything else is asked there.
func (c *connection) openLevel(ctx context.Context, cl *client.Client) {
	c.leveling.Lock()
	defer c.leveling.Unlock()
	level := protocol.Level(c.level.Load())
	if c.leveled.Load() == cl {
		return
	}
	if level != 0 && (level != protocol.LevelInfo || cl.Revision().Modern()) {
		ctx, stop := context.WithTimeout(ctx, listWait)
		defer stop()
		err := cl.SetLevel(ctx, level)
		c.refused("the log level", err)
		if ctx.Err() != nil {
			return // another use of the connection tries again
		}
	}
	c.leveled.Store(cl)
}

// change notes that the lists may have changed.
func (c *connection) change() {
	c.changes.Add(1)
	select {
	case c.again <- struct{}{}:
	default:
	}
}

// keep lists the upstream whenever that may have changed, until ctx ends.
func (c *connection) keep(ctx context.Context) {
	failures := 0
	for {
		retry := make(<-chan time.Time)
		if failures > 0 {
			retry = time.After(pause.Growing(failures, 0, 0, 0))
		}
		select {
		case <-c.again:
			if c.catalog.Load() != nil && pause.For(ctx, quiet) != nil {
				return
			}
			select {
			case <-c.again: // this list is that of it
			default:
			}
		case <-retry:
		case <-ctx.Done():
			return
		}
		changes := c.changes.Load()
		if err := c.list(ctx); err != nil {
			failures++
		} else {
			failures = 0
		}
		c.mu.Lock()
		c.seen = changes
		close(c.turn)
		c.turn = make(chan struct{})
		c.mu.Unlock()
	}
}

// list reads the lists.
func (c *connection) list(ctx context.Context) error {
	cl, err := c.client(ctx)
	var now *catalog
	if err == nil {
		if rev := cl.Revision(); rev.Modern() {
			c.upstream.era.Store(eraModern)
			c.upstream.gateway.pool.share(c)
		} else if rev != 0 {
			c.upstream.era.Store(eraLegacy)
		}
		now, err = newCatalog(ctx, c.upstream, cl)
	}
	if ctx.Err() != nil {
		return err
	}
	c.mu.Lock()
	c.fault = err
	c.mu.Unlock()
	if now != nil {
		c.missed(protocol.SubscriptionFilter{ResourceSubscriptions: c.watched.Restore(ctx, cl)})
		before := c.catalog.Swap(now)
		late := c.late.Swap(false)
		c.upstream.offered(c, now, before, late)
	} else if c.upstream.gateway.ctx.Err() == nil {
		safely.Log(c.upstream.gateway.log.Warn().Str("server", c.upstream.name).Err(visible.Error(err)), "an upstream was not listed")
	}
	return err
}

// listFault returns why the last list failed.
func (c *connection) listFault() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault
}

// await waits until a listing has ended that began after those changes, and the server has
// its result. It reports whether that is so.
func (c *connection) await(ctx context.Context, changes int64, late <-chan time.Time) bool {
	for {
		c.mu.Lock()
		done, turn := c.seen >= changes, c.turn
		c.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-turn:
			continue
		case <-c.ended:
		case <-late:
		case <-ctx.Done():
		}
		return false
	}
}

// wait waits for the first list, and returns the error if there is none.
func (c *connection) wait(ctx context.Context) error {
	switch {
	case !c.await(ctx, 1, nil) && ctx.Err() != nil:
		return context.Cause(ctx)
	case c.catalog.Load() == nil:
		return cmp.Or(c.listFault(), error(client.ErrClosed))
	}
	return nil
}

// waitOpening waits for the first list until listWait after the connection began to open.
func (c *connection) waitOpening(ctx context.Context) {
	late := time.NewTimer(listWait - time.Since(c.began))
	defer late.Stop()
	c.await(ctx, 1, late.C)
}

// changeWait is how long a list, and a call of what is not known, wait for changes that the
// upstream has notified of.
const changeWait = time.Second

// settle waits for lists with the changes that the upstreams have notified of, for
// changeWait at most.
func settle(ctx context.Context, all ...*connection) {
	ctx, stop := context.WithTimeout(ctx, changeWait)
	defer stop()
	for _, c := range all {
		c.await(ctx, c.changes.Load(), nil)
	}
}

// setLevel sets the log level of the upstream.
func (c *connection) setLevel(level protocol.Level) {
	c.tell("the log level", func(ctx context.Context, cl *client.Client) error { return cl.SetLevel(ctx, level) })
}

// tell lets the upstream have what its session says, which takes listWait at most.
func (c *connection) tell(what string, do func(ctx context.Context, cl *client.Client) error) {
	ctx, stop := context.WithTimeout(c.upstream.ctx, listWait)
	defer stop()
	cl, err := c.client(ctx)
	if err != nil {
		return // the connection says why
	}
	c.refused(what, do(ctx, cl))
}

// refused logs why the upstream did not take something of its session; err may be nil.
func (c *connection) refused(what string, err error) {
	if err != nil && !errors.Is(err, client.ErrUnsupported) {
		safely.Log(c.upstream.gateway.log.Debug().Str("server", c.upstream.name).Str("what", what).Err(visible.Error(err)), "an upstream did not take something of a session")
	}
}

// watch subscribes to a resource.
func (c *connection) watch(f *mcp.Frame, uri string) error {
	cl, err := c.ready(f)
	if err != nil {
		return err
	}
	restored, err := c.watched.Add(f, cl, uri, cmp.Or(f.Principal(), f.SessionID()), maxWatched)
	c.missed(protocol.SubscriptionFilter{ResourceSubscriptions: restored})
	return err
}

// close ends the connection and waits for that.
func (c *connection) close() {
	c.cancel()
	<-c.ended
}

// notified takes a notification of the upstream.
func (c *connection) notified(n client.Notification) {
	u := c.upstream
	switch n.Method {
	case protocol.MethodToolsChanged, protocol.MethodPromptsChanged, protocol.MethodResourcesChanged:
		c.change()
		if c.key().list {
			u.gateway.pool.each(u, (*connection).change)
		}
	case protocol.MethodResourceUpdated:
		u.gateway.server.ResourceUpdated(uriOf(n.Params))
	}
}

// missed notifies of what may have changed while the upstream did not notify.
func (c *connection) missed(of protocol.SubscriptionFilter) {
	if of.ToolsListChanged || of.PromptsListChanged || of.ResourcesListChanged {
		c.change()
	}
	for _, uri := range of.ResourceSubscriptions {
		c.upstream.gateway.server.ResourceUpdated(uri)
	}
}

// logged takes a log message of the upstream: it goes to the session whose connection this
// is, or else to the log.
func (c *connection) logged(entry client.LogEntry) {
	g := c.upstream.gateway
	if c.key().session == "" {
		safely.Log(g.log.Info().Str("server", c.upstream.name).Str("level", entry.Level.String()).Str("text", visible.Line(entry.Text(), visible.Sentence)), "an upstream logs")
		return
	}
	params := map[string]any{"level": entry.Level, "logger": strings.Trim(c.upstream.name+"/"+entry.Logger, "/"), "data": entry.Data}
	if err := g.server.Notify(c.key().session, protocol.MethodLog, params); err != nil && !errors.Is(err, mcp.ErrSessionNotFound) {
		safely.Log(g.log.Debug().Str("server", c.upstream.name).Err(visible.Error(err)), "a log message was not passed on")
	}
}

// canAnswer returns why the client cannot be asked something.
func (c *connection) canAnswer(method string, params json.RawMessage) *protocol.Error {
	can := false
	switch e := c.caps.Elicitation; method {
	case protocol.MethodElicit:
		var q struct {
			Mode string `json:"mode"`
		}
		_ = jsonx.Unmarshal(params, &q) // the client says what is wrong with it
		can = e != nil && (q.Mode == "url" && e.URL != nil || q.Mode != "url" && (e.Form != nil || e.URL == nil))
	case protocol.MethodSample:
		can = c.caps.Sampling != nil
	case protocol.MethodRoots:
		can = c.caps.Roots != nil
	}
	if !can || c.key().list {
		return &protocol.Error{Code: protocol.CodeMethodNotFound, Message: fmt.Sprintf("the client cannot be asked: %s", visible.Line(method, visible.Name))}
	}
	return nil
}
