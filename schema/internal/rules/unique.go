package rules

import (
	"encoding"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/tags"
)

// uniqueKey turns a value into a map key that is equal for equal values.
type uniqueKey func(reflect.Value) any

// compileUnique is unique on lists and maps, and unique=Field on lists of
// structs. It compares decoded values, with Go's ==.
func compileUnique(r tags.Rule, t Target) ([]Check, *tags.Problem) {
	if t.Type == nil {
		return nil, r.Fault("unique needs a slice, an array or a map", "use it on such a field")
	}
	elem := t.Type.Elem()
	if r.HasParam {
		return uniqueField(r, t, elem)
	}
	key, why := keyOf(elem)
	if why != "" {
		return nil, r.Fault(fmt.Sprintf("unique cannot compare elements of type %s: %s", elem, why), "use elements of a scalar type, or unique=Field on a slice of structs")
	}
	c := Check{Tag: r.Written, Code: "uniqueItems", Want: "an array without duplicates", Test: &UniqueRule{key: key}}
	if t.Kind == KindMap {
		c.Code, c.Want, c.Note = "unique", "an object whose values all differ", "All values must differ."
		return []Check{c}, nil
	}
	c.Emit = func(s *jsonschema.Schema) { s.UniqueItems = true }
	switch {
	case elem.Kind() == reflect.Float32 || elem.Kind() == reflect.Float64:
		c.Code, c.Note = "unique", fmt.Sprintf("Items are compared as numbers of %d bits.", elem.Bits())
	case !plainElement(elem):
		c.Code, c.Note = "unique", "Items are compared after decoding, with defaults in place."
	}
	return []Check{c}, nil
}

// uniqueField is unique=Field. Items behind nil pointers, or without the field
// because an embedded pointer is nil, count as equal to each other.
func uniqueField(r tags.Rule, t Target, elem reflect.Type) ([]Check, *tags.Problem) {
	pointer := elem.Kind() == reflect.Pointer
	if pointer {
		elem = elem.Elem()
	}
	if t.Kind != KindList || elem.Kind() != reflect.Struct {
		return nil, r.Fault(r.Name+"=Field needs a slice of structs", "write unique without a parameter")
	}
	field, ok := elem.FieldByName(r.Param)
	if !ok {
		field, ok = fieldByJSONName(elem, r.Param)
	}
	if !ok || !field.IsExported() {
		return nil, r.Fault(fmt.Sprintf("%s has no field %q", elem, r.Param), "name an exported field of it")
	}
	key, why := keyOf(field.Type)
	if why != "" {
		return nil, r.Fault(fmt.Sprintf("unique cannot compare %s.%s: %s", elem, field.Name, why), "name a field of a scalar type")
	}
	fieldKey := func(v reflect.Value) any {
		if pointer {
			if v.IsNil() {
				return nil
			}
			v = v.Elem()
		}
		f, err := v.FieldByIndexErr(field.Index)
		if err != nil {
			return nil // an embedded pointer is nil
		}
		return key(f)
	}
	u := &UniqueRule{fieldKey, jsonFieldName(field)}
	return []Check{{
		Tag: r.Written, Code: "unique", Want: "an array whose items all differ in " + u.Among,
		Note: "Items must differ in " + u.Among + ".", Test: u,
	}}, nil
}

// fieldByJSONName finds the field of a struct that has a name in JSON.
func fieldByJSONName(typ reflect.Type, name string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(typ) {
		if f.IsExported() && !f.Anonymous && jsonFieldName(f) == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// jsonFieldName is the name of a field in JSON.
func jsonFieldName(f reflect.StructField) string {
	name := f.Tag.Get("json")
	for i := range len(name) {
		if name[i] == ',' {
			name = name[:i]
			break
		}
	}
	if name == "" || name == "-" {
		return f.Name
	}
	return name
}

// UniqueRule compares the items of a list, or the values of a map.
type UniqueRule struct {
	key   uniqueKey
	Among string // the member of each item that is compared; "" for all of it
}

func (*UniqueRule) predicate() {}

// Holds reports whether no two values are equal.
func (u *UniqueRule) Holds(v reflect.Value) bool {
	seen := make(map[any]struct{}, v.Len())
	add := func(item reflect.Value) { seen[u.key(item)] = struct{}{} }
	if v.Kind() == reflect.Map {
		for it := v.MapRange(); it.Next(); {
			add(it.Value())
		}
	} else {
		for i := range v.Len() {
			add(v.Index(i))
		}
	}
	return len(seen) == v.Len()
}

// Pair returns two equal values, by index or by key. Left out are those that
// skip says it cannot check; it may also give a key of its own.
func (u *UniqueRule) Pair(v reflect.Value, skip func(name string) (key any, skipped bool)) (a, b string, equal bool) {
	seen := map[any]string{}
	each := func(name string, item reflect.Value) bool {
		key, skipped := skip(name)
		switch {
		case skipped && key == nil:
			return false
		case !skipped:
			key = u.key(item)
		}
		if a, equal = seen[key]; equal {
			b = name
		}
		seen[key] = name
		return equal
	}
	if v.Kind() != reflect.Map {
		for i := range v.Len() {
			if each(strconv.Itoa(i), v.Index(i)) {
				break
			}
		}
		return a, b, equal
	}
	values := map[string]reflect.Value{}
	for it := v.MapRange(); it.Next(); {
		values[keyText(it.Key())] = it.Value()
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if each(name, values[name]) {
			break
		}
	}
	return a, b, equal
}

// keyText is the member name of a map key.
func keyText(key reflect.Value) string {
	if m, ok := key.Interface().(encoding.TextMarshaler); ok && key.Kind() != reflect.String {
		if text, err := m.MarshalText(); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(key)
}

// plainElement reports whether elements of the type differ as JSON exactly
// when they differ in Go.
func plainElement(typ reflect.Type) bool {
	if typ.PkgPath() == "time" || typ.Implements(textMarshalerType) || reflect.PointerTo(typ).Implements(textMarshalerType) {
		return false
	}
	switch typ.Kind() {
	case reflect.Bool, reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	}
	return false
}

var textMarshalerType = reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()

// keyOf returns how to compare values of a type, or why they cannot be compared.
// What Go compares by address would call equal values different.
func keyOf(typ reflect.Type) (uniqueKey, string) {
	switch {
	case typ == TimeType:
		return func(v reflect.Value) any { return instantOf(timeOf(v)) }, ""
	case typ.Kind() == reflect.Pointer:
		key, why := keyOf(typ.Elem())
		return func(v reflect.Value) any {
			if v.IsNil() {
				return nil
			}
			return key(v.Elem())
		}, why
	}
	if why := incomparable(typ); why != "" {
		return nil, why
	}
	return func(v reflect.Value) any { return v.Interface() }, ""
}

// instant is a point in time without its zone.
type instant struct{ seconds, nanos int64 }

func instantOf(t time.Time) instant { return instant{t.Unix(), int64(t.Nanosecond())} }

// incomparable says what keeps == from comparing values of a type by content.
func incomparable(typ reflect.Type) string {
	if typ == reflect.TypeFor[netip.Addr]() || typ == reflect.TypeFor[netip.Prefix]() {
		return "" // they hold a pointer, but a canonical one
	}
	switch typ.Kind() {
	case reflect.Slice, reflect.Map, reflect.Func:
		return "Go has no == for it"
	case reflect.Interface:
		return "it may hold anything"
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
		return "it holds a pointer"
	case reflect.Array:
		return incomparable(typ.Elem())
	case reflect.Struct:
		for i := range typ.NumField() {
			f := typ.Field(i)
			if why := incomparable(f.Type); why != "" {
				return "its field " + f.Name + ": " + why
			}
		}
	}
	return ""
}
