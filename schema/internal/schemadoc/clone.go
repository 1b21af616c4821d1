package schemadoc

import (
	"maps"
	"reflect"
	"slices"

	"github.com/invopop/jsonschema"
)

// Clone returns a deep copy of a schema, nil for nil. Values in const, default,
// enum, examples and Extras are copied by CloneAny.
func Clone(s *jsonschema.Schema) *jsonschema.Schema {
	if s == nil {
		return nil
	}
	c := *s
	for _, at := range singles(&c) {
		*at = Clone(*at)
	}
	for _, list := range lists(&c) {
		*list = slices.Clone(*list)
		for i, e := range *list {
			(*list)[i] = Clone(e)
		}
	}
	for _, m := range schemaMaps(&c) {
		*m = maps.Clone(*m)
		for k, v := range *m {
			(*m)[k] = Clone(v)
		}
	}
	if s.Definitions != nil {
		c.Definitions = jsonschema.Definitions{}
		for k, v := range s.Definitions {
			c.Definitions[k] = Clone(v)
		}
	}
	if s.Properties != nil {
		c.Properties = jsonschema.NewProperties()
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			c.Properties.Set(p.Key, Clone(p.Value))
		}
	}
	if s.DependentRequired != nil {
		c.DependentRequired = map[string][]string{}
		for k, v := range s.DependentRequired {
			c.DependentRequired[k] = slices.Clone(v)
		}
	}
	for _, n := range []**uint64{&c.MaxLength, &c.MinLength, &c.MaxItems, &c.MinItems, &c.MaxContains, &c.MinContains, &c.MaxProperties, &c.MinProperties} {
		if *n != nil {
			v := **n
			*n = &v
		}
	}
	c.Required = slices.Clone(s.Required)
	c.Enum, _ = CloneAny(s.Enum).([]any)
	c.Examples, _ = CloneAny(s.Examples).([]any)
	c.Const, c.Default = CloneAny(s.Const), CloneAny(s.Default)
	c.Extras, _ = CloneAny(s.Extras).(map[string]any)
	return &c
}

// singles, lists and schemaMaps return the fields of a schema that hold other
// schemas, so that code which visits all of them cannot forget one. Properties
// and Definitions have types of their own and are handled separately.
func singles(s *jsonschema.Schema) []**jsonschema.Schema {
	return []**jsonschema.Schema{&s.Not, &s.If, &s.Then, &s.Else, &s.Items, &s.Contains,
		&s.AdditionalProperties, &s.PropertyNames, &s.ContentSchema}
}

func lists(s *jsonschema.Schema) []*[]*jsonschema.Schema {
	return []*[]*jsonschema.Schema{&s.AllOf, &s.AnyOf, &s.OneOf, &s.PrefixItems}
}

func schemaMaps(s *jsonschema.Schema) []*map[string]*jsonschema.Schema {
	return []*map[string]*jsonschema.Schema{&s.DependentSchemas, &s.PatternProperties}
}

// CloneAny returns a deep copy of a value as JSON decodes it, and of slices of
// other types. Everything else is returned as it is.
func CloneAny(v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = CloneAny(e)
		}
		return out
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = CloneAny(e)
		}
		return out
	case *jsonschema.Schema:
		return Clone(v)
	}
	rv := reflect.ValueOf(v)
	if rv.Kind() == reflect.Slice && !rv.IsNil() {
		out := reflect.MakeSlice(rv.Type(), rv.Len(), rv.Len())
		reflect.Copy(out, rv)
		return out.Interface()
	}
	return v
}

// Refers reports whether a schema contains a reference or definitions anywhere.
func Refers(s *jsonschema.Schema) bool {
	if s == nil {
		return false
	}
	if s.Ref != "" || s.DynamicRef != "" || len(s.Definitions) > 0 {
		return true
	}
	for _, at := range singles(s) {
		if Refers(*at) {
			return true
		}
	}
	for _, list := range lists(s) {
		if slices.ContainsFunc(*list, Refers) {
			return true
		}
	}
	for _, m := range schemaMaps(s) {
		for _, v := range *m {
			if Refers(v) {
				return true
			}
		}
	}
	if s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			if Refers(p.Value) {
				return true
			}
		}
	}
	return false
}
