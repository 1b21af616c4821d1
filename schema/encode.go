package schema

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
	orderedmap "github.com/pb33f/ordered-map/v2"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// leading are the keywords that a reader wants to see first.
var leading = []string{"$ref", "type", "title", "description"}

// trailing are the keywords that are long and read last.
var trailing = []string{"dependentRequired", "dependentSchemas", "if", "then", "else", "$defs"}

// schemaFields are the keywords of jsonschema.Schema with their places in it,
// in the order they are written.
var schemaFields = func() []schemaField {
	t := reflect.TypeFor[jsonschema.Schema]()
	var fields []schemaField
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields = append(fields, schemaField{name, i})
		}
	}
	rank := func(f schemaField) int {
		if i := slices.Index(leading, f.name); i >= 0 {
			return i - len(leading)
		}
		return slices.Index(trailing, f.name) + 1
	}
	slices.SortStableFunc(fields, func(a, b schemaField) int { return rank(a) - rank(b) })
	return fields
}()

type schemaField struct {
	name  string
	index int
}

// vocabulary has every keyword of JSON Schema 2020-12.
var vocabulary = func() map[string]bool {
	known := map[string]bool{"unevaluatedProperties": true, "unevaluatedItems": true, "$dynamicAnchor": true, "$vocabulary": true}
	for _, f := range schemaFields {
		known[f.name] = true
	}
	return known
}()

// encodeSchema appends a schema as JSON. Unlike its MarshalJSON it keeps the
// same bytes for the same schema, puts type and description first, writes an
// empty schema as {} and leaves <, > and & as they are.
func encodeSchema(dst []byte, s *jsonschema.Schema) []byte {
	if on, ok := boolean(s); ok {
		return strconv.AppendBool(dst, on)
	}
	dst = append(dst, '{')
	start := len(dst)
	name := func(n string) {
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(jsonx.AppendString(dst, n), ':')
	}
	extras := make([]string, 0, len(s.Extras))
	for k := range s.Extras {
		extras = append(extras, k)
	}
	slices.Sort(extras)
	v := reflect.ValueOf(s).Elem()
	for _, f := range schemaFields {
		if over, ok := s.Extras[f.name]; ok {
			name(f.name)
			dst = appendAny(dst, over)
		} else if fv := v.Field(f.index); !fv.IsZero() && !(fv.Kind() == reflect.Slice && fv.Len() == 0) {
			name(f.name)
			dst = appendKeyword(dst, fv.Interface())
		}
	}
	for _, k := range extras {
		if !slices.ContainsFunc(schemaFields, func(f schemaField) bool { return f.name == k }) {
			name(k)
			dst = appendAny(dst, s.Extras[k])
		}
	}
	return append(dst, '}')
}

// boolean returns the value of a schema that is just true or false.
func boolean(s *jsonschema.Schema) (on, ok bool) {
	b := reflect.ValueOf(s).Elem().FieldByName("boolean")
	if b.IsNil() {
		return false, false
	}
	return b.Elem().Bool(), true
}

func appendKeyword(dst []byte, v any) []byte {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return encodeSchema(dst, v)
	case []*jsonschema.Schema:
		dst = append(dst, '[')
		for i, s := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = encodeSchema(dst, s)
		}
		return append(dst, ']')
	case map[string]*jsonschema.Schema:
		return appendSchemas(dst, v)
	case jsonschema.Definitions:
		return appendSchemas(dst, v)
	case *orderedmap.OrderedMap[string, *jsonschema.Schema]:
		dst = append(dst, '{')
		for p := v.Oldest(); p != nil; p = p.Next() {
			if p != v.Oldest() {
				dst = append(dst, ',')
			}
			dst = append(jsonx.AppendString(dst, p.Key), ':')
			dst = encodeSchema(dst, p.Value)
		}
		return append(dst, '}')
	}
	return appendAny(dst, v)
}

func appendSchemas(dst []byte, m map[string]*jsonschema.Schema) []byte {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsonx.AppendString(dst, name), ':')
		dst = encodeSchema(dst, m[name])
	}
	return append(dst, '}')
}

// appendAny appends a plain value. What cannot be JSON, which only a hook can
// bring in, becomes null.
func appendAny(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return jsonx.AppendString(dst, v)
	case json.RawMessage:
		return append(dst, v...)
	case *jsonschema.Schema:
		return encodeSchema(dst, v)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return append(dst, "null"...)
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
