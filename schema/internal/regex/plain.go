package regex

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxPlain is the length in bytes of the longest pattern that Plain returns. A longer
// one costs a model more tokens than the words that say the same.
const maxPlain = 300

// Plain respells a pattern so that RE2, ECMA-262 with and without flags, Python's re and
// the grammars of local models read it alike: with both anchors, groups without names,
// no escape but those of special characters, and the dash of a class at its end. It
// matches the same texts. ok is false if that spelling does not exist or is too long.
func Plain(pattern string) (plain string, ok bool) {
	body, ok := strings.CutPrefix(pattern, "^")
	if !ok || !strings.HasSuffix(body, "$") || !utf8.ValidString(body) {
		return "", false
	}
	p := plainer{src: body[:len(body)-1], out: []byte("^")}
	for len(p.src) > 0 {
		if !p.step() {
			return "", false
		}
	}
	p.out = append(p.out, '$')
	return string(p.out), p.depth == 0 && len(p.out) <= maxPlain
}

// plainer respells one pattern. src is what has not been read, and depth the number of
// open groups.
type plainer struct {
	src   string
	out   []byte
	depth int
}

// step reads one element. It returns false for what has no plain spelling, among
// it a bar outside of all groups, which would split the anchors.
func (p *plainer) step() bool {
	c := p.src[0]
	switch c {
	case '(':
		return p.group()
	case ')':
		p.put(")", 1)
		p.depth--
		return p.depth >= 0
	case '|':
		p.put("|", 1)
		return p.depth > 0
	case '^', '$':
		return false
	case '[':
		return p.class()
	case '.':
		p.put(`[^\n]`, 1)
		return true
	case '*', '+', '?', '{':
		form := quantifierForm().FindString(p.src)
		if form == "" {
			return false
		}
		size := len(form)
		if size > 1 {
			form = strings.TrimSuffix(form, "?") // lazy, which matches the same whole texts
		}
		p.put(form, size)
		return true
	case '\\':
		if set, ok := classSet(p.src); ok {
			p.put("[", 0)
			p.put(set, 2)
			p.put("]", 0)
			return true
		}
	}
	r, size, ok := character(p.src)
	if !ok {
		return false
	}
	p.src = p.src[size:]
	p.literal(r)
	return true
}

// put writes text instead of the next n bytes. Inlined, it would double the size of
// this file in programs.
//
//go:noinline
func (p *plainer) put(text string, n int) {
	p.out = append(p.out, text...)
	p.src = p.src[n:]
}

// group reads the beginning of a group. Its name goes, since nothing can refer to it.
func (p *plainer) group() bool {
	n := 1
	switch rest := p.src; {
	case strings.HasPrefix(rest, "(?:"):
		n = 3
	case strings.HasPrefix(rest, "(?"):
		if n = len(groupForm().FindString(rest)); n < 3 {
			return false
		}
	}
	p.depth++
	p.put("(", n)
	return true
}

// special are the characters that are escaped outside of classes.
const special = `^$\.*+?()[]{}|`

// literal writes one character outside of classes. Where a repetition follows, an
// escape or a letter of several bytes is in a class of its own, because some
// readers take the text before it, or half of the letter, for what is repeated.
func (p *plainer) literal(r rune) {
	operator := len(p.src) > 0 && strings.ContainsRune(`|.()[]{}*+?`, rune(p.src[0]))
	escaped := strings.ContainsRune(special, r) || r < ' ' || r == 0x7F
	switch {
	case operator && (escaped && strings.ContainsRune(`*+?{`, rune(p.src[0])) || r >= utf8.RuneSelf):
		p.put("[", 0)
		p.inClass(r)
		p.put("]", 0)
	case strings.ContainsRune(special, r):
		p.out = append(p.out, '\\', byte(r))
	case escaped:
		p.control(r)
	default:
		p.out = utf8.AppendRune(p.out, r)
	}
}

// class reads a bracket expression.
func (p *plainer) class() bool {
	p.put("[", 1)
	if strings.HasPrefix(p.src, "^") {
		p.put("^", 1)
	}
	dash := ""
	for first := true; first || !strings.HasPrefix(p.src, "]"); first = false {
		if strings.HasPrefix(p.src, "[:") {
			return false
		}
		if set, ok := classSet(p.src); ok && set[0] != '^' {
			p.put(set, 2)
			continue
		}
		low, size, ok := character(p.src)
		if !ok {
			return false
		}
		p.src = p.src[size:]
		switch {
		case strings.HasPrefix(p.src, "-") && !strings.HasPrefix(p.src, "-]"):
			high, size, ok := character(p.src[1:])
			if !ok {
				return false
			}
			p.inClass(low)
			p.put("-", 1+size)
			p.inClass(high)
		case low == '-':
			dash = "-"
		default:
			p.inClass(low)
		}
	}
	p.put(dash, 0)
	p.put("]", 1)
	return true
}

// classSet returns what a class such as \d stands for, between brackets.
func classSet(src string) (set string, ok bool) {
	if len(src) < 2 || src[0] != '\\' {
		return "", false
	}
	switch src[1] {
	case 'd':
		return `0-9`, true
	case 'D':
		return `^0-9`, true
	case 'w':
		return `0-9A-Za-z_`, true
	case 'W':
		return `^0-9A-Za-z_`, true
	case 's':
		return `\t\n\x0c\r `, true
	case 'S':
		return `^\t\n\x0c\r `, true
	}
	return "", false
}

// character reads one character, escaped or not. ok is false for escapes that stand for
// more than a character, and for characters outside of the basic plane, which ECMA-262
// without flags takes for two.
func character(src string) (r rune, size int, ok bool) {
	if src == "" {
		return 0, 0, false
	}
	if src[0] != '\\' {
		r, size = utf8.DecodeRuneInString(src)
		return r, size, r <= 0xFFFF
	}
	if len(src) < 2 {
		return 0, 0, false
	}
	switch c := src[1]; {
	case c == 'x':
		if form := hexForm().FindString(src); form != "" {
			n, err := strconv.ParseUint(form[2:], 16, 8)
			return rune(n), len(form), err == nil
		}
	case strings.IndexByte("tnrfv", c) >= 0:
		return rune("\t\n\r\f\v"[strings.IndexByte("tnrfv", c)]), 2, true
	case c < utf8.RuneSelf && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", c) >= 0:
		return rune(c), 2, true
	}
	return 0, 0, false
}

// inClass writes a character between brackets, also as the end of a range.
func (p *plainer) inClass(r rune) {
	switch {
	case r == '\\' || r == '[' || r == ']':
		p.out = append(p.out, '\\', byte(r))
	case r == '^' || r == '-' || r < ' ' || r == 0x7F:
		p.control(r)
	default:
		p.out = utf8.AppendRune(p.out, r)
	}
}

// control writes the escape of a control character, or of another of ASCII.
func (p *plainer) control(r rune) {
	switch r {
	case '\t':
		p.put(`\t`, 0)
	case '\n':
		p.put(`\n`, 0)
	case '\r':
		p.put(`\r`, 0)
	default:
		p.out = fmt.Appendf(p.out, `\x%02x`, r)
	}
}
