package toollock

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// object returns a value that is an object, else nil.
func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// names returns the strings of a list as keys.
func names(v any) map[string]any {
	list, _ := v.([]any)
	set := make(map[string]any, len(list))
	for _, item := range list {
		if name, ok := item.(string); ok {
			set[name] = true
		}
	}
	return set
}

// annotation reports whether a keyword says nothing about what is valid.
func annotation(keyword string) bool {
	return slices.Contains([]string{"title", "description", "default", "examples", "deprecated", "$comment"}, keyword)
}

// maxReferences is how many references lead from one to the next.
const maxReferences = 100

// resolve follows the reference that a schema is, if it has nothing next to it
// that says what is valid, and returns the last reference. root is its document.
func resolve(root, schema any) (resolved any, reference string) {
	for range maxReferences {
		m := object(schema)
		to, ok := m["$ref"].(string)
		if !ok || !strings.HasPrefix(to, "#") {
			break
		}
		beside := map[string]any{}
		for keyword, v := range m {
			switch {
			case keyword == "$ref":
			case annotation(keyword):
				beside[keyword] = v
			default:
				return schema, reference
			}
		}
		target, found := root, true
		for _, step := range strings.Split(to, "/")[1:] {
			target, found = object(target)[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
			if !found {
				return schema, reference
			}
		}
		schema, reference = target, to
		if m := object(target); m != nil && len(beside) > 0 {
			m = maps.Clone(m)
			maps.Copy(m, beside)
			schema = m
		}
	}
	return schema, reference
}

// maxForms is how many forms a schema is taken apart into.
const maxForms = 64

// forms returns the schemas without unions of which one has to accept a document: the
// alternatives of anyOf and oneOf with what is next to them, and one for each type. A
// union that cannot be taken apart stays. There is none for the schema false.
func forms(root, schema any) []map[string]any {
	all, ok := expand(root, schema, 0)
	if !ok || len(all) > maxForms {
		return []map[string]any{object(schema)}
	}
	return all
}

func expand(root, schema any, depth int) (all []map[string]any, ok bool) {
	const deepest = 8
	if depth > deepest {
		return nil, false
	}
	if schema == false {
		return nil, true
	}
	m := object(schema)
	for _, keyword := range []string{"anyOf", "oneOf"} {
		list, is := m[keyword].([]any)
		if !is {
			continue
		}
		rest := maps.Clone(m)
		delete(rest, keyword)
		for _, one := range list {
			one, _ = resolve(root, one)
			if one == false {
				continue
			}
			both, fits := merged(rest, object(one))
			if !fits {
				return nil, false
			}
			more, fits := expand(root, both, depth+1)
			if !fits || len(all)+len(more) > maxForms {
				return nil, false
			}
			all = append(all, more...)
		}
		return all, true
	}
	types, is := m["type"].([]any)
	if !is {
		return []map[string]any{m}, true
	}
	for _, one := range types {
		part := maps.Clone(m)
		part["type"] = one
		all = append(all, part)
	}
	return all, true
}

// merged returns a schema that accepts what two accept, unless both have a keyword.
func merged(beside, alternative map[string]any) (both map[string]any, ok bool) {
	both = maps.Clone(beside)
	if both == nil {
		both = map[string]any{}
	}
	for keyword, v := range alternative {
		if old, twice := both[keyword]; twice && !annotation(keyword) && !equal(old, v) {
			return nil, false
		}
		both[keyword] = v
	}
	return both, true
}

// exclusive reports whether a schema is a union of which not two may accept.
func exclusive(schema any) bool {
	_, is := object(schema)["oneOf"]
	return is
}

// apart reports whether no document has two of the forms: they have different types,
// or a member that is required and has another text in each.
func apart(forms []map[string]any) bool {
	types := map[any]bool{}
	for _, form := range forms {
		t := form["type"]
		if t == "integer" {
			t = "number"
		}
		if t == nil || types[t] {
			return discriminated(forms)
		}
		types[t] = true
	}
	return true
}

func discriminated(forms []map[string]any) bool {
	if len(forms) == 0 {
		return true
	}
	for name := range object(forms[0]["properties"]) {
		seen := map[any]bool{}
		for _, form := range forms {
			list := values(object(object(form["properties"])[name]))
			if len(list) != 1 || names(form["required"])[name] == nil {
				break
			}
			text, ok := list[0].(string)
			if !ok {
				break
			}
			seen[text] = true
		}
		if len(seen) == len(forms) {
			return true
		}
	}
	return false
}

// values returns the values that a schema lists; nil if it lists none.
func values(schema map[string]any) []any {
	if one, ok := schema["const"]; ok {
		return []any{one}
	}
	if list, ok := schema["enum"].([]any); ok {
		typ, is := schema["type"].(string)
		return slices.DeleteFunc(slices.Clone(list), func(v any) bool { return is && (v == nil) != (typ == "null") })
	}
	switch schema["type"] {
	case "null":
		return []any{nil}
	case "boolean":
		return []any{true, false}
	}
	return nil
}

// subset reports whether all values are among others, of which nil is all.
func subset(all, others []any) bool {
	if others == nil {
		return true
	}
	return all != nil && !slices.ContainsFunc(all, func(v any) bool {
		return !slices.ContainsFunc(others, func(other any) bool { return equal(v, other) })
	})
}

// limit is a lower bound, or nil.
type limit struct {
	value *big.Float
	open  bool // the value itself is below it
}

// bound returns the bound of two keywords, of which one excludes its value. sign is 1
// for lower bounds, and -1 for upper ones, which become lower ones.
func bound(schema map[string]any, with, without string, sign float64) limit {
	const bits = 128 // all integers of 64 bits are exact
	number := func(v any) *big.Float {
		text, ok := v.(json.Number)
		if !ok {
			return nil
		}
		f, _, err := big.ParseFloat(string(text), 10, bits, big.ToNearestEven)
		if err != nil {
			return nil
		}
		return f.Mul(f, big.NewFloat(sign))
	}
	most := limit{value: number(schema[with])}
	if other := (limit{number(schema[without]), true}); other.value != nil {
		if schema["type"] == "integer" && other.value.IsInt() {
			other = limit{value: other.value.Add(other.value, big.NewFloat(1))}
		}
		if above(other, most) {
			most = other
		}
	}
	if with == "minimum" || with == "maximum" {
		var least limit // of the numbers that it lists, unless one is too great to be known
		for _, v := range values(schema) {
			one := limit{value: number(v)}
			if _, is := v.(json.Number); is && one.value == nil {
				return most
			} else if least.value == nil || above(least, one) {
				least = one
			}
		}
		if above(least, most) {
			return least
		}
	}
	return most
}

// above reports whether something is at or above b, and not a.
func above(a, b limit) bool {
	switch {
	case a.value == nil:
		return false
	case b.value == nil:
		return true
	}
	order := a.value.Cmp(b.value)
	return order > 0 || order == 0 && a.open && !b.open
}
