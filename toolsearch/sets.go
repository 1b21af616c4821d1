package toolsearch

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/talaria-go/mcp/protocol"
)

// tool is what a search reads of a tool.
type tool struct {
	name, title, doc string
	schema           json.RawMessage
	readOnly         bool
}

func toolOf(t *protocol.Tool) tool {
	readOnly := t.Annotations != nil && t.Annotations.ReadOnlyHint != nil && *t.Annotations.ReadOnlyHint
	return tool{t.Name, t.Title, t.Description, t.InputSchema, readOnly}
}

// same compares all of two tools.
func same(a, b tool) bool {
	return a.name == b.name && a.title == b.title && a.doc == b.doc && a.readOnly == b.readOnly && bytes.Equal(a.schema, b.schema)
}

// maxSets is how many sets of tools are kept: callers with different rights see different ones.
const maxSets = 16

// sets keeps the indexes of the sets that were used last.
type sets struct {
	mu   sync.Mutex
	kept []*set // the one used last is first
}

// set is one set of tools. Two sets with the same tools are one, for all that see them.
type set struct {
	tools []tool
	once  sync.Once
	index *index // made by once, outside of the lock
}

// of returns the index of a set of tools.
func (s *sets) of(tools []tool, words *vocabulary) *index {
	one := s.take(tools)
	one.once.Do(func() { one.index = newIndex(one.tools, words) })
	return one.index
}

// take returns the set that has these tools and no others. It compares texts and not a digest of
// them: those of one catalog are the same memory, which takes no time.
func (s *sets) take(tools []tool) *set {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := &set{tools: tools}
	if at := slices.IndexFunc(s.kept, func(one *set) bool { return slices.EqualFunc(one.tools, tools, same) }); at >= 0 {
		one = s.kept[at]
		s.kept = slices.Delete(s.kept, at, at+1)
	}
	s.kept = slices.Insert(s.kept, 0, one)
	if len(s.kept) > maxSets {
		s.kept = slices.Delete(s.kept, maxSets, len(s.kept))
	}
	return one
}
