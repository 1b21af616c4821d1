package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/client/internal/reconnector"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
)

// server is one server of a group. A server with a fault in place of a
// transport, from a configuration file, has no goroutine: start closes ended,
// and its status tells the fault. mu guards listFault.
type server struct {
	reconnector.Reconnector
	group    *Group
	name     string
	prefixes [2]string // by kind
	cancel   context.CancelFunc
	ended    chan struct{} // closed when the Reconnector has ended

	mu        sync.Mutex
	listFault error           // of the last list
	leftOut   map[string]bool // full names that were logged; maxLogged at most
}

// kind says what a full name is of.
type kind int

const (
	names kind = iota // tools and prompts
	uris              // resources and templates
)

// uriSeparator is between the name of a server and a URI. Together they begin
// with a scheme again, which could not have an underscore.
const uriSeparator = "."

// maxLogged is how many names of a server are logged as left out.
const maxLogged = 100

// prefix returns what full names of the kind begin with: the name of the server and
// the separator.
func (s *server) prefix(of kind) string { return s.prefixes[of] }

// scheme returns name with each byte escaped that the scheme of a URI cannot have:
// as a plus sign and two hexadecimal digits. A name that does not begin with a
// letter gets "x+" before it. Different names have different schemes.
func scheme(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z', i > 0 && ('0' <= c && c <= '9' || c == '-' || c == '.'):
			b.WriteByte(c)
		default:
			if i == 0 {
				b.WriteString("x+")
			}
			fmt.Fprintf(&b, "+%02x", c)
		}
	}
	return b.String()
}

// leaveOut logs, once, that something is not listed since its full name belongs to
// another server.
func (s *server) leaveOut(full string, by *server) {
	full = visible.Text(full, visible.Name)
	s.mu.Lock()
	known := s.leftOut[full] || len(s.leftOut) == maxLogged
	if !known {
		if s.leftOut == nil {
			s.leftOut = make(map[string]bool)
		}
		s.leftOut[full] = true
	}
	s.mu.Unlock()
	if logger := s.Options.Logger; !known && logger != nil {
		safely.Log(logger.Warn().Str("server", s.name).Str("name", full).Str("owner", by.name),
			"a name is left out of lists: it belongs to another server of the group")
	}
}

// newServer returns a server, which may have a fault in place of a transport.
func newServer(g *Group, name string, t client.Transport, opts *client.Options, fault error) *server {
	s := &server{group: g, name: name, prefixes: [2]string{names: name + g.opts.Separator, uris: scheme(name) + uriSeparator}, ended: make(chan struct{})}
	s.Transport, s.Changed = t, s.changed
	if opts != nil {
		s.Options = *opts
	}
	if g.opts.OnNotification != nil {
		own := s.Options.OnNotification
		s.Options.OnNotification = func(n client.Notification) {
			if own != nil {
				own(n)
			}
			g.opts.OnNotification(name, s.notification(n))
		}
	}
	s.Init(fault)
	return s
}

// start connects, and keeps the connection open until ctx ends or s.cancel is
// called.
func (s *server) start(ctx context.Context, tasks *sync.WaitGroup) {
	ctx, s.cancel = context.WithCancel(ctx)
	if s.Transport == nil {
		close(s.ended)
		return
	}
	tasks.Go(func() {
		defer close(s.ended)
		s.Run(ctx)
	})
}

// changed is called by the Reconnector when there is a connection or none any
// more.
func (s *server) changed(c *client.Client, err error) {
	if fn := s.group.opts.OnStatus; fn != nil && (c != nil || err != nil) {
		status := s.status()
		_ = link.Callback(s.Options.Logger, "OnStatus", func() { fn(status) }) // a panic is in the log
	}
}

// status returns the state of the server. The failure of its last list is
// reported only while it is ready: before that there is a better reason.
func (s *server) status() Status {
	status := Status{Name: s.name}
	if s.Transport != nil {
		status.Server = s.Transport.String()
	}
	c, _, fault := s.Now()
	status.Err = fault
	if c == nil {
		return status
	}
	if status.State = c.State(); status.State != client.StateReady {
		status.Err = s.Down()
		return status
	}
	about := c.Server()
	status.Info, status.Revision, status.Instructions = about.Info, c.Revision(), about.Instructions
	s.mu.Lock()
	defer s.mu.Unlock()
	status.Err = s.listFault
	return status
}

// listed stores the outcome of the last list for the status.
func (s *server) listed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listFault = err
}

// connected returns the connection, after the first attempt to make one is
// over. It waits for no later attempt: while there is no connection, a call
// fails at once with client.ErrConnection, and no list of all servers is held
// up.
func (s *server) connected(ctx context.Context) (*client.Client, error) {
	select {
	case <-s.Tried():
	case <-s.ended:
	case <-ctx.Done():
		return nil, s.failed("connect", reconnector.Ended(ctx, "connect"))
	}
	c, _, fault := s.Now()
	switch {
	case c != nil:
		return c, nil
	case fault == nil:
		fault = errClosed // by Close or Remove
	case !errors.Is(fault, client.ErrConnection):
		fault = fmt.Errorf("%w: %w", client.ErrConnection, fault)
	}
	return nil, s.failed("connect", fault)
}

// failed returns an error with the server's name in its operation; nil for nil.
func (s *server) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	named := client.Error{Op: op, Err: err}
	if own, ok := err.(*client.Error); ok { // one within another error keeps its place there
		named = *own
		if named.Op == "" {
			named.Op = op
		}
	}
	named.Op = fmt.Sprintf("server %q: %s", s.name, named.Op)
	return &named
}

// notification returns a notification as users of the group get it: the URI of
// an updated resource has the prefix.
func (s *server) notification(n client.Notification) client.Notification {
	var params map[string]json.RawMessage
	var uri string
	if n.Method != protocol.MethodResourceUpdated || jsonx.Unmarshal(n.Params, &params) != nil || jsonx.Unmarshal(params["uri"], &uri) != nil {
		return n // an unknown notification is passed on unchanged
	}
	var err error
	if params["uri"], err = json.Marshal(s.prefix(uris) + uri); err != nil {
		return n
	}
	if text, err := json.Marshal(params); err == nil {
		n.Params = text
	}
	return n
}

// content returns content whose URIs have the prefix, so that they can be read
// through the group.
func (s *server) content(item protocol.Content) protocol.Content {
	switch item := item.(type) {
	case protocol.ResourceLink:
		item.URI = s.prefix(uris) + item.URI
		return item
	case protocol.EmbeddedResource:
		item.Resource.URI = s.prefix(uris) + item.Resource.URI
		return item
	}
	return item
}
