package rules

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/schemadoc"
	"github.com/talaria-go/mcp/schema/internal/tags"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// compileAlternatives compiles rules joined by '|', of which one must hold,
// into a single check.
func compileAlternatives(r tags.Rule, t Target) ([]Check, *tags.Problem) {
	var alts [][]Check
	for _, alt := range r.Or {
		if len(alt.Or) > 0 {
			return nil, r.Fault("alternatives inside alternatives", "write them on one level")
		}
		checks, p := Compile(alt, t)
		if p != nil {
			p.Tag = r.Tag()
			return nil, p
		}
		if len(checks) == 0 {
			return nil, r.Fault(alt.Written+" holds for every value here, so the others do nothing", "remove the whole rule")
		}
		for _, c := range checks {
			if _, custom := c.Test.(CustomTest); custom {
				return nil, r.Fault("a custom rule that can report an error cannot be one of several alternatives", "put the alternatives into the custom rule")
			}
		}
		alts = append(alts, checks)
	}
	c := Check{Tag: r.Written, Want: alternativesWant(alts)}
	if residual := mergeSchemas(&c, alts); residual {
		c.Code = r.Written
		c.Note = "Must be " + c.Want + "."
	}
	if c.Code == "enum" {
		enum := &jsonschema.Schema{}
		c.Emit(enum)
		c.Want = wording.OneOf(enum.Enum)
	}
	mergeTests(&c, alts)
	return []Check{c}, nil
}

// alternativesWant returns the words for "one of the alternatives must hold".
func alternativesWant(alts [][]Check) string {
	var wants []string
	for _, checks := range alts {
		wants = append(wants, checks[0].Want)
	}
	return "either " + strings.Join(wants, ", or ")
}

// mergeSchemas sets the code and the keywords of alternatives: one enum or one
// pattern if all of them are that, otherwise anyOf. It reports whether the
// alternatives check more than the keywords say. If one alternative has no
// keywords, the check has none: anyOf with an empty schema would permit
// everything.
func mergeSchemas(c *Check, alts [][]Check) (residual bool) {
	var schemas []*jsonschema.Schema
	silent := false
	for _, checks := range alts {
		s := &jsonschema.Schema{}
		for _, one := range checks {
			residual = residual || one.Note != ""
			if one.Emit != nil {
				one.Emit(s)
			}
		}
		s.Examples = nil
		silent = silent || schemadoc.IsOnly(s, &jsonschema.Schema{})
		schemas = append(schemas, s)
	}
	if silent {
		c.Code = "anyOf"
		return true
	}
	var enum []any
	var patterns []string
	for _, s := range schemas {
		enum = append(enum, onlyEnum(s)...)
		if schemadoc.IsOnly(s, &jsonschema.Schema{Pattern: s.Pattern}) && s.Pattern != "" {
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
		c.Code, c.Emit = "enum", func(s *jsonschema.Schema) { schemadoc.AddEnum(s, enum) }
	case len(patterns) == len(schemas):
		pattern := strings.Join(patterns, "|")
		c.Code, c.Emit = "pattern", func(s *jsonschema.Schema) { schemadoc.AddPattern(s, pattern) }
	default:
		c.Code, c.Emit = "anyOf", func(s *jsonschema.Schema) {
			if s.AnyOf == nil {
				s.AnyOf = schemas
				return
			}
			schemadoc.Also(s, &jsonschema.Schema{AnyOf: schemas})
		}
	}
	return residual
}

// onlyEnum returns the values of a schema that consists only of enum or const,
// and nil for any other.
func onlyEnum(s *jsonschema.Schema) []any {
	switch {
	case s.Enum != nil && schemadoc.IsOnly(s, &jsonschema.Schema{Enum: s.Enum}):
		return s.Enum
	case s.Const != nil && schemadoc.IsOnly(s, &jsonschema.Schema{Const: s.Const}):
		return []any{s.Const}
	}
	return nil
}

// distinct removes values that have the same JSON as an earlier one.
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

// mergeTests sets the test: all checks of one alternative must hold. Checks for
// one target look at the same thing, except on a list, where some count and
// others compare.
func mergeTests(c *Check, alts [][]Check) {
	switch alts[0][0].Test.(type) {
	case TextTest:
		c.Test = TextTest(anyHolds(alts, as[TextTest]))
	case NumberTest:
		c.Test = NumberTest(anyHolds(alts, as[NumberTest]))
	case BoolTest:
		c.Test = BoolTest(anyHolds(alts, as[BoolTest]))
	default:
		c.Test = ValueTest(anyHolds(alts, onValue))
	}
}

// as asserts the type of a predicate.
func as[F predicate](p predicate) F { return p.(F) }

// onValue turns a test of a length, a value or the items into a test of the
// value.
func onValue(p predicate) ValueTest {
	switch p := p.(type) {
	case CountTest:
		return func(v reflect.Value) bool { return p(v.Len()) }
	case *UniqueRule:
		return p.Holds
	}
	return p.(ValueTest)
}

// anyHolds returns a function that is true if all checks of one alternative
// hold.
func anyHolds[T any, F ~func(T) bool](alts [][]Check, test func(predicate) F) func(T) bool {
	groups := make([][]F, len(alts))
	for i, checks := range alts {
		for _, c := range checks {
			groups[i] = append(groups[i], test(c.Test))
		}
	}
	return func(v T) bool {
		return slices.ContainsFunc(groups, func(group []F) bool {
			return !slices.ContainsFunc(group, func(f F) bool { return !f(v) })
		})
	}
}
