// Package group uses many MCP servers as if they were one.
//
//	g := group.New(nil)
//	defer g.Close()
//	if err := g.Add("weather", client.HTTP("https://weather.example.com/mcp", nil), nil); err != nil {
//		return err
//	}
//	f, err := client.Call[Forecast](ctx, g, "weather_forecast", Place{"Oslo"})
//
// The name of a server and a separator precede the names of its tools and
// prompts. The name and a dot precede the URIs of its resources, also in
// results, so that what one call returns can be given to the next. A call goes
// to the server that the prefix names; a list asks all servers at once.
//
// A full name belongs to the longest name of a server that it begins with, even
// while that server is down. With servers git and git_hub, git_hub_search is a
// tool of git_hub. A tool hub_search of git is left out of lists and logged, so
// that no server takes over a tool of another one.
//
// Each server has a goroutine that keeps its connection open. Group.mu guards
// the list of servers and is never held during a call. The package is built on
// the exported API of package client only.
package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/config"
	"github.com/talaria-go/mcp/client/internal/reconnector"
	"github.com/talaria-go/mcp/internal/clients/attend"
	naming "github.com/talaria-go/mcp/internal/tooling/names"
	"github.com/talaria-go/mcp/protocol"
)

// Options are the settings of a Group. The zero value is the default of all;
// New copies it.
type Options struct {
	// Client are the options of servers that Add gives none; nil means the zero
	// value.
	Client *client.Options
	// Separator is between the name of a server and that of a tool or prompt; ""
	// means "_". Several hosts refuse names with a dot. URIs always have a dot.
	Separator string
	// ListTimeout is how long a list waits for one server; 0 means 30 seconds,
	// less than 0 no limit. The list goes without the server then.
	ListTimeout time.Duration
	// OnNotification receives the notifications of all servers, in addition to
	// the OnNotification of their own options. The URI of an updated resource has
	// the server's prefix. Servers of modern revisions send only notifications
	// that were subscribed to, by Listen or by client.Options.Listen. It may be
	// called for several servers at once.
	OnNotification func(server string, n client.Notification)
	// OnStatus is called when a server becomes ready or unavailable. It must not
	// wait for the Group. It may be called for several servers at once.
	OnStatus func(Status)
}

// Status says how a server of a Group is.
type Status struct {
	Name   string
	Server string // what the transport calls it; "" if there is none
	State  client.State
	Err    error // why it is not ready, or what its last list failed with
	// Info, Revision and Instructions are zero while the server is not ready.
	Info         client.Info
	Revision     protocol.Revision
	Instructions string
}

// Group uses many servers as if they were one. Names of tools and prompts have the name of their
// server and the separator before them: weather_forecast. URIs of resources and templates have the
// name and a dot: weather.config://app. A byte of the name that a scheme cannot have is written as a
// plus sign and its hexadecimal digits, so that of git_hub is git+5fhub. A server that cannot be
// reached is missing from lists, and calls to it fail with client.ErrConnection; the others do not
// notice. Its connection is opened again until Remove or Close; after client.ErrUnauthorized, such as
// a refused login, only by Warm. All methods are safe for concurrent use.
type Group struct {
	opts   Options
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	servers []*server // in the order in which they were added
}

// A Group can be used wherever a client can.
var _ client.Caller = (*Group)(nil)

// New returns a Group without servers; Add and AddConfig give it some. opts may
// be nil.
func New(opts *Options) *Group {
	g := &Group{}
	if opts != nil {
		g.opts = *opts
	}
	g.opts.Separator = cmp.Or(g.opts.Separator, "_")
	g.opts.ListTimeout = cmp.Or(g.opts.ListTimeout, 30*time.Second)
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Add connects to a server in the background; Warm waits for it. opts nil means
// Options.Client. A name that is taken, or none, is an error.
func (g *Group) Add(name string, t client.Transport, opts *client.Options) error {
	if t == nil {
		return &client.Error{Op: "add server " + name, Err: errors.New("no transport")}
	}
	return g.add(name, t, opts, nil)
}

// AddConfig adds the servers of a configuration file that are not disabled. One
// with an Err is added too, and has that in its status; one whose name cannot
// be used is left out. The error joins what is wrong with any of them; the
// others are of use nevertheless. opts are for servers over HTTP, SSE or
// WebSocket; it may be nil.
func (g *Group) AddConfig(f *config.File, opts *client.HTTPOptions) error {
	var faults []error
	for _, s := range f.Servers {
		if s.Disabled {
			continue
		}
		t, fault := s.Transport(opts)
		faults = append(faults, fault, g.add(s.Name, t, nil, fault))
	}
	return errors.Join(faults...)
}

// add adds a server. A fault takes the place of a transport; its status then
// has that.
func (g *Group) add(name string, t client.Transport, opts *client.Options, fault error) error {
	op := "add server " + name
	s := newServer(g, name, t, cmp.Or(opts, g.opts.Client), fault)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return &client.Error{Op: op, Err: errClosed}
	}
	if err := g.checkName(s); err != nil {
		return &client.Error{Op: op, Err: err}
	}
	g.servers = append(g.servers, s)
	s.start(g.ctx, &g.tasks)
	return nil
}

// errClosed is the cause of everything that is asked of a group after Close.
var errClosed = fmt.Errorf("%w: the group is closed", client.ErrClosed)

// checkName returns an error for a name that is empty or taken; g.mu is held.
func (g *Group) checkName(s *server) error {
	if s.name == "" {
		return errors.New("a server needs a name")
	}
	if slices.ContainsFunc(g.servers, func(other *server) bool { return other.name == s.name }) {
		return errors.New("the name is taken")
	}
	return nil
}

// Remove disconnects a server and waits until that is done, as long as
// client.Client.Close does. Calls to it that are in progress fail. Unknown names
// are client.ErrNotFound; the error is client.ErrTimeout if a callback does not
// return.
func (g *Group) Remove(name string) error {
	g.mu.Lock()
	i := slices.IndexFunc(g.servers, func(s *server) bool { return s.name == name })
	if i < 0 {
		g.mu.Unlock()
		return &client.Error{Op: "remove server " + name, Err: errNoServer}
	}
	s := g.servers[i]
	g.servers = slices.Delete(g.servers, i, i+1)
	g.mu.Unlock()
	s.cancel()
	return reconnector.WaitClosed("remove server "+name, func() { <-s.ended }, &s.Reconnector)
}

// errNoServer is the cause where a name is asked for that was never added, or was
// removed.
var errNoServer = fmt.Errorf("%w: there is no such server", client.ErrNotFound)

// all returns the servers of now, in a list of the caller's own. One that is
// removed in the meantime can still be asked, and fails.
func (g *Group) all() []*server {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.servers)
}

// Warm waits until every server is ready or could not be reached, and returns
// what went wrong with those, joined. Attempts to reach them continue, except
// after client.ErrUnauthorized: then only Warm tries again, and the user may be
// asked to log in.
func (g *Group) Warm(ctx context.Context) error {
	var faults []error
	servers := g.all()
	for _, s := range servers {
		s.Retry(&attend.Occasion{})
	}
	for _, s := range servers {
		if _, err := s.connected(ctx); err != nil {
			if ctx.Err() != nil {
				return reconnector.Ended(ctx, "warm up")
			}
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// Status says how each server is, in the order in which they were added.
func (g *Group) Status() []Status {
	var all []Status
	for _, s := range g.all() {
		all = append(all, s.status())
	}
	return all
}

// Client returns the connection to a server, for what a Group has no method for.
// It waits for the first attempt to connect. The Client is replaced after a
// loss that it does not come back from, so it should not be kept; closing it is
// the business of the Group.
func (g *Group) Client(ctx context.Context, name string) (*client.Client, error) {
	for _, s := range g.all() {
		if s.name == name {
			return s.connected(ctx)
		}
	}
	return nil, &client.Error{Op: "find server " + name, Err: errNoServer}
}

// Close disconnects every server and waits for that, as long as client.Client.Close
// does. Calls in progress fail with client.ErrClosed. The error is client.ErrTimeout
// if a callback does not return. Calling it again does nothing.
func (g *Group) Close() error {
	g.mu.Lock()
	g.closed = true
	var all []*reconnector.Reconnector
	for _, s := range g.servers {
		all = append(all, &s.Reconnector)
	}
	g.servers = nil
	g.mu.Unlock()
	g.cancel()
	return reconnector.WaitClosed("close the group", g.tasks.Wait, all...)
}

// owner returns the server that a full name or URI belongs to, and its name
// there; nil if it belongs to none.
func owner(servers []*server, of kind, full string) (longest *server, name string) {
	at := naming.Owner(full, len(servers), func(i int) string { return servers[i].prefix(of) })
	if at < 0 {
		return nil, ""
	}
	return servers[at], full[len(servers[at].prefix(of)):]
}

// route is owner for an operation, with an error if there is none.
func (g *Group) route(op string, of kind, full string) (s *server, name string, err error) {
	servers := g.all()
	if s, name = owner(servers, of, full); s != nil {
		return s, name, nil
	}
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed {
		return nil, "", &client.Error{Op: op + " " + full, Err: errClosed}
	}
	known := "there is none"
	for i, s := range servers {
		if i == 0 {
			known = "the servers are " + s.name
		} else {
			known += ", " + s.name
		}
	}
	separator := g.opts.Separator
	if of == uris {
		separator = uriSeparator
	}
	return nil, "", &client.Error{Op: op + " " + full,
		Err: fmt.Errorf("%w: it does not begin with the name of a server and %q; %s", client.ErrNotFound, separator, known)}
}

// on makes a call to the server that full names. fn gets the connection and the
// name without its prefix; an error that it returns gets the server's name. The
// result is returned along with it, as package client has both for some calls.
func on[T any](ctx context.Context, g *Group, op string, of kind, full string, fn func(c *client.Client, s *server, name string) (T, error)) (T, error) {
	var none T
	s, name, err := g.route(op, of, full)
	if err != nil {
		return none, err
	}
	c, err := s.connected(ctx)
	if err != nil {
		return none, err
	}
	result, err := fn(c, s, name)
	return result, s.failed(op+" "+name, err)
}

// Ping checks that every server responds, all at once. The error joins those
// of the servers that gave none.
func (g *Group) Ping(ctx context.Context, options ...client.CallOption) error {
	servers := g.all()
	faults := make([]error, len(servers))
	var pings sync.WaitGroup
	for i, s := range servers {
		pings.Go(func() {
			c, err := s.connected(ctx)
			if err != nil {
				faults[i] = err
				return
			}
			faults[i] = s.failed("ping", c.Ping(ctx, options...))
		})
	}
	pings.Wait()
	return errors.Join(faults...)
}

// Call calls a tool, such as weather_forecast. URIs in the content of the
// result have the server's prefix; Raw is as it came.
func (g *Group) Call(ctx context.Context, tool string, args any, options ...client.CallOption) (*client.CallToolResult, error) {
	return on(ctx, g, "call", names, tool, func(c *client.Client, s *server, name string) (*client.CallToolResult, error) {
		result, err := c.Call(ctx, name, args, options...)
		if result == nil {
			return nil, err
		}
		own := *result
		own.Content = slices.Clone(own.Content)
		for i, item := range own.Content {
			own.Content[i] = s.content(item)
		}
		return &own, err
	})
}

// Read reads a resource, such as weather.config://app.
func (g *Group) Read(ctx context.Context, uri string, options ...client.CallOption) (*protocol.ReadResourceResult, error) {
	return on(ctx, g, "read", uris, uri, func(c *client.Client, s *server, name string) (*protocol.ReadResourceResult, error) {
		result, err := c.Read(ctx, name, options...)
		if result == nil {
			return nil, err
		}
		own := *result
		own.Contents = slices.Clone(own.Contents)
		for i := range own.Contents {
			own.Contents[i].URI = s.prefix(uris) + own.Contents[i].URI
		}
		return &own, err
	})
}

// GetPrompt gets a prompt, such as weather_report.
func (g *Group) GetPrompt(ctx context.Context, name string, args map[string]string, options ...client.CallOption) (*protocol.GetPromptResult, error) {
	return on(ctx, g, "get prompt", names, name, func(c *client.Client, s *server, name string) (*protocol.GetPromptResult, error) {
		result, err := c.GetPrompt(ctx, name, args, options...)
		if result == nil {
			return nil, err
		}
		own := *result
		own.Messages = slices.Clone(own.Messages)
		for i := range own.Messages {
			own.Messages[i].Content = s.content(own.Messages[i].Content)
		}
		return &own, err
	})
}

// Complete asks what an argument of a prompt or a template can be.
func (g *Group) Complete(ctx context.Context, q client.Completion, options ...client.CallOption) (*protocol.Completion, error) {
	of := names
	if q.Prompt == "" {
		of = uris
	}
	return on(ctx, g, "complete", of, cmp.Or(q.Prompt, q.Template), func(c *client.Client, _ *server, name string) (*protocol.Completion, error) {
		if q.Prompt != "" {
			q.Prompt = name
		} else {
			q.Template = name
		}
		return c.Complete(ctx, q, options...)
	})
}

// Listen subscribes to the changes of filter at the server of that name, as
// Client.Listen does. The URIs of filter are the server's own, without its name;
// those that fn receives have it. The subscription ends with the connection when
// that is replaced.
func (g *Group) Listen(ctx context.Context, name string, filter client.Filter, fn func(client.Notification)) (*client.Subscription, error) {
	for _, s := range g.all() {
		if s.name != name {
			continue
		}
		c, err := s.connected(ctx)
		if err != nil {
			return nil, err
		}
		var prefixed func(client.Notification)
		if fn != nil {
			prefixed = func(n client.Notification) { fn(s.notification(n)) }
		}
		sub, err := c.Listen(ctx, filter, prefixed)
		return sub, s.failed("listen", err)
	}
	return nil, &client.Error{Op: "find server " + name, Err: errNoServer}
}

// maxListed bounds what one server may put into a list.
const maxListed = 100_000

// Tools lists the tools of all servers, one server after the other. A server
// that is not ready or fails is left out; see Status. So is a tool whose full
// name belongs to another server. Only the end of ctx is an
// error.
func (g *Group) Tools(ctx context.Context, options ...client.CallOption) iter.Seq2[protocol.Tool, error] {
	return list(ctx, g,
		func(ctx context.Context, c *client.Client) iter.Seq2[protocol.Tool, error] {
			return c.Tools(ctx, options...)
		},
		names, func(t *protocol.Tool, prefix string) string { t.Name = prefix + t.Name; return t.Name })
}

// Prompts lists the prompts of all servers, as Tools does.
func (g *Group) Prompts(ctx context.Context, options ...client.CallOption) iter.Seq2[protocol.Prompt, error] {
	return list(ctx, g,
		func(ctx context.Context, c *client.Client) iter.Seq2[protocol.Prompt, error] {
			return c.Prompts(ctx, options...)
		},
		names, func(p *protocol.Prompt, prefix string) string { p.Name = prefix + p.Name; return p.Name })
}

// Resources lists the resources of all servers, as Tools does.
func (g *Group) Resources(ctx context.Context, options ...client.CallOption) iter.Seq2[protocol.Resource, error] {
	return list(ctx, g,
		func(ctx context.Context, c *client.Client) iter.Seq2[protocol.Resource, error] {
			return c.Resources(ctx, options...)
		},
		uris, func(r *protocol.Resource, prefix string) string {
			r.Name, r.URI = prefix+r.Name, prefix+r.URI
			return r.URI
		})
}

// Templates lists the resource templates of all servers, as Tools does.
func (g *Group) Templates(ctx context.Context, options ...client.CallOption) iter.Seq2[protocol.ResourceTemplate, error] {
	return list(ctx, g,
		func(ctx context.Context, c *client.Client) iter.Seq2[protocol.ResourceTemplate, error] {
			return c.Templates(ctx, options...)
		},
		uris, func(t *protocol.ResourceTemplate, prefix string) string {
			t.Name, t.URITemplate = prefix+t.Name, prefix+t.URITemplate
			return t.URITemplate
		})
}

// list asks all servers at once and yields their lists in the order of the
// servers. It keeps all of them in memory until the last has come, maxListed
// items of each at most: the order must not depend on which server is quicker.
// rename puts the prefix before the names of an item, and returns the one that a
// call has. An item whose full name belongs to another server is left out.
func list[T any](ctx context.Context, g *Group, items func(context.Context, *client.Client) iter.Seq2[T, error], of kind, rename func(item *T, prefix string) string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		servers := g.all()
		lists := make([][]T, len(servers))
		var asked sync.WaitGroup
		for i, s := range servers {
			asked.Go(func() { lists[i] = listOne(ctx, s, items) })
		}
		asked.Wait()
		if ctx.Err() != nil {
			var none T
			yield(none, reconnector.Ended(ctx, "list"))
			return
		}
		for i, s := range servers {
			for _, item := range lists[i] {
				full := rename(&item, s.prefix(of))
				if by, _ := owner(servers, of, full); by != s {
					s.leaveOut(full, by)
					continue
				}
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// listOne returns the list of one server; nil if it has none or cannot be
// asked, which its status says.
func listOne[T any](ctx context.Context, s *server, list func(context.Context, *client.Client) iter.Seq2[T, error]) []T {
	if limit := s.group.opts.ListTimeout; limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, limit)
		defer stop()
	}
	c, err := s.connected(ctx)
	if err != nil || c.State() != client.StateReady {
		return nil // which the status says
	}
	var items []T
	for item, err := range list(ctx, c) {
		if err == nil && len(items) == maxListed {
			err = fmt.Errorf("its list has more than %d items", maxListed)
		}
		if errors.Is(err, client.ErrUnsupported) {
			s.listed(nil)
			return nil // it has no such things
		}
		if err != nil {
			s.listed(s.failed("list", err))
			return nil
		}
		items = append(items, item)
	}
	s.listed(nil)
	return items
}
