package jsonx

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// anyEncoder writes values of any type; it keeps what it learns of each.
var anyEncoder = sync.OnceValue(func() *Encoder {
	e, _ := NewEncoder(reflect.TypeFor[any]()) // an interface always has an encoder
	return e
})

// Append appends v, of any type, as an Encoder with default options does.
func Append(dst []byte, v any) ([]byte, error) { return anyEncoder().Append(dst, v) }

// Unmarshal is json.Unmarshal that reads a time.Duration in every form that an
// Encoder writes: as text of Go or of ISO 8601, or as a number in the unit that
// the field's tag names, nanoseconds without one. Types with an UnmarshalJSON or
// UnmarshalText method read themselves.
func Unmarshal(data []byte, dst any) error {
	r := readerOf(reflect.TypeOf(dst))
	if r == nil || !json.Valid(data) { // json.Unmarshal says what is wrong with it
		return json.Unmarshal(data, dst)
	}
	n := numbering{s: Scanner{Buf: data, MaxDepth: len(data) + 1}, dst: make([]byte, 0, len(data)+16)}
	if err := n.value(r); err != nil {
		if e, ok := err.(*EncodeError); ok {
			return fmt.Errorf("cannot decode %s: %w", e.Path, e.Err)
		}
		return fmt.Errorf("cannot decode the value: %w", err)
	}
	return json.Unmarshal(n.dst, dst)
}

// reader says where inside a type durations are, if there are any.
type reader struct {
	unit   time.Duration // of a duration that is a number; 0 for all else
	elem   *reader       // of a list or map
	keys   bool          // the keys of the map are durations
	fields []readerField
}

type readerField struct {
	name string
	*reader
}

// readers holds a *reader for each type that Unmarshal has met; it may be nil.
var readers sync.Map

func readerOf(t reflect.Type) *reader {
	if t == nil {
		return nil
	}
	if known, ok := readers.Load(t); ok {
		return known.(*reader)
	}
	r := readerCompiler{}.reader(readerKey{t, time.Nanosecond})
	if !r.finds(map[*reader]bool{}) {
		r = nil
	}
	readers.Store(t, r)
	return r
}

type readerKey struct {
	typ  reflect.Type
	unit time.Duration
}

// readerCompiler holds the reader of each type, so that one that contains
// itself ends.
type readerCompiler map[readerKey]*reader

func (c readerCompiler) reader(key readerKey) *reader {
	for range maxPointers {
		if key.typ.Kind() == reflect.Pointer {
			key.typ = key.typ.Elem()
		}
	}
	if r := c[key]; r != nil {
		return r
	}
	r, t := &reader{}, key.typ
	c[key] = r
	if readsItself(t) {
		return r
	}
	switch t.Kind() {
	case reflect.Int64:
		if t == durationType {
			r.unit = key.unit
		}
	case reflect.Slice, reflect.Array:
		r.elem = c.reader(readerKey{t.Elem(), time.Nanosecond})
	case reflect.Map:
		r.elem, r.keys = c.reader(readerKey{t.Elem(), time.Nanosecond}), t.Key() == durationType
	case reflect.Struct:
		for _, m := range dominant(collect(t)) {
			if m.text { // a number inside a string, as encoding/json has it
				continue
			}
			unit := max(durationFormOf(m.field.Tag).unit, time.Nanosecond)
			r.fields = append(r.fields, readerField{m.name, c.reader(readerKey{m.field.Type, unit})})
		}
	}
	return r
}

// maxPointers is how many pointers before a type are followed; type P *P never
// ends.
const maxPointers = 8

var (
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(unmarshalerType) || p.Implements(textUnmarshalerType)
}

// finds tells whether there is a duration at r or below.
func (r *reader) finds(seen map[*reader]bool) bool {
	if r == nil || seen[r] {
		return false
	}
	seen[r] = true
	found := r.unit != 0 || r.keys || r.elem.finds(seen)
	for _, f := range r.fields {
		found = found || f.finds(seen)
	}
	return found
}

// field returns the reader of a member, which encoding/json finds by its exact
// name, else by one that differs in case.
func (r *reader) field(name string) *reader {
	var alike *reader
	for i := range r.fields {
		switch f := &r.fields[i]; {
		case f.name == name:
			return f.reader
		case alike == nil && strings.EqualFold(f.name, name):
			alike = f.reader
		}
	}
	return alike
}

// numbering copies a valid text and writes nanoseconds for its durations.
type numbering struct {
	s   Scanner
	dst []byte
}

// next returns the text of the next value or name.
func (n *numbering) next() []byte {
	n.s.Peek()
	start := n.s.Pos
	n.s.SkipChecked()
	return n.s.Buf[start:n.s.Pos]
}

// value copies a value. An error has the path to it, as one of an Encoder.
func (n *numbering) value(r *reader) (err error) {
	switch kind := n.s.Peek(); {
	case r == nil:
	case kind == Object && (r.fields != nil || r.elem != nil):
		return n.object(r)
	case kind == Array && r.elem != nil && !r.keys:
		return n.array(r)
	case kind == String && r.unit != 0:
		d, err := parseDuration(unquoted(n.next()))
		n.dst = strconv.AppendInt(n.dst, int64(d), 10)
		return err
	case kind == Number && r.unit > time.Nanosecond:
		text := n.next()
		v, err := strconv.ParseInt(string(text), 10, 64)
		if limit := math.MaxInt64 / int64(r.unit); err != nil || v > limit || v < -limit {
			return fmt.Errorf("%s is no whole number of the unit %s that fits a duration", text, r.unit)
		}
		n.dst = strconv.AppendInt(n.dst, v*int64(r.unit), 10)
		return nil
	}
	n.dst = append(n.dst, n.next()...)
	return nil
}

func (n *numbering) array(r *reader) error {
	more, err := n.s.ArrayStart()
	n.dst = append(n.dst, '[')
	for i := 0; more && err == nil; i++ {
		if i > 0 {
			n.dst = append(n.dst, ',')
		}
		if err := n.value(r.elem); err != nil {
			return at(err, strconv.Itoa(i))
		}
		more, err = n.s.ArrayNext()
	}
	n.dst = append(n.dst, ']')
	return err
}

func (n *numbering) object(r *reader) error {
	more, err := n.s.ObjectStart()
	n.dst = append(n.dst, '{')
	for first := true; more && err == nil; first = false {
		if !first {
			n.dst = append(n.dst, ',')
		}
		text := n.next()
		name := unquoted(text)
		inner := r.elem
		if r.fields != nil {
			inner = r.field(name)
		}
		if r.keys {
			// A number alone is how encoding/json writes such keys.
			if _, err := strconv.ParseInt(name, 10, 64); err != nil {
				d, err := parseDuration(name)
				if err != nil {
					return at(err, name)
				}
				text = append(strconv.AppendInt([]byte{'"'}, int64(d), 10), '"')
			}
		}
		n.dst = append(append(n.dst, text...), ':')
		n.s.Peek() // the colon
		n.s.Pos++
		if err := n.value(inner); err != nil {
			return at(err, name)
		}
		more, err = n.s.ObjectNext()
	}
	n.dst = append(n.dst, '}')
	return err
}

// unquoted returns the text of a valid JSON string as encoding/json reads it.
func unquoted(text []byte) (s string) {
	_ = json.Unmarshal(text, &s)
	return s
}

func parseDuration(s string) (time.Duration, error) {
	if strings.HasPrefix(s, "P") {
		if d, err := ParseISODuration(s); err == nil {
			return d, nil
		}
	} else if d, err := time.ParseDuration(s); err == nil {
		return d, nil
	}
	return 0, fmt.Errorf("%.100q is no duration such as 1h30m or PT1H30M", s)
}
