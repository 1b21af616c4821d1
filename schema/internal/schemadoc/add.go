package schemadoc

import (
	"encoding/json"
	"math/big"
	"reflect"

	"github.com/invopop/jsonschema"
)

// The functions here add a keyword to a schema that may have it already: the
// result always says both.

func Raise(at **uint64, n uint64) {
	if *at == nil || **at < n {
		*at = &n
	}
}

func Lower(at **uint64, n uint64) {
	if *at == nil || **at > n {
		*at = &n
	}
}

// RaiseNumber keeps the greater of two numbers, lowerNumber the smaller.
func RaiseNumber(at *json.Number, n json.Number) {
	if *at == "" || compareNumbers(*at, n) < 0 {
		*at = n
	}
}

func LowerNumber(at *json.Number, n json.Number) {
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

// Also puts keywords that are taken already into allOf.
func Also(s, more *jsonschema.Schema) { s.AllOf = append(s.AllOf, more) }

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

// AddExamples sets examples unless the field has its own.
func AddExamples(s *jsonschema.Schema, values ...any) {
	if s.Examples == nil {
		s.Examples = values
	}
}

// AddAll adds every keyword of more. Those that s has with another value go
// into allOf.
func AddAll(s, more *jsonschema.Schema) {
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
	if !IsOnly(rest, &jsonschema.Schema{}) {
		Also(s, rest)
	}
}
