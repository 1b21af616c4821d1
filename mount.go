package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// Mount offers what child offers, too: its tools and prompts with prefix and a
// dot before their names, as in "weather.forecast", its resources and
// templates by their own URIs. An empty prefix leaves names as they are. What
// child gets or loses later comes and goes here as well, and who subscribes to
// a resource here hears of child's ResourceUpdated.
//
// Each call of something of child's passes the middleware of s first, and then
// that of child, which sees the name without prefix; child's filter, masking of
// errors and time limits hold. All else is that of s: the handshake, sessions,
// tasks and limits. Custom methods and the handling of notifications and events
// stay child's own. child may serve by itself at the same time, and be mounted
// into several servers.
//
// A name that is taken or too long, or a circle of mounts, is an error, and
// nothing is mounted then. If such a name comes later, s goes without it and
// logs the error. Unmount takes everything back.
func (s *Server) Mount(prefix string, child *Server) error {
	if child == nil {
		return fmt.Errorf("mcp: mount %q: the server is nil", prefix)
	}
	if prefix != "" && !validName(prefix) {
		return fmt.Errorf("mcp: mount %q: a prefix has 1 to 128 letters, digits, '_', '-' or '.', or is empty", prefix)
	}
	if prefix != "" {
		prefix += "."
	}
	child.family.join(s)
	if s == child || s.descends(child) {
		child.family.leave(s)
		return fmt.Errorf("mcp: mount %q: the server would offer what it offers itself; mount in one direction only", prefix)
	}
	m := newMount(s, child, prefix)
	if err := m.start(); err != nil {
		child.family.leave(s)
		return fmt.Errorf("mcp: mount %q: %w", strings.TrimSuffix(prefix, "."), err)
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	s.mounts = append(s.mounts, m)
	return nil
}

// family are the servers that a server is mounted into.
type family struct {
	mu   sync.Mutex
	over []*Server // once for each mount
}

func (f *family) join(parent *Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = append(slices.Clip(f.over), parent)
}

func (f *family) leave(parent *Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.Index(f.over, parent)
	f.over = slices.Delete(slices.Clone(f.over), at, at+1)
}

// parents returns each of them once.
func (f *family) parents() []*Server {
	f.mu.Lock()
	defer f.mu.Unlock()
	var once []*Server
	for _, p := range f.over {
		if !slices.Contains(once, p) {
			once = append(once, p)
		}
	}
	return once
}

// descends tells whether s is mounted, over any number of others, into
// ancestor. It ends in a circle, too: two Mounts at once may make one before
// both of them find it.
func (s *Server) descends(ancestor *Server) bool {
	seen := map[*Server]bool{}
	var up func(*Server) bool
	up = func(x *Server) bool {
		for _, p := range x.family.parents() {
			if p == ancestor {
				return true
			}
			if !seen[p] {
				seen[p] = true
				if up(p) {
					return true
				}
			}
		}
		return false
	}
	return up(s)
}

type hostKey struct{} // of the server that serves a request for those mounted into it

// host returns the server whose request f is: s, or the one that s is mounted
// into.
func (s *Server) host(f *frame.Frame) *Server {
	if host, ok := f.Value(hostKey{}).(*Server); ok {
		return host
	}
	return s
}

// mount keeps what a server offers for another in step with it.
type mount struct {
	parent, child *Server
	prefix        string

	mu        sync.Mutex // serialises syncs
	ended     bool
	stop      []func() // ends the watching of the child
	tools     branch[*registry.Tool]
	resources branch[*registry.Resource]
	templates branch[*registry.ResourceTemplate]
	prompts   branch[*registry.Prompt]
}

func newMount(parent, child *Server, prefix string) *mount {
	m := &mount{parent: parent, child: child, prefix: prefix}
	m.tools = branch[*registry.Tool]{from: child.tools, to: parent.tools, graft: m.tool, named: true}
	m.resources = branch[*registry.Resource]{from: child.resources, to: parent.resources, graft: m.resource}
	m.templates = branch[*registry.ResourceTemplate]{from: child.templates, to: parent.templates, graft: m.template}
	m.prompts = branch[*registry.Prompt]{from: child.prompts, to: parent.prompts, graft: m.prompt, named: true}
	return m
}

// start mounts all or nothing.
func (m *mount) start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	// What changes from here on waits for m.mu.
	m.stop = []func(){
		m.child.tools.Watch(m.follow), m.child.resources.Watch(m.follow),
		m.child.templates.Watch(m.follow), m.child.prompts.Watch(m.follow),
	}
	if faults := m.sync(true); faults != nil {
		m.unwatch()
		return errors.Join(faults...)
	}
	return nil
}

// follow does what the child has done.
func (m *mount) follow() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return
	}
	for _, fault := range m.sync(false) {
		safely.Log(m.parent.logger.Error().Err(fault).Str("prefix", m.prefix), "something mounted was left out")
	}
}

// sync brings the parent up to date. It returns what cannot be offered; with
// strict, nothing is then. m.mu is held.
func (m *mount) sync(strict bool) (faults []error) {
	m.parent.adding.Lock()
	defer m.parent.adding.Unlock()
	faults = slices.Concat(m.tools.plan(), m.resources.plan(), m.templates.plan(), m.prompts.plan())
	if strict && faults != nil {
		return faults
	}
	m.parent.declare(&offer{tools: m.tools.added, resources: m.resources.added, templates: m.templates.added, prompts: m.prompts.added})
	for _, err := range []error{m.tools.apply(), m.resources.apply(), m.templates.apply(), m.prompts.apply()} {
		if err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}

// branch is the mount of one list.
type branch[E interface {
	comparable
	registry.Entry
}] struct {
	from, to *registry.List[E]
	graft    func(E) E
	named    bool                 // whether keys are names, which have a greatest length
	here     map[string]source[E] // what is mounted, by its key in to

	removed []string // what plan has found
	added   []E
	next    map[string]source[E]
}

// source is where something mounted comes from.
type source[E any] struct{ from, grafted E }

// plan finds what has to come and go. It returns what cannot come.
func (b *branch[E]) plan() (faults []error) {
	b.removed, b.added, b.next = nil, nil, make(map[string]source[E])
	for _, e := range b.from.All() {
		grafted := b.graft(e)
		key := grafted.Key()
		if old, ok := b.here[key]; ok && old.from == e {
			b.next[key] = old
			continue
		}
		_, taken := b.to.Get(key)
		_, ours := b.here[key]
		switch {
		case b.named && !validName(key):
			faults = append(faults, fmt.Errorf("%q is too long with its prefix: a name has 128 characters at most", key))
		case taken && !ours:
			faults = append(faults, fmt.Errorf("%q is registered already; choose another prefix, or remove that one first", key))
		default:
			b.added = append(b.added, grafted)
			b.next[key] = source[E]{e, grafted}
		}
	}
	for key, old := range b.here {
		if b.next[key] != old {
			b.removed = append(b.removed, key)
		}
	}
	return faults
}

// apply does what plan has found.
func (b *branch[E]) apply() error {
	err := b.to.Update(b.removed, b.added...)
	if err == nil {
		b.here = b.next
	}
	b.removed, b.added, b.next = nil, nil, nil
	return err
}

// handler serves a request for something of the child's, which the child knows
// by name; "" means as the client does.
func (m *mount) handler(name string, h dispatch.Handler) dispatch.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		if _, nested := f.Value(hostKey{}).(*Server); !nested {
			f = f.WithContext(context.WithValue(f, hostKey{}, m.parent))
		}
		result, err := m.child.dispatch().Via(m.as(f, name), h)
		return result, m.mask(err)
	}
}

// mask keeps the text of ordinary errors to the child, if it masks its own.
func (m *mount) mask(err error) error {
	if err == nil || !m.child.opts.MaskErrors || errors.Is(err, frame.ErrInputRequired) || errors.Is(err, ErrNotFound) {
		return err
	}
	if _, ok := errors.AsType[*protocol.Error](err); ok {
		return err
	}
	if _, ok := errors.AsType[*inputError](err); ok {
		return err
	}
	return &protocol.Error{Code: protocol.CodeInternal, Err: err}
}

func (m *mount) as(f *frame.Frame, name string) *frame.Frame {
	if name == "" || m.prefix == "" {
		return f
	}
	return f.Renamed(name)
}

// visible returns the rule of the child for something of its own; nil if there
// is none.
func (m *mount) visible(kind Kind, name string, e registry.Restricted) func(f *frame.Frame) bool {
	if m.child.opts.Filter == nil && !e.Restricted() {
		return nil
	}
	return func(f *frame.Frame) bool { return m.child.shows(m.as(f, name), kind, e) }
}

func (m *mount) tool(t *registry.Tool) *registry.Tool {
	name := t.Definition.Name
	grafted := *t
	grafted.Definition.Name = m.prefix + name
	grafted.Call = m.handler(name, t.Call)
	grafted.Visible = m.visible(KindTool, name, t)
	return &grafted
}

func (m *mount) prompt(p *registry.Prompt) *registry.Prompt {
	name := p.Definition.Name
	grafted := *p
	grafted.Definition.Name = m.prefix + name
	grafted.Get = m.handler(name, p.Get)
	grafted.Completers = m.completers(p.Completers)
	grafted.Visible = m.visible(KindPrompt, name, p)
	return &grafted
}

func (m *mount) resource(r *registry.Resource) *registry.Resource {
	grafted := *r
	grafted.Read = m.handler("", r.Read)
	grafted.Visible = m.visible(KindResource, "", r)
	return &grafted
}

func (m *mount) template(t *registry.ResourceTemplate) *registry.ResourceTemplate {
	grafted := *t
	grafted.Match = func(uri string) func(f *frame.Frame) (protocol.Result, error) {
		read := t.Match(uri)
		if read == nil {
			return nil
		}
		return m.handler("", read)
	}
	grafted.Completers = m.completers(t.Completers)
	grafted.Visible = m.visible(KindTemplate, "", t)
	return &grafted
}

func (m *mount) completers(all map[string]registry.Completer) map[string]registry.Completer {
	grafted := make(map[string]registry.Completer, len(all))
	for argument, c := range all {
		grafted[argument] = func(f *frame.Frame, value string, arguments map[string]string) (found protocol.Completion, err error) {
			_, err = m.handler("", func(f *frame.Frame) (protocol.Result, error) {
				var err error
				found, err = c(f, value, arguments)
				return protocol.EmptyResult{}, err
			})(f)
			return found, err
		}
	}
	return grafted
}
