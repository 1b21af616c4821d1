package schema

import (
	"fmt"
	"net/netip"
	"reflect"
	"time"

	"github.com/invopop/jsonschema"
)

// uniqueKey turns a value into a map key that is equal for equal values.
type uniqueKey func(reflect.Value) any

// compileUnique is unique on lists and maps, and unique=Field on lists of
// structs. It compares decoded values, with Go's ==.
func compileUnique(r rule, t target) ([]check, *problem) {
	if t.typ == nil {
		return nil, r.fault("unique needs a slice, an array or a map", "use it on such a field")
	}
	elem := t.typ.Elem()
	if r.hasParam {
		return uniqueField(r, t, elem)
	}
	key, why := keyOf(elem)
	if why != "" {
		return nil, r.fault(fmt.Sprintf("unique cannot compare elements of type %s: %s", elem, why), "use elements of a scalar type, or unique=Field on a slice of structs")
	}
	c := check{tag: r.written, code: "uniqueItems", want: "a list without duplicates"}
	if t.kind == kindMap {
		c.code, c.want, c.note = "unique", "an object whose values all differ", "All values must differ."
		c.value = distinctValues(key)
		return []check{c}, nil
	}
	c.emit = func(s *jsonschema.Schema) { s.UniqueItems = true }
	if !plainElement(elem) {
		c.code, c.note = "unique", "Items are compared after decoding, with defaults in place."
	}
	c.value = distinctItems(key)
	return []check{c}, nil
}

func uniqueField(r rule, t target, elem reflect.Type) ([]check, *problem) {
	pointer := elem.Kind() == reflect.Pointer
	if pointer {
		elem = elem.Elem()
	}
	if t.kind != kindList || elem.Kind() != reflect.Struct {
		return nil, r.fault(r.name+"=Field needs a slice of structs", "write unique without a parameter")
	}
	field, ok := elem.FieldByName(r.param)
	if !ok {
		field, ok = fieldByJSONName(elem, r.param)
	}
	if !ok || !field.IsExported() {
		return nil, r.fault(fmt.Sprintf("%s has no field %q", elem, r.param), "name an exported field of it")
	}
	key, why := keyOf(field.Type)
	if why != "" {
		return nil, r.fault(fmt.Sprintf("unique cannot compare %s.%s: %s", elem, field.Name, why), "name a field of a scalar type")
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
	shown := jsonFieldName(field)
	return []check{{
		tag: r.written, code: "unique", want: "a list whose items all differ in " + shown,
		note: "Items must differ in " + shown + ".", value: distinctItems(fieldKey),
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

func distinctItems(key uniqueKey) func(reflect.Value) bool {
	return func(list reflect.Value) bool {
		seen := make(map[any]struct{}, list.Len())
		for i := range list.Len() {
			k := key(list.Index(i))
			if _, ok := seen[k]; ok {
				return false
			}
			seen[k] = struct{}{}
		}
		return true
	}
}

func distinctValues(key uniqueKey) func(reflect.Value) bool {
	return func(m reflect.Value) bool {
		seen := make(map[any]struct{}, m.Len())
		for it := m.MapRange(); it.Next(); {
			k := key(it.Value())
			if _, ok := seen[k]; ok {
				return false
			}
			seen[k] = struct{}{}
		}
		return true
	}
}

// plainElement reports whether elements of the type differ as JSON exactly
// when they differ in Go.
func plainElement(typ reflect.Type) bool {
	if typ.PkgPath() == "time" || typ.Implements(textMarshalerType) || reflect.PointerTo(typ).Implements(textMarshalerType) {
		return false
	}
	switch typ.Kind() {
	case reflect.Bool, reflect.String, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	}
	return false
}

var textMarshalerType = reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()

// keyOf tells how to compare values of a type, or why they cannot be
// compared. What Go compares by address would call equal values different.
func keyOf(typ reflect.Type) (uniqueKey, string) {
	switch {
	case typ == timeType:
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
