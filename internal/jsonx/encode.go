package jsonx

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
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
// rules, forms of numbers, order of keys and marshaler methods. There are three
// differences:
//
//   - Nil slices and maps are written as empty ones, unless
//     EncodeOptions.NilAsNull is set.
//   - A time.Duration, as a value, as a map key and behind an interface, is the
//     text that its String method returns. The field's tag mcp:"unit=s" makes
//     it an integer of that unit, and jsonschema:"format=duration" text of ISO
//     8601; a duration that these cannot express is an error. Unmarshal reads
//     all of these forms.
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

// NewEncoder returns an Encoder for values of type t with default options.
// A type that has no JSON form (a channel, function or complex number, or a
// map whose keys are no text) anywhere inside t is an error that names the
// field, unless it sits behind an interface, where only Append meets it.
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
// error the result may have a part of the value at its end.
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
