package wording

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Visible returns text in which two texts that differ look different. It
// escapes, as in JSON, characters that cannot be seen, marks that are separate
// from their letter, and letters that look like Latin ones in a word that has
// Latin letters.
func Visible(s string) string {
	if isPlain(s) {
		return s
	}
	apart := !norm.NFC.IsNormalString(s)
	var b strings.Builder
	latin := false // the word has a letter of ASCII
	for i, r := range s {
		switch isLetter := unicode.IsLetter(r); {
		case !isLetter:
			latin = false
		case i == 0 || !letterBefore(s, i):
			latin = latinWord(s[i:])
		}
		switch {
		case !unicode.IsPrint(r) && r != '\n', apart && unicode.Is(unicode.Mn, r), latin && resembles(r):
			if r > 0xffff {
				high := (r - 0x10000) >> 10
				fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+high, 0xdc00+(r-0x10000)&0x3ff)
				continue
			}
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isPlain reports whether s is printable ASCII, as most text is.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// resembles reports whether a letter can be mistaken for an ASCII letter.
func resembles(r rune) bool {
	return unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee) ||
		r >= 0xff21 && r <= 0xff5a || r >= 0x1d400 && r <= 0x1d7ff
}

// latinWord reports whether the word at the start of s contains an ASCII
// letter.
func latinWord(s string) bool {
	for _, r := range s {
		switch {
		case !unicode.IsLetter(r):
			return false
		case r < 0x80:
			return true
		}
	}
	return false
}

// letterBefore reports whether the character in front of index i is a letter.
func letterBefore(s string, i int) bool {
	last := []rune(s[max(0, i-4):i])
	return unicode.IsLetter(last[len(last)-1])
}

// OddHint returns a hint about the first escape that Visible wrote into text,
// or "" if there is none worth explaining.
func OddHint(text string) string {
	for rest := text; ; {
		i := strings.Index(rest, `\u`)
		if i < 0 || len(rest) < i+6 {
			return ""
		}
		code := rest[i+2 : i+6]
		n, err := strconv.ParseUint(code, 16, 16)
		rest = rest[i+6:]
		switch r := rune(n); {
		case err != nil:
		case r < 0x80: // a control character, which is not a wonder
		case unicode.Is(unicode.Mn, r):
			return `\u` + code + " is a mark apart from its letter; write both as one character (NFC)"
		case unicode.IsLetter(r), r >= 0xd800 && r <= 0xdfff:
			return `\u` + code + " looks like a Latin letter and is another; write the Latin one"
		case unicode.Is(unicode.Zs, r):
			return `\u` + code + " is a space of another kind; write a plain one or leave it out"
		case !unicode.IsPrint(r):
			return `\u` + code + " cannot be seen; leave it out"
		}
	}
}
