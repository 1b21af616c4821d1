// Package jsonx reads and writes JSON text without building trees. Every
// message passes through it, so it decides much of the speed and of the safety
// of the module.
//
// [Scanner] walks a text once and in place: protocol scans envelopes with it,
// schema decodes arguments with it. [Encoder] writes values of one Go type;
// registry makes one for each result type. The Append functions write parts of
// a text into a buffer of the caller. [Unmarshal] reads what an Encoder has
// written. duration.go has the forms in which a time.Duration travels, which
// the reader and the writer share.
//
// # Strictness
//
// Everything keeps to RFC 8259 and refuses more than encoding/json does:
// members that occur twice, text that is not UTF-8, and
// nesting beyond a limit. encoding/json accepts these, and matches member names
// without regard to case. Each of that would let a document mean one thing to
// the code that checks it and another to the code that uses it.
//
// The escape of half a surrogate pair, which programs in JavaScript write when they cut a
// string, is read as U+FFFD, as encoding/json reads it. It is never written.
//
// # Memory
//
// A Scanner returns parts of its text, and decodes a string into scratch memory
// only if it has escapes. An Encoder appends to the caller's buffer and reads
// values at their place in memory, by offsets and pointers from reflection, as
// package schema's slots do for writing. Tests hold both to a number of
// allocations.
//
// encode.go, encode_fields.go, encode_maps.go, encode_types.go and
// encode_values.go, and text.go for strings, use package unsafe. The rules are:
// an unsafe.Pointer always points into a value that the caller keeps alive,
// moves only by offsets of the same type, and is never stored; a string made
// from bytes is used only while the bytes are unchanged.
//
// # Concurrency
//
// A Scanner is for one goroutine. An Encoder is safe for concurrent use: its
// compiled types are immutable, and those met behind interfaces are added to a
// sync.Map.
package jsonx

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// DefaultMaxDepth is how deep arrays and objects may nest when a Scanner's
// MaxDepth is zero.
const DefaultMaxDepth = 64

// Kind is what a JSON value is, told by its first byte.
type Kind byte

// The kinds of value. Invalid is the zero Kind: no value starts here.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// kindNames are the types of JSON Schema, by Kind.
var kindNames = [...]string{"invalid", "null", "boolean", "number", "string", "array", "object"}

// String returns the JSON Schema name of the kind.
func (k Kind) String() string { return kindNames[k] }

// kindOf maps a first byte to its kind.
var kindOf = func() (t [256]Kind) {
	for c := '0'; c <= '9'; c++ {
		t[c] = Number
	}
	t['-'], t['"'], t['{'], t['['] = Number, String, Object, Array
	t['t'], t['f'], t['n'] = Bool, Bool, Null
	return t
}()

// KindOf returns the kind of the value that starts with c.
func KindOf(c byte) Kind { return kindOf[c] }

// SyntaxError says where a text stops being JSON that this package accepts.
type SyntaxError struct {
	Offset int    // byte offset in the text
	Msg    string // what is wrong there
}

// Error returns the message and the offset, without a prefix: callers add what
// the text was for.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s at byte %d", e.Msg, e.Offset)
}

// DepthError is the error for nesting beyond MaxDepth. Max is that limit, and
// Offset where the level begins that is one too many.
type DepthError struct {
	Offset, Max int
}

// Error returns the limit and the offset.
func (e *DepthError) Error() string {
	return fmt.Sprintf("nested deeper than %d levels at byte %d", e.Max, e.Offset)
}

// DuplicateError is the error for an object that has a member twice. Offset is
// where the second one begins. Name is decoded; it comes from the document and
// may be long.
type DuplicateError struct {
	Offset int
	Name   string
}

// Error returns the name, quoted, and the offset.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("duplicate member %q at byte %d", e.Name, e.Offset)
}

// Scanner walks one JSON text from front to back. The zero value with Buf set
// is ready to use. A Scanner is not safe for concurrent use.
//
// To walk an object:
//
//	more, err := s.ObjectStart()
//	for more && err == nil {
//		var name []byte
//		if name, err = s.Name(); err != nil { break }
//		… read or Skip the value …
//		more, err = s.ObjectNext()
//	}
//
// Arrays are walked with ArrayStart and ArrayNext in the same way. After an
// error the Scanner must not be used further, unless Pos and SetDepth are put
// back to an earlier place, which is how callers read a value twice.
//
// Pos is the index of the next byte; it is exported for callers that need the
// text of what they have read. Buf must not change while the Scanner or a
// result of it is in use.
type Scanner struct {
	Buf      []byte
	Pos      int
	MaxDepth int // 0 means DefaultMaxDepth
	// AllowDuplicates lets Skip pass objects that have a member twice, for
	// text that is checked again by what reads it.
	AllowDuplicates bool
	// Strict makes the escape of half a surrogate pair an error, for text that is about to
	// be written. Otherwise it is read as U+FFFD.
	Strict bool

	halves  bool // there was such an escape
	depth   int
	scratch []byte   // decoded bytes of the last string that had escapes
	names   []string // member names of the objects that Skip is inside of
}

// Reset makes s scan a new text from its start and keeps its scratch memory. It
// drops every reference to the previous text, so a pooled Scanner should be
// Reset(nil) when it is returned to the pool. MaxDepth, AllowDuplicates and Strict
// are kept.
func (s *Scanner) Reset(buf []byte) {
	clear(s.names[:cap(s.names)])
	s.Buf, s.Pos, s.depth, s.halves, s.names = buf, 0, 0, false, s.names[:0]
}

// Depth returns how many arrays and objects are open.
func (s *Scanner) Depth() int { return s.depth }

// SetDepth sets the number of open arrays and objects. It is for a Scanner that
// continues inside a text that another one opened, so that the limit counts
// from the outermost level, and for going back to an earlier place.
func (s *Scanner) SetDepth(d int) { s.depth = d }

// errorf returns a SyntaxError at an offset.
func (s *Scanner) errorf(at int, format string, args ...any) error {
	return &SyntaxError{Offset: at, Msg: fmt.Sprintf(format, args...)}
}

// unexpected returns the error for the byte at Pos, or for the end of the text,
// where something else was wanted.
func (s *Scanner) unexpected(want string) error {
	if s.Pos >= len(s.Buf) {
		return s.errorf(s.Pos, "unexpected end of JSON, want %s", want)
	}
	return s.errorf(s.Pos, "unexpected %q, want %s", s.Buf[s.Pos], want)
}

// space skips white space and returns the next byte without reading it, or 0 at
// the end. A byte 0 in the text is returned as such; no value begins with it,
// so callers need not tell the two apart.
func (s *Scanner) space() byte {
	for s.Pos < len(s.Buf) {
		c := s.Buf[s.Pos]
		if c > ' ' {
			return c
		}
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		s.Pos++
	}
	return 0
}

// Peek skips white space and returns the kind of the value there.
func (s *Scanner) Peek() Kind { return kindOf[s.space()] }

// End reports an error unless only white space is left.
func (s *Scanner) End() error {
	if s.space(); s.Pos < len(s.Buf) {
		return s.errorf(s.Pos, "unexpected %q after the value", s.Buf[s.Pos])
	}
	return nil
}

// open reads the bracket c and counts the level. what is what the caller
// wanted, for the error.
func (s *Scanner) open(c byte, what string) error {
	if s.space() != c || s.Pos >= len(s.Buf) {
		return s.unexpected(what)
	}
	maxDepth := s.MaxDepth
	if maxDepth == 0 {
		maxDepth = DefaultMaxDepth
	}
	if s.depth++; s.depth > maxDepth {
		return &DepthError{Offset: s.Pos, Max: maxDepth}
	}
	s.Pos++
	return nil
}

// ObjectStart enters an object and tells whether it has a member.
func (s *Scanner) ObjectStart() (more bool, err error) {
	if err := s.open('{', "an object"); err != nil {
		return false, err
	}
	if s.space() == '}' {
		s.Pos++
		s.depth--
		return false, nil
	}
	return true, nil
}

// Name reads a member's name and the colon. The bytes are valid until the
// next string is read.
func (s *Scanner) Name() ([]byte, error) {
	if s.space() != '"' {
		return nil, s.unexpected("a member name")
	}
	name, err := s.Str()
	if err != nil {
		return nil, err
	}
	if s.space() != ':' {
		return nil, s.unexpected("':'")
	}
	s.Pos++
	return name, nil
}

// ObjectNext tells, after a member's value, whether another member follows;
// if not it leaves the object.
func (s *Scanner) ObjectNext() (more bool, err error) {
	switch s.space() {
	case ',':
		s.Pos++
		return true, nil
	case '}':
		s.Pos++
		s.depth--
		return false, nil
	}
	return false, s.unexpected("',' or '}'")
}

// ArrayStart enters an array and tells whether it has an element.
func (s *Scanner) ArrayStart() (more bool, err error) {
	if err := s.open('[', "an array"); err != nil {
		return false, err
	}
	if s.space() == ']' {
		s.Pos++
		s.depth--
		return false, nil
	}
	return true, nil
}

// ArrayNext tells, after an element, whether another follows; if not it
// leaves the array.
func (s *Scanner) ArrayNext() (more bool, err error) {
	switch s.space() {
	case ',':
		s.Pos++
		return true, nil
	case ']':
		s.Pos++
		s.depth--
		return false, nil
	}
	return false, s.unexpected("',' or ']'")
}

// Elements reads an array to the end of the text and returns the texts of its
// elements, at most max of them, and how many there are.
func (s *Scanner) Elements(max int) (texts [][]byte, count int, err error) {
	more, err := s.ArrayStart()
	for more && err == nil {
		s.Peek() // passes the space before the element
		start := s.Pos
		if _, err = s.Skip(); err != nil {
			break
		}
		if count++; count <= max {
			texts = append(texts, s.Buf[start:s.Pos])
		}
		more, err = s.ArrayNext()
	}
	if err == nil {
		err = s.End()
	}
	if err != nil {
		return nil, count, err
	}
	return texts, count, nil
}

// Null reads the literal null.
func (s *Scanner) Null() error { s.space(); return s.literal("null") }

// Bool reads true or false.
func (s *Scanner) Bool() (bool, error) {
	if s.space() == 't' {
		return true, s.literal("true")
	}
	return false, s.literal("false")
}

// literal reads the word, which must be at Pos. A letter directly behind it is
// found by whatever reads next.
func (s *Scanner) literal(word string) error {
	if len(s.Buf)-s.Pos < len(word) || string(s.Buf[s.Pos:s.Pos+len(word)]) != word {
		return s.unexpected(word)
	}
	s.Pos += len(word)
	return nil
}

// Number reads a number and returns its text. integer is true when the text
// has neither fraction nor exponent.
func (s *Scanner) Number() (text []byte, integer bool, err error) {
	s.space()
	b, start, i := s.Buf, s.Pos, s.Pos
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	case i < len(b) && '1' <= b[i] && b[i] <= '9':
		i = digits(b, i+1)
	default:
		s.Pos = i
		return nil, false, s.unexpected("a digit")
	}
	integer = true
	if i < len(b) && b[i] == '.' {
		integer = false
		first := i + 1
		if i = digits(b, first); i == first {
			s.Pos = i
			return nil, false, s.unexpected("a digit after '.'")
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		integer = false
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		first := i
		if i = digits(b, first); i == first {
			s.Pos = i
			return nil, false, s.unexpected("a digit in the exponent")
		}
	}
	s.Pos = i
	return b[start:i], integer, nil
}

// digits returns the index behind the digits that begin at i.
func digits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

// Str reads a string and returns its decoded bytes: a part of Buf when it has
// no escapes, else scratch memory that the next string overwrites. Text that
// is not UTF-8 and control characters are errors. So are lone surrogates if Strict is
// set.
func (s *Scanner) Str() ([]byte, error) {
	if s.space() != '"' {
		return nil, s.unexpected("a string")
	}
	b, start := s.Buf, s.Pos+1
	i := start
	for {
		if i = plainRun(b, i); i == len(b) {
			s.Pos = len(b)
			return nil, s.unexpected(`'"'`)
		}
		switch c := b[i]; {
		case c == '"':
			s.Pos = i + 1
			return b[start:i], nil
		case c == '\\':
			return s.escaped(start, i)
		}
		n, err := s.beyondASCII(i)
		if err != nil {
			return nil, err
		}
		i = n
	}
}

// beyondASCII checks the characters from i on that are not ASCII and returns
// where they end. A control character at i is an error.
func (s *Scanner) beyondASCII(i int) (int, error) {
	b := s.Buf
	if c := b[i]; c < ' ' {
		return 0, s.errorf(i, "control character %q in a string must be escaped", c)
	}
	for i < len(b) && b[i] >= utf8.RuneSelf {
		n := runeLen(b, i)
		if n == 0 {
			return 0, s.errorf(i, "string is not valid UTF-8")
		}
		i += n
	}
	return i, nil
}

// escaped continues with a string from its first escape, at i.
func (s *Scanner) escaped(start, i int) ([]byte, error) {
	b := s.Buf
	out := append(s.scratch[:0], b[start:i]...)
	for {
		run := i
		if i = plainRun(b, i); i == len(b) {
			s.Pos = len(b)
			return nil, s.unexpected(`'"'`)
		}
		out = append(out, b[run:i]...)
		var err error
		switch c := b[i]; {
		case c == '"':
			s.Pos, s.scratch = i+1, out
			return out, nil
		case c == '\\':
			out, i, err = s.escape(out, i)
		default:
			run = i
			if i, err = s.beyondASCII(i); err == nil {
				out = append(out, b[run:i]...)
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// escape decodes the escape sequence at i, which is a backslash.
func (s *Scanner) escape(out []byte, i int) ([]byte, int, error) {
	b := s.Buf
	if i+1 >= len(b) {
		s.Pos = len(b)
		return nil, 0, s.unexpected("an escape")
	}
	if c := escapes[b[i+1]]; c != 0 {
		return append(out, c), i + 2, nil
	}
	if b[i+1] != 'u' {
		return nil, 0, s.errorf(i, "unknown escape %q", b[i:i+2])
	}
	r, ok := hex4(b, i+2)
	if !ok {
		return nil, 0, s.errorf(i, "\\u needs four hexadecimal digits")
	}
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(out, r), i + 6, nil
	}
	if i+7 < len(b) && b[i+6] == '\\' && b[i+7] == 'u' {
		if low, ok := hex4(b, i+8); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return utf8.AppendRune(out, pair), i + 12, nil
			}
		}
	}
	if s.Strict {
		return nil, 0, s.errorf(i, "lone surrogate in a string")
	}
	s.halves = true
	return utf8.AppendRune(out, utf8.RuneError), i + 6, nil
}

// nameString returns name as a string that stays true while Buf does: a view
// of Buf, or a copy when the name sits in scratch memory.
func (s *Scanner) nameString(name []byte) string {
	if len(name) == 0 {
		return ""
	}
	if len(s.scratch) > 0 && unsafe.SliceData(name) == unsafe.SliceData(s.scratch) {
		return string(name)
	}
	return unsafe.String(unsafe.SliceData(name), len(name))
}

// SkipChecked passes one value of a text that Skip or an equal check has
// accepted before. It only looks for the end and must not be used on other
// text: there it may stop anywhere, though never outside of Buf.
func (s *Scanner) SkipChecked() {
	switch kindOf[s.space()] {
	case String:
		s.skipString()
	case Array, Object:
		s.skipBrackets()
	default:
		for s.Pos < len(s.Buf) && !ends[s.Buf[s.Pos]] {
			s.Pos++
		}
	}
}

// ends marks the bytes that end a number or a literal.
var ends = [256]bool{',': true, ']': true, '}': true, ' ': true, '\n': true, '\r': true, '\t': true}

// skipString moves behind the string that begins at Pos, in text that has been
// checked.
func (s *Scanner) skipString() {
	for s.Pos++; s.Pos < len(s.Buf); s.Pos++ {
		switch s.Buf[s.Pos] {
		case '\\':
			s.Pos++
		case '"':
			s.Pos++
			return
		}
	}
	s.Pos = len(s.Buf)
}

// skipBrackets moves behind the array or object that begins at Pos, in text
// that has been checked. It counts brackets of both sorts together, which is
// enough there.
func (s *Scanner) skipBrackets() {
	for open := 0; s.Pos < len(s.Buf); {
		switch s.Buf[s.Pos] {
		case '"':
			s.skipString()
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
		s.Pos++
		if open == 0 {
			return
		}
	}
}

// Skip reads one value of any kind, checks it whole (syntax, Unicode, depth,
// and duplicate members at every level unless AllowDuplicates is set) and
// returns its text.
func (s *Scanner) Skip() (text []byte, err error) {
	c := s.space()
	start := s.Pos
	switch kindOf[c] {
	case String:
		_, err = s.Str()
	case Number:
		_, _, err = s.Number()
	case Bool:
		_, err = s.Bool()
	case Null:
		err = s.Null()
	case Array:
		err = s.skipArray()
	case Object:
		err = s.skipObject()
	default:
		err = s.unexpected("a value")
	}
	return s.Buf[start:s.Pos], err
}

// skipArray and skipObject call Skip for what is inside. The recursion is
// bounded by MaxDepth.
func (s *Scanner) skipArray() error {
	more, err := s.ArrayStart()
	for more && err == nil {
		if _, err = s.Skip(); err == nil {
			more, err = s.ArrayNext()
		}
	}
	return err
}

// manyMembers is the number of members from which a map finds duplicate names
// faster than comparing each with each.
const manyMembers = 24

// skipObject reads an object and compares the names of its members. The names
// of all open objects are in one slice, s.names, those of this one from base
// on; that saves an allocation for each object.
func (s *Scanner) skipObject() error {
	base := len(s.names)
	var seen map[string]struct{}
	more, err := s.ObjectStart()
	for more && err == nil {
		s.space()
		at := s.Pos
		var name []byte
		if name, err = s.Name(); err != nil {
			return err
		}
		if !s.AllowDuplicates {
			if seen, err = s.noteName(name, at, base, seen); err != nil {
				return err
			}
		}
		if _, err = s.Skip(); err == nil {
			more, err = s.ObjectNext()
		}
	}
	if err == nil {
		s.names = s.names[:base]
	}
	return err
}

// noteName records a member name of the object whose names begin at base and
// returns a DuplicateError if the object has it already. seen is the set of
// names once there are manyMembers of them; the caller keeps the one that is
// returned.
func (s *Scanner) noteName(name []byte, at, base int, seen map[string]struct{}) (map[string]struct{}, error) {
	if seen == nil {
		for _, n := range s.names[base:] {
			if n == string(name) {
				return nil, &DuplicateError{Offset: at, Name: n}
			}
		}
	} else if _, dup := seen[string(name)]; dup {
		return nil, &DuplicateError{Offset: at, Name: string(name)}
	}
	str := s.nameString(name)
	s.names = append(s.names, str)
	if seen == nil && len(s.names)-base == manyMembers {
		seen = make(map[string]struct{}, 2*manyMembers)
		for _, n := range s.names[base:] {
			seen[n] = struct{}{}
		}
	} else if seen != nil {
		seen[str] = struct{}{}
	}
	return seen, nil
}

// compact is Compact for the text of s, from its Pos on.
func (s *Scanner) compact(dst []byte) ([]byte, error) {
	if _, err := s.Skip(); err != nil {
		return dst, err
	}
	if err := s.End(); err != nil {
		return dst, err
	}
	src, start := s.Buf, 0
	for i := 0; i < len(src); {
		switch c := src[i]; {
		case c == '"' && s.halves:
			end := stringEnd(src, i)
			one := Scanner{Buf: src[i:end]}
			text, _ := one.Str() // it was checked
			dst = AppendString(append(dst, src[start:i]...), string(text))
			i, start = end, end
		case c == '"':
			i = stringEnd(src, i)
		case c <= ' ':
			dst = append(dst, src[start:i]...)
			for i < len(src) && src[i] <= ' ' {
				i++
			}
			start = i
		default:
			i++
		}
	}
	return append(dst, src[start:]...), nil
}
