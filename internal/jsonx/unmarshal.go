package jsonx

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// anyEncoder is the Encoder behind Append. It is made on first use and keeps
// what it has compiled, so it holds a node for each type that was ever
// appended.
var anyEncoder = sync.OnceValue(func() *Encoder {
	e, _ := NewEncoder(reflect.TypeFor[any]()) // an interface always has an encoder
	return e
})

// Append appends v, of any type, as an Encoder with default options does. It is
// safe for concurrent use.
func Append(dst []byte, v any) ([]byte, error) { return anyEncoder().Append(dst, v) }

// Document returns the text of a JSON document that a peer sent or that another
// program wrote, without the byte order mark that it may begin with (RFC 8259 §8.1).
// It has to be called where the document arrives, before anything looks at its bytes.
func Document(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }

// Paired returns JSON text in which U+FFFD takes the place of each escape of half a
// surrogate pair. Text without any, and what is no JSON, is returned as it is.
func Paired(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\ud`)) && !bytes.Contains(text, []byte(`\uD`)) {
		return text
	}
	s := Scanner{Buf: text, Strict: true}
	if _, err := s.compact(nil); err == nil {
		return text // all are pairs
	}
	if paired, err := Compact(nil, text); err == nil {
		return paired
	}
	return text
}

// UTF8 returns text with U+FFFD in the place of each byte that is not UTF-8, as
// encoding/json reads it.
func UTF8(text []byte) []byte {
	valid := make([]byte, 0, len(text)+64)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		valid, text = utf8.AppendRune(valid, r), text[n:]
	}
	return valid
}

// Unmarshal is json.Unmarshal for what a peer wrote. It differs in five ways:
//
//   - The text is a [Document].
//   - An integer may have a fraction or an exponent, as 10.0 and 1e1, which are
//     integers of JSON Schema.
//   - A time is read as [ParseTime] does.
//   - A time.Duration is read in every form that an Encoder writes: as text in Go's
//     form or that of ISO 8601, or as a number in the unit that the field's tag names,
//     which is nanoseconds without a tag.
//   - A url.URL is read from text. Credentials in it are an error.
//
// Types with an UnmarshalJSON or UnmarshalText method read themselves; the method has
// to use Unmarshal. The member null is the same as none, also for a json.RawMessage with
// the option omitempty; without it null is a value.
//
// Unmarshal rewrites the text into what encoding/json reads. It does so at once if the
// type contains a duration or a URL, or if there is a null that such a json.RawMessage may have,
// and otherwise only if encoding/json refused a number or a time; other text costs
// nothing. Facts about a type are remembered.
func Unmarshal(data []byte, dst any) error {
	data = Document(data)
	r := readerOf(reflect.TypeOf(dst))
	if !r.texts && !(r.optional && bytes.Contains(data, []byte("null"))) {
		err := json.Unmarshal(data, dst)
		if !r.others || !misread(err) {
			return err
		}
	} else if !json.Valid(data) {
		return json.Unmarshal(data, dst) // which says what is wrong with it
	}
	n := numbering{s: Scanner{Buf: data, MaxDepth: len(data) + 1}, dst: make([]byte, 0, len(data)+16)}
	if err := n.value(r.reader); err != nil {
		if e, ok := err.(*EncodeError); ok {
			return fmt.Errorf("cannot decode %s: %w", e.Path, e.Err)
		}
		return fmt.Errorf("cannot decode the value: %w", err)
	}
	return json.Unmarshal(n.dst, dst)
}

// misread reports whether an error of encoding/json is about one value of a valid text.
func misread(err error) bool {
	switch err.(type) {
	case *json.UnmarshalTypeError, *time.ParseError:
		return true
	}
	return false
}

// reader says where inside a type there is what has to be rewritten. Readers are
// immutable and may refer to themselves, as their types do.
type reader struct {
	unit    time.Duration // of a duration that is a number; 0 for all else
	integer bool
	time    bool
	url     bool
	text    bool    // a json.RawMessage that is optional
	elem    *reader // of a list or map
	keys    bool    // the keys of the map are durations
	fields  []readerField
}

// rootReader is the reader of a whole type.
type rootReader struct {
	*reader
	texts    bool // it has durations or URLs
	others   bool // it has integers or times
	optional bool // it has optional texts
}

// readerField is a member of a struct and the reader of its type.
type readerField struct {
	name string
	*reader
}

// readers holds a *rootReader for each type that Unmarshal has met.
var readers sync.Map

// readerOf returns the reader of a type. Concurrent first calls may do the work twice.
func readerOf(t reflect.Type) *rootReader {
	if known, ok := readers.Load(t); ok {
		return known.(*rootReader)
	}
	root := &rootReader{reader: &reader{}}
	if t != nil {
		root.reader = readerCompiler{}.reader(readerKey{t, time.Nanosecond})
		root.find(root.reader, map[*reader]bool{})
	}
	readers.Store(t, root)
	return root
}

// readerKey is a type together with the unit that the tag of its field names.
type readerKey struct {
	typ  reflect.Type
	unit time.Duration
}

// readerCompiler holds the readers made so far, so that compiling a type that
// contains itself ends.
type readerCompiler map[readerKey]*reader

// reader returns the reader for a type, which it fills while types inside are
// compiled. The result is never nil; whether it finds anything is asked
// afterwards.
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
	r.time, r.url = t == timeType, t == urlType
	if r.time || r.url || readsItself(t) {
		return r
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if r.integer = true; t == durationType {
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
			inner := c.reader(readerKey{m.field.Type, unit})
			if m.empty && m.field.Type == rawType {
				inner = &reader{text: true}
			}
			r.fields = append(r.fields, readerField{m.name, inner})
		}
	}
	return r
}

// maxPointers is how many pointers in front of a type are followed. A type such
// as "type P *P" has no end.
const maxPointers = 8

var (
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// readsItself reports whether encoding/json leaves the reading of a value to a
// method of its type.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(unmarshalerType) || p.Implements(textUnmarshalerType)
}

// find notes what there is at r and below. seen holds the readers visited so far.
func (root *rootReader) find(r *reader, seen map[*reader]bool) {
	if r == nil || seen[r] {
		return
	}
	seen[r] = true
	root.texts = root.texts || r.unit != 0 || r.keys || r.url
	root.others = root.others || r.integer || r.time
	root.optional = root.optional || r.text
	root.find(r.elem, seen)
	for _, f := range r.fields {
		root.find(f.reader, seen)
	}
}

// field returns the reader of a member, or nil. encoding/json looks for a field
// with the exact name first, and then for one that differs in case only.
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

// numbering copies a text, which has been checked, to dst and replaces what
// encoding/json does not read: durations by nanoseconds, integers by plain ones, times
// by those with a zone. It leaves out optional texts that are null.
type numbering struct {
	s   Scanner
	dst []byte
}

// next returns the text of the next value, or member name, and moves behind it.
func (n *numbering) next() []byte {
	n.s.Peek()
	start := n.s.Pos
	n.s.SkipChecked()
	return n.s.Buf[start:n.s.Pos]
}

// value copies a value and everything below it. Its error is an EncodeError
// with the path to the value, or an error without a path if it is the value
// itself.
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
	case kind == String && r.time:
		text := unquoted(n.next())
		if at, err := ParseTime(text); err == nil {
			text = at.Format(time.RFC3339Nano)
		}
		n.dst = AppendString(n.dst, text)
		return nil
	case kind == String && r.url:
		u, err := url.Parse(unquoted(n.next()))
		if err == nil && (u.User != nil || !utf8.ValidString(u.Host+u.Path+u.Fragment)) {
			err = errors.New("a URL with credentials, or with bytes that are not UTF-8, has to be read as a string")
		}
		text, _ := json.Marshal(u) // as an object of its fields
		n.dst = append(n.dst, text...)
		return err
	case kind == Number && r.integer:
		text := n.next()
		plain, form := Integer(text, 20) // as many as 64 bits need
		if form != Whole {
			plain = text
		}
		if r.unit > time.Nanosecond {
			v, err := strconv.ParseInt(string(plain), 10, 64)
			if limit := math.MaxInt64 / int64(r.unit); err != nil || v > limit || v < -limit {
				return fmt.Errorf("%s is not a whole number of the unit %s that fits a duration", text, r.unit)
			}
			plain = strconv.AppendInt(nil, v*int64(r.unit), 10)
		}
		n.dst = append(n.dst, plain...)
		return nil
	}
	n.dst = append(n.dst, n.next()...)
	return nil
}

// array copies an array.
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

// object copies an object. If the keys are durations, their text is replaced as
// well.
func (n *numbering) object(r *reader) error {
	more, err := n.s.ObjectStart()
	n.dst = append(n.dst, '{')
	for first := true; more && err == nil; {
		text := n.next()
		name := unquoted(text)
		inner := r.elem
		if r.fields != nil {
			inner = r.field(name)
		}
		if r.keys {
			// A number in quotes is how encoding/json writes such keys.
			if _, err := strconv.ParseInt(name, 10, 64); err != nil {
				d, err := parseDuration(name)
				if err != nil {
					return at(err, name)
				}
				text = append(strconv.AppendInt([]byte{'"'}, int64(d), 10), '"')
			}
		}
		n.s.Peek() // the colon
		n.s.Pos++
		if n.s.Peek() == Null && inner != nil && inner.text {
			n.next()
			more, err = n.s.ObjectNext()
			continue
		}
		if !first {
			n.dst = append(n.dst, ',')
		}
		first = false
		n.dst = append(append(n.dst, text...), ':')
		if err := n.value(inner); err != nil {
			return at(err, name)
		}
		more, err = n.s.ObjectNext()
	}
	n.dst = append(n.dst, '}')
	return err
}

// unquoted returns the text of a valid JSON string in the way encoding/json
// decodes it.
func unquoted(text []byte) (s string) {
	_ = json.Unmarshal(text, &s) // it is valid
	return s
}

// parseDuration reads a duration in either text form. The error quotes at most
// 100 characters.
func parseDuration(s string) (time.Duration, error) {
	if strings.HasPrefix(s, "P") {
		if d, err := ParseISODuration(s); err == nil {
			return d, nil
		}
	} else if d, err := time.ParseDuration(s); err == nil {
		return d, nil
	}
	return 0, fmt.Errorf("%.100q is not a duration such as 1h30m or PT1H30M", s)
}
