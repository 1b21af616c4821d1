// Package visible makes texts of a peer fit to be shown: in a terminal, in a log
// and inside a sentence that goes to another peer. Such a text can neither move
// the cursor nor start a line of its own, turn the direction of writing, or hide
// what it says, and it is not longer than the caller allows.
//
// Data that was asked for, such as the result of a tool that a program reads, is
// not a sentence for people and stays unchanged.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/talaria-go/mcp/internal/safely"
)

// How long texts are at most in what is written about them, in bytes.
const (
	Name     = 200     // names, ids and the like
	Sentence = 4 << 10 // messages and errors
)

// Text returns s with its lines and tabs, and without other control characters:
// those of ASCII become their pictures, ESC for example ␛. C1 controls, characters
// that turn the direction of writing, invisible ones and bytes that are not UTF-8
// become U+FFFD. Joiners stay where they join. Of more than max bytes the
// beginning is kept, and the length is said; max 0 or less means no limit.
func Text(s string, max int) string { return clean(s, max, true) }

// Line is Text on one line: white space of any kind and amount is one space.
func Line(s string, max int) string {
	if max > 0 && len(s) > 8*max {
		// Only the beginning can remain; what follows need not be split.
		whole := len(s)
		return cut(clean(strings.Join(strings.Fields(s[:4*max]), " "), 0, false), max, whole)
	}
	return clean(strings.Join(strings.Fields(s), " "), max, false)
}

// Output is Text of one line that a program has written, without its end: white
// space within it stays, so that it keeps its indentation.
func Output(line string, max int) string {
	line = strings.TrimRight(line, "\r\n")
	if strings.ContainsAny(line, "\r\n") { // a program that draws over its line
		line = strings.Map(func(r rune) rune {
			if r == '\r' || r == '\n' {
				return ' '
			}
			return r
		}, line)
	}
	return Text(line, max)
}

// Error returns err with a text that is fit to be shown on one line; errors.Is
// and errors.As see err. nil stays nil.
func Error(err error) error {
	if err == nil {
		return nil
	}
	text := "an error without a text"
	_ = safely.Apart(func() { text = err.Error() }) // it may be of users' code
	return &shownError{Line(text, Sentence), err}
}

// shownError is an error with a text that is fit to be shown.
type shownError struct {
	text string
	err  error
}

func (e *shownError) Error() string { return e.text }
func (e *shownError) Unwrap() error { return e.err }

// JSON returns valid JSON with the same value, in which every character that
// Text would replace is escaped. Bytes that are not UTF-8 become U+FFFD.
func JSON(text []byte) []byte {
	if plain(string(text)) {
		return text
	}
	out := make([]byte, 0, len(text)+32)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			out = append(out, "\ufffd"...)
		case r == '\n' || r == '\t' || r == '\r' || !hidden(r):
			out = append(out, text[i:i+n]...)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += n
	}
	return out
}

// plain reports whether s is printable ASCII with lines and tabs.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\n' && c != '\t') || c >= 0x7f {
			return false
		}
	}
	return true
}

// clean is Text, or with lines unset Line for text whose white space has been
// reduced already. Text without anything to replace is returned without a copy.
func clean(s string, max int, lines bool) string {
	whole := len(s)
	if max > 0 && len(s) > 4*max {
		s = s[:4*max] // no character takes more bytes than that, and what follows is cut off
	}
	if !plain(s) {
		if lines {
			s = strings.ReplaceAll(s, "\r\n", "\n")
		}
		var b strings.Builder
		b.Grow(len(s))
		before := rune(' ')
		for i, r := range s {
			own := r
			switch {
			case r == '\n' || r == '\t':
			case r < ' ':
				r += 0x2400
			case r == 0x7f:
				r = '␡'
			case joins(r):
				// Persian, Indic scripts and emoji cannot do without; in a row, or
				// where nothing is to join, they hide something.
				next, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
				if hidden(before) || unicode.IsSpace(before) || hidden(next) && !variant(next) || unicode.IsSpace(next) || next == utf8.RuneError {
					r = utf8.RuneError
				}
			case hidden(r) || variant(r) && (hidden(before) || unicode.IsSpace(before)):
				r = utf8.RuneError
			}
			b.WriteRune(r)
			before = own
		}
		s = b.String()
	}
	if max > 0 {
		return cut(s, max, whole)
	}
	return s
}

// cut keeps the first max bytes of s, and says how long the whole was.
func cut(s string, max, whole int) string {
	if len(s) <= max {
		return s
	}
	end := max
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:end], whole)
}

// joins tells the two joiners that writing has a use for.
func joins(r rune) bool { return r == 0x200c || r == 0x200d }

// variant tells the selectors of a character's form that are of common use.
func variant(r rune) bool { return r >= 0xfe00 && r <= 0xfe0f }

// hidden tells characters that are not seen, or that change how others are seen.
func hidden(r rune) bool {
	if r < 0x7f {
		return r < ' '
	}
	return r < 0xa0 || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point) ||
		unicode.Is(unicode.Variation_Selector, r) && !variant(r)
}
