package schemadoc

import (
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
)

// IsEmpty reports whether a schema has no keyword.
func IsEmpty(s *jsonschema.Schema) bool { return reflect.ValueOf(s).Elem().IsZero() }

// IsOnly reports whether two schemas have the same keywords with the same
// values.
func IsOnly(s, same *jsonschema.Schema) bool { return reflect.DeepEqual(s, same) }

// SetExtra sets a keyword by name. It takes precedence over the field of that
// keyword.
func SetExtra(s *jsonschema.Schema, name string, v any) {
	if s.Extras == nil {
		s.Extras = map[string]any{}
	}
	s.Extras[name] = v
}

// Checking returns the JSON of a schema without the keywords that only
// describe, so that two schemas can be compared by what they check.
func Checking(s *jsonschema.Schema) []byte {
	s = Clone(s)
	describing(s)
	return Append(nil, s)
}

// describing removes the keywords that only describe, from s and from its
// properties at every level.
func describing(s *jsonschema.Schema) {
	s.Title, s.Description, s.Comments, s.Default, s.Examples = "", "", "", nil, nil
	s.Deprecated, s.ReadOnly, s.WriteOnly = false, false, false
	for k := range s.Extras {
		if strings.HasPrefix(k, "x-") || k == "default" {
			delete(s.Extras, k)
		}
	}
	if s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			describing(p.Value)
		}
	}
}

// Composition returns the name of a keyword at the top of a schema that
// combines schemas, or "" if there is none.
func Composition(s *jsonschema.Schema) string {
	switch {
	case s.AnyOf != nil:
		return "anyOf"
	case s.OneOf != nil:
		return "oneOf"
	case s.AllOf != nil:
		return "allOf"
	}
	return ""
}
