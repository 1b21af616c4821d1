package schema

import (
	"encoding/json"
	"math/big"
	"reflect"

	"github.com/invopop/jsonschema"
)

// The functions here add a keyword to a schema that may have it already: the
// result always says both.

func raise(at **uint64, n uint64) {
	if *at == nil || **at < n {
		*at = &n
	}
}

func lower(at **uint64, n uint64) {
	if *at == nil || **at > n {
		*at = &n
	}
}

// raiseNumber keeps the greater of two numbers, lowerNumber the smaller.
func raiseNumber(at *json.Number, n json.Number) {
	if *at == "" || compareNumbers(*at, n) < 0 {
		*at = n
	}
}

func lowerNumber(at *json.Number, n json.Number) {
	if *at == "" || compareNumbers(*at, n) > 0 {
		*at = n
	}
}

func compareNumbers(a, b json.Number) int {
	x, okX := new(big.Rat).SetString(string(a))
	y, okY := new(big.Rat).SetString(string(b))
	if !okX || !okY {
		return 0
	}
	return x.Cmp(y)
}

// also puts keywords that are taken already into allOf.
func also(s, more *jsonschema.Schema) { s.AllOf = append(s.AllOf, more) }

func addPattern(s *jsonschema.Schema, pattern string) {
	switch s.Pattern {
	case "", pattern:
		s.Pattern = pattern
	default:
		also(s, &jsonschema.Schema{Pattern: pattern})
	}
}

func addFormat(s *jsonschema.Schema, format string) {
	switch s.Format {
	case "", format:
		s.Format = format
	default:
		also(s, &jsonschema.Schema{Format: format})
	}
}

func addEnum(s *jsonschema.Schema, values []any) {
	if s.Enum == nil {
		s.Enum = values
		return
	}
	also(s, &jsonschema.Schema{Enum: values})
}

func addConst(s *jsonschema.Schema, value any) {
	if s.Const == nil {
		s.Const = value
		return
	}
	also(s, &jsonschema.Schema{Const: value})
}

func addNot(s, not *jsonschema.Schema) {
	if s.Not == nil {
		s.Not = not
		return
	}
	also(s, &jsonschema.Schema{Not: not})
}

// addExamples sets examples unless the field has its own.
func addExamples(s *jsonschema.Schema, values ...any) {
	if s.Examples == nil {
		s.Examples = values
	}
}

// addAll adds every keyword of more. Those that s has with another value go
// into allOf.
func addAll(s, more *jsonschema.Schema) {
	rest := &jsonschema.Schema{}
	have, add, conflict := reflect.ValueOf(s).Elem(), reflect.ValueOf(more).Elem(), reflect.ValueOf(rest).Elem()
	for i := range add.NumField() {
		f := add.Field(i)
		switch at := have.Field(i); {
		case !at.CanSet() || f.IsZero():
		case at.IsZero():
			at.Set(f)
		case !reflect.DeepEqual(at.Interface(), f.Interface()):
			conflict.Field(i).Set(f)
		}
	}
	if !emptySchema(rest) {
		also(s, rest)
	}
}
