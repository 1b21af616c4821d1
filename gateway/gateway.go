// Package gateway offers other MCP servers, its upstreams, through a server of yours.
//
//	g := gateway.New(s, nil)
//	defer g.Close()
//	err := g.Set("files", gateway.Upstream{Transport: client.Command("mcp-files", "/srv"), Only: []string{"read_*"}})
//
// Tools and prompts get the name of their upstream and "_" as a prefix, as in
// files_read_text. Resources and templates keep their URIs. All that a server does around
// its own components counts for those of upstreams, too: filter, scopes, middleware,
// authorization, telemetry, Shutdown and mcp.Server.Call.
//
// An upstream has a list connection, by Upstream.Transport, and a connection for each
// caller that must not share one. A caller sees what its own connection lists.
//
//   - Gateway is the set of upstreams. upstream is one of them, visit a request of a client.
//   - connection is one connection to an upstream. It keeps itself open and its catalog
//     up to date. pool has those of callers.
//   - catalog is what a connection lists, in the words that clients see. publisher brings
//     the names of all catalogs into the server.
//   - run is one request of a client at an upstream, with the questions that it leads to.
//
// Each connection has a goroutine, and those of its client. Close waits for all of them.
// Code of users runs, and connections are awaited, without a lock.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/config"
	"github.com/talaria-go/mcp/client/group"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/option"
	"github.com/talaria-go/mcp/internal/tooling/names"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// Options are the settings of a Gateway. The zero value is the default of all.
type Options struct {
	// Client is the template of all connections, such as for its timeouts, callbacks and
	// logger. The Gateway sets the answers to questions, the cache, tasks and subscriptions.
	// Without a logger it is that of the server. A request of a client has no time limit but
	// that of client.Options.MaxTimeout, unless client.Options.Timeout is set.
	Client client.Options
	// Connections is the number of connections of callers, to all upstreams; 0 means 256.
	// Beyond it the one that was unused for longest is closed. Calls of other callers fail
	// while all are in use.
	Connections int
	// Idle is the time without use after which a connection of a caller is closed; 0 means
	// 10 min. One that watches resources stays. The end of its session closes each at once.
	Idle time.Duration
}

// Status is the state of an upstream.
type Status struct {
	group.Status          // of the list connection; without one only the name
	Tools        []string // the names that clients can see, sorted
	LeftOut      []string // what clients do not see, or a rule does not do, with the reason
}

// Gateway offers the components of upstreams in a server. Its methods are safe for
// concurrent use.
type Gateway struct {
	opts      Options
	host      option.Settings // of the server
	server    *mcp.Server
	log       *zerolog.Logger
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	pool      pool
	parking   parking
	publisher publisher
	files     files // of Apply
	tasks     sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	swept     bool        // the goroutine of sweep was started
	upstreams []*upstream // in the order in which they were set
}

// The bounds of a Gateway.
const (
	maxConnections = 256              // default of Options.Connections
	idleTime       = 10 * time.Minute // default of Options.Idle
	sweepEvery     = time.Minute      // interval between looks for those
	listWait       = 5 * time.Second  // of a list, for connections that open
	changeTime     = 30 * time.Second // of a changed upstream, to list; then as much for calls of the old one
)

// New returns a Gateway that adds to s. It declares that s has prompts, resources and
// completions, as upstreams may bring some at any time. It panics once s serves. o may be
// nil.
func New(s *mcp.Server, o *Options) *Gateway {
	g := &Gateway{server: s}
	if o != nil {
		g.opts = *o
	}
	s.Use(g.middleware)
	// A server declares the kinds of components that it ever had.
	const once = "talaria-gateway:once"
	s.MustAdd(mcp.Made(option.Component{Name: "gateway", Make: func(host option.Settings) ([]*registry.Entry, error) {
		g.host = host
		return []*registry.Entry{
			{Definition: &protocol.Resource{URI: once, Name: once}, Serve: nothing},
			{Definition: &protocol.Prompt{Name: "talaria_gateway_once"}, Serve: nothing, Arguments: []string{"x"},
				Completers: map[string]completer{"x": func(*frame.Frame, string, map[string]string) (protocol.Completion, error) {
					return protocol.Completion{}, nil
				}}},
		}, nil
	}}))
	s.Remove(mcp.KindResource, once)
	s.Remove(mcp.KindPrompt, "talaria_gateway_once")
	g.log = cmp.Or(g.opts.Client.Logger, g.host.Logger)
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.pool = pool{max: cmp.Or(max(g.opts.Connections, 0), maxConnections), all: map[poolKey]*connection{}, left: map[poolKey]*connection{}}
	g.parking = parking{question: g.host.Question, runs: map[string]*run{}, callers: map[poolKey]int{}}
	g.publisher = publisher{gateway: g, here: map[place]published{}}
	return g
}

// nothing serves what is removed before it can be asked for.
func nothing(*frame.Frame) (protocol.Result, error) { return wire.EmptyResult{}, mcp.ErrNotFound }

// errClosed is the error of a Gateway after Close.
var errClosed = errors.New("gateway: it is closed")

// validName is the form of a name.
var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// Set adds an upstream, or replaces the one of that name. It does not wait: Warm does, and
// a replaced upstream serves until the new one has listed, 30 seconds at most. Calls of
// the replaced one then have 30 seconds to end.
//
// A name has letters, digits, '_' and '-', 32 at most. The name "" is for one upstream
// whose names get no prefix. A full name belongs to the upstream with the longest name
// that it begins with.
func (g *Gateway) Set(name string, u Upstream) error {
	_, err := g.set(name, u)
	return err
}

// set is Set, and returns what it has set.
func (g *Gateway) set(name string, u Upstream) (*upstream, error) {
	if name != "" && !validName.MatchString(name) {
		return nil, fmt.Errorf("gateway: server %q: a name has letters, digits, '_' and '-', 32 at most", name)
	}
	if err := u.check(); err != nil {
		return nil, fmt.Errorf("gateway: server %q: %w", name, err)
	}
	next := newUpstream(g, name, u)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errClosed
	}
	if !g.swept {
		g.swept = true
		g.tasks.Go(g.sweep)
	}
	at := slices.IndexFunc(g.upstreams, func(u *upstream) bool { return u.name == name })
	if at < 0 {
		g.upstreams = append(g.upstreams, next)
		close(next.placed)
		next.start()
		g.tasks.Go(func() { g.publisher.publish(nil) })
		return next, nil
	}
	old := g.upstreams[at]
	if old.next != nil {
		g.tasks.Go(old.next.close)
	}
	old.next = next
	next.start()
	g.tasks.Go(func() { g.replace(old, next) })
	return next, nil
}

// replace puts next into the place of old when it has listed, or its time is over.
func (g *Gateway) replace(old, next *upstream) {
	late := time.NewTimer(changeTime)
	defer late.Stop()
	select {
	case <-next.listed:
	case <-late.C:
	case <-next.ctx.Done(): // it was replaced or removed
		return
	}
	g.mu.Lock()
	at := slices.Index(g.upstreams, old)
	if at < 0 || old.next != next {
		g.mu.Unlock()
		return
	}
	g.upstreams[at] = next
	g.mu.Unlock()
	close(next.placed)
	g.publisher.publish(nil)
	if next.list != nil && old.list != nil {
		next.list.watched.Follow(&old.list.watched, maxWatched)
		g.pool.each(old, func(c *connection) { next.list.watched.Follow(&c.watched, maxWatched) })
		next.list.change()
	}
	old.retire()
}

// Remove takes an upstream back, and reports whether there was one. Its calls have 30
// seconds to end.
func (g *Gateway) Remove(name string) bool {
	g.mu.Lock()
	at := slices.IndexFunc(g.upstreams, func(u *upstream) bool { return u.name == name })
	if at < 0 || g.closed {
		g.mu.Unlock()
		return false
	}
	old := g.upstreams[at]
	g.upstreams = slices.Delete(g.upstreams, at, at+1)
	if old.next != nil {
		g.tasks.Go(old.next.close)
	}
	g.tasks.Go(old.retire)
	g.mu.Unlock()
	g.publisher.publish(nil)
	return true
}

// Apply sets the servers of a file and removes those of the last file that are not in it.
// Servers that did not change keep their connections; what Set or Remove did to one of them
// since is not kept. An error in one server affects only
// that one, which stays as it was; the error joins all of these. o is as for config.Server.Transport.
//
// The member "talaria" of a server has what Upstream has: only, hide, rules, shared and
// noQuestions.
func (g *Gateway) Apply(f *config.File, o *client.HTTPOptions) error { return g.files.apply(g, f, o) }

// Warm waits until each upstream with a list connection has listed, or could not be
// reached, and returns the errors of those, joined. If an upstream is being
// replaced, Warm waits for the new one.
func (g *Gateway) Warm(ctx context.Context) error {
	var faults []error
	for _, u := range g.all() {
		if err := g.warm(ctx, u); err != nil {
			faults = append(faults, fmt.Errorf("gateway: server %q: %w", u.name, err))
		}
	}
	g.publisher.publish(nil)
	return errors.Join(faults...)
}

// warm waits until the upstream of u's name that was set last has listed and is in its place,
// or could not be reached.
func (g *Gateway) warm(ctx context.Context, u *upstream) (err error) {
	for next := g.latest(u.name); next != nil; next = g.latest(u.name) {
		if u = next; u.list != nil {
			// The error of Warm is that of the connection, which wait returns.
			_ = u.list.group.Warm(ctx)
			err = u.list.wait(ctx)
		}
		if err == nil {
			select {
			case <-u.placed: // soon, as it has listed
			case <-u.ctx.Done():
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil || g.ctx.Err() != nil || g.latest(u.name) == u {
			return err
		}
		err = nil // another one was set, or it was removed
	}
	return nil
}

// Status returns the state of each upstream, in the order in which they were set.
func (g *Gateway) Status() []Status {
	var all []Status
	for _, u := range g.all() {
		all = append(all, u.status())
	}
	return all
}

// Close disconnects all upstreams and waits for that. Calls in progress fail. What the
// gateway has added to the server goes.
func (g *Gateway) Close() error {
	g.mu.Lock()
	g.closed = true
	list := g.upstreams
	g.upstreams = nil
	g.mu.Unlock()
	g.cancel()
	g.publisher.publish(nil)
	var closing sync.WaitGroup
	for _, u := range list {
		closing.Go(u.close)
		if u.next != nil {
			closing.Go(u.next.close)
		}
	}
	closing.Wait()
	g.tasks.Wait()
	return nil
}

// all returns the upstreams of now, in a list of the caller's own.
func (g *Gateway) all() []*upstream {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.upstreams)
}

// latest returns the upstream of a name that was set last, which may be about to replace
// another one; nil if there is none.
func (g *Gateway) latest(name string) *upstream {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, u := range g.upstreams {
		if u.name == name {
			return cmp.Or(u.next, u)
		}
	}
	return nil
}

// spawn runs fn on a goroutine that Close waits for. After Close it does nothing.
func (g *Gateway) spawn(fn func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.tasks.Go(fn)
	}
	return !g.closed
}

// current returns the upstream in the place of one that may have been replaced.
func (g *Gateway) current(u *upstream) *upstream {
	for _, now := range g.all() {
		if now.name == u.name {
			return now
		}
	}
	return u
}

// owner returns the upstream that a full name belongs to; nil if it belongs to none.
func (g *Gateway) owner(full string) *upstream {
	all := g.all()
	if at := names.Owner(full, len(all), func(i int) string { return all[i].prefix }); at >= 0 {
		return all[at]
	}
	return nil
}

// sweep closes unused connections, and ends parked calls when the server shuts
// down.
func (g *Gateway) sweep() {
	idle := cmp.Or(max(g.opts.Idle, 0), idleTime)
	tick := time.NewTicker(min(sweepEvery, idle))
	defer tick.Stop()
	down := g.host.Down
	for {
		select {
		case <-tick.C:
			g.pool.sweep(time.Now().Add(-idle))
		case <-down:
			down = nil
			g.parking.end()
		case <-g.ctx.Done():
			g.parking.end()
			return
		}
	}
}
