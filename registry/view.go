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
		if entry, ok = v.own.Get(key); ok {
			return entry, true
		}
	}
	return v.list.Get(key)
}

// All returns every component, sorted by key. The caller must not change it.
func (v View[E]) All() []E {
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

// Page is List.Page for the View. Pages with components of the client's own are
// not kept.
func (v View[E]) Page(cursor []byte, rev protocol.Revision) (protocol.RawResult, error) {
	if v.own == nil {
		return v.list.Page(cursor, rev)
	}
	return newSnapshot(&v.list.config, v.All()).page(cursor, rev)
}
