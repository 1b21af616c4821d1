package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// ManyOptions are the settings of a Many. The zero value is the default of all;
// NewMany copies it.
type ManyOptions struct {
	// Client are the options of servers that Add gives none; nil means the zero
	// value.
	Client *Options
	// Separator stands between the name of a server and that of a tool; ""
	// means ".". Models that take no dots in names want "_" or the like.
	Separator string
	// ListTimeout is how long a list waits for one server; 0 means
	// DefaultTimeout. The list goes without it then.
	ListTimeout time.Duration
	// OnNotification hears the notifications of all servers, beside the
	// OnNotification of their own options. The URI of an updated resource has
	// the server's prefix. Servers of modern revisions tell only what they are
	// asked for, by Subscribe or by Options.Listen. It may be called for several
	// servers at once.
	OnNotification func(server string, e Event)
	// OnStatus hears when a server became ready or ceased to be. It must not
	// wait for the Many. It may be called for several servers at once.
	OnStatus func(ServerStatus)
}

// Many uses many servers as if they were one. Names of tools and prompts, and
// URIs of resources and templates, have the name of their server and a dot
// before them: weather.forecast, weather.config://app. A server that cannot be
// reached is missing from lists, and calls to it fail; the others do not notice.
// Its connection is opened again until Remove or Close. All methods are safe
// for concurrent use.
type Many struct {
	opts   ManyOptions
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	servers []*oneOfMany // in the order in which they were added
}

// NewMany returns a Many without servers; Add and AddConfig give it some. opts
// may be nil.
func NewMany(opts *ManyOptions) *Many {
	m := &Many{}
	if opts != nil {
		m.opts = *opts
	}
	if m.opts.Separator == "" {
		m.opts.Separator = "."
	}
	if m.opts.ListTimeout == 0 {
		m.opts.ListTimeout = DefaultTimeout
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// oneOfMany is one server.
type oneOfMany struct {
	keeper
	many   *Many
	name   string
	prefix string // name and separator
	cancel context.CancelFunc
	ended  chan struct{} // closed when the keeper has ended

	listMu    sync.Mutex
	listFault error // of the last list
}

// ServerStatus says how a server of a Many is.
type ServerStatus struct {
	Name         string
	Server       string // what the transport calls it; "" if there is none
	State        State
	Err          error                   // why it is not ready, or what its last list failed with
	Info         protocol.Implementation // zero while it is not ready, as what follows
	Revision     protocol.Revision
	Instructions string
}

// Add connects to a server in the background; Warm waits for it. opts nil means
// ManyOptions.Client. A name that is taken, or that begins as the name of
// another one with the separator, is an error.
func (m *Many) Add(name string, t Transport, opts *Options) error {
	if t == nil {
		return &Error{Op: "add server " + name, Err: errors.New("no transport")}
	}
	return m.add(name, t, opts, nil)
}

// add adds a server, which may have a fault in place of a transport.
func (m *Many) add(name string, t Transport, opts *Options, fault error) error {
	if opts == nil {
		opts = m.opts.Client
	}
	s := &oneOfMany{many: m, name: name, prefix: name + m.opts.Separator, ended: make(chan struct{})}
	s.keeper = keeper{transport: t, changed: s.onChange, tried: make(chan struct{}), fault: fault}
	if opts != nil {
		s.opts = *opts
	}
	if m.opts.OnNotification != nil {
		s.hear()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return &Error{Op: "add server " + name, kind: ErrClosed, Err: errManyClosed}
	}
	if err := m.checkName(s); err != nil {
		return &Error{Op: "add server " + name, Err: err}
	}
	m.servers = append(m.servers, s)
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(m.ctx)
	if fault != nil {
		close(s.tried)
		close(s.ended)
		return nil
	}
	m.tasks.Go(func() {
		defer close(s.ended)
		s.run(ctx)
	})
	return nil
}

var errManyClosed = errors.New("it is closed")

// checkName refuses names that make other names ambiguous; m.mu is held.
func (m *Many) checkName(s *oneOfMany) error {
	if s.name == "" {
		return errors.New("a server needs a name")
	}
	for _, other := range m.servers {
		if other.name == s.name {
			return errors.New("the name is taken")
		}
		if strings.HasPrefix(s.prefix, other.prefix) || strings.HasPrefix(other.prefix, s.prefix) {
			return fmt.Errorf("the name cannot be told from that of server %q; choose another, or another separator than %q", other.name, m.opts.Separator)
		}
	}
	return nil
}

// Remove disconnects a server and waits until that is done. Calls to it that
// are under way fail. Unknown names are ErrNotFound.
func (m *Many) Remove(name string) error {
	m.mu.Lock()
	i := slices.IndexFunc(m.servers, func(s *oneOfMany) bool { return s.name == name })
	if i < 0 {
		m.mu.Unlock()
		return &Error{Op: "remove server " + name, kind: ErrNotFound, Err: errors.New("there is no such server")}
	}
	s := m.servers[i]
	m.servers = slices.Delete(m.servers, i, i+1)
	m.mu.Unlock()
	s.cancel()
	<-s.ended
	return nil
}

// all returns the servers of now.
func (m *Many) all() []*oneOfMany {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.servers)
}

// Warm waits until every server is ready or could not be reached, and returns
// what went wrong with those, joined. Attempts to reach them go on.
func (m *Many) Warm(ctx context.Context) error {
	var faults []error
	for _, s := range m.all() {
		if _, err := s.connected(ctx); err != nil {
			if ctx.Err() != nil {
				return wrap("warm up", "", "", context.Cause(ctx))
			}
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// Status says how each server is, in the order in which they were added.
func (m *Many) Status() []ServerStatus {
	var all []ServerStatus
	for _, s := range m.all() {
		all = append(all, s.status())
	}
	return all
}

// Client returns the connection to a server, for what a Many has no method for.
// It waits for the first attempt to connect. The Client is replaced after a
// loss that it does not come back from, so it should not be kept; closing it is
// the business of the Many.
func (m *Many) Client(ctx context.Context, name string) (*Client, error) {
	for _, s := range m.all() {
		if s.name == name {
			return s.connected(ctx)
		}
	}
	return nil, &Error{Op: "find server " + name, kind: ErrNotFound, Err: errors.New("there is no such server")}
}

// Close disconnects every server and waits for that. Calls under way fail with
// ErrClosed. Calling it again does nothing.
func (m *Many) Close() error {
	m.mu.Lock()
	m.closed = true
	m.servers = nil
	m.mu.Unlock()
	m.cancel()
	m.tasks.Wait()
	return nil
}
