// Package registry holds what a server offers. Readers work on snapshots that
// never change, so a request takes no lock; every change makes a new snapshot.
package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
)

// Entry is one component in a List.
type Entry interface {
	// Key returns what clients call the component by; unique in its list.
	Key() string
	// Define returns the JSON object that describes it in rev.
	Define(rev protocol.Revision) (json.RawMessage, error)
}

// Restricted is an Entry that may not be for everybody.
type Restricted interface {
	Entry
	// Restricted tells whether it is not.
	Restricted() bool
	// VisibleTo tells whether it is there for the client of f.
	VisibleTo(f *frame.Frame) bool
	// Needs returns the scopes without which nobody may use it.
	Needs() []string
}

// Config says how a List encodes its pages.
type Config struct {
	Member   string         // the member that holds the array: "tools"
	PageSize int            // entries per page; 0 means 1,000
	Cache    protocol.Cache // hints for revisions that have them
	Meta     []byte         // protocol.Wire.Meta of those revisions
}

// DefaultPageSize is how many entries a page holds if Config names no number.
const DefaultPageSize = 1000

// List is an ordered set of components of one kind, sorted by key. It is safe
// for concurrent use.
type List[E Entry] struct {
	config  Config
	current atomic.Pointer[snapshot[E]]

	mu       sync.Mutex // serialises changes
	watchers map[int]func()
	lastID   int
}

// NewList returns an empty List.
func NewList[E Entry](config Config) *List[E] {
	if config.PageSize <= 0 {
		config.PageSize = DefaultPageSize
	}
	if config.Cache.Scope == "" {
		config.Cache.Scope = protocol.CachePublic
	}
	l := &List[E]{config: config, watchers: make(map[int]func())}
	l.current.Store(newSnapshot[E](&l.config, nil))
	return l
}

// Get finds a component.
func (l *List[E]) Get(key string) (entry E, ok bool) {
	s := l.current.Load()
	i, ok := s.index[key]
	if !ok {
		return entry, false
	}
	return s.entries[i], true
}

// Len returns the number of components.
func (l *List[E]) Len() int { return len(l.current.Load().entries) }

// All returns every component, sorted by key. The caller must not change it.
func (l *List[E]) All() []E { return l.current.Load().entries }

// Add adds components, all or none. A key that is taken, or there twice, is an
// error that names it; so is a component that does not encode.
func (l *List[E]) Add(entries ...E) error {
	if len(entries) == 0 {
		return nil
	}
	return l.change(func(old []E) ([]E, error) {
		if err := l.check(old, entries); err != nil {
			return nil, err
		}
		return append(slices.Clone(old), entries...), nil
	})
}

// Check returns the error that Add would return now.
func (l *List[E]) Check(entries ...E) error { return l.check(l.All(), entries) }

func (l *List[E]) check(old, entries []E) error {
	taken := make(map[string]bool, len(old)+len(entries))
	for _, e := range old {
		taken[e.Key()] = true
	}
	var faults []string
	for _, e := range entries {
		if taken[e.Key()] {
			faults = append(faults, fmt.Sprintf("%q is registered already; choose another name, or remove that one first", e.Key()))
		}
		taken[e.Key()] = true
		if _, err := e.Define(protocol.Latest); err != nil {
			faults = append(faults, fmt.Sprintf("%q: %v", e.Key(), err))
		}
	}
	if faults != nil {
		return fmt.Errorf("%s: %s", l.config.Member, strings.Join(faults, "; "))
	}
	return nil
}

// Remove removes the components with these keys and returns how many there
// were.
func (l *List[E]) Remove(keys ...string) int {
	removed := 0
	// The error is the callback's, and this one has none.
	_ = l.change(func(old []E) ([]E, error) {
		left := slices.DeleteFunc(slices.Clone(old), func(e E) bool { return slices.Contains(keys, e.Key()) })
		if removed = len(old) - len(left); removed == 0 {
			return nil, nil
		}
		return left, nil
	})
	return removed
}

// change replaces the snapshot and tells the watchers if anything is new.
func (l *List[E]) change(fn func(old []E) ([]E, error)) error {
	watchers, err := l.replace(fn)
	for _, tell := range watchers {
		tell()
	}
	return err
}

// replace replaces the snapshot and returns whom to tell: nobody if all is as
// it was. An entry that panics leaves the List as it was, too.
func (l *List[E]) replace(fn func(old []E) ([]E, error)) (watchers []func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.current.Load().entries
	entries, err := fn(old)
	if err != nil || entries == nil {
		return nil, err
	}
	slices.SortStableFunc(entries, func(a, b E) int { return strings.Compare(a.Key(), b.Key()) })
	l.current.Store(newSnapshot(&l.config, entries))
	for _, id := range slices.Sorted(maps.Keys(l.watchers)) {
		watchers = append(watchers, l.watchers[id])
	}
	return watchers, nil
}

// Watch calls fn after every change, on the goroutine that made it, until stop
// is called. Who watches first is told first. fn must return at once.
func (l *List[E]) Watch(fn func()) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastID++
	id := l.lastID
	l.watchers[id] = fn
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.watchers, id)
	}
}

// Page returns the list result that starts after cursor, a JSON string that an
// earlier page gave, or nil for the first page. The bytes are shared and must
// not be changed. A cursor that is not one is a protocol error, -32602.
func (l *List[E]) Page(cursor []byte, rev protocol.Revision) (protocol.RawResult, error) {
	return l.current.Load().page(cursor, rev)
}

// Restricted tells whether some entry is not for everybody.
func (l *List[E]) Restricted() bool { return l.current.Load().restricted }

// Scoped tells whether some entry needs scopes.
func (l *List[E]) Scoped() bool { return l.current.Load().scoped }

// Update removes the components with these keys and adds others, in one change.
// The errors are those of Add; then nothing has changed.
func (l *List[E]) Update(remove []string, entries ...E) error {
	if len(remove)+len(entries) == 0 {
		return nil
	}
	return l.change(func(old []E) ([]E, error) {
		left := slices.DeleteFunc(slices.Clone(old), func(e E) bool { return slices.Contains(remove, e.Key()) })
		if err := l.check(left, entries); err != nil {
			return nil, err
		}
		return append(left, entries...), nil
	})
}
