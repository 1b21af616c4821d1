package jsonx

import (
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

// Str reads a string and returns its decoded bytes: a part of Buf when it has
// no escapes, else scratch memory that the next string overwrites. Text that
// is not UTF-8, control characters and lone surrogates are errors.
func (s *Scanner) Str() ([]byte, error) {
	if s.space() != '"' {
		return nil, s.unexpected("a string")
	}
	b, start := s.Buf, s.Pos+1
	for i := start; i < len(b); {
		c := b[i]
		if plain[c] {
			i++
			continue
		}
		switch {
		case c == '"':
			s.Pos = i + 1
			return b[start:i], nil
		case c == '\\':
			return s.escaped(start, i)
		case c < ' ':
			return nil, s.errorf(i, "control character %q in a string must be escaped", c)
		default:
			n := runeLen(b, i)
			if n == 0 {
				return nil, s.errorf(i, "string is not valid UTF-8")
			}
			i += n
		}
	}
	s.Pos = len(b)
	return nil, s.unexpected(`'"'`)
}

// escaped goes on with a string from its first escape, at i.
func (s *Scanner) escaped(start, i int) ([]byte, error) {
	b := s.Buf
	out := append(s.scratch[:0], b[start:i]...)
	for i < len(b) {
		c := b[i]
		switch {
		case plain[c]:
			out = append(out, c)
			i++
		case c == '"':
			s.Pos, s.scratch = i+1, out
			return out, nil
		case c == '\\':
			var err error
			if out, i, err = s.escape(out, i); err != nil {
				return nil, err
			}
		case c < ' ':
			return nil, s.errorf(i, "control character %q in a string must be escaped", c)
		default:
			n := runeLen(b, i)
			if n == 0 {
				return nil, s.errorf(i, "string is not valid UTF-8")
			}
			out = append(out, b[i:i+n]...)
			i += n
		}
	}
	s.Pos = len(b)
	return nil, s.unexpected(`'"'`)
}

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
		return nil, 0, s.errorf(i, "unknown escape \\%c", b[i+1])
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

const hexDigits = "0123456789abcdef"

// AppendString appends v as a JSON string. Only what RFC 8259 requires is
// escaped; bytes that are not UTF-8 become U+FFFD.
func AppendString(dst []byte, v string) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, v)
	return append(dst, '"')
}

// AppendStringBytes is AppendString for bytes.
func AppendStringBytes(dst, v []byte) []byte {
	return AppendString(dst, unsafe.String(unsafe.SliceData(v), len(v)))
}

func appendEscaped(dst []byte, v string) []byte {
	start := 0
	for i := 0; i < len(v); {
		c := v[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(v[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			dst = append(dst, v[start:i]...)
			dst = append(dst, "\ufffd"...)
			i++
			start = i
			continue
		}
		dst = append(dst, v[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(dst, v[start:]...)
}
