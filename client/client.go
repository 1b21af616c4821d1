package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// Client is a connection to one server, which it renews when it is lost. Make
// one with Connect. All methods are safe for concurrent use.
type Client struct {
	opts      Options
	transport Transport
	server    string // what the transport calls the server
	owner     string // of private results in the cache
	calls     calls
	encoders  encoders
	events    events
	tools     toolIndex
	roots     roots
	elicited  elicited

	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	tasks  sync.WaitGroup // goroutines of the client
	notes  sync.WaitGroup // those of them that send what nobody waits for

	conn    atomic.Pointer[connection] // nil while there is none
	caps    atomic.Pointer[protocol.ClientCapabilities]
	renewal sync.Mutex // held while a session is renewed

	mu        sync.Mutex
	state     State
	stateErr  error
	changed   chan struct{} // closed when state changes
	closed    bool
	returning bool // a goroutine reconnects
	opening   *connection
	known     era
	level     protocol.Level
	subs      map[*Subscription]struct{}
	watched   map[string]*Subscription // by Subscribe
	stateFns  map[int]func(State, error)
	lastFn    int
	stateLine stateLine
	eventFns  []*eventFn
}

// Connect connects to the server behind t and returns when it can be used. It
// finds out which revision to speak: it probes with server/discover, falls back
// to initialize, and over HTTP further to HTTP with server-sent events
// (basic/versioning of 2026-07-28). ctx bounds the connecting alone. opts may
// be nil.
func Connect(ctx context.Context, t Transport, opts *Options) (*Client, error) {
	if t == nil {
		return nil, &Error{Op: "connect", Err: errors.New("no transport")}
	}
	c := &Client{
		opts: opts.filled(), transport: t, server: t.String(),
		changed: make(chan struct{}), subs: map[*Subscription]struct{}{},
		watched: map[string]*Subscription{}, stateFns: map[int]func(State, error){},
	}
	c.owner = c.opts.CacheKey
	if c.owner == "" {
		c.owner = fmt.Sprintf("client %p", c) // its own
	}
	caps := c.opts.capabilities()
	c.caps.Store(&caps)
	c.level = c.opts.LogLevel
	c.roots.list = c.opts.Roots
	c.events.client = c
	c.known = c.opts.Eras.get(c.server)
	if c.opts.OnState != nil {
		c.stateFns[0] = c.opts.OnState
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	conn, err := c.open(ctx)
	if err == nil {
		err = c.install(conn)
	}
	if err == nil && c.opts.Listen != nil {
		_, err = c.Listen(ctx, *c.opts.Listen, nil)
	}
	if err != nil {
		c.setState(StateDisconnected, err)
		_ = c.Close() // the error of connecting says more
		return nil, wrap("connect to "+c.server, "", "", err)
	}
	return c, nil
}

// errClientClosed is what ends everything at Close.
var errClientClosed = errors.New("client closed")

// Close ends the connection in order: what is under way fails with ErrClosed
// and is cancelled at the server, subscriptions end, a session is deleted, a
// child process is given time to exit. It waits for the client's goroutines,
// handlers included, for Options.CloseTimeout at most. Calling it again does
// nothing.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	subs := c.subs
	c.subs = map[*Subscription]struct{}{}
	c.mu.Unlock()
	ctx, stop := context.WithTimeout(context.Background(), c.opts.CloseTimeout)
	defer stop()
	c.sendNotes(ctx)
	conn := c.conn.Swap(nil)
	gone := &Error{kind: ErrClosed, Err: errClientClosed}
	for sub := range subs {
		sub.finish(gone)
	}
	ended := c.calls.failAll(nil, &Error{kind: ErrClosed, Err: errClientClosed, lost: true})
	var err error
	if conn != nil {
		conn.cancelAll(ctx, ended, errClientClosed.Error())
	}
	c.cancel(gone)
	if conn != nil {
		conn.asked.CancelAll(errClientClosed)
		err = conn.close(ctx)
	}
	c.setState(StateDisconnected, gone)
	waitFor(ctx, &c.tasks)
	c.opts.Cache.dropOwner(c.server, fmt.Sprintf("client %p", c))
	return wrap("close", "", "", err)
}

// sendNotes lets leave what nobody waits for.
func (c *Client) sendNotes(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, notesTimeout)
	defer stop()
	waitFor(ctx, &c.notes)
}

// waitFor waits for goroutines, at most until ctx ends.
func waitFor(ctx context.Context, goroutines *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() {
		goroutines.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// spawn runs fn on a goroutine that Close waits for. It tells false, without
// running it, once the client is closed.
func (c *Client) spawn(fn func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.tasks.Go(fn)
	return true
}

// note is spawn for what sends something that nobody waits for; Close lets it
// leave first. It tells false, without running it, once the client is closed.
func (c *Client) note(fn func(ctx context.Context)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.notes.Add(1)
	c.tasks.Go(func() {
		defer c.notes.Done()
		ctx, stop := context.WithTimeout(c.ctx, notifyTimeout)
		defer stop()
		fn(ctx)
	})
	return true
}

// current returns the connection, and waits while the client reconnects.
func (c *Client) current(ctx context.Context) (*connection, error) {
	if conn := c.conn.Load(); conn != nil {
		return conn, nil
	}
	if c.opts.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, c.opts.Timeout)
		defer stop()
	}
	for {
		c.mu.Lock()
		conn, closed, idle, err, changed := c.conn.Load(), c.closed, c.state == StateDisconnected && !c.returning, c.stateErr, c.changed
		c.mu.Unlock()
		switch {
		case conn != nil:
			return conn, nil
		case closed:
			return nil, &Error{kind: ErrClosed, Err: errClientClosed}
		case idle:
			return nil, &Error{kind: ErrClosed, Err: err, lost: true}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Revision returns what the client and the server speak, 0 while disconnected.
func (c *Client) Revision() protocol.Revision {
	if conn := c.conn.Load(); conn != nil {
		return conn.revision()
	}
	return 0
}

// ServerInfo returns how the server names itself; the zero value while
// disconnected, or if it does not.
func (c *Client) ServerInfo() protocol.Implementation {
	if conn := c.conn.Load(); conn != nil {
		return conn.about.info
	}
	return protocol.Implementation{}
}

// ServerCapabilities returns what the server offers; the zero value while
// disconnected.
func (c *Client) ServerCapabilities() protocol.ServerCapabilities {
	if conn := c.conn.Load(); conn != nil {
		return conn.about.caps
	}
	return protocol.ServerCapabilities{}
}

// Instructions returns what the server tells models about itself.
func (c *Client) Instructions() string {
	if conn := c.conn.Load(); conn != nil {
		return conn.about.instructions
	}
	return ""
}

// ServerHello returns the whole result of server/discover or initialize, nil
// while disconnected.
func (c *Client) ServerHello() json.RawMessage {
	if conn := c.conn.Load(); conn != nil {
		return clone(conn.about.raw)
	}
	return nil
}

// Supports tells whether the server declares a capability, by the names on the
// way to it: Supports("tools"), Supports("resources", "subscribe"),
// Supports("extensions", "io.modelcontextprotocol/tasks"). One that is false
// counts as not declared.
func (c *Client) Supports(path ...string) bool {
	conn := c.conn.Load()
	if conn == nil || len(path) == 0 {
		return false
	}
	raw := protocol.Lookup(conn.about.raw, append([]string{"capabilities"}, path...))
	return raw != nil && string(raw) != "false" && string(raw) != "null"
}

// Transport returns what the client was connected with.
func (c *Client) Transport() Transport { return c.transport }

// Stats returns what the client did so far.
func (c *Client) Stats() Stats {
	dropped := c.events.lost()
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	stats := c.calls.stats
	stats.Pending = len(c.calls.table)
	stats.Dropped = dropped
	return stats
}

// Pending lists the requests under way, oldest first.
func (c *Client) Pending() []Pending {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	return pendingOf(c.calls.table)
}

// notifyTimeout bounds the sending of what nobody waits for.
const notifyTimeout = 5 * time.Second

// notesTimeout is how long Close waits for that.
const notesTimeout = time.Second
