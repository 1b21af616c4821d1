package jsonx

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// mapEntry is a member of a map, for sorting by key. Depending on the op of the
// node its value is in value, in text, or is element at of a slice that
// mapEntries returned.
type mapEntry struct {
	key   string
	value any
	text  string
	at    int
}

// appendMap appends the map of n's type at p with its keys sorted, so that the
// same map gives the same bytes.
func (e *Encoder) appendMap(dst []byte, n *node, p unsafe.Pointer, depth int) ([]byte, error) {
	if *(*unsafe.Pointer)(p) == nil { // a map is a pointer
		if e.opts.NilAsNull {
			return append(dst, "null"...), nil
		}
		return append(dst, '{', '}'), nil
	}
	if depth >= e.opts.MaxDepth {
		return dst, errTooDeep
	}
	pooled := e.mapEntries.Get().(*[]mapEntry)
	entries, values, err := mapEntries((*pooled)[:0], n, p)
	if err == nil {
		slices.SortFunc(entries, func(a, b mapEntry) int { return strings.Compare(a.key, b.key) })
		dst, err = e.appendEntries(dst, n, entries, values, depth+1)
	}
	clear(entries) // a pool should hold on to no one's data
	*pooled = entries
	e.mapEntries.Put(pooled)
	return dst, err
}

// mapEntries appends the members of a map to entries. For a map of general type
// it copies the values into a slice, because they have no address in the map,
// and returns where that slice begins.
func mapEntries(entries []mapEntry, n *node, p unsafe.Pointer) (_ []mapEntry, values unsafe.Pointer, err error) {
	switch n.op {
	case opMapStringAny:
		for k, v := range *(*map[string]any)(p) {
			entries = append(entries, mapEntry{key: k, value: v})
		}
		return entries, nil, nil
	case opMapStringString:
		for k, v := range *(*map[string]string)(p) {
			entries = append(entries, mapEntry{key: k, text: v})
		}
		return entries, nil, nil
	}
	m := reflect.NewAt(n.typ, p).Elem()
	slice := reflect.MakeSlice(reflect.SliceOf(n.typ.Elem()), m.Len(), m.Len())
	key := reflect.New(n.typ.Key()).Elem()
	for it := m.MapRange(); it.Next(); {
		i := len(entries)
		if i == slice.Len() {
			return entries, nil, errMapChanged
		}
		key.SetIterKey(it)
		slice.Index(i).SetIterValue(it)
		name, err := keyName(key)
		if err != nil {
			return entries, nil, err
		}
		entries = append(entries, mapEntry{key: name, at: i})
	}
	return entries, slice.UnsafePointer(), nil
}

// appendEntries appends the members in the given order.
func (e *Encoder) appendEntries(dst []byte, n *node, entries []mapEntry, values unsafe.Pointer, depth int) ([]byte, error) {
	dst = append(dst, '{')
	for i := range entries {
		entry := &entries[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, entry.key), ':')
		var err error
		switch n.op {
		case opMapStringAny:
			dst, err = e.appendAny(dst, entry.value, unsafe.Pointer(&entry.value), depth)
		case opMapStringString:
			dst = AppendString(dst, entry.text)
		default:
			dst, err = e.append(dst, n.elem, unsafe.Add(values, uintptr(entry.at)*n.size), depth)
		}
		if err != nil {
			return dst, at(err, entry.key)
		}
	}
	return append(dst, '}'), nil
}

// keyName returns the member name for a map key: text as it is, MarshalText, a
// duration, or an integer in decimal.
func keyName(key reflect.Value) (string, error) {
	if key.Kind() == reflect.String {
		return key.String(), nil
	}
	if key.Type().Implements(textMarshalerType) {
		switch key.Kind() {
		case reflect.Pointer:
			if key.IsNil() {
				return "", nil
			}
		case reflect.Interface:
			if key.IsNil() {
				return "", fmt.Errorf("a nil %s is a map key", key.Type())
			}
		}
		text, err := key.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			return "", fmt.Errorf("MarshalText of the map key type %s: %w", key.Type(), err)
		}
		return string(text), nil
	}
	if key.Type() == durationType {
		return time.Duration(key.Int()).String(), nil
	}
	if key.CanInt() {
		return strconv.FormatInt(key.Int(), 10), nil
	}
	return strconv.FormatUint(key.Uint(), 10), nil
}
