package registry

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// snapshot is one state of a List, with the pages that were asked for.
type snapshot[E Entry] struct {
	config  *Config
	entries []E
	index   map[string]int
	// restricted tells whether some entry is not for everybody.
	restricted bool
	// scoped tells whether some entry needs scopes.
	scoped bool

	mu          sync.RWMutex
	pages       map[pageKey]protocol.RawResult
	definitions map[protocol.Revision][]json.RawMessage // for pages of some entries; made when asked for
}

type pageKey struct {
	rev   protocol.Revision
	start int
}

func newSnapshot[E Entry](config *Config, entries []E) *snapshot[E] {
	s := &snapshot[E]{config: config, entries: entries, index: make(map[string]int, len(entries)), pages: make(map[pageKey]protocol.RawResult)}
	for i, e := range entries {
		s.index[e.Key()] = i
		if r, ok := any(e).(Restricted); ok {
			s.restricted = s.restricted || r.Restricted()
			s.scoped = s.scoped || len(r.Needs()) > 0
		}
	}
	return s
}

func (s *snapshot[E]) page(cursor []byte, rev protocol.Revision) (protocol.RawResult, error) {
	start, err := s.start(cursor)
	if err != nil {
		return nil, err
	}
	key := pageKey{rev, start}
	s.mu.RLock()
	page, ok := s.pages[key]
	s.mu.RUnlock()
	if ok {
		return page, nil
	}
	if page, err = s.encode(start, rev, nil); err != nil {
		return nil, err
	}
	// Only pages that a walk from the front meets are kept: a client that
	// makes cursors up must not fill the memory.
	if start%s.config.PageSize == 0 {
		s.mu.Lock()
		s.pages[key] = page
		s.mu.Unlock()
	}
	return page, nil
}

// start returns the index of the first entry after cursor.
func (s *snapshot[E]) start(cursor []byte) (int, error) {
	if cursor == nil {
		return 0, nil
	}
	after, err := decodeCursor(cursor)
	if err != nil {
		return 0, err
	}
	return sort.Search(len(s.entries), func(i int) bool { return s.entries[i].Key() > after }), nil
}

// A cursor is the key of the last entry of its page, so that it keeps its
// place while entries come and go. The first letter is its version.
const cursorVersion = "a"

func encodeCursor(key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorVersion + key))
}

func decodeCursor(raw []byte) (key string, err error) {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", protocol.Errorf(protocol.CodeInvalidParams, "cursor must be a string that nextCursor gave")
	}
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(text)
	key, ok := strings.CutPrefix(string(decoded), cursorVersion)
	if err != nil || !ok {
		return "", protocol.Errorf(protocol.CodeInvalidParams, "cursor is not one that nextCursor gave; list again from the start")
	}
	return key, nil
}

// encode writes the page that starts at start, of those entries that keep
// wants; nil wants all.
func (s *snapshot[E]) encode(start int, rev protocol.Revision, keep func(E) bool) (protocol.RawResult, error) {
	dst := []byte{'{'}
	if rev.Has(protocol.ResultType) {
		dst = append(dst, `"resultType":"complete",`...)
	}
	dst = append(jsonx.AppendString(dst, s.config.Member), ":["...)
	count, last, more := 0, 0, false
	for i := start; i < len(s.entries) && !more; i++ {
		if keep != nil && !keep(s.entries[i]) {
			continue
		}
		if count == s.config.PageSize {
			more = true
			continue
		}
		definition, err := s.define(i, rev, keep != nil)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", s.config.Member, s.entries[i].Key(), err)
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
		dst = jsonx.AppendString(dst, encodeCursor(s.entries[last].Key()))
	}
	if rev.Has(protocol.CacheHints) {
		scope := s.config.Cache.Scope
		if keep != nil {
			scope = protocol.CachePrivate // another client may see other entries
		}
		dst = fmt.Appendf(dst, `,"ttlMs":%d,"cacheScope":%q`, s.config.Cache.TTLMs, scope)
	}
	if rev.Has(protocol.PerRequestMeta) && len(s.config.Meta) > 0 {
		dst = append(append(append(dst, `,"_meta":{`...), s.config.Meta...), '}')
	}
	return append(dst, '}'), nil
}

// define returns the definition of an entry. It is kept if it will be asked for
// again, for pages that are not themselves kept.
func (s *snapshot[E]) define(i int, rev protocol.Revision, again bool) (json.RawMessage, error) {
	if !again {
		return s.entries[i].Define(rev)
	}
	s.mu.RLock()
	list := s.definitions[rev]
	s.mu.RUnlock()
	if list == nil {
		var err error
		if list, err = s.defineAll(rev); err != nil {
			return nil, err
		}
	}
	return list[i], nil
}

func (s *snapshot[E]) defineAll(rev protocol.Revision) ([]json.RawMessage, error) {
	list := make([]json.RawMessage, len(s.entries))
	for i, e := range s.entries {
		var err error
		if list[i], err = e.Define(rev); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.definitions == nil {
		s.definitions = make(map[protocol.Revision][]json.RawMessage)
	}
	s.definitions[rev] = list
	return list, nil
}
