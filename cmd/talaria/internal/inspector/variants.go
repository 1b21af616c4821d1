package inspector

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/schema"
)

// The bounds of what is said of variants: how many unions within unions are followed, and
// how many bytes of schemas are compiled for it in one check.
const (
	maxNarrowed  = 12
	narrowedRead = 4 << 20
)

// narrowed puts in the place of each issue of a union what is wrong with the variant that
// was chosen in the form. chosen are the indexes of variants by the places of their unions.
func (s *schemas) narrowed(text, value json.RawMessage, issues []schema.Issue, chosen map[string]int) []schema.Issue {
	union := func(one schema.Issue) bool {
		_, ok := chosen[one.Path]
		return ok && (one.Rule == "anyOf" || one.Rule == "oneOf")
	}
	if !slices.ContainsFunc(issues, union) {
		return issues
	}
	root, err := arguments.ReadField(text)
	if err != nil {
		return issues
	}
	var defs map[string]json.RawMessage
	_ = json.Unmarshal(text, &defs) // it was read
	left := narrowedRead
	var narrow func(list []schema.Issue, depth int) []schema.Issue
	narrow = func(list []schema.Issue, depth int) (out []schema.Issue) {
		for _, one := range list {
			var found []schema.Issue
			if left -= len(text); union(one) && depth > 0 && left > 0 {
				found = s.ofVariant(root, defs, value, one.Path, chosen)
			}
			if len(found) == 0 {
				out = append(out, one)
				continue
			}
			for n := range found {
				found[n].Path = one.Path + found[n].Path
			}
			out = append(out, narrow(found, depth-1)...)
		}
		return out
	}
	return narrow(issues, maxNarrowed)
}

// ofVariant checks the value at a place against the variant that is chosen there.
func (s *schemas) ofVariant(f arguments.Field, defs map[string]json.RawMessage, value json.RawMessage, path string, chosen map[string]int) []schema.Issue {
	at := ""
	for n, name := range strings.Split(path, "/") {
		if n > 0 {
			at += "/" + name
			var ok bool
			if f, value, ok = within(f, value, strings.NewReplacer("~1", "/", "~0", "~").Replace(name)); !ok {
				return nil
			}
		}
		if f.Union() {
			variant, ok := chosen[at]
			if !ok || variant < 0 || variant >= len(f.Variants) {
				return nil
			}
			f = f.Variants[variant].Field
		}
	}
	alone := map[string]any{"allOf": []json.RawMessage{f.Schema}}
	for _, name := range []string{"$schema", "$defs", "definitions"} {
		if defs[name] != nil {
			alone[name] = defs[name]
		}
	}
	text, err := json.Marshal(alone)
	if err != nil {
		return nil
	}
	found := s.check(text, value)
	if len(found) == 1 && found[0].Rule == "schema" { // it refers to what is elsewhere
		return nil
	}
	return found
}

// within is the member or item of a value with its field.
func within(f arguments.Field, value json.RawMessage, name string) (arguments.Field, json.RawMessage, bool) {
	var list []json.RawMessage
	if n, err := strconv.Atoi(name); err == nil && json.Unmarshal(value, &list) == nil {
		switch {
		case n < 0 || n >= len(list):
		case n < len(f.First):
			return f.First[n], list[n], true
		case f.Item != nil:
			return *f.Item, list[n], true
		}
		return f, nil, false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil || members[name] == nil {
		return f, nil, false
	}
	for _, inner := range f.Fields {
		if inner.Name == name {
			return inner, members[name], true
		}
	}
	if f.Rest != nil {
		return *f.Rest, members[name], true
	}
	return f, nil, false
}
