package jsonx

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// DefaultEncodeDepth is how many pointers, maps and slices may be nested when
// EncodeOptions.MaxDepth is zero.
const DefaultEncodeDepth = 1000

// EncodeOptions are the options of an Encoder. The zero value has the defaults.
type EncodeOptions struct {
	// NilAsNull writes nil slices and maps as null, like encoding/json.
	// Without it they become [], "" for bytes, and {}, so that a value keeps
	// to a schema that says array, string or object.
	NilAsNull bool
	// MaxDepth is how many pointers, maps and slices may be nested; 0 means
	// DefaultEncodeDepth. A value that contains itself is an error at this
	// depth.
	MaxDepth int
}

// Encoder appends values of one Go type as JSON text. The text is what
// encoding/json writes with SetEscapeHTML(false): the same tags, embedding
// rules, forms of numbers, order of keys and marshaler methods. There are five
// differences:
//
//   - Nil slices and maps are written as empty ones, unless
//     EncodeOptions.NilAsNull is set.
//   - A time.Duration, as a value, as a map key and behind an interface, is the
//     text that its String method returns. The field's tag mcp:"unit=s" makes
//     it an integer of that unit, and jsonschema:"format=duration" text of ISO
//     8601; a duration that these cannot express is an error. Unmarshal reads
//     all of these forms.
//   - A url.URL is the text that its String method returns, which Unmarshal reads.
//   - Methods with pointer receivers write all values of their type, also those in
//     maps and behind interfaces, and MarshalText also writes map keys that are strings.
//   - What a json.RawMessage or a MarshalJSON method provides must satisfy
//     Scanner.Skip: no duplicate members, no broken Unicode.
//
// The text never has white space between its tokens, so it is always one line.
// An Encoder is safe for concurrent use.
type Encoder struct {
	typ     reflect.Type
	opts    EncodeOptions
	value   *node // for a value that has no address
	pointed *node // for a value behind a pointer
	// dynamic has the nodes of types met behind interfaces: reflect.Type to
	// *node. It grows by one entry for each such type.
	dynamic    sync.Map
	compiling  sync.Mutex
	nodes      map[nodeKey]*node // guarded by compiling
	scanners   sync.Pool         // *Scanner
	mapEntries sync.Pool         // *[]mapEntry
}

// EncodeError says at which place in a value encoding failed. Path is "" for
// the value itself, and cut if it is longer than 200 bytes; Err is never nil.
type EncodeError struct {
	Path string // JSON Pointer
	Err  error
}

// Error returns a sentence with the path and the cause.
func (e *EncodeError) Error() string {
	if e.Path == "" {
		return "cannot encode the value: " + e.Err.Error()
	}
	return fmt.Sprintf("cannot encode %s: %s", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *EncodeError) Unwrap() error { return e.Err }

// maxPath limits the length of a path in bytes. The path of a value that
// contains itself would otherwise have a thousand steps.
const maxPath = 200

// at returns err as an EncodeError below the member or element named segment.
// It is called on the way up, so it puts the segment in front.
func at(err error, segment string) error {
	e, ok := err.(*EncodeError)
	if !ok {
		e = &EncodeError{Err: err}
	}
	if len(e.Path) < maxPath {
		e.Path = "/" + pointerEscaper.Replace(segment) + e.Path
	} else if !strings.HasPrefix(e.Path, "…") {
		e.Path = "…" + e.Path
	}
	return e
}

// pointerEscaper escapes a name for a JSON Pointer (RFC 6901).
var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// errTooDeep is the error beyond EncodeOptions.MaxDepth.
var errTooDeep = errors.New("nested too deep; does the value contain itself?")

// NewEncoder returns an Encoder for values of type t with default options. A
// type that has no JSON form (a channel, function or complex number, or a map
// with keys other than text) anywhere inside t is an error that names the field,
// unless it sits behind an interface, where only Append meets it.
func NewEncoder(t reflect.Type) (*Encoder, error) {
	return EncodeOptions{}.NewEncoder(t)
}

// NewEncoder is the function NewEncoder with the options o.
func (o EncodeOptions) NewEncoder(t reflect.Type) (*Encoder, error) {
	if t == nil {
		return nil, errors.New("no type to encode; for values of any type use reflect.TypeFor[any]()")
	}
	if o.MaxDepth <= 0 {
		o.MaxDepth = DefaultEncodeDepth
	}
	e := &Encoder{typ: t, opts: o, nodes: map[nodeKey]*node{}}
	e.scanners.New = func() any { return new(Scanner) }
	e.mapEntries.New = func() any { return new([]mapEntry) }
	var err error
	if e.value, err = e.compile(t, false); err != nil {
		return nil, err
	}
	e.pointed, err = e.compile(t, true)
	return e, err
}

// compile returns the node of a type, which is shared by all uses of the type
// in this Encoder. On an error nothing that was compiled for it is kept.
func (e *Encoder) compile(t reflect.Type, addressable bool) (*node, error) {
	e.compiling.Lock()
	defer e.compiling.Unlock()
	c := compiler{nodes: e.nodes}
	n, err := c.node(nodeKey{typ: t, addressable: addressable}, t.String())
	if err != nil {
		for _, key := range c.added { // half of them may be unfinished
			delete(e.nodes, key)
		}
		return nil, err
	}
	return n, nil
}

// Type returns the type that e was made for.
func (e *Encoder) Type() reflect.Type { return e.typ }

// eface is the memory layout of an interface value in Go: a word for the type,
// and a word that points to the value or, for pointer-shaped types, is the
// value. The language does not promise it; the random tests of this package
// would fail if it changed.
type eface struct {
	typ, data unsafe.Pointer
}

// Append appends v to dst. v must be of the Encoder's type or a pointer to it;
// a nil pointer is null. If the Encoder's type is an interface, v may be
// anything. On an error the returned slice is dst as it was.
func (e *Encoder) Append(dst []byte, v any) ([]byte, error) {
	out, err := e.appendValue(dst, v)
	if err != nil {
		return dst, encodeError(err)
	}
	return out, nil
}

// AppendPointer appends the value at p, which must point to a live value of
// exactly the Encoder's type that does not change during the call; nothing can
// check that. A nil p is null. In exchange the value is not boxed in an
// interface, and methods with pointer receivers run on the value itself:
//
//	buf, err = enc.AppendPointer(buf, unsafe.Pointer(&out))
//
// If there is an error, the returned slice is dst as it was.
func (e *Encoder) AppendPointer(dst []byte, p unsafe.Pointer) ([]byte, error) {
	if p == nil {
		return append(dst, "null"...), nil
	}
	out, err := e.append(dst, e.pointed, p, 0)
	if err != nil {
		return dst, encodeError(err)
	}
	return out, nil
}

// appendValue finds out how v is held by its interface and appends it. On an
// error the result can end in a part of the value.
func (e *Encoder) appendValue(dst []byte, v any) ([]byte, error) {
	t := reflect.TypeOf(v)
	data := (*eface)(unsafe.Pointer(&v)).data
	switch {
	case e.typ.Kind() == reflect.Interface:
		boxed := v // moves to the heap in this case only
		return e.appendAny(dst, boxed, unsafe.Pointer(&boxed), 0)
	case t == e.typ && !e.value.direct:
		return e.append(dst, e.value, data, 0)
	case t == e.typ && e.value.op == opPointer:
		return e.appendPointed(dst, e.value, data, 0)
	case t == e.typ:
		word := data
		return e.append(dst, e.value, unsafe.Pointer(&word), 0)
	case t != nil && t.Kind() == reflect.Pointer && t.Elem() == e.typ:
		return e.AppendPointer(dst, data)
	}
	return dst, fmt.Errorf("the encoder is for %s, the value is a %s", e.typ, typeName(t))
}

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
	case opURL:
		return AppendString(dst, (*url.URL)(p).String()), nil
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
	s.MaxDepth, s.Strict = max(e.opts.MaxDepth-depth, 1), true
	dst, err := s.compact(dst)
	s.Reset(nil)
	e.scanners.Put(s)
	return dst, err
}

// receiver returns the value at p as an interface that has its methods; ok is
// false for a nil pointer or interface.
func receiver(n *node, p unsafe.Pointer) (any, bool) {
	v := reflect.NewAt(n.typ, p)
	switch kind := n.typ.Kind(); {
	case kind == reflect.Pointer, kind == reflect.Interface:
		if v = v.Elem(); v.IsNil() {
			return nil, false
		}
	case n.copied: // an interface holds it, and others may have that interface
		v = reflect.New(n.typ)
		v.Elem().Set(reflect.NewAt(n.typ, p).Elem())
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

// errMapChanged is returned if another goroutine changes a map in the
// meantime and that is noticed by chance; it avoids a write outside of the
// slice.
var errMapChanged = errors.New("the map changed while it was encoded")

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

// mapEntry is a member of a map, for sorting by key. Depending on the op of the
// node its value is in value, in text, or is element at of a slice that
// mapEntries returned.
type mapEntry struct {
	key   string
	value any
	text  string
	at    int
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
		name, err := keyName(n, key)
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

// keyName returns the member name for a key of n's map, which has an address: what
// MarshalText returns, text as it is, a duration, or an integer in decimal.
func keyName(n *node, key reflect.Value) (string, error) {
	if n.keys {
		switch key.Kind() {
		case reflect.Pointer:
			if key.IsNil() {
				return "", nil
			}
		case reflect.Interface:
			if key.IsNil() {
				return "", fmt.Errorf("a nil %s is a map key", key.Type())
			}
		default:
			key = key.Addr()
		}
		text, err := key.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			return "", fmt.Errorf("MarshalText of the map key type %s: %w", n.typ.Key(), err)
		}
		return string(text), nil
	}
	switch {
	case key.Kind() == reflect.String:
		return key.String(), nil
	case key.Type() == durationType:
		return time.Duration(key.Int()).String(), nil
	case key.CanInt():
		return strconv.FormatInt(key.Int(), 10), nil
	}
	return strconv.FormatUint(key.Uint(), 10), nil
}

// encodeError returns err as an EncodeError.
func encodeError(err error) error {
	if e, ok := err.(*EncodeError); ok {
		return e
	}
	return &EncodeError{Err: err}
}

// typeName returns the name of a type for messages; t may be nil.
func typeName(t reflect.Type) string {
	if t == nil {
		return "nil"
	}
	return t.String()
}
