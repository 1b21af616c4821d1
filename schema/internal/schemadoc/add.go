package schemadoc

import (
	"encoding/json"
	"math/big"
	"reflect"

	"github.com/invopop/jsonschema"
)

// The functions of this file add a keyword to a schema that may have it already. The
// result always demands both: the stricter value, or a further schema in allOf.

// Raise sets *at to n unless it is greater already. It is for minLength and the
// like.
func Raise(at **uint64, n uint64) {
	if *at == nil || **at < n {
		*at = &n
	}
}

// Lower sets *at to n unless it is smaller already. It is for maxLength and the
// like.
func Lower(at **uint64, n uint64) {
	if *at == nil || **at > n {
		*at = &n
	}
}

// RaiseNumber sets *at to n unless it is greater already. It is for minimum and
// exclusiveMinimum.
func RaiseNumber(at *json.Number, n json.Number) {
	if *at == "" || compareNumbers(*at, n) < 0 {
		*at = n
	}
}

// LowerNumber sets *at to n unless it is smaller already. It is for maximum and
// exclusiveMaximum.
func LowerNumber(at *json.Number, n json.Number) {
	if *at == "" || compareNumbers(*at, n) > 0 {
		*at = n
	}
}

// compareNumbers compares two numbers by their exact values; 0 if one of them
// is not a number.
func compareNumbers(a, b json.Number) int {
	x, okX := new(big.Rat).SetString(string(a))
	y, okY := new(big.Rat).SetString(string(b))
	if !okX || !okY {
		return 0
	}
	return x.Cmp(y)
}

// Also adds a schema to allOf, for a keyword that s has with another value.
func Also(s, more *jsonschema.Schema) { s.AllOf = append(s.AllOf, more) }

// AddPattern, AddFormat, AddEnum, AddConst and AddNot add the keyword that they
// are named after.
func AddPattern(s *jsonschema.Schema, pattern string) {
	switch s.Pattern {
	case "", pattern:
		s.Pattern = pattern
	default:
		Also(s, &jsonschema.Schema{Pattern: pattern})
	}
}

func AddFormat(s *jsonschema.Schema, format string) {
	switch s.Format {
	case "", format:
		s.Format = format
	default:
		Also(s, &jsonschema.Schema{Format: format})
	}
}

func AddEnum(s *jsonschema.Schema, values []any) {
	if s.Enum == nil {
		s.Enum = values
		return
	}
	Also(s, &jsonschema.Schema{Enum: values})
}

func AddConst(s *jsonschema.Schema, value any) {
	if s.Const == nil {
		s.Const = value
		return
	}
	Also(s, &jsonschema.Schema{Const: value})
}

func AddNot(s, not *jsonschema.Schema) {
	if s.Not == nil {
		s.Not = not
		return
	}
	Also(s, &jsonschema.Schema{Not: not})
}

// AddExamples sets examples unless the schema has some.
func AddExamples(s *jsonschema.Schema, values ...any) {
	if s.Examples == nil {
		s.Examples = values
	}
}

// AddAll adds every keyword of more to s. Those that s has with another value
// go into allOf. The two schemas share what the keywords of more point to, so
// more must not be used afterwards.
func AddAll(s, more *jsonschema.Schema) {
	var rest *jsonschema.Schema
	conflict := func() *jsonschema.Schema {
		if rest == nil {
			rest = &jsonschema.Schema{}
		}
		return rest
	}
	if s.Extras == nil {
		s.Extras = more.Extras
	} else if more.Extras != nil && !reflect.DeepEqual(s.Extras, more.Extras) {
		conflict().Extras = more.Extras
	}
	memory := words(more)
	for _, field := range schemaFields() {
		if memory[field.word] == 0 {
			continue
		}
		f, at := reflect.ValueOf(more).Elem().Field(field.index), reflect.ValueOf(s).Elem().Field(field.index)
		switch {
		case f.IsZero():
		case at.IsZero():
			at.Set(f)
		case !reflect.DeepEqual(at.Interface(), f.Interface()):
			reflect.ValueOf(conflict()).Elem().Field(field.index).Set(f)
		}
	}
	if rest != nil {
		Also(s, rest)
	}
}
