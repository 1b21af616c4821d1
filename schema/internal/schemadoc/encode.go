// Package schemadoc reads, changes and writes values of invopop's
// *jsonschema.Schema: deep copies, adding a keyword to a schema that may have
// it already, and JSON with the same bytes for the same schema.
//
// Copies matter because schemas come from methods of users' types and are given
// to users, who may change them. Stable bytes matter because lists of tools are
// cached and compared by clients. What the type itself writes gives neither: it
// puts keywords in another order and escapes characters for HTML.
//
// Fields are read by reflection. A keyword in Extras takes precedence over the field for
// the same keyword, so that a keyword can have a value that the type of the field does
// not permit, such as a list of types.
package schemadoc

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// leading are the keywords that are written first, because readers look for
// them, and trailing those that are written last, because they are long.
var leading = []string{"$ref", "type", "title", "description"}

var trailing = []string{"dependentRequired", "dependentSchemas", "if", "then", "else", "$defs"}

// schemaFields returns the keywords of jsonschema.Schema and the fields that
// hold them, in the order in which they are written.
var schemaFields = sync.OnceValue(func() []*schemaField {
	t := reflect.TypeFor[jsonschema.Schema]()
	var fields []*schemaField
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields = append(fields, &schemaField{name, i, t.Field(i).Offset / wordSize})
		}
	}
	rank := func(f *schemaField) int {
		if i := slices.Index(leading, f.name); i >= 0 {
			return i - len(leading)
		}
		return slices.Index(trailing, f.name) + 1
	}
	slices.SortStableFunc(fields, func(a, b *schemaField) int { return rank(a) - rank(b) })
	return fields
})

// schemaField is a keyword, the index of its field, and the word in which it begins.
type schemaField struct {
	name  string
	index int
	word  uintptr
}

const wordSize = unsafe.Sizeof(uintptr(0))

// words returns the memory of a schema. A field whose first word is zero is zero: flags
// lie within a word, and all others begin with a pointer. Most keywords are absent, and
// reflection takes much longer to find that.
func words(s *jsonschema.Schema) []uintptr {
	return unsafe.Slice((*uintptr)(unsafe.Pointer(s)), unsafe.Sizeof(*s)/wordSize)
}

// Vocabulary returns the keywords of JSON Schema 2020-12. The map must not be
// modified.
var Vocabulary = sync.OnceValue(func() map[string]bool {
	known := map[string]bool{"unevaluatedProperties": true, "unevaluatedItems": true, "$dynamicAnchor": true, "$vocabulary": true}
	for _, f := range schemaFields() {
		known[f.name] = true
	}
	return known
})

// Append appends a schema as JSON. Unlike the type itself it always writes the same
// bytes for the same schema, puts type and description first, writes {} for an
// empty schema and for true, and does not escape <, > and &.
func Append(dst []byte, s *jsonschema.Schema) []byte {
	if isFalse(s) {
		return append(dst, "false"...)
	}
	dst = append(dst, '{')
	start := len(dst)
	name := func(n string) {
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(jsonx.AppendString(dst, n), ':')
	}
	v, memory := reflect.ValueOf(s).Elem(), words(s)
	for _, f := range schemaFields() {
		if s.Extras != nil {
			if over, ok := s.Extras[f.name]; ok {
				name(f.name)
				dst = appendValue(dst, over)
				continue
			}
		}
		if memory[f.word] == 0 {
			continue
		}
		fv := v.Field(f.index)
		switch {
		case fv.IsZero():
		case f.name == "properties":
			name(f.name)
			dst = appendProperties(dst, s)
		case fv.Kind() == reflect.Slice && fv.Len() == 0:
		case fv.Type() == reflect.TypeFor[string]():
			name(f.name)
			dst = jsonx.AppendString(dst, fv.String())
		default:
			name(f.name)
			dst = appendKeyword(dst, fv.Interface())
		}
	}
	if s.Extras == nil {
		return append(dst, '}')
	}
	for _, k := range slices.Sorted(maps.Keys(s.Extras)) {
		if !slices.ContainsFunc(schemaFields(), func(f *schemaField) bool { return f.name == k }) {
			name(k)
			dst = appendValue(dst, s.Extras[k])
		}
	}
	return append(dst, '}')
}

// booleanField is the index of the unexported field in which a schema records that it
// is a boolean. It panics if a release of the package has it elsewhere.
var booleanField = sync.OnceValue(func() int {
	v := reflect.ValueOf(jsonschema.FalseSchema).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); !v.Type().Field(i).IsExported() && f.Type() == reflect.TypeFor[*bool]() && !f.IsNil() && !f.Elem().Bool() {
			return i
		}
	}
	panic("schemadoc: jsonschema.FalseSchema has no field that says so")
})

// isFalse reports whether a schema is the boolean schema false.
func isFalse(s *jsonschema.Schema) bool {
	if s.Type != "" || s.Ref != "" {
		return false // who makes a schema of these does not make it of a boolean
	}
	boolean := reflect.ValueOf(s).Elem().Field(booleanField())
	return !boolean.IsNil() && !boolean.Elem().Bool()
}

// appendKeyword appends the value of a field.
func appendKeyword(dst []byte, v any) []byte {
	switch v := v.(type) {
	case *jsonschema.Schema:
		return Append(dst, v)
	case []*jsonschema.Schema:
		dst = append(dst, '[')
		for i, s := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = Append(dst, s)
		}
		return append(dst, ']')
	case map[string]*jsonschema.Schema:
		return appendSchemas(dst, v)
	case jsonschema.Definitions:
		return appendSchemas(dst, v)
	}
	return appendValue(dst, v)
}

// appendProperties appends the properties in their own order.
func appendProperties(dst []byte, s *jsonschema.Schema) []byte {
	dst = append(dst, '{')
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		if p != s.Properties.Oldest() {
			dst = append(dst, ',')
		}
		dst = Append(append(jsonx.AppendString(dst, p.Key), ':'), p.Value)
	}
	return append(dst, '}')
}

// appendSchemas appends an object of schemas, sorted by name.
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
		dst = Append(dst, m[name])
	}
	return append(dst, '}')
}

// appendValue appends any value that a keyword may hold. Methods of users can
// put a schema anywhere.
func appendValue(dst []byte, v any) []byte {
	if s, ok := v.(*jsonschema.Schema); ok {
		return Append(dst, s)
	}
	return wording.AppendJSON(dst, v)
}
