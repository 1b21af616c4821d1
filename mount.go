package mcp

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/tooling/hostrules"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/scale"
)

// mountSeparator separates the prefix of a mount from a name. It is not a
// dot, because several hosts reject a dot in a name, or a whole server.
const mountSeparator = "_"

// mount is one server within another. It is known to the child's mounts from the
// time when Mount begins, and done when everything is in the catalog of parent.
// There is no other state: one that is taken back is forgotten.
type mount struct {
	parent, child *Server
	prefix        string // with its separator; "" has none
	unmount       func() // nil until the mount is done; guarded by mounts.mu
}

// sameStore reports whether two servers have one store.
func sameStore(one, other scale.Store) bool {
	return one != nil && other != nil && reflect.ValueOf(one).Comparable() && reflect.ValueOf(other).Comparable() && one == other
}

// mounts are those of one server into others, one for each Mount that has not
// been taken back. No two locks of mounts are held at a time, and none while a
// catalog changes.
type mounts struct {
	mu  sync.Mutex
	all []*mount
}

// join adds one that is not done yet: of two Mounts at once that make a circle,
// at least one finds it then.
func (m *mounts) join(one *mount) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, one)
}

// done marks one as done, and keeps how to take it back.
func (m *mounts) done(one *mount, unmount func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one.unmount = unmount
}

// take removes and returns the mount under prefix into parent that is done; nil
// if there is none. One that is not done yet is not found, so that two Unmounts
// cannot take back the same one, nor one that Mount still works on.
func (m *mounts) take(parent *Server, prefix string) *mount {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.IndexFunc(m.all, func(one *mount) bool {
		return one.parent == parent && one.prefix == prefix && one.unmount != nil
	})
	if at < 0 {
		return nil
	}
	one := m.all[at]
	m.all = slices.Delete(m.all, at, at+1)
	return one
}

// into returns the mounts that are done.
func (m *mounts) into() (done []*mount) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.all {
		if one.unmount != nil {
			done = append(done, one)
		}
	}
	return done
}

// leave removes one that could not be done.
func (m *mounts) leave(one *mount) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.DeleteFunc(m.all, func(other *mount) bool { return other == one })
}

// parents returns each server that this one is mounted into, once.
func (m *mounts) parents() (once []*Server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.all {
		if !slices.Contains(once, one.parent) {
			once = append(once, one.parent)
		}
	}
	return once
}

// reaches reports whether ancestor is among the servers that this one is mounted
// into, over any number of others. It ends in a circle, too: two Mounts at once
// may make one before both of them find it.
func (m *mounts) reaches(ancestor *Server) bool {
	all := m.parents()
	for i := 0; i < len(all); i++ {
		if all[i] == ancestor {
			return true
		}
		for _, p := range all[i].mounts.parents() {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return false
}

// mountKey is the context key of the innermost mounted that a request is in.
type mountKey struct{}

// mounted is the context of a request for something of a mounted server. With several
// mounts, one in another, that of the outermost is around the others.
type mounted struct {
	context.Context
	mount *mount
	outer *mounted // nil for the outermost
}

// Value implements context.Context.
func (m *mounted) Value(key any) any {
	if _, ok := key.(mountKey); ok {
		return m
	}
	return m.Context.Value(key)
}

// mountedIn returns the innermost mounted server of f; nil if there is none.
func mountedIn(f *frame.Frame) *mounted {
	m, _ := f.Value(mountKey{}).(*mounted)
	return m
}

// outermost returns the server whose request f is: s, or the one that s is
// mounted into, over any number of others. The request runs by the dispatcher,
// and in the sessions and tasks, of that one.
func outermost(f *frame.Frame, s *Server) *Server {
	m := mountedIn(f)
	for ; m != nil; m = m.outer {
		s = m.mount.parent
	}
	return s
}

// within returns the server whose request f is, and the prefix that what s offers has
// there. ok is false if the request came to a server that has nothing to do with s.
func within(f *frame.Frame, s *Server) (host *Server, prefix string, ok bool) {
	if frame.Internal(facts.Private{}).Check(f, "") != nil {
		return s, "", false
	}
	host, ok = s, mountedIn(f) == nil
	for m := mountedIn(f); m != nil; m = m.outer {
		ok = ok || m.mount.child == s
		if ok {
			prefix = m.mount.prefix + prefix
		}
		host = m.mount.parent
	}
	if !ok {
		ok = host == s
	}
	return host, prefix, ok && frame.Internal(facts.Private{}).Server(f) == host.connections.Upcalls()
}

// handler serves a request for something of the child's with h, within what the
// child has around it: its middleware, by a chain of its dispatcher.
func (m *mount) handler(h frame.Handler) frame.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		f = f.WithContext(&mounted{f, m, mountedIn(f)})
		result, err := m.child.dispatch().Via(f, h)
		return result, m.mask(err)
	}
}

// mask keeps the text of ordinary errors to the child, if it masks its own: the
// parent, which makes the answer, may not. Errors that mean something to the
// parent pass: protocol errors, faults of arguments, ErrNotFound and
// ErrInputRequired.
func (m *mount) mask(err error) error {
	if err == nil || !m.child.opts.MaskErrors || errors.Is(err, wire.ErrInputRequired) || errors.Is(err, ErrNotFound) {
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

// leftOut logs the components of child that cannot be offered. It runs on the
// goroutine that added them to child, whose Add succeeds.
func (m *mount) leftOut(fault error) {
	safely.Log(m.parent.logger.Error().Err(fault).Str("prefix", m.prefix), "something mounted was left out")
}

// came logs what some host does not accept of the names that something mounted has
// by its prefix. Its other parts were checked when the child got it.
func (m *mount) came(entries []*registry.Entry) {
	if m.prefix == "" {
		return
	}
	for _, e := range entries {
		if tool, ok := e.Definition.(*protocol.Tool); ok {
			logFindings(&m.parent.logger, hostrules.Name(tool.Name))
		}
	}
}
