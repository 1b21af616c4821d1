package registry

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// maxName is how many characters the name of a tool, prompt or event type may have.
const maxName = 128

// Mount adds the components of from to c: tools, prompts and event types with prefix before
// their names, resources and templates by their own URIs. Components that from
// adds or removes later are added to or removed from c. Components that from's
// filter hides stay hidden. Requests pass the handler that wrap makes of that in
// from, with the name that from knows.
//
// A name that is taken or too long is an error, and nothing is mounted then. If
// such a name comes later, c leaves it out, and fault is called. came is called
// for every mounted component, when it is there. unmount takes everything back.
// from must not hold what c does, or neither would come to an end.
func (c internals) Mount(from *Catalog, prefix string, wrap func(frame.Handler) frame.Handler, fault func(error), came func([]*Entry)) (unmount func(), err error) {
	m := &mount{into: c.Catalog, from: from, prefix: prefix, name: c.nextMount(), wrap: wrap, here: map[*Entry]*Entry{}}
	come, err := m.begin(func([]*Entry) {
		come, faults := m.follow()
		for _, err := range faults {
			fault(err)
		}
		came(come)
	})
	if err != nil {
		return nil, err
	}
	came(come)
	return m.end, nil
}

// begin mounts what there is, or nothing with an error. What changes from then on
// calls watch.
func (m *mount) begin(watch func([]*Entry)) ([]*Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stop = internals{m.from}.Watch(watch) // follow waits for m.mu
	come, faults := m.sync(true)
	if faults != nil {
		m.stop()
		return nil, errors.Join(faults...)
	}
	return come, nil
}

// nextMount returns what tells the next mount into c from all others.
func (c *Catalog) nextMount() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastID++
	return fmt.Sprintf("#%d", c.lastID)
}

// mount keeps what a Catalog holds of another in step with it. It compares the
// two in place of following single changes: the notes of two changes may
// overtake each other, and a comparison that comes too often finds nothing to
// do.
//
// mu is taken before the lock of either Catalog, never after: watchers run
// without that. The watchers of into run with mu held. In a chain of mounts each
// level is thus changed by the level below, on the goroutine that changed the
// lowest.
type mount struct {
	into, from *Catalog
	prefix     string
	name       string // unlike that of any other mount into the Catalog
	wrap       func(frame.Handler) frame.Handler

	mu    sync.Mutex // serialises syncs
	ended bool
	stop  func()            // ends the watching
	here  map[*Entry]*Entry // what is mounted, by the original
}

// follow does what from has done. It is the watcher of from, and may still be
// called once after end, by a change that is being reported: it does nothing
// then.
func (m *mount) follow() (come []*Entry, faults []error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return nil, nil
	}
	return m.sync(false)
}

// sync brings the Catalog up to date, and returns what is new there and what cannot
// be there; with strict, nothing new is then. m.mu is held.
//
// Entries that are mounted already keep their copy, so that pages and watchers see
// them unchanged. A copy that was removed from the Catalog by its own owner stays
// known in m.here and does not come again until its original is replaced. Entries
// that are left out for a fault are not known, so that each later sync tries them
// again and reports the fault again.
func (m *mount) sync(strict bool) (come []*Entry, faults []error) {
	next := map[*Entry]*Entry{}
	err := m.into.change(func() (set, []*Entry, error) {
		var fresh []*Entry
		for _, kind := range kinds {
			for _, e := range m.from.list(kind).entries {
				if mounted := m.here[e]; mounted != nil {
					next[e] = mounted
				} else {
					fresh = append(fresh, e)
				}
			}
		}
		gone := set{}
		for e, mounted := range m.here {
			if next[e] == nil && m.into.has(mounted) {
				gone[mounted] = true
			}
		}
		// Roots of which a part does not fit: a skill comes as a whole or not at all, as
		// a client would find that a file differs from what was announced.
		broken := map[string]bool{}
		for i, e := range fresh {
			mounted := m.graft(e)
			if err := m.fits(mounted, gone); err != nil {
				faults = append(faults, err)
				broken[e.Root], fresh[i] = e.Root != "", nil
				continue
			}
			next[e] = mounted
		}
		for _, e := range fresh {
			switch {
			case e == nil:
			case broken[e.Root]:
				delete(next, e)
			default:
				come = append(come, next[e])
			}
		}
		if strict && faults != nil {
			return nil, nil, nil
		}
		return gone, come, m.into.check(come, gone)
	})
	if err != nil {
		return nil, append(faults, err)
	}
	m.here = next
	return come, faults
}

// fits returns why mounted cannot come when gone has gone.
func (m *mount) fits(mounted *Entry, gone set) error {
	kind, key := mounted.place()
	if kind.prefixed() && len(key) > maxName {
		return fmt.Errorf("%q is too long with its prefix: a name has %d characters at most", key, maxName)
	}
	if other, ok := m.into.get(kind, key); ok && !gone[other] {
		return fmt.Errorf("%q is registered already; choose another prefix, or remove that one first", key)
	}
	return m.into.clash(mounted, nil, gone)
}

// end takes everything back, but not what is in its place. What from has
// begun to tell finds that.
func (m *mount) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	m.stop()
	// The error is the callback's, and this one has none.
	_ = m.into.change(func() (set, []*Entry, error) {
		gone := set{}
		for _, mounted := range m.here {
			if m.into.has(mounted) {
				gone[mounted] = true
			}
		}
		return gone, nil, nil
	})
	m.here = nil
}

// graft returns e as it is mounted: a copy under the name with prefix, whose
// functions hand the request to those of e, through what wrap has around them.
// Serve and the rules of visibility see the name without prefix. Resources and
// templates keep their URIs, which would change with a prefix.
//
// The rule who may see it is that of e and the filter of from together, asked as
// from would. Completers are not handlers, so that each is called within one
// that has an empty result.
func (m *mount) graft(e *Entry) *Entry {
	mounted, known := *e, "" // as from knows it, if that name differs
	if kind, key := e.place(); kind.prefixed() {
		known = key
	}
	mounted.Definition = m.renamed(e.Definition)
	mounted.from, mounted.copy, mounted.Listed = e.from+m.name, e, nil
	as := func(f *frame.Frame) *frame.Frame {
		if m.prefix == "" || known == "" {
			return f
		}
		return frame.Internal(facts.Private{}).Renamed(f, known)
	}
	plain := e.Serve
	if e.Under != nil {
		plain = e.Under(m.prefix)
		mounted.Under = func(prefix string) frame.Handler { return m.wrap(e.Under(prefix + m.prefix)) }
	}
	if plain != nil {
		serve := m.wrap(plain)
		mounted.Serve = func(f *frame.Frame) (protocol.Result, error) { return serve(as(f)) }
	}
	if e.As != nil {
		mounted.As = func(f *frame.Frame) any { return m.renamed(e.As(as(f))) }
	}
	if e.Match != nil {
		mounted.Match = func(uri string) frame.Handler {
			read := e.Match(uri)
			if read == nil {
				return nil
			}
			return m.wrap(read)
		}
	}
	if e.Visible != nil || m.from.config.Filter != nil {
		mounted.Visible = func(f *frame.Frame) bool { return m.from.shows(as(f), e) }
	}
	mounted.Completers = maps.Clone(e.Completers)
	for argument, complete := range e.Completers {
		mounted.Completers[argument] = func(f *frame.Frame, value string, arguments map[string]string) (found protocol.Completion, err error) {
			_, err = m.wrap(func(f *frame.Frame) (protocol.Result, error) {
				var err error
				found, err = complete(f, value, arguments)
				return wire.EmptyResult{}, err
			})(f)
			return found, err
		}
	}
	return &mounted
}

// renamed returns a definition with the prefix before the name of a tool, prompt or event
// type.
func (m *mount) renamed(definition any) any {
	switch d := definition.(type) {
	case *protocol.Tool:
		own := *d
		own.Name = m.prefix + d.Name
		return &own
	case *protocol.Prompt:
		own := *d
		own.Name = m.prefix + d.Name
		return &own
	case *protocol.EventType:
		own := *d
		own.Name = m.prefix + d.Name
		if delivery := m.into.config.Delivery; delivery != nil {
			own.Delivery = delivery
		}
		return &own
	}
	return definition
}
