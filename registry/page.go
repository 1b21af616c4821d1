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

	mu    sync.RWMutex
	pages map[pageKey]protocol.RawResult
}

type pageKey struct {
	rev   protocol.Revision
	start int
}

func newSnapshot[E Entry](config *Config, entries []E) *snapshot[E] {
	s := &snapshot[E]{config: config, entries: entries, index: make(map[string]int, len(entries)), pages: make(map[pageKey]protocol.RawResult)}
	for i, e := range entries {
		s.index[e.Key()] = i
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
	if page, err = s.encode(start, rev); err != nil {
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

// encode writes the page that starts at start.
func (s *snapshot[E]) encode(start int, rev protocol.Revision) (protocol.RawResult, error) {
	end := min(start+s.config.PageSize, len(s.entries))
	dst := []byte{'{'}
	if rev.Has(protocol.ResultType) {
		dst = append(dst, `"resultType":"complete",`...)
	}
	dst = append(jsonx.AppendString(dst, s.config.Member), ":["...)
	for i := start; i < end; i++ {
		definition, err := s.entries[i].Define(rev)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", s.config.Member, s.entries[i].Key(), err)
		}
		if i > start {
			dst = append(dst, ',')
		}
		dst = append(dst, definition...)
	}
	dst = append(dst, ']')
	if end < len(s.entries) {
		dst = append(dst, `,"nextCursor":`...)
		dst = jsonx.AppendString(dst, encodeCursor(s.entries[end-1].Key()))
	}
	if rev.Has(protocol.CacheHints) {
		dst = fmt.Appendf(dst, `,"ttlMs":%d,"cacheScope":%q`, s.config.Cache.TTLMs, s.config.Cache.Scope)
	}
	if rev.Has(protocol.PerRequestMeta) && len(s.config.Meta) > 0 {
		dst = append(append(append(dst, `,"_meta":{`...), s.config.Meta...), '}')
	}
	return append(dst, '}'), nil
}
