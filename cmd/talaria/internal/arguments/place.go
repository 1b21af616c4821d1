package arguments

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// step leads from a value to a member of it, or to an item.
type step struct {
	name string // of a member; the index of an item in decimal
	item bool
}

// place is what the name of an argument can mean: a path, and the schema of what is there.
type place struct {
	path  []step
	field Field
	known bool // the schema describes each step
}

// The bounds of a search: fields that are visited, and fields whose schema is read again
// because reading stopped there.
const (
	maxVisits  = 2000
	maxReopens = 50
)

// finder finds the places of a name below a field. A name such as a.b[0].c leads by
// dots into objects and by indexes into lists. Names in the schema may have dots and
// brackets, too: the longest one that fits is tried first.
type finder struct {
	root            json.RawMessage // that references point into
	visits, reopens int
}

func newFinder(root json.RawMessage) *finder {
	return &finder{root: root, visits: maxVisits, reopens: maxReopens}
}

// from returns the places that rest leads to from f: "", or what begins with a dot or
// an index.
func (s *finder) from(f Field, rest string) []place {
	if s.visits--; s.visits < 0 {
		return nil
	}
	if rest == "" {
		return []place{{field: f, known: true}}
	}
	f = s.open(f)
	if index, after, ok := cutIndex(rest); ok {
		return s.item(f, index, after)
	}
	if rest[0] != '.' {
		return nil
	}
	return s.members(f, rest[1:])
}

// open reads on where reading a schema stopped.
func (s *finder) open(f Field) Field {
	if !f.Cut || s.reopens == 0 || len(f.Schema) == 0 {
		return f
	}
	s.reopens--
	inner := newReader(s.root).field(f.Name, f.Schema, maxNesting)
	inner.Required = f.Required
	return inner
}

// members returns the places of a name below an object: those of the longest name first,
// and the ones that the schema describes rather than others.
func (s *finder) members(f Field, name string) []place {
	var found []place
	kinds := f.kinds()
	declared := map[string][]Field{}
	for _, k := range kinds {
		for _, m := range k.Fields {
			if rest, ok := strings.CutPrefix(name, m.Name); ok && m.Name != "" && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				declared[m.Name] = append(declared[m.Name], m)
			}
		}
	}
	names := sortedByLength(declared)
	for _, n := range names {
		for _, m := range declared[n] {
			found = append(found, below(step{name: n}, s.from(m, name[len(n):]))...)
		}
	}
	for end := 1; end <= len(name); end++ {
		if end < len(name) && name[end] != '.' && name[end] != '[' || declared[name[:end]] != nil {
			continue
		}
		for _, k := range kinds {
			for _, further := range k.further(name[:end]) {
				found = append(found, below(step{name: name[:end]}, s.from(further, name[end:]))...)
			}
		}
	}
	if len(found) == 0 && len(names) == 0 && slices.ContainsFunc(kinds, Field.takesAny) {
		return []place{{path: []step{{name: name}}, field: Field{Name: name}}}
	}
	if slices.ContainsFunc(found, func(p place) bool { return p.known }) {
		found = slices.DeleteFunc(found, func(p place) bool { return !p.known })
	}
	return found
}

// item returns the places below an item of a list.
func (s *finder) item(f Field, index int, rest string) []place {
	var found []place
	for _, k := range f.kinds() {
		if inner, ok := k.at(index); ok {
			found = append(found, below(step{strconv.Itoa(index), true}, s.from(inner, rest))...)
		}
	}
	return found
}

// missing returns the error for a name without a place below f, and where it would be;
// before is the name of f, and path leads to it.
func (s *finder) missing(f Field, path []step, before, rest string) ([]step, error) {
	f = s.open(f)
	full := before + rest
	if index, after, ok := cutIndex(rest); ok {
		path = append(path, step{strconv.Itoa(index), true})
		inner, ok := f.at(index)
		if !ok {
			return path, fmt.Errorf("%s: %s is %s, which has no items", full, before, indefinite(f.Type()))
		}
		return s.missing(inner, path, fmt.Sprintf("%s[%d]", before, index), after)
	}
	name := rest
	if before != "" {
		if !strings.HasPrefix(rest, ".") {
			return []step{{name: full}}, fmt.Errorf("%s: write an index after %s as [0]", full, before)
		}
		name = rest[1:]
	}
	at := append(path, step{name: name})
	if before != "" && f.isList() {
		return at, fmt.Errorf("%s: %s is a list; write %s[0].%s", full, before, before, name)
	}
	if before != "" && !f.isObject() {
		return at, fmt.Errorf("%s: %s is %s, which has no members", full, before, indefinite(f.Type()))
	}
	var fields []Field
	for _, k := range f.kinds() {
		fields = append(fields, k.Fields...)
	}
	longest := -1
	for i, m := range fields {
		after, ok := strings.CutPrefix(name, m.Name)
		if ok && after != "" && (after[0] == '.' || after[0] == '[') && (longest < 0 || len(m.Name) > len(fields[longest].Name)) {
			longest = i
		}
	}
	if longest >= 0 {
		m := fields[longest]
		return s.missing(m, append(path, step{name: m.Name}), strings.TrimSuffix(full, name)+m.Name, name[len(m.Name):])
	}
	if before != "" {
		before += "."
	}
	return at, (&Object{Fields: fields}).unknown(before, name)
}

// Pattern is what members of an object must be whose names match a regular expression.
type Pattern struct {
	Field
	regex *regexp.Regexp // nil if it is not one of Go
}

func (p Pattern) matches(name string) bool { return p.regex != nil && p.regex.MatchString(name) }

// cutIndex cuts [n] off the beginning of a text.
func cutIndex(text string) (index int, rest string, ok bool) {
	text, ok = strings.CutPrefix(text, "[")
	digits, rest, closed := strings.Cut(text, "]")
	index, err := strconv.Atoi(digits)
	return index, rest, ok && closed && err == nil && index >= 0 && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// below returns places with one more step before them.
func below(first step, list []place) []place {
	for i, p := range list {
		list[i].path = append([]step{first}, p.path...)
	}
	return list
}

// sortedByLength returns the keys, the longest first.
func sortedByLength(m map[string][]Field) []string {
	list := make([]string, 0, len(m))
	for name := range m {
		list = append(list, name)
	}
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	return list
}

// indefinite puts the article before a type.
func indefinite(name string) string {
	if strings.ContainsAny(name[:1], "aeiou") {
		return "an " + name
	}
	return "a " + name
}
