package registry

import (
	"slices"
	"strings"

	"github.com/talaria-go/mcp/protocol"
)

// View is a List with what one client has besides. The client's own components
// come before those of the same key in the List.
type View[E Entry] struct {
	list, own *List[E] // own is nil if the client has nothing of its own
	keep      func(E) bool
}

// Only returns the View of a client for whom nothing is there but what keep
// wants.
func (v View[E]) Only(keep func(E) bool) View[E] {
	v.keep = keep
	return v
}

// Restricted tells whether some component is not for everybody.
func (v View[E]) Restricted() bool {
	return v.list.Restricted() || v.own != nil && v.own.Restricted()
}

// Scoped tells whether some component needs scopes.
func (v View[E]) Scoped() bool {
	return v.list.Scoped() || v.own != nil && v.own.Scoped()
}

// With returns the View of a client that has own besides; nil means nothing.
func (l *List[E]) With(own *List[E]) View[E] {
	if own != nil && own.Len() == 0 {
		own = nil
	}
	return View[E]{list: l, own: own}
}

// Get finds a component.
func (v View[E]) Get(key string) (entry E, ok bool) {
	if v.own != nil {
		entry, ok = v.own.Get(key)
	}
	if !ok {
		entry, ok = v.list.Get(key)
	}
	if ok && v.keep != nil && !v.keep(entry) {
		var none E
		return none, false
	}
	return entry, ok
}

// All returns every component, sorted by key. The caller must not change it.
func (v View[E]) All() []E {
	if v.keep == nil {
		return v.whole()
	}
	var kept []E
	for _, e := range v.whole() {
		if v.keep(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

// whole is All with what keep does not want.
func (v View[E]) whole() []E {
	if v.own == nil {
		return v.list.All()
	}
	all := slices.Clone(v.own.All())
	for _, e := range v.list.All() {
		if _, shadowed := v.own.Get(e.Key()); !shadowed {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b E) int { return strings.Compare(a.Key(), b.Key()) })
	return all
}

// Page is List.Page for the View. Pages with components of the client's own, or
// without some that it must not see, are not kept, and are for it alone.
func (v View[E]) Page(cursor []byte, rev protocol.Revision) (protocol.RawResult, error) {
	s := v.list.current.Load()
	if v.own != nil {
		s = newSnapshot(&v.list.config, v.whole())
	}
	if v.keep == nil {
		return s.page(cursor, rev)
	}
	start, err := s.start(cursor)
	if err != nil {
		return nil, err
	}
	return s.encode(start, rev, v.keep)
}
