package schema

import (
	"maps"
	"reflect"
	"slices"

	"github.com/invopop/jsonschema"
	orderedmap "github.com/pb33f/ordered-map/v2"
)

// clone returns a deep copy of a schema.
func clone(s *jsonschema.Schema) *jsonschema.Schema {
	if s == nil {
		return nil
	}
	c := *s
	for _, at := range singles(&c) {
		*at = clone(*at)
	}
	for _, list := range lists(&c) {
		*list = slices.Clone(*list)
		for i, e := range *list {
			(*list)[i] = clone(e)
		}
	}
	for _, m := range schemaMaps(&c) {
		*m = maps.Clone(*m)
		for k, v := range *m {
			(*m)[k] = clone(v)
		}
	}
	if s.Definitions != nil {
		c.Definitions = jsonschema.Definitions{}
		for k, v := range s.Definitions {
			c.Definitions[k] = clone(v)
		}
	}
	if s.Properties != nil {
		c.Properties = orderedmap.New[string, *jsonschema.Schema]()
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			c.Properties.Set(p.Key, clone(p.Value))
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
	c.Enum, _ = cloneAny(s.Enum).([]any)
	c.Examples, _ = cloneAny(s.Examples).([]any)
	c.Const, c.Default = cloneAny(s.Const), cloneAny(s.Default)
	c.Extras, _ = cloneAny(s.Extras).(map[string]any)
	return &c
}

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

// cloneAny copies the containers in a plain value.
func cloneAny(v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = cloneAny(e)
		}
		return out
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = cloneAny(e)
		}
		return out
	case *jsonschema.Schema:
		return clone(v)
	}
	rv := reflect.ValueOf(v)
	if rv.Kind() == reflect.Slice && !rv.IsNil() {
		out := reflect.MakeSlice(rv.Type(), rv.Len(), rv.Len())
		reflect.Copy(out, rv)
		return out.Interface()
	}
	return v
}

// refers tells whether a schema has references or definitions anywhere.
func refers(s *jsonschema.Schema) bool {
	if s == nil {
		return false
	}
	if s.Ref != "" || s.DynamicRef != "" || len(s.Definitions) > 0 {
		return true
	}
	for _, at := range singles(s) {
		if refers(*at) {
			return true
		}
	}
	for _, list := range lists(s) {
		if slices.ContainsFunc(*list, refers) {
			return true
		}
	}
	for _, m := range schemaMaps(s) {
		for _, v := range *m {
			if refers(v) {
				return true
			}
		}
	}
	if s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			if refers(p.Value) {
				return true
			}
		}
	}
	return false
}
