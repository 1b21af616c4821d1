package registry

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"sort"
	"strings"
	"sync"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// list is one state of the components of a kind. It does not change, except for
// values that are computed on demand: mu guards that. Lists are shared by all
// requests that were served while they were current.
type list struct {
	config  *Config
	member  string // that holds the array
	entries []*Entry
	index   map[string]*Entry // none for what one client has besides
	// restricted is set if some entry has a rule who may see it, scoped if some
	// entry needs scopes.
	restricted, scoped bool
	views              bool            // some tool has one
	finder             *Entry          // the tool with Listed; nil if there is none
	listed             map[string]bool // the names in its Listed

	mu          sync.RWMutex
	digest      []byte // nil until it is requested
	pages       map[pageKey]keptPage
	definitions map[definitionKey][]json.RawMessage // for pages of some entries; made when asked for
}

// pageKey names a page that is the same for all clients: start is the index of
// its first entry in the list, which no change moves, as changes make new lists.
type pageKey struct {
	rev   protocol.Revision
	start int
}

// definitionKey names the definitions of all entries, with the views of tools or
// without.
type definitionKey struct {
	rev    protocol.Revision
	viewed bool
}

// keptPage is a page, and where the one after it starts; 0 is nowhere.
type keptPage struct {
	text protocol.RawResult
	next int
}

// newList returns the list of entries, which are sorted by key.
func newList(config *Config, kind Kind, entries []*Entry) *list {
	l := &list{config: config, member: plural(kind), entries: entries, index: make(map[string]*Entry, len(entries)), pages: make(map[pageKey]keptPage)}
	for _, e := range entries {
		l.index[e.Key()] = e
		l.restricted = l.restricted || e.Visible != nil || e.As != nil
		l.scoped = l.scoped || len(e.Scopes) > 0
		l.views = l.views || e.View != ""
		if e.Listed != nil {
			l.finder, l.listed = e, make(map[string]bool, len(e.Listed))
			for _, name := range e.Listed {
				l.listed[name] = true
			}
		}
	}
	return l
}

// get finds an entry by its key. It finds nothing in the list that View.whole
// makes, which has no index.
func (l *list) get(key string) (*Entry, bool) {
	e, ok := l.index[key]
	return e, ok
}

// page returns the page after cursor for clients that see every entry; viewed
// reports whether the view of a tool is there, for each of them alike. It is
// kept for each revision and place, and shared. Two requests at once may both
// encode it; what they make is equal, so that it does not matter which is kept.
func (l *list) page(cursor []byte, rev protocol.Revision, viewed func(*Entry) bool) (protocol.RawResult, error) {
	start, err := l.start(cursor)
	if err != nil {
		return nil, err
	}
	key := pageKey{rev, start}
	l.mu.RLock()
	page, ok := l.pages[key]
	l.mu.RUnlock()
	if ok {
		return page.text, nil
	}
	if page.text, page.next, err = l.encode(start, rev, nil, nil, viewed); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.met(key) {
		l.pages[key] = page
	}
	return page.text, nil
}

// met reports whether a walk from the front meets a page: only such pages are kept,
// as a client that makes cursors up must not fill the memory. Only the page before
// it says where a page starts, since some end where their bytes do. The caller holds
// l.mu.
func (l *list) met(key pageKey) bool {
	for at := (pageKey{rev: key.rev}); at.start < key.start; {
		next := l.pages[at].next
		if next == 0 {
			return false
		}
		if at.start = next; next > key.start {
			return false
		}
	}
	return true
}

// start returns the index of the first entry after cursor; nil is the first of
// all. An entry whose key was that of the cursor need not be there any more.
func (l *list) start(cursor []byte) (int, error) {
	if cursor == nil {
		return 0, nil
	}
	after, err := decodeCursor(cursor)
	if err != nil {
		return 0, err
	}
	return sort.Search(len(l.entries), func(i int) bool { return l.entries[i].Key() > after }), nil
}

// A cursor is the key of the last entry of its page, so that it keeps its
// place while entries come and go. The first letter is its version.
const cursorVersion = "a"

// sum returns a digest of everything that clients can see of the list.
// Components may encode themselves with users' code, which may panic.
func (l *list) sum() ([]byte, error) {
	l.mu.RLock()
	digest := l.digest
	l.mu.RUnlock()
	if digest != nil {
		return digest, nil
	}
	hash := sha256.New()
	for _, e := range l.entries {
		text, err := e.define(protocol.Latest, true)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(hash, "%d %s%d %q %v\n", len(text), text, len(e.Scopes), e.Scopes, e.Visible != nil)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.digest = hash.Sum(nil)
	return l.digest, nil
}

// maxSkillsPage is how many bytes of skills a page has, of which each may name
// 512 files. One that is longer by itself is a page of its own.
const maxSkillsPage = 1 << 20

// encodeCursor returns the cursor of the page after key, a text that is opaque
// to clients (server/utilities/pagination).
func encodeCursor(key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorVersion + key))
}

// decodeCursor returns the key in a cursor, which is JSON text from a client.
// Any text in the right form is one, whether or not there ever was such a key:
// it then means a place between two entries.
func decodeCursor(raw []byte) (key string, err error) {
	var text string
	if err := jsonx.Unmarshal(raw, &text); err != nil {
		return "", protocol.Errorf(protocol.CodeInvalidParams, "cursor must be a string that nextCursor gave")
	}
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(text)
	key, ok := strings.CutPrefix(string(decoded), cursorVersion)
	if err != nil || !ok {
		return "", protocol.Errorf(protocol.CodeInvalidParams, "cursor is not one that nextCursor gave; list again from the start")
	}
	return key, nil
}

// encode writes the page that starts at start for the client of f, of those entries that
// keep wants; nil wants all, for all clients. viewed is asked about tools that have a view, and nil if
// none has one. next is the index after the last entry, 0 if it is the last page.
func (l *list) encode(start int, rev protocol.Revision, f *frame.Frame, keep, viewed func(*Entry) bool) (page protocol.RawResult, next int, err error) {
	dst := []byte{'{'}
	if rev.Has(protocol.FeatureResultType) {
		dst = append(dst, `"resultType":"complete",`...)
	}
	dst = append(jsonx.AppendString(dst, l.member), ":["...)
	count, last, more := 0, 0, false
	for i := start; i < len(l.entries) && !more; i++ {
		if keep != nil && !keep(l.entries[i]) {
			continue
		}
		if count == l.config.PageSize {
			more = true
			continue
		}
		var definition json.RawMessage
		key := definitionKey{rev, l.entries[i].View == "" || viewed(l.entries[i])}
		if e := l.entries[i]; e.As != nil {
			definition, err = l.describe(e, e.For(f), key)
		} else {
			definition, err = l.define(i, key, keep != nil && !l.listed[l.entries[i].Key()])
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s %q: %w", l.member, l.entries[i].Key(), err)
		}
		if l.member == plural(kindSkill) && count > 0 && len(dst)+len(definition) > maxSkillsPage {
			more = true
			continue
		}
		if count > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, definition...)
		count, last = count+1, i
	}
	dst = append(dst, ']')
	if more {
		dst = append(dst, `,"nextCursor":`...)
		dst = jsonx.AppendString(dst, encodeCursor(l.entries[last].Key()))
		next = last + 1
	}
	if rev.Has(protocol.FeatureCacheHints) {
		cache := l.config.Cache
		if keep != nil {
			cache.Public = false // another client may see other entries
		}
		dst = wire.AppendCache(dst, cache)
	}
	if rev.Has(protocol.FeaturePerRequestMeta) && len(l.config.Meta) > 0 {
		dst = append(append(append(dst, `,"_meta":{`...), l.config.Meta...), '}')
	}
	return append(dst, '}'), next, nil
}

// define returns the definition of entry i. With again, that of all entries is
// made and kept: it is for pages that are not kept themselves, since they differ
// from client to client, so that each of their requests costs no more than the
// check who may see what. Pages that are kept need it once.
func (l *list) define(i int, key definitionKey, again bool) (json.RawMessage, error) {
	if !again {
		return l.describe(l.entries[i], l.entries[i].Definition, key)
	}
	l.mu.RLock()
	all := l.definitions[key]
	l.mu.RUnlock()
	if all == nil {
		var err error
		if all, err = l.defineAll(key); err != nil {
			return nil, err
		}
	}
	return all[i], nil
}

// defineAll encodes all entries and keeps them. Two requests at once may
// both do so; the results are equal.
func (l *list) defineAll(key definitionKey) ([]json.RawMessage, error) {
	all := make([]json.RawMessage, len(l.entries))
	for i, e := range l.entries {
		var err error
		if all[i], err = l.describe(e, e.Definition, key); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.definitions == nil {
		l.definitions = make(map[definitionKey][]json.RawMessage)
	}
	l.definitions[key] = all
	return all, nil
}

// alwaysLoad is the member of _meta by which hosts that search tools themselves, such as
// Claude Code, keep a tool in sight of the model.
const alwaysLoad = "anthropic/alwaysLoad"

// describe returns the JSON of a definition of e, with the mark of what is always listed.
func (l *list) describe(e *Entry, definition any, key definitionKey) (json.RawMessage, error) {
	if tool, ok := definition.(*protocol.Tool); ok && l.listed[tool.Name] {
		marked := *tool
		marked.Meta = map[string]any{alwaysLoad: true}
		maps.Copy(marked.Meta, tool.Meta)
		definition = &marked
	}
	return e.defineAs(definition, key.rev, key.viewed)
}
