package arguments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// tree is a JSON object under construction; members keep their order.
type tree struct {
	names  []string
	leaves map[string]json.RawMessage
	inner  map[string]*tree
}

// set puts a value at a path. A second value for a list is added to it, for
// anything else it is a fault.
func (t *tree) set(path []string, value json.RawMessage, list bool) error {
	name := path[0]
	if len(path) > 1 {
		sub, err := t.sub(name)
		if err != nil {
			return err
		}
		return sub.set(path[1:], value, list)
	}
	old, known := t.leaves[name]
	switch {
	case t.inner[name] != nil:
		return fmt.Errorf("%s is given both whole and in parts", name)
	case known && !list:
		return fmt.Errorf("%s is given twice", name)
	case known:
		value = joinLists(old, value)
	default:
		t.names = append(t.names, name)
	}
	t.put(name, value)
	return nil
}

func (t *tree) put(name string, value json.RawMessage) {
	if t.leaves == nil {
		t.leaves = map[string]json.RawMessage{}
	}
	t.leaves[name] = value
}

// sub returns the object at a name, which it makes, or takes apart, if need be.
func (t *tree) sub(name string) (*tree, error) {
	if s := t.inner[name]; s != nil {
		return s, nil
	}
	s := &tree{}
	if old, known := t.leaves[name]; known {
		if err := s.merge(old); err != nil {
			return nil, fmt.Errorf("%s is given both whole and in parts", name)
		}
		delete(t.leaves, name)
	} else {
		t.names = append(t.names, name)
	}
	if t.inner == nil {
		t.inner = map[string]*tree{}
	}
	t.inner[name] = s
	return s, nil
}

// merge adds the members of an object; they replace those of the same name.
func (t *tree) merge(object json.RawMessage) error {
	if !strings.HasPrefix(strings.TrimSpace(string(object)), "{") {
		return fmt.Errorf("%s is no JSON object", shorten(string(object)))
	}
	for _, m := range members(object) {
		if t.inner[m.name] != nil {
			delete(t.inner, m.name)
		} else if _, known := t.leaves[m.name]; !known {
			t.names = append(t.names, m.name)
		}
		t.put(m.name, m.value)
	}
	return nil
}

func (t *tree) json() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range t.names {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quote(name))
		b.WriteByte(':')
		if s := t.inner[name]; s != nil {
			b.Write(s.json())
		} else {
			b.Write(t.leaves[name])
		}
	}
	b.WriteByte('}')
	return b.Bytes()
}

// joinLists adds the items of b to those of a.
func joinLists(a, b json.RawMessage) json.RawMessage {
	var x, y []json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return b
	}
	return listOf(append(x, y...))
}
