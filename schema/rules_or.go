package schema

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
)

// compileAlternatives compiles rules joined by '|': one of them must hold.
func compileAlternatives(r rule, t target) ([]check, *problem) {
	var alts [][]check
	for _, alt := range r.or {
		if len(alt.or) > 0 {
			return nil, r.fault("alternatives inside alternatives", "write them on one level")
		}
		checks, p := compileRule(alt, t)
		if p != nil {
			p.tag = tagProblem(r.written, "", "").tag
			return nil, p
		}
		if len(checks) == 0 {
			return nil, r.fault(alt.written+" holds for every value here, so the others do nothing", "remove the whole rule")
		}
		for _, c := range checks {
			if c.custom != nil {
				return nil, r.fault("a custom rule that can report an error cannot be one of several alternatives", "put the alternatives into the custom rule")
			}
		}
		alts = append(alts, checks)
	}
	c := check{tag: r.written, want: alternativesWant(alts)}
	if residual := mergeSchemas(&c, alts); residual {
		c.code = r.written
		c.note = "Must be " + c.want + "."
	}
	if c.code == "enum" {
		enum := &jsonschema.Schema{}
		c.emit(enum)
		c.want = oneOf(enum.Enum)
	}
	mergeTests(&c, alts)
	return []check{c}, nil
}

func alternativesWant(alts [][]check) string {
	var wants []string
	for _, checks := range alts {
		wants = append(wants, checks[0].want)
	}
	return "either " + strings.Join(wants, ", or ")
}

// mergeSchemas sets the code and emission of alternatives: one enum or one
// pattern if all of them are that, else anyOf. It reports whether they check
// more than that says; if one says nothing, neither can all together.
func mergeSchemas(c *check, alts [][]check) (residual bool) {
	var schemas []*jsonschema.Schema
	silent := false
	for _, checks := range alts {
		s := &jsonschema.Schema{}
		for _, one := range checks {
			residual = residual || one.note != ""
			if one.emit != nil {
				one.emit(s)
			}
		}
		s.Examples = nil
		silent = silent || emptySchema(s)
		schemas = append(schemas, s)
	}
	if silent {
		c.code = "anyOf"
		return true
	}
	var enum []any
	var patterns []string
	for _, s := range schemas {
		enum = append(enum, onlyEnum(s)...)
		if isOnly(s, &jsonschema.Schema{Pattern: s.Pattern}) && s.Pattern != "" {
			patterns = append(patterns, "(?:"+s.Pattern+")")
		}
	}
	allEnum := true
	for _, s := range schemas {
		allEnum = allEnum && onlyEnum(s) != nil
	}
	switch {
	case allEnum:
		enum = distinct(enum)
		c.code, c.emit = "enum", func(s *jsonschema.Schema) { addEnum(s, enum) }
	case len(patterns) == len(schemas):
		pattern := strings.Join(patterns, "|")
		c.code, c.emit = "pattern", func(s *jsonschema.Schema) { addPattern(s, pattern) }
	default:
		c.code, c.emit = "anyOf", func(s *jsonschema.Schema) {
			if s.AnyOf == nil {
				s.AnyOf = schemas
				return
			}
			also(s, &jsonschema.Schema{AnyOf: schemas})
		}
	}
	return residual
}

// onlyEnum returns the values of a schema that is just enum or const.
func onlyEnum(s *jsonschema.Schema) []any {
	switch {
	case s.Enum != nil && isOnly(s, &jsonschema.Schema{Enum: s.Enum}):
		return s.Enum
	case s.Const != nil && isOnly(s, &jsonschema.Schema{Const: s.Const}):
		return []any{s.Const}
	}
	return nil
}

// distinct drops values that JSON writes like an earlier one.
func distinct(values []any) []any {
	seen := map[string]bool{}
	var out []any
	for _, v := range values {
		text, err := json.Marshal(v)
		if err == nil && !seen[string(text)] {
			seen[string(text)] = true
			out = append(out, v)
		}
	}
	return out
}

func emptySchema(s *jsonschema.Schema) bool { return reflect.DeepEqual(s, &jsonschema.Schema{}) }

func isOnly(s, same *jsonschema.Schema) bool { return reflect.DeepEqual(s, same) }

// mergeTests sets the function of the alternatives' kind.
func mergeTests(c *check, alts [][]check) {
	first := alts[0][0]
	switch {
	case first.text != nil:
		c.text = anyHolds(alts, func(c check) func(string) bool { return c.text })
	case first.integer != nil:
		c.integer = anyHolds(alts, func(c check) func(int64) bool { return c.integer })
	case first.unsigned != nil:
		c.unsigned = anyHolds(alts, func(c check) func(uint64) bool { return c.unsigned })
	case first.float != nil:
		c.float = anyHolds(alts, func(c check) func(float64) bool { return c.float })
		c.decimal = anyHolds(alts, func(c check) func(*big.Rat) bool { return c.decimal })
		c.long = true
	case first.boolean != nil:
		c.boolean = anyHolds(alts, func(c check) func(bool) bool { return c.boolean })
	default:
		c.value = anyHolds(alts, valueTest)
	}
}

// valueTest turns a check of a length or a value into one of the value: on a
// list, alternatives may mix both.
func valueTest(c check) func(reflect.Value) bool {
	if c.count == nil {
		return c.value
	}
	return func(v reflect.Value) bool { return c.count(v.Len()) }
}

// anyHolds makes the function that is true if one alternative's checks all
// hold.
func anyHolds[T any](alts [][]check, test func(check) func(T) bool) func(T) bool {
	groups := make([][]func(T) bool, len(alts))
	for i, checks := range alts {
		for _, c := range checks {
			groups[i] = append(groups[i], test(c))
		}
	}
	return func(v T) bool {
		for _, group := range groups {
			holds := true
			for _, f := range group {
				holds = holds && f(v)
			}
			if holds {
				return true
			}
		}
		return false
	}
}
