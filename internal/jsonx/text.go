package jsonx

import (
	"encoding/binary"
	"math/bits"
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

// runeLen returns the length of the valid UTF-8 sequence at b[i:], or 0.
func runeLen(b []byte, i int) int {
	r, n := utf8.DecodeRune(b[i:])
	if r == utf8.RuneError && n <= 1 {
		return 0
	}
	return n
}

// escapes has the byte that each letter behind a backslash stands for; 0 for u
// and for letters that do not form an escape.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

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
