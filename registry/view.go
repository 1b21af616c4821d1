package registry

import (
	"slices"
	"strings"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// View is what there is for the client of one request: the components of a
// Catalog, and those that its session has of its own, which come before others
// of the same key, without those that are not for it.
//
// It is a value without state, made for one request and used on its goroutine.
// Each method reads the snapshot of its moment: between two calls the Catalog
// may change. Methods that say nothing else ask the rules of visibility, users'
// code, and must be called without locks.
type View struct {
	f            *frame.Frame
	catalog, own *Catalog // own may be nil
}

// Get finds a component.
func (v View) Get(kind Kind, key string) (*Entry, bool) {
	e, ok := v.find(kind, key)
	if !ok || !v.shows(e) {
		return nil, false
	}
	return e, true
}

// find is Get, ignoring visibility. Components of the session come first:
// mcp.Server.AddToSession refuses names that the server has, but the server may get one
// later.
func (v View) find(kind Kind, key string) (e *Entry, ok bool) {
	if v.own != nil {
		e, ok = v.own.get(kind, key)
	}
	if !ok {
		e, ok = v.catalog.get(kind, key)
	}
	return e, ok
}

// all returns the components of a kind, sorted by key. The caller must not change
// it.
func (v View) all(kind Kind) []*Entry {
	whole := v.whole(kind)
	if v.catalog.config.Filter == nil && !whole.restricted {
		return whole.entries
	}
	var kept []*Entry
	for _, e := range whole.entries {
		if v.shows(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

// whole returns the components of a kind, ignoring visibility. With components
// of the session it is a list for this one call, without index, of which nothing
// is kept.
func (v View) whole(kind Kind) *list {
	shared := v.catalog.list(kind)
	if v.own == nil || len(v.own.list(kind).entries) == 0 {
		return shared
	}
	own := v.own.list(kind)
	all := slices.Clone(own.entries)
	for _, e := range shared.entries {
		if _, shadowed := own.get(e.Key()); !shadowed {
			all = append(all, e)
		}
	}
	return &list{
		config: shared.config, member: shared.member, entries: sorted(all), pages: map[pageKey]keptPage{},
		finder: shared.finder, listed: shared.listed,
		restricted: shared.restricted || own.restricted, scoped: shared.scoped || own.scoped, views: shared.views || own.views,
	}
}

// shows reports whether e is there for the client. The filter is that of the
// server for the session's own components, too.
func (v View) shows(e *Entry) bool { return v.catalog.shows(v.f, e) }

// offers reports whether lists have e for the client.
func (v View) offers(e *Entry) bool { return v.shows(e) && v.f.HasScope(e.Scopes...) }

// Page returns the result of listing a kind that starts after cursor, a JSON
// string that an earlier page gave, or nil for the first page. What the client
// lacks the scopes for is left out. The bytes are shared and must not be
// changed; pages that are not the same for all clients are not kept, and say
// so. A cursor that is not one is a protocol error, -32602.
func (v View) Page(kind Kind, cursor []byte) (protocol.RawResult, error) {
	whole := v.whole(kind)
	var viewed func(*Entry) bool
	if whole.views {
		viewed = v.viewed()
	}
	if v.uniform(whole) {
		return whole.page(cursor, v.f.Revision(), viewed)
	}
	start, err := whole.start(cursor)
	if err != nil {
		return nil, err
	}
	brief := whole.finder != nil && v.offers(whole.finder)
	page, _, err := whole.encode(start, v.f.Revision(), v.f, func(e *Entry) bool { return (!brief || whole.listed[e.Key()]) && v.offers(e) }, viewed)
	return page, err
}

// uniform reports whether a list is the same for every client: all of it is there for
// all clients, and so are the views of tools, which it names.
func (v View) uniform(l *list) bool {
	if v.catalog.config.Filter != nil || l.restricted || l.scoped || l.finder != nil {
		return false
	}
	if !l.views {
		return true
	}
	resources := v.whole(KindResource)
	return !resources.restricted && !resources.scoped
}

// viewed returns what reports whether the view of a tool is there for the client. It
// has to come from where the tool does: at its URI there could be that of another
// server. Tools of one view often stand together, and it is searched once then.
func (v View) viewed() func(tool *Entry) bool {
	var last *Entry
	there := false
	return func(tool *Entry) bool {
		if last == nil || last.View != tool.View || last.from != tool.from {
			e, ok := v.Get(KindResource, tool.View)
			last, there = tool, ok && e.IsView() && e.from == tool.from && v.f.HasScope(e.Scopes...)
		}
		return there
	}
}

// Internal returns what other packages of this module need of a View and users
// do not. Only those can call it.
func (v View) Internal(facts.Private) viewInternals { return viewInternals{v} }

// viewInternals is a View with the methods that are for packages of this module.
type viewInternals struct{ View }

// Open reports whether all components of these kinds are visible to all
// clients, with any scopes. It calls no rule, so the View may have no Frame.
func (v viewInternals) Open(kinds ...Kind) bool {
	for _, kind := range kinds {
		for _, c := range []*Catalog{v.catalog, v.own} {
			if c != nil && (c.config.Filter != nil || c.list(kind).restricted || c.list(kind).scoped) {
				return false
			}
		}
	}
	return true
}

// Offered returns what Page lists, of all pages. A View without a Frame offers
// everything, ignoring visibility. The caller must not change the list.
func (v viewInternals) Offered(kind Kind) (kept []*Entry) {
	if v.f == nil {
		return v.whole(kind).entries
	}
	for _, e := range v.all(kind) {
		if v.f.HasScope(e.Scopes...) {
			kept = append(kept, e)
		}
	}
	return kept
}

// Through is Offered for what comes from a catalog that is mounted under prefix, over
// any number of others, with the names that it has there, and for what the session has
// of its own.
func (v viewInternals) Through(from *Catalog, kind Kind, prefix string) (kept []*Entry) {
	offered := func(e, as *Entry) {
		if v.shows(as) && v.f.HasScope(as.Scopes...) {
			kept = append(kept, e)
		}
	}
	for _, e := range from.list(kind).entries {
		if as, ok := v.find(kind, under(kind, prefix, e.Key())); ok && as.copies(e) {
			offered(e, as)
		}
	}
	if v.own != nil {
		for _, e := range v.own.list(kind).entries {
			if _, shadowed := from.get(kind, e.Key()); !shadowed {
				offered(e, e)
			}
		}
	}
	return sorted(kept)
}

// NameOf returns the name of what Through calls key. ok is false if that is the name of
// something else. Whether the client may see it is not asked.
func (v viewInternals) NameOf(from *Catalog, kind Kind, key, prefix string) (name string, ok bool) {
	name = under(kind, prefix, key)
	as, found := v.find(kind, name)
	if e, known := from.get(kind, key); known && found && as.copies(e) {
		return name, true
	}
	if v.own != nil {
		if _, own := v.own.get(kind, key); own {
			return key, true
		}
	}
	return name, !found
}

// under returns the key of what is mounted under prefix: resources and templates keep
// their URIs.
func under(kind Kind, prefix, key string) string {
	if kind.prefixed() {
		return prefix + key
	}
	return key
}

// Skills is Page for skills.
func (v viewInternals) Skills(cursor []byte) (protocol.RawResult, error) {
	return v.Page(kindSkill, cursor)
}

// Skill finds the skill whose SKILL.md is at uri.
func (v viewInternals) Skill(uri string) (*Entry, bool) { return v.Get(kindSkill, uri) }

// Directory finds the component that has directories, of which one may be at uri:
// the outermost skill around it. It asks for a skill at each part of the path, from
// the left, so that it takes no longer with many skills; who cannot see the
// outermost one sees no directory below it.
func (v viewInternals) Directory(uri string) (*Entry, bool) {
	if len(uri) > wire.MaxURI {
		return nil, false // whatever its path, it is not looked for part by part
	}
	_, path, _ := strings.Cut(uri, "://")
	for at := range len(path) + 1 {
		if at < len(path) && path[at] != '/' {
			continue
		}
		if e, ok := v.find(kindSkill, uri[:len(uri)-len(path)+at]+"/SKILL.md"); ok && e.Directory != nil {
			if !v.shows(e) {
				return nil, false
			}
			return e, true
		}
	}
	return nil, false
}

// Private reports whether only some clients may see e.
func (v viewInternals) Private(e *Entry) bool {
	return v.catalog.config.Filter != nil || e.Visible != nil
}

// match is a template that a URI fits, and what reads it there.
type match struct {
	*Entry
	Read frame.Handler
}

// Fits returns the templates that uri fits, the closest one first.
func (v viewInternals) Fits(uri string) (found []match) {
	for _, t := range v.all(KindTemplate) {
		if read := t.Match(uri); read != nil {
			found = append(found, match{t, read})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return b.Literals - a.Literals })
	return found
}

// Scopes returns the scopes that reading uri needs: those of the resource, or of
// the template that fits it most closely. Others are asked after that one only
// if they need no more, so that this is known before anything runs.
func (v viewInternals) Scopes(uri string) []string {
	if r, ok := v.Get(KindResource, uri); ok {
		return r.Scopes
	}
	if !v.whole(KindTemplate).scoped {
		return nil
	}
	if fits := v.Fits(uri); len(fits) > 0 {
		return fits[0].Scopes
	}
	return nil
}

// Hides reports whether the client must not learn that there is something at
// uri.
func (v viewInternals) Hides(uri string) bool {
	resource, hidden := v.find(KindResource, uri)
	if hidden && v.shows(resource) {
		return false
	}
	templates := v.whole(KindTemplate)
	if !hidden && v.catalog.config.Filter == nil && !templates.restricted {
		return false
	}
	for _, t := range templates.entries {
		if t.Match(uri) == nil {
			continue
		}
		if v.shows(t) {
			return false
		}
		hidden = true
	}
	return hidden
}
