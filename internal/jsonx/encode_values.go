package jsonx

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"
	"unsafe"
)

// append appends the value of n's type at p. depth is the number of pointers,
// maps and slices around it. On an error the result may end in a part of the
// value.
func (e *Encoder) append(dst []byte, n *node, p unsafe.Pointer, depth int) ([]byte, error) {
	switch n.op {
	case opBool:
		return strconv.AppendBool(dst, *(*bool)(p)), nil
	case opInt:
		return strconv.AppendInt(dst, int64(*(*int)(p)), 10), nil
	case opInt8:
		return strconv.AppendInt(dst, int64(*(*int8)(p)), 10), nil
	case opInt16:
		return strconv.AppendInt(dst, int64(*(*int16)(p)), 10), nil
	case opInt32:
		return strconv.AppendInt(dst, int64(*(*int32)(p)), 10), nil
	case opInt64:
		return strconv.AppendInt(dst, *(*int64)(p), 10), nil
	case opUint:
		return strconv.AppendUint(dst, uint64(*(*uint)(p)), 10), nil
	case opUint8:
		return strconv.AppendUint(dst, uint64(*(*uint8)(p)), 10), nil
	case opUint16:
		return strconv.AppendUint(dst, uint64(*(*uint16)(p)), 10), nil
	case opUint32:
		return strconv.AppendUint(dst, uint64(*(*uint32)(p)), 10), nil
	case opUint64:
		return strconv.AppendUint(dst, *(*uint64)(p), 10), nil
	case opUintptr:
		return strconv.AppendUint(dst, uint64(*(*uintptr)(p)), 10), nil
	case opFloat32:
		return AppendFloat(dst, float64(*(*float32)(p)), 32)
	case opFloat64:
		return AppendFloat(dst, *(*float64)(p), 64)
	case opString:
		return AppendString(dst, *(*string)(p)), nil
	case opTime:
		return appendTime(dst, (*time.Time)(p))
	case opBytes:
		return e.appendBytes(dst, *(*[]byte)(p)), nil
	case opStruct:
		return e.appendStruct(dst, n, p, depth)
	case opSlice:
		return e.appendSlice(dst, n, p, depth)
	case opArray:
		return e.appendElements(dst, n, p, n.length, depth)
	case opPointer:
		return e.appendPointed(dst, n, *(*unsafe.Pointer)(p), depth)
	case opAny:
		return e.appendAny(dst, *(*any)(p), p, depth)
	case opMap, opMapStringAny, opMapStringString:
		return e.appendMap(dst, n, p, depth)
	}
	return e.appendRare(dst, n, p, depth)
}

// appendRare is append for the forms that are not frequent enough for its
// switch.
func (e *Encoder) appendRare(dst []byte, n *node, p unsafe.Pointer, depth int) ([]byte, error) {
	switch n.op {
	case opQuoted:
		dst, err := e.append(append(dst, '"'), n.elem, p, depth)
		return append(dst, '"'), err
	case opQuotedString:
		return AppendStringBytes(dst, AppendString(nil, *(*string)(p))), nil
	case opNumber:
		return appendNumber(dst, *(*string)(p))
	case opRaw:
		if *(*[]byte)(p) == nil {
			return append(dst, "null"...), nil
		}
		return e.appendChecked(dst, *(*[]byte)(p), depth)
	case opInterface:
		v := reflect.NewAt(n.typ, p).Elem()
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return e.appendAny(dst, v.Elem().Interface(), p, depth)
	case opDuration:
		return n.form.append(dst, *(*time.Duration)(p))
	case opNull:
		if !*(*bool)(unsafe.Add(p, n.size)) {
			return append(dst, "null"...), nil
		}
		return e.append(dst, n.elem, p, depth)
	case opMarshaler:
		return e.appendMarshaler(dst, n, p, depth)
	}
	return e.appendTextMarshaler(dst, n, p)
}

// appendStruct appends the members of a struct that are not omitted. Structs do
// not count for the depth, since they cannot contain themselves.
func (e *Encoder) appendStruct(dst []byte, n *node, p unsafe.Pointer, depth int) ([]byte, error) {
	start := len(dst)
	var err error
	for i := range n.fields {
		f := &n.fields[i]
		fp := p
		if f.hops != nil {
			if fp = follow(p, f.hops); fp == nil {
				continue
			}
		}
		fp = unsafe.Add(fp, f.offset)
		if f.omit != nil && f.omit(fp) {
			continue
		}
		dst = append(dst, f.prefix...)
		if f.op == opString {
			dst = AppendString(dst, *(*string)(fp))
		} else if dst, err = e.append(dst, f.node, fp, depth); err != nil {
			return dst, at(err, f.name)
		}
	}
	if len(dst) == start {
		return append(dst, '{', '}'), nil
	}
	dst[start] = '{' // in place of the first prefix's comma
	return append(dst, '}'), nil
}

// follow goes from p through embedded pointers and returns nil if one of them
// is nil.
func follow(p unsafe.Pointer, hops []uintptr) unsafe.Pointer {
	for _, offset := range hops {
		if p = *(*unsafe.Pointer)(unsafe.Add(p, offset)); p == nil {
			return nil
		}
	}
	return p
}

// appendPointed appends what the pointer q points to, or null.
func (e *Encoder) appendPointed(dst []byte, n *node, q unsafe.Pointer, depth int) ([]byte, error) {
	if q == nil {
		return append(dst, "null"...), nil
	}
	if depth >= e.opts.MaxDepth {
		return dst, errTooDeep
	}
	return e.append(dst, n.elem, q, depth+1)
}

// appendSlice appends the slice at p.
func (e *Encoder) appendSlice(dst []byte, n *node, p unsafe.Pointer, depth int) ([]byte, error) {
	// All slices are laid out alike, whatever their elements are.
	s := *(*[]struct{})(p)
	if s == nil && e.opts.NilAsNull {
		return append(dst, "null"...), nil
	}
	if depth >= e.opts.MaxDepth {
		return dst, errTooDeep
	}
	return e.appendElements(dst, n, unsafe.Pointer(unsafe.SliceData(s)), len(s), depth+1)
}

// appendElements appends count elements that begin at p.
func (e *Encoder) appendElements(dst []byte, n *node, p unsafe.Pointer, count, depth int) ([]byte, error) {
	var err error
	dst = append(dst, '[')
	for i := range count {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = e.append(dst, n.elem, unsafe.Add(p, uintptr(i)*n.size), depth); err != nil {
			return dst, at(err, strconv.Itoa(i))
		}
	}
	return append(dst, ']'), nil
}

// appendBytes appends v in base64.
func (e *Encoder) appendBytes(dst, v []byte) []byte {
	if v == nil && e.opts.NilAsNull {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, v)
	return append(dst, '"')
}

// appendAny appends v, an interface value that is stored at boxed.
// Pointer-shaped values are read from there, so that they need no copy.
func (e *Encoder) appendAny(dst []byte, v any, boxed unsafe.Pointer, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case string:
		return AppendString(dst, v), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case float64:
		return AppendFloat(dst, v, 64)
	}
	n, err := e.nodeFor(reflect.TypeOf(v))
	if err != nil {
		return dst, err
	}
	// With or without methods, an interface has its data in the second word.
	box := (*eface)(boxed)
	if n.direct {
		return e.append(dst, n, unsafe.Pointer(&box.data), depth)
	}
	return e.append(dst, n, box.data, depth)
}

// nodeFor returns the node of a type met behind an interface. A type that
// cannot be encoded is compiled again each time, since errors are not kept.
func (e *Encoder) nodeFor(t reflect.Type) (*node, error) {
	if n, ok := e.dynamic.Load(t); ok {
		return n.(*node), nil
	}
	n, err := e.compile(t, false)
	if err == nil {
		e.dynamic.Store(t, n)
	}
	return n, err
}

// appendTime appends a time in the form of RFC 3339; years beyond 9999 are an
// error.
func appendTime(dst []byte, t *time.Time) ([]byte, error) {
	out, err := t.AppendText(append(dst, '"'))
	if err != nil {
		return dst, err
	}
	return append(out, '"'), nil
}

// appendNumber appends the text of a json.Number, which must be a number.
func appendNumber(dst []byte, text string) ([]byte, error) {
	if text == "" { // the zero value
		return append(dst, '0'), nil
	}
	s := Scanner{Buf: unsafe.Slice(unsafe.StringData(text), len(text))}
	if number, _, err := s.Number(); err != nil || len(number) != len(text) {
		return dst, fmt.Errorf("json.Number %q is not a number", text)
	}
	return append(dst, text...), nil
}

// appendChecked appends JSON that code of a user has produced, after checking
// it, and without white space.
func (e *Encoder) appendChecked(dst, text []byte, depth int) ([]byte, error) {
	s := e.scanners.Get().(*Scanner)
	s.Reset(text)
	s.MaxDepth = max(e.opts.MaxDepth-depth, 1)
	dst, err := s.compact(dst)
	s.Reset(nil)
	e.scanners.Put(s)
	return dst, err
}

// receiver returns the value at p as an interface that has its methods; ok is
// false for a nil pointer or interface.
func receiver(n *node, p unsafe.Pointer) (any, bool) {
	v := reflect.NewAt(n.typ, p)
	switch n.typ.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v = v.Elem(); v.IsNil() {
			return nil, false
		}
	}
	// Otherwise the pointer, whose method set holds the value's, avoids a copy.
	return v.Interface(), true
}

// appendMarshaler appends the result of MarshalJSON. A panic of the method
// reaches the caller of Append.
func (e *Encoder) appendMarshaler(dst []byte, n *node, p unsafe.Pointer, depth int) ([]byte, error) {
	v, ok := receiver(n, p)
	if !ok {
		return append(dst, "null"...), nil
	}
	text, err := v.(json.Marshaler).MarshalJSON()
	if err != nil {
		return dst, fmt.Errorf("MarshalJSON of %s: %w", n.typ, err)
	}
	if dst, err = e.appendChecked(dst, text, depth); err != nil {
		return dst, fmt.Errorf("MarshalJSON of %s gave bad JSON: %w", n.typ, err)
	}
	return dst, nil
}

// appendTextMarshaler appends the result of MarshalText as a string.
func (e *Encoder) appendTextMarshaler(dst []byte, n *node, p unsafe.Pointer) ([]byte, error) {
	v, ok := receiver(n, p)
	if !ok {
		return append(dst, "null"...), nil
	}
	text, err := v.(encoding.TextMarshaler).MarshalText()
	if err != nil {
		return dst, fmt.Errorf("MarshalText of %s: %w", n.typ, err)
	}
	return AppendStringBytes(dst, text), nil
}

// errMapChanged is returned if another goroutine changes a map meanwhile and
// that is noticed by chance; it avoids a write outside of the slice.
var errMapChanged = errors.New("the map changed while it was encoded")
