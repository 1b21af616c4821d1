package jsonx

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// plain marks the bytes that stand for themselves inside a string.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// low and high have the lowest and the highest bit of each byte set.
const (
	low  = 0x0101010101010101
	high = 0x8080808080808080
)

// special marks, by its high bit, each byte of x that is not plain. Marks
// behind the first one may be wrong, because a subtraction borrows from the
// next byte; the first is always right.
func special(x uint64) uint64 {
	return (x | (x - ' '*low) | ((x ^ '"'*low) - low) | ((x ^ '\\'*low) - low)) & high
}

// plainRun returns the index of the first byte of b[i:] that is not plain, or
// len(b). It looks at eight bytes at a time.
func plainRun(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		if m := special(binary.LittleEndian.Uint64(b[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(b) && plain[b[i]] {
		i++
	}
	return i
}

// Str reads a string and returns its decoded bytes: a part of Buf when it has
// no escapes, else scratch memory that the next string overwrites. Text that
// is not UTF-8, control characters and lone surrogates are errors.
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

// escaped goes on with a string from its first escape, at i.
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

// runeLen returns the length of the valid UTF-8 sequence at b[i:], or 0.
func runeLen(b []byte, i int) int {
	r, n := utf8.DecodeRune(b[i:])
	if r == utf8.RuneError && n <= 1 {
		return 0
	}
	return n
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

// escapes has the byte that each letter behind a backslash stands for; 0 for u
// and for letters that are no escape.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

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
	return nil, 0, s.errorf(i, "lone surrogate in a string")
}

// hex4 returns the number that the four hexadecimal digits at b[i:] stand for.
func hex4(b []byte, i int) (rune, bool) {
	if i+4 > len(b) {
		return 0, false
	}
	var r rune
	for _, c := range b[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
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

// hexDigits are the digits of the escapes that are written.
const hexDigits = "0123456789abcdef"

// AppendString appends v as a JSON string. Beside what RFC 8259 requires it
// escapes U+2028 and U+2029, which end a line in some readers. Bytes that are
// not UTF-8 become U+FFFD, written as \ufffd.
func AppendString(dst []byte, v string) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, unsafe.Slice(unsafe.StringData(v), len(v)))
	return append(dst, '"')
}

// AppendStringBytes is AppendString for bytes.
func AppendStringBytes(dst, v []byte) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, v)
	return append(dst, '"')
}

// shortEscapes holds the letter of the two-byte escapes.
var shortEscapes = [256]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// appendEscaped appends the contents of a JSON string, without quotes. It
// copies runs of plain bytes at once.
func appendEscaped(dst, v []byte) []byte {
	start := 0
	for i := plainRun(v, 0); i < len(v); i = plainRun(v, i) {
		c := v[i]
		if c < utf8.RuneSelf {
			dst = append(dst, v[start:i]...)
			if e := shortEscapes[c]; e != 0 {
				dst = append(dst, '\\', e)
			} else {
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRune(v[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(append(dst, v[start:i]...), `\ufffd`...)
			start = i + n
		case r == '\u2028' || r == '\u2029':
			dst = append(append(dst, v[start:i]...), '\\', 'u', '2', '0', '2', hexDigits[r&15])
			start = i + n
		}
		i += n
	}
	return append(dst, v[start:]...)
}
