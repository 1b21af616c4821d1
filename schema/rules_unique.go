package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
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
	c := check{tag: r.written, code: "uniqueItems", want: "an array without duplicates", unique: &uniqueRule{key: key}}
	c.value = c.unique.holds
	if t.kind == kindMap {
		c.code, c.want, c.note = "unique", "an object whose values all differ", "All values must differ."
		return []check{c}, nil
	}
	c.emit = func(s *jsonschema.Schema) { s.UniqueItems = true }
	if !plainElement(elem) {
		c.code, c.note = "unique", "Items are compared after decoding, with defaults in place."
	}
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
	u := &uniqueRule{fieldKey, jsonFieldName(field)}
	return []check{{
		tag: r.written, code: "unique", want: "an array whose items all differ in " + u.among,
		note: "Items must differ in " + u.among + ".", value: u.holds, unique: u,
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

// uniqueRule compares the items of a list, or the values of a map.
type uniqueRule struct {
	key   uniqueKey
	among string // the member of each item that is compared; "" for all of it
}

// holds reports whether no two values are equal.
func (u *uniqueRule) holds(v reflect.Value) bool {
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

// pair returns two equal values, by index or by key. Left out are those that
// skip says it cannot judge; it may also give a key of its own.
func (u *uniqueRule) pair(v reflect.Value, skip func(name string) (key any, skipped bool)) (a, b string, equal bool) {
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

// faulty names the items, below prefix, that have issues in what is compared.
func (u *uniqueRule) faulty(prefix string, issues []Issue) map[string]bool {
	bad := map[string]bool{}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, is := range issues {
		below, ok := strings.CutPrefix(is.Path, prefix)
		if !ok || is.Rule == "propertyNames" {
			continue
		}
		item, rest, _ := strings.Cut(below, "/")
		if member, _, _ := strings.Cut(rest, "/"); u.among == "" || member == "" || unescape.Replace(member) == u.among {
			bad[unescape.Replace(item)] = true
		}
	}
	return bad
}

// rawItem is the key of an item that has issues: its text, since its value may
// not be what the document says.
type rawItem string

// distinct records two equal items of a list, or values of a map. Items with
// issues of their own, which are those after the first before, are compared as
// they are written.
func (d *decoder) distinct(n *node, c *check, v reflect.Value, raw []byte, before int) {
	bad := c.unique.faulty(pointer(d.path)+"/", d.issues[before:])
	var texts []json.RawMessage
	if len(bad) > 0 && c.unique.among == "" && n.kind != nodeMap {
		_ = json.Unmarshal(raw, &texts) // not a list when it came inside a string
	}
	a, b, equal := c.unique.pair(v, func(name string) (any, bool) {
		if !bad[name] {
			return nil, false
		}
		if i, err := strconv.Atoi(name); err == nil && i < len(texts) {
			return rawItem(texts[i]), true
		}
		return nil, true
	})
	if !equal {
		return
	}
	what := "items "
	if n.kind == nodeMap {
		what = "the values of "
	}
	d.fail(n, c, "", what+a+" and "+b+" are equal")
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
