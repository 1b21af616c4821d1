package arguments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// tree is a JSON object or list under construction; members keep their order.
type tree struct {
	path   string   // to it, for errors; "" is the root
	list   bool     // its names are indexes
	names  []string // of the members
	leaves map[string]json.RawMessage
	inner  map[string]*tree
}

// set puts a value at a path. A second value for a list is added to it, for
// anything else it is a fault.
func (t *tree) set(path []step, value json.RawMessage, list bool) error {
	name := path[0].name
	if len(path) > 1 {
		sub, err := t.sub(name, path[1].item)
		if err != nil {
			return err
		}
		return sub.set(path[1:], value, list)
	}
	old, known := t.leaves[name]
	switch {
	case t.inner[name] != nil:
		return fmt.Errorf("%s is given both whole and in parts", t.called(name))
	case known && !list:
		return fmt.Errorf("%s is given twice", t.called(name))
	case known:
		value = joinLists(old, value)
	default:
		t.names = append(t.names, name)
	}
	t.put(name, value)
	return nil
}

// called returns the whole path of a member for an error.
func (t *tree) called(name string) string {
	switch {
	case t.list:
		return t.path + "[" + name + "]"
	case t.path != "":
		return t.path + "." + name
	}
	return name
}

func (t *tree) put(name string, value json.RawMessage) {
	if t.leaves == nil {
		t.leaves = map[string]json.RawMessage{}
	}
	t.leaves[name] = value
}

// sub returns the object or list at a name, which it makes, or takes apart, if need be.
func (t *tree) sub(name string, list bool) (*tree, error) {
	if s := t.inner[name]; s != nil {
		if s.list != list {
			return nil, fmt.Errorf("%s is given both as an object and as a list", t.called(name))
		}
		return s, nil
	}
	s := &tree{list: list, path: t.called(name)}
	if old, known := t.leaves[name]; known {
		if err := s.merge(old); err != nil {
			return nil, fmt.Errorf("%s is given both whole and in parts", t.called(name))
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

// merge adds the members of an object, or the items of a list; they replace those of
// the same name.
func (t *tree) merge(value json.RawMessage) error {
	var add []member
	if t.list {
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil || items == nil {
			return fmt.Errorf("%s is not a JSON list", shorten(string(value)))
		}
		for i, item := range items {
			add = append(add, member{strconv.Itoa(i), item})
		}
	} else {
		if !strings.HasPrefix(strings.TrimSpace(string(value)), "{") {
			return fmt.Errorf("%s is no JSON object", shorten(string(value)))
		}
		add = members(value)
	}
	for _, m := range add {
		if t.inner[m.name] != nil {
			delete(t.inner, m.name)
		} else if _, known := t.leaves[m.name]; !known {
			t.names = append(t.names, m.name)
		}
		t.put(m.name, m.value)
	}
	return nil
}

// json returns the text. The error is that of a list with a gap.
func (t *tree) json() (json.RawMessage, error) {
	names := t.names
	if t.list {
		names = slices.Clone(names)
		slices.SortFunc(names, func(a, b string) int { return indexOf(a) - indexOf(b) })
	}
	var b bytes.Buffer
	b.WriteByte("{["[t.kind()])
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		if t.list && indexOf(name) != i {
			return nil, fmt.Errorf("%s is given, and %s is not", t.called(name), t.called(strconv.Itoa(i)))
		}
		if !t.list {
			b.Write(quote(name))
			b.WriteByte(':')
		}
		text := t.leaves[name]
		if s := t.inner[name]; s != nil {
			var err error
			if text, err = s.json(); err != nil {
				return nil, err
			}
		}
		b.Write(text)
	}
	b.WriteByte("}]"[t.kind()])
	return b.Bytes(), nil
}

// kind is 0 for an object and 1 for a list.
func (t *tree) kind() int {
	if t.list {
		return 1
	}
	return 0
}

// indexOf is the index that a step of a list has as its name.
func indexOf(index string) int {
	n, _ := strconv.Atoi(index) // it was made of a number
	return n
}

// joinLists adds the items of b to those of a.
func joinLists(a, b json.RawMessage) json.RawMessage {
	var x, y []json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return b
	}
	return listOf(append(x, y...))
}
