// Package registry holds what a server offers: its tools, resources, resource
// templates and prompts, and the pages in which clients list them. Package mcp
// makes the entries from users' functions and serves the methods; this package
// finds the entry that a request names, decides who may see it, and encodes the
// lists. Programs that serve lists of their own, by methods of their own, can use
// it as it is; a server made with mcp.NewServer needs no more of it than Kind,
// which mcp has, too.
//
//   - [Entry] is one component: its definition, its functions, and the rules of
//     visibility. It does not change.
//   - [Catalog] is the ordered set of entries of a server. Package mcp has one
//     for the server and a small one for each legacy session to which a handler
//     has added components. One Catalog can be mounted in another, under a
//     prefix: see mcp.Server.Mount.
//   - [View] is what the client of one request may see of both.
//
// Readers work on snapshots that never change: a snapshot is one map of lists,
// reached through an atomic pointer, so that finding an entry takes no lock.
// Every change makes new lists for the kinds that it touches and replaces the
// map; changes wait for each other. What costs time, the encoded pages, is made
// when it is first asked for and kept with its list, whose own lock guards it.
// It is dropped with the list when that is replaced.
//
// The callbacks of users, which are Config.Filter, Entry.Visible and the
// MarshalJSON of metadata, may panic or be slow. The first two run without any
// lock; an entry is encoded under the lock for changes when it is added, and a
// panic then leaves the Catalog as it was.
//
// Specification: server/tools, server/resources and server/prompts of every
// revision, server/utilities/pagination, and server/utilities/caching of
// 2026-07-28.
package registry

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Config has the encoding and the cache settings of the pages of a Catalog.
type Config struct {
	PageSize int            // entries per page; 0 means 1,000
	Cache    protocol.Cache // hints for revisions that have them
	Meta     []byte         // of every page in those revisions: the members of _meta, as JSON without the braces
	// Delivery are the ways in which clients receive events here, of event types that come
	// by a mount; nil leaves theirs.
	Delivery []string
	// Filter reports whether a component is there for the client of f, besides
	// Entry.Visible; nil lets all pass.
	Filter func(f *frame.Frame, kind Kind, key string) bool
	// Coming is called with components that are about to be added, before any
	// request can find them; it may be nil. It runs with the Catalog locked for
	// changes and must not use it.
	Coming func(entries []*Entry)
}

// defaultPageSize is used if Config.PageSize is 0.
const defaultPageSize = 1000

// Catalog is an ordered set of components of every kind, sorted by key. It is
// safe for concurrent use. A client sees a View of it.
type Catalog struct {
	config  Config
	current atomic.Pointer[map[Kind]*list] // never changed; replaced with mu held

	mu       sync.Mutex // serialises changes; no watcher runs with it
	watchers map[int]func(changed []*Entry)
	lastID   int // of a watcher, or of a mount into this Catalog
}

// New returns an empty Catalog.
func New(config Config) *Catalog {
	if config.PageSize <= 0 {
		config.PageSize = defaultPageSize
	}
	if config.Cache.TTL <= 0 {
		config.Cache.Public = true // they are not cached
	}
	c := &Catalog{config: config, watchers: make(map[int]func([]*Entry))}
	lists := make(map[Kind]*list, len(kinds))
	for _, kind := range kinds {
		lists[kind] = newList(&c.config, kind, nil)
	}
	c.current.Store(&lists)
	return c
}

// list returns the components of a kind in the current snapshot, never nil. A
// kind without components has an empty list. Two calls may see two snapshots: a
// caller that needs both the entries and their index keeps the first result.
func (c *Catalog) list(kind Kind) *list {
	if l := (*c.current.Load())[kind]; l != nil {
		return l
	}
	return newList(&c.config, kind, nil)
}

// get finds a component, ignoring visibility. Resources are found in lists or
// not.
func (c *Catalog) get(kind Kind, key string) (*Entry, bool) {
	kind = kind.names()
	e, ok := c.list(kind).get(key)
	if !ok && kind == KindResource {
		e, ok = c.list(kindUnlisted).get(key)
	}
	return e, ok
}

// View returns what there is for the client of f, whose session has own
// besides; nil means nothing. It is made for one request.
func (c *Catalog) View(f *frame.Frame, own *Catalog) View { return View{f, c, own} }

// shows reports whether e is there for the client of f, by the rule of e and
// then by the filter of c. It runs users' code and must be called without a
// lock. f is nil only where there is no rule to ask.
func (c *Catalog) shows(f *frame.Frame, e *Entry) bool {
	if e.Visible != nil && !e.Visible(f) {
		return false
	}
	kind, key := e.place()
	if e.Root != "" {
		kind, key = KindResource, e.Root
	}
	return c.config.Filter == nil || kind == kindExtension || c.config.Filter(f, kind, key)
}

// has reports whether e is in the Catalog. It compares identity: an entry that
// was removed and added again with the same key is a different one.
func (c *Catalog) has(e *Entry) bool {
	there, _ := c.get(e.place())
	return there == e
}

// Add adds components, all or none. A key that is taken, or there twice, is an
// error that names it; so is a component that does not encode.
func (c *Catalog) Add(entries ...*Entry) error {
	return c.change(func() (set, []*Entry, error) { return nil, entries, c.check(entries, nil) })
}

// Remove removes components of a kind, and returns how many there were. Removing
// the root resource of others, such as the SKILL.md of a skill, removes those as
// well; they cannot be removed separately.
func (c *Catalog) Remove(kind Kind, keys ...string) int {
	named, gone := set{}, set{}
	// The error is the callback's, and this one has none.
	_ = c.change(func() (set, []*Entry, error) {
		for _, key := range keys {
			e, ok := c.list(kind).get(key)
			switch {
			case !ok || e.Root != "" && e.Root != key:
			case e.Root != "":
				named[e] = true
				c.below(e.Root, gone)
			default:
				named[e], gone[e] = true, true
			}
		}
		return gone, nil, nil
	})
	return len(named)
}

// below adds to found all components that root stands for, itself too.
func (c *Catalog) below(root string, found set) {
	for _, kind := range kinds {
		for _, e := range c.list(kind).entries {
			if e.Root == root {
				found[e] = true
			}
		}
	}
}

// Internal returns what other packages of this module need of a Catalog and
// users do not. Only those can call it.
func (c *Catalog) Internal(facts.Private) internals { return internals{c} }

// internals is a Catalog with the methods that are for packages of this module.
type internals struct{ *Catalog }

// Check returns the error that Add would return now.
func (c internals) Check(entries ...*Entry) error { return c.check(entries, nil) }

// Replace removes gone, of which some may be gone already, and adds come, all or none, as
// one change. An error is that of Add.
func (c internals) Replace(gone, come []*Entry) error {
	return c.change(func() (set, []*Entry, error) {
		leave := set{}
		for _, e := range gone {
			if c.has(e) {
				leave[e] = true
			}
		}
		return leave, come, c.check(come, leave)
	})
}

// Digest returns a digest of the lists of those kinds, ignoring visibility: two
// Catalogs with the same one offer the same. Components may run users' code.
func (c internals) Digest(kinds ...Kind) (string, error) {
	var all []byte
	for _, kind := range kinds {
		sum, err := c.list(kind).sum()
		if err != nil {
			return "", err
		}
		all = append(all, sum...)
	}
	sum := sha256.Sum256(all)
	return base64.RawURLEncoding.EncodeToString(sum[:12]), nil
}

// Get finds a component, ignoring visibility.
func (c internals) Get(kind Kind, key string) (*Entry, bool) { return c.get(kind, key) }

// Extensions returns the settings of the extensions that are declared, by their
// identifiers; nil if there are none. An extension of several mounts has the same
// settings, which clash has seen to. The map is the caller's.
func (c internals) Extensions() map[string]any {
	entries := c.list(kindExtension).entries
	if len(entries) == 0 {
		return nil
	}
	all := make(map[string]any, len(entries))
	for _, e := range entries {
		d := e.Definition.(*wire.Extension)
		all[d.ID] = d.Settings
	}
	return all
}

// Watch calls fn after every change, on the goroutine that made it, with what has
// come or gone, until stop is called. Watchers are called in their order. fn must
// return at once.
//
// The new snapshot is in place then, and no lock of the Catalog held. Two changes
// on two goroutines may thus be reported in either order; the Catalog has the
// final state.
func (c internals) Watch(fn func(changed []*Entry)) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastID++
	id := c.lastID
	c.watchers[id] = fn
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, id)
	}
}

// set is a set of components.
type set map[*Entry]bool

// check returns why entries cannot come when gone has gone: keys that are taken,
// there twice among entries, or of components that do not encode. It lists every
// fault, by kind, so that who adds many sees all at once. Encoding for the
// newest revision is enough of a test, because older ones get less.
func (c *Catalog) check(entries []*Entry, gone set) error {
	faults := map[Kind][]string{}
	taken := map[Kind]map[string]bool{}
	for _, e := range entries {
		kind, key := e.place()
		kind = kind.names()
		if old, ok := c.get(kind, key); ok && !gone[old] || taken[kind][key] {
			faults[kind] = append(faults[kind], fmt.Sprintf("%q is registered already; choose another name, or remove that one first", key))
		} else if err := c.clash(e, entries, gone); err != nil {
			faults[kind] = append(faults[kind], err.Error())
		}
		if taken[kind] == nil {
			taken[kind] = map[string]bool{}
		}
		taken[kind][key] = true
		if _, err := e.define(protocol.Latest, true); err != nil {
			faults[kind] = append(faults[kind], fmt.Sprintf("%q: %v", key, err))
		}
	}
	var all []error
	for _, kind := range append(kinds[:], "") {
		if faults[kind] != nil {
			all = append(all, fmt.Errorf("%s: %s", plural(kind), strings.Join(faults[kind], "; ")))
		}
	}
	return errors.Join(all...)
}

// clash returns why e cannot be there next to what is when gone has gone, or next
// to the others that come: an extension with other settings, or a skill within
// another one, whose list of files would have to name it.
func (c *Catalog) clash(e *Entry, come []*Entry, gone set) error {
	kind := e.Kind()
	if kind != kindExtension && (kind != kindSkill || e.Root != e.Key()) {
		return nil
	}
	for _, other := range slices.Concat(c.list(kind).entries, come) {
		if other == e || gone[other] || other.Kind() != kind {
			continue
		}
		switch d := e.Definition.(type) {
		case *wire.Extension:
			if there := other.Definition.(*wire.Extension); there.ID == d.ID && string(there.Settings) != string(d.Settings) {
				return fmt.Errorf("%q is declared with the settings %s already, and not with %s; a client receives one", d.ID, there.Settings, d.Settings)
			}
		case *wire.Skill:
			if other.Root != other.Key() {
				continue
			}
			outer, inner := strings.TrimSuffix(d.URI, "SKILL.md"), other.Key()
			if !strings.HasPrefix(inner, outer) {
				outer, inner = strings.TrimSuffix(inner, "SKILL.md"), d.URI
			}
			if strings.HasPrefix(inner, outer) && inner != outer+"SKILL.md" {
				return fmt.Errorf("%q is inside of another skill, %sSKILL.md, which has to list its files: serve both from one directory", inner, outer)
			}
		}
	}
	return nil
}

// change does what plan returns, and calls the watchers if anything is new. plan
// runs with c.mu held, so that what it finds is what it changes; it may read c,
// and must neither change it nor wait for a change. An error of plan is returned
// and changes nothing.
func (c *Catalog) change(plan func() (gone set, come []*Entry, err error)) error {
	changed, watchers, err := c.replace(plan)
	for _, tell := range watchers {
		tell(changed)
	}
	return err
}

// replace makes a new snapshot and returns the calls of the watchers: none if
// nothing has changed. A plan that panics, because an entry does, leaves the
// Catalog as it was, too.
func (c *Catalog) replace(plan func() (gone set, come []*Entry, err error)) (changed []*Entry, watchers []func([]*Entry), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gone, come, err := plan()
	if err != nil || len(gone)+len(come) == 0 {
		return nil, nil, err
	}
	added := map[Kind][]*Entry{} // of the kinds that change
	for e := range gone {
		added[e.Kind()] = nil
		changed = append(changed, e)
	}
	for _, e := range come {
		added[e.Kind()] = append(added[e.Kind()], e)
	}
	next := maps.Clone(*c.current.Load())
	if _, ok := added[KindResource]; ok && next[KindTool].views {
		changed = append(changed, showing(next[KindTool].entries, slices.Concat(changed, come))...)
		added[KindTool] = added[KindTool][:len(added[KindTool]):len(added[KindTool])] // a new list, without the pages of this one
	}
	for kind, more := range added {
		left := slices.DeleteFunc(slices.Clone(next[kind].entries), func(e *Entry) bool { return gone[e] })
		next[kind] = newList(&c.config, kind, sorted(append(left, more...)))
	}
	if c.config.Coming != nil && len(come) > 0 {
		c.config.Coming(come)
	}
	c.current.Store(&next)
	for _, id := range slices.Sorted(maps.Keys(c.watchers)) {
		watchers = append(watchers, c.watchers[id])
	}
	return append(changed, come...), watchers, nil
}

// showing returns the tools whose view is in changed: their description in lists
// has changed.
func showing(tools, changed []*Entry) (found []*Entry) {
	for _, tool := range tools {
		if tool.View != "" && slices.ContainsFunc(changed, func(e *Entry) bool { return e.IsView() && e.Key() == tool.View }) {
			found = append(found, tool)
		}
	}
	return found
}

// sorted sorts entries by key, in place, and returns them. No two have the same
// key.
func sorted(entries []*Entry) []*Entry {
	slices.SortStableFunc(entries, func(a, b *Entry) int { return strings.Compare(a.Key(), b.Key()) })
	return entries
}
