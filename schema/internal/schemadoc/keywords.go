package schemadoc

import (
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
)

// IsEmpty reports whether a schema says nothing.
func IsEmpty(s *jsonschema.Schema) bool { return reflect.ValueOf(s).Elem().IsZero() }

// IsOnly reports whether a schema has the keywords of another and no more.
func IsOnly(s, same *jsonschema.Schema) bool { return reflect.DeepEqual(s, same) }

// SetExtra sets a keyword by name, over what the schema says in a field.
func SetExtra(s *jsonschema.Schema, name string, v any) {
	if s.Extras == nil {
		s.Extras = map[string]any{}
	}
	s.Extras[name] = v
}

// Checking returns the part of a schema that limits values, for comparison.
func Checking(s *jsonschema.Schema) []byte {
	s = Clone(s)
	describing(s)
	return Append(nil, s)
}

// describing removes the keywords that only describe, here and in properties.
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

// Composition names a keyword that combines schemas, if there is one on this
// level.
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
