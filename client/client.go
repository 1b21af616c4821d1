package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/clients/attend"
	"github.com/talaria-go/mcp/internal/inflight"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Client is a connection to one server, which it renews when it is lost. Make
// one with Connect. All methods are safe for concurrent use.
type Client struct {
	opts      Options
	transport Transport
	server    string // what the transport calls the server
	owner     string // of private results in the cache
	owned     bool   // nothing else is that owner
	caps      protocol.ClientCapabilities
	level     atomic.Int32 // a protocol.Level

	life          lifecycle
	calls         calls
	encoders      encoders
	notifications notifications
	handlers      handlers
	subs          subscriptions
	tools         toolIndex
	pin           pin
	seldom        safely.Seldom // lines of the log that the server can cause
}

// Connect connects to the server behind t and returns when it can be used. It
// finds out which revision to speak: it probes with server/discover, falls back
// to initialize, and over HTTP further to HTTP with server-sent events
// (basic/versioning of 2026-07-28). ctx bounds only the connecting. opts may be
// nil.
func Connect(ctx context.Context, t Transport, opts *Options) (*Client, error) {
	if t == nil {
		return nil, &Error{Op: "connect", Err: errors.New("no transport")}
	}
	c := &Client{opts: opts.filled(), transport: t, server: t.String()}
	c.life.client, c.life.changed, c.life.renewal = c, make(chan struct{}), newTurn()
	c.notifications.client, c.handlers.client, c.subs.client, c.tools.client = c, c, c, c
	c.pin.hold(c)
	c.calls.table = map[int64]*call{}
	c.tools.load = newTurn()
	c.owner = c.opts.CacheKey
	if c.owner == "" {
		c.owner, c.owned = newOwner(), true
	}
	c.caps = c.opts.capabilities(extensionOf(t))
	c.level.Store(int32(c.opts.LogLevel))
	c.handlers.roots.list = c.opts.Roots
	c.life.ctx, c.life.cancel = context.WithCancelCause(context.Background())
	c.life.closing, c.life.stopWaits = context.WithCancelCause(context.Background())
	conn, err := handshake{c}.open(ctx)
	if err == nil {
		err = c.life.install(conn, false)
	}
	if err == nil && c.opts.Listen != nil {
		_, err = c.Listen(ctx, *c.opts.Listen, nil)
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrConnection) && !errors.Is(err, ErrClosed) { // refused, while all else works
			safely.Log(c.opts.Logger.Warn().Str("server", c.server).Err(visible.Error(err)), "the server does not notify of changes")
			err = nil
		}
	}
	if err != nil {
		c.life.setState(StateDisconnected, err)
		_ = c.Close() // the error of connecting says more
		return nil, wrap("connect to "+c.server, "", err)
	}
	return c, nil
}

// errClientClosed is what ends everything at Close.
var errClientClosed = errors.New("by Client.Close")

// Close ends the connection in order: requests in progress fail with ErrClosed and are
// cancelled at the server, subscriptions end, a session is deleted, a child process is
// given time to exit. It waits for the client's goroutines, handlers included, for
// Options.CloseTimeout at most, and for a process that had to be killed some seconds
// more. A callback that has not returned by then is abandoned. Calling it again does
// nothing.
func (c *Client) Close() error {
	if !c.life.close() {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), c.opts.CloseTimeout)
	defer stop()
	ended := make(chan error, 1)
	if !inflight.Within(ctx, afterKill, func() { ended <- c.close(ctx) }) {
		return &Error{Op: "close", kind: ErrTimeout, Err: errors.New("a callback or the transport does not return")}
	}
	return wrap("close", "", <-ended)
}

// close is the work of Close.
func (c *Client) close(ctx context.Context) error {
	c.life.sendNotes(ctx)
	conn := c.life.conn.Swap(nil)
	gone := &Error{kind: ErrClosed, Err: errClientClosed}
	c.subs.close(gone)
	ended := c.calls.failAll(nil, gone)
	var err error
	if conn != nil {
		conn.cancelAll(ctx, ended, "client closed")
	}
	c.life.cancel(gone)
	if conn != nil {
		conn.asked.CancelAll(gone)
		err = conn.close(ctx)
	}
	c.life.setState(StateDisconnected, gone)
	waitFor(ctx, &c.life.tasks)
	if c.owned {
		c.opts.Cache.dropOwner(c.owner)
	}
	return err
}

// State returns the state of the connection.
func (c *Client) State() State { return c.life.now() }

// WaitReady waits until the client is ready. It fails when ctx ends, when the
// client is closed, and with ErrConnection when it is disconnected and will not
// come back.
func (c *Client) WaitReady(ctx context.Context) error { return c.life.waitReady(ctx) }

// Reconnect connects again now, if the client is disconnected and does not come
// back by itself.
func (c *Client) Reconnect(ctx context.Context) error { return c.life.reconnectNow(ctx) }

// Revision returns what the client and the server speak, 0 while disconnected.
func (c *Client) Revision() protocol.Revision {
	if conn := c.life.conn.Load(); conn != nil {
		return conn.revision()
	}
	return 0
}

// SessionID returns the id of the session over HTTP (Mcp-Session-Id); "" while
// there is none, as in modern revisions and over other transports. It is a
// credential: its holder can act in the session.
func (c *Client) SessionID() string {
	if conn := c.life.conn.Load(); conn != nil {
		if l, ok := conn.link.(link.Sessioned); ok {
			return l.SessionID()
		}
	}
	return ""
}

// Server is what a server says of itself.
type Server struct {
	Info         Info // zero if it does not say
	Capabilities protocol.ServerCapabilities
	Instructions string          // what it tells models about itself
	Raw          json.RawMessage // the whole result of server/discover or initialize
}

// Server returns what the server says of itself; the zero value while
// disconnected.
func (c *Client) Server() Server {
	if conn := c.life.conn.Load(); conn != nil {
		server := conn.server
		server.Raw = clone(server.Raw)
		return server
	}
	return Server{}
}

// Supports reports whether the server declares a capability, by the names on the
// way to it: Supports("tools"), Supports("resources", "subscribe"),
// Supports("extensions", "io.modelcontextprotocol/tasks"). One that is false
// counts as not declared.
func (c *Client) Supports(path ...string) bool {
	conn := c.life.conn.Load()
	if conn == nil || len(path) == 0 {
		return false
	}
	raw := jsonx.Lookup(conn.server.Raw, append([]string{"capabilities"}, path...))
	return raw != nil && string(raw) != "false" && string(raw) != "null"
}

// capabilitiesFor returns what the client declares in a revision.
func (c *Client) capabilitiesFor(rev protocol.Revision) protocol.ClientCapabilities {
	if c.opts.OnRequest != nil {
		return c.caps
	}
	caps := wire.ClientCapabilitiesFor(c.caps, rev)
	if c.caps.Elicitation != nil && c.caps.Elicitation.Form == nil && c.caps.Elicitation.URL != nil && !rev.Has(protocol.FeatureElicitModes) {
		caps.Elicitation = nil // only of URLs, which rev does not have
	}
	return caps
}

// takesTasks reports whether the client has declared that calls may become
// tasks.
func (c *Client) takesTasks() bool { return c.caps.Extensions[tasksExtension] != nil }

// logLevel returns the least severe level that the server should log; 0 leaves
// that to the server.
func (c *Client) logLevel() protocol.Level { return protocol.Level(c.level.Load()) }

// Stats returns what the client did so far.
func (c *Client) Stats() Stats {
	stats := c.calls.statistics()
	stats.Dropped = c.notifications.lost()
	return stats
}

// Pending lists the requests in progress, oldest first.
func (c *Client) Pending() []Pending { return c.calls.pending() }

// Cancel gives up a request in progress: its caller gets ErrCancelled with the
// reason, and the server is notified. An id that is not in progress is
// ErrNotFound.
func (c *Client) Cancel(id protocol.ID, reason string) error {
	if len(c.cancel(reason, func(p *call) bool { return protocol.NewID(p.id) == id })) == 0 {
		return &Error{Op: "cancel", kind: ErrNotFound, Err: fmt.Errorf("no request %v is in progress", id)}
	}
	return nil
}

// CancelAll gives up all requests in progress, as Cancel does, and returns them,
// oldest first. Subscriptions stay, which Subscription.Close ends, and so does a
// connection that is being opened.
func (c *Client) CancelAll(reason string) []Pending {
	return c.cancel(reason, func(p *call) bool { return !wire.IsSubscription(p.method) && !p.conn.opening.Load() })
}

// cancel gives up the requests in progress for which which returns true, and
// returns them, oldest first.
func (c *Client) cancel(reason string, which func(*call) bool) (cancelled []Pending) {
	failure := &Error{kind: ErrCancelled, Err: errors.New(cmp.Or(reason, "by the client"))}
	for _, p := range c.calls.cancel(which, failure) {
		cancelled = append(cancelled, p.pending())
		if p.abort != nil {
			p.abort(failure)
		}
		if p.conn.cancels(p.method) {
			p.conn.sendSoon(c.life.ctx, protocol.MethodCancelled, cancelledBody(p.id, reason))
		}
	}
	return cancelled
}

// Notifications returns the notifications of the server from now on, all or
// those of these methods; progress belongs to its call and is not among them.
// The sequence ends with ctx and with the client, and may be ranged over once.
// While they are not taken, 256 are kept, and then the oldest make room.
//
//	for n := range c.Notifications(ctx, protocol.MethodResourceUpdated) {
//		…
//	}
func (c *Client) Notifications(ctx context.Context, methods ...string) iter.Seq[Notification] {
	l, remove := c.notifications.listen(methods)
	stop := context.AfterFunc(ctx, remove) // also without a range over them
	return func(yield func(Notification) bool) {
		defer stop()
		defer remove()
		for {
			select {
			case <-l.wake:
				for n, ok := c.notifications.next(l); ok; n, ok = c.notifications.next(l) {
					if ctx.Err() != nil || !yield(n) {
						return
					}
				}
			case <-ctx.Done():
				return
			case <-c.life.ctx.Done():
				return
			}
		}
	}
}

// Roots lists the places that the server may work in.
func (c *Client) Roots() []Root { return c.handlers.roots.get() }

// SetRoots replaces the places that the server may work in, and notifies the
// server if they have changed. The URIs begin with file:// (client/roots). A
// client that has not declared roots gets ErrUnsupported: Options.Roots declares
// them, if only as an empty list.
func (c *Client) SetRoots(ctx context.Context, list []Root) error {
	const op = "set roots"
	if c.caps.Roots == nil {
		return unsupported(op, "", "the client has not declared roots: set Options.Roots, if only to an empty list")
	}
	for _, root := range list {
		if !strings.HasPrefix(root.URI, "file://") {
			return &Error{Op: op, Err: fmt.Errorf("the URI of a root must begin with file://, got %s", root.URI)}
		}
	}
	if !c.handlers.roots.set(list) || c.life.conn.Load() == nil {
		return nil // a later session asks for them
	}
	err := c.inSession(ctx, func(conn *connection) error {
		if conn.revision().Modern() || !conn.rootsChange.Load() {
			// Modern servers ask each time; and a server without the capability gets no
			// notification (client/roots, "Capabilities").
			return nil
		}
		return conn.send(ctx, protocol.MethodRootsChanged, wire.AppendNotification(nil, protocol.MethodRootsChanged, nil))
	})
	return wrap(op, protocol.MethodRootsChanged, err)
}

// most returns how long a request may take in total; a negative value means
// without limit.
func (c *Client) most() time.Duration { return cmp.Or(c.opts.MaxTimeout, 10*time.Minute) }

// limited returns a context for one step that waits for the server, bounded by
// Options.Timeout, which does not run while a user is asked to log in.
func (c *Client) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return attend.WithTimeout(ctx, c.opts.Timeout, context.DeadlineExceeded)
}

// discard closes a connection that is not used.
func (c *Client) discard(conn *connection) {
	ctx, stop := context.WithTimeout(context.Background(), c.opts.CloseTimeout)
	defer stop()
	_ = conn.close(ctx) // why it is closed says more
}

// guard runs a callback of the user on a goroutine of its own and waits for it.
// Whatever the callback does, guard returns; a panic is logged and is the
// error.
func (c *Client) guard(name string, fn func()) error { return link.Callback(c.opts.Logger, name, fn) }

// logDropped writes to the log that something of the server was dropped, with what more
// adds. A server can send any number of such things, so lines with one text are few.
func (c *Client) logDropped(line func() *zerolog.Event, text string, more func(*zerolog.Event) *zerolog.Event) {
	skipped, due := c.seldom.Due(text, "")
	if !due {
		return
	}
	e := more(line().Str("server", c.server))
	if skipped.Lines > 0 {
		e = e.Int("skipped", skipped.Lines)
	}
	safely.Log(e, text)
}

// logUnread writes to the log that params of a notification of the server are invalid.
func (c *Client) logUnread(method string, err error) {
	c.logDropped(c.opts.Logger.Warn, "a notification of the server is invalid", func(e *zerolog.Event) *zerolog.Event {
		return e.Str("method", visible.Line(method, visible.Name)).Err(visible.Error(err))
	})
}

// notifyTimeout bounds sending a message whose answer no caller waits for.
const notifyTimeout = 5 * time.Second

// notesTimeout is how long Close waits for such messages to be sent.
const notesTimeout = time.Second

// aroundOf returns what the requests of ctx at c are counted in; nil without a
// counter.
func (c *Client) aroundOf(ctx context.Context) *around {
	if c.opts.Around == nil {
		return nil
	}
	a, _ := ctx.Value(aroundKey{}).(*around)
	if a == nil || a.client != c {
		return nil
	}
	return a
}

// note changes what is known of the call of which ctx is a part.
func (c *Client) note(ctx context.Context, change func(*CallInfo)) {
	if a := c.aroundOf(ctx); a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		change(&a.info)
	}
}

// within makes a call of the API with do, within Options.Around if there is one
// and the call is not itself a part of another.
func (c *Client) within(ctx context.Context, method, name string, do func(context.Context) error) error {
	if c.opts.Around == nil || c.aroundOf(ctx) != nil {
		return do(ctx)
	}
	info := &CallInfo{URL: c.server, Method: method, Name: name}
	if conn := c.life.conn.Load(); conn != nil {
		info.Server = conn.server.Info.Name
	}
	a := &around{client: c, info: *info}
	failure := errors.New("client: Options.Around has not called next")
	err := c.opts.Around(ctx, info, func(ctx context.Context) error {
		failure = do(context.WithValue(ctx, aroundKey{}, a))
		a.mu.Lock()
		defer a.mu.Unlock()
		*info = a.info
		return failure
	})
	if err != nil {
		return err
	}
	return failure // without a result the call has not succeeded, whatever Around says
}

// injectInto returns a notification with what Options.Inject adds to its _meta.
func (c *Client) injectInto(ctx context.Context, method string, body []byte) []byte {
	if c.opts.Inject == nil {
		return body
	}
	params := jsonx.Lookup(body, []string{"params"})
	meta := jsonx.Lookup(params, []string{"_meta"})
	if params != nil && params[0] != '{' || meta != nil && meta[0] != '{' {
		return body
	}
	var kept, there []byte
	_ = members(params, func(name []byte, s *jsonx.Scanner) error { // which we have made
		key, text := string(name), value(s)
		if key != "_meta" {
			kept = append(append(jsonx.AppendString(comma(kept), key), ':'), text...)
		}
		return nil
	})
	if meta != nil {
		there = bytes.TrimSpace(meta[1 : len(meta)-1])
	}
	with := c.inject(ctx, bytes.Clone(there))
	if len(with) == len(there) {
		return body
	}
	kept = append(append(append(comma(kept), `"_meta":{`...), with...), '}')
	return wire.AppendNotification(nil, method, braces(kept))
}

// inject returns members of _meta with those that Options.Inject adds.
func (c *Client) inject(ctx context.Context, members []byte) []byte {
	if c.opts.Inject == nil {
		return members
	}
	added := make(map[string]any)
	if err := c.guard("Inject", func() { c.opts.Inject(ctx, func(key, value string) { added[key] = value }) }); err != nil {
		return members // which is logged
	}
	for key := range added {
		if len(members) > 0 && jsonx.Lookup(braces(members), []string{key}) != nil {
			delete(added, key) // the caller has said it
		}
	}
	more, err := c.encoders.metaMembers(added)
	if err != nil {
		return members // texts encode
	}
	return join(members, more)
}
