package jsonx

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unsafe"
)

// fieldNode is a member of a compiled struct. prefix is what is written in
// front of its value, beginning with a comma that appendStruct overwrites for
// the first member.
type fieldNode struct {
	prefix string // `,"name":`
	name   string
	offset uintptr
	hops   []uintptr // offsets of the embedded pointers on the way, if any
	omit   func(unsafe.Pointer) bool
	*node
}

// member is a field of a struct that encoding/json might write.
type member struct {
	field             reflect.StructField
	name              string
	tagged            bool
	index             []int
	empty, zero, text bool // the options omitempty, omitzero and string
}

// fields compiles the members of a struct. path names the struct in errors.
func (c *compiler) fields(key nodeKey, path string) ([]fieldNode, error) {
	members := dominant(collect(key.typ))
	fields := make([]fieldNode, 0, len(members))
	for _, m := range members {
		f := fieldNode{name: m.name, prefix: "," + string(AppendString(nil, m.name)) + ":"}
		addressable := key.addressable
		t := key.typ
		for _, i := range m.index {
			if t.Kind() == reflect.Pointer {
				f.hops = append(f.hops, f.offset)
				f.offset, addressable = 0, true
				t = t.Elem()
			}
			f.offset += t.Field(i).Offset
			t = t.Field(i).Type
		}
		n, err := c.node(nodeKey{typ: t, addressable: addressable, quoted: m.text, form: durationFormOf(m.field.Tag)}, path+"."+m.field.Name)
		if err != nil {
			return nil, err
		}
		f.node = n
		f.omit = omitter(t, m)
		fields = append(fields, f)
	}
	return fields, nil
}

// collect returns every field of t that could become a member, including those
// of embedded structs, level by level. A struct type that is embedded twice on
// one level contributes its fields twice, so that they hide each other; one
// that was met on a level above contributes none. These are the rules of
// encoding/json.
func collect(t reflect.Type) []*member {
	type level struct {
		typ   reflect.Type
		index []int
	}
	var found []*member
	visited := map[reflect.Type]bool{}
	for next, count := []level{{typ: t}}, map[reflect.Type]int{t: 1}; len(next) > 0; {
		current, times := next, count
		next, count = nil, map[reflect.Type]int{}
		for _, l := range current {
			if visited[l.typ] {
				continue
			}
			visited[l.typ] = true
			for i := range l.typ.NumField() {
				m := memberOf(l.typ.Field(i))
				if m == nil {
					continue
				}
				m.index = append(slices.Clip(l.index), i)
				if inner := embedded(m); inner != nil {
					if count[inner]++; count[inner] == 1 {
						next = append(next, level{inner, m.index})
					}
					continue
				}
				if found = append(found, m); times[l.typ] > 1 {
					found = append(found, m)
				}
			}
		}
	}
	return found
}

// memberOf reads the json tag of f; nil is a field that is never
// written.
func memberOf(f reflect.StructField) *member {
	t := f.Type
	if t.Name() == "" && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !f.IsExported() && !(f.Anonymous && t.Kind() == reflect.Struct) {
		return nil
	}
	tag := f.Tag.Get("json")
	if tag == "-" {
		return nil
	}
	m := &member{field: f}
	name, options, _ := strings.Cut(tag, ",")
	if validName(name) {
		m.name, m.tagged = name, true
	} else {
		m.name = f.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			m.empty = true
		case "omitzero":
			m.zero = true
		case "string":
			_, m.text = simpleOps[t.Kind()]
		}
	}
	return m
}

// embedded returns the struct type whose fields are promoted in place of m, or
// nil.
func embedded(m *member) reflect.Type {
	t := m.field.Type
	if t.Name() == "" && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if m.tagged || !m.field.Anonymous || t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

// validName reports whether encoding/json uses the name in a tag. Other names
// are ignored.
func validName(name string) bool {
	for _, c := range name {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) {
			return false
		}
	}
	return name != ""
}

// dominant returns, for each name, the member that Go's embedding rules select,
// in the order of the struct: the least nested one, and among those the one
// with a tag. If several remain, the name has no member.
func dominant(all []*member) []*member {
	best := map[string][]*member{}
	for _, m := range all {
		rival := best[m.name]
		switch {
		case rival == nil || len(m.index) == len(rival[0].index) && m.tagged && !rival[0].tagged:
			best[m.name] = []*member{m}
		case len(m.index) == len(rival[0].index) && m.tagged == rival[0].tagged:
			best[m.name] = append(rival, m)
		}
	}
	var kept []*member
	for _, rivals := range best {
		if len(rivals) == 1 {
			kept = append(kept, rivals[0])
		}
	}
	slices.SortFunc(kept, func(a, b *member) int { return slices.Compare(a.index, b.index) })
	return kept
}

// omitter returns the test for leaving m out, or nil if m is always written.
// The test gets the place of the value.
func omitter(t reflect.Type, m *member) func(unsafe.Pointer) bool {
	var empty, zero func(unsafe.Pointer) bool
	if m.empty {
		empty = emptyTest(t)
	}
	if m.zero {
		zero = zeroTest(t)
	}
	switch {
	case empty == nil:
		return zero
	case zero == nil:
		return empty
	}
	return func(p unsafe.Pointer) bool { return empty(p) || zero(p) }
}

// emptyTest returns the test for omitempty, or nil if values of t are never
// empty.
func emptyTest(t reflect.Type) func(unsafe.Pointer) bool {
	switch t.Kind() {
	case reflect.String:
		return func(p unsafe.Pointer) bool { return len(*(*string)(p)) == 0 }
	case reflect.Slice:
		// All slices are laid out alike, so the length can be read from any.
		return func(p unsafe.Pointer) bool { return len(*(*[]struct{})(p)) == 0 }
	case reflect.Map:
		return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Elem().Len() == 0 }
	case reflect.Array:
		if t.Len() == 0 {
			return func(unsafe.Pointer) bool { return true }
		}
		return nil
	case reflect.Struct:
		return nil
	}
	return plainZeroTest(t)
}

// plainZeroTest is zeroTest for types without an IsZero method. The common
// kinds compare a word in place of reflection.
func plainZeroTest(t reflect.Type) func(unsafe.Pointer) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		// The first word is nil if and only if the value is.
		return func(p unsafe.Pointer) bool { return *(*unsafe.Pointer)(p) == nil }
	case reflect.Bool, reflect.Int8, reflect.Uint8:
		return func(p unsafe.Pointer) bool { return *(*uint8)(p) == 0 }
	case reflect.Int64, reflect.Uint64:
		return func(p unsafe.Pointer) bool { return *(*uint64)(p) == 0 }
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		return func(p unsafe.Pointer) bool { return *(*uint)(p) == 0 }
	case reflect.Float64:
		return func(p unsafe.Pointer) bool { return *(*float64)(p) == 0 }
	}
	return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Elem().IsZero() }
}

// isZeroer is implemented by types that decide themselves whether omitzero
// applies.
type isZeroer interface{ IsZero() bool }

var isZeroerType = reflect.TypeFor[isZeroer]()

// zeroTest returns the test for omitzero. A nil pointer or interface is zero;
// its IsZero method is not called.
func zeroTest(t reflect.Type) func(unsafe.Pointer) bool {
	switch {
	case t.Implements(isZeroerType) && t.Kind() == reflect.Interface:
		return func(p unsafe.Pointer) bool {
			v := reflect.NewAt(t, p).Elem()
			if v.IsNil() || v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() {
				return true
			}
			return v.Interface().(isZeroer).IsZero()
		}
	case t.Implements(isZeroerType) && t.Kind() == reflect.Pointer:
		return func(p unsafe.Pointer) bool {
			v := reflect.NewAt(t, p).Elem()
			return v.IsNil() || v.Interface().(isZeroer).IsZero()
		}
	case reflect.PointerTo(t).Implements(isZeroerType):
		return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Interface().(isZeroer).IsZero() }
	}
	return plainZeroTest(t)
}
