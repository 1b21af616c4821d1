package regex

import (
	"fmt"
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
	p := plainer{src: body[:len(body)-1]}
	p.out.WriteByte('^')
	for len(p.src) > 0 {
		if !p.step() {
			return "", false
		}
	}
	p.out.WriteByte('$')
	return p.out.String(), p.depth == 0 && p.out.Len() <= maxPlain
}

// plainer respells one pattern. src is what has not been read, and depth the number of
// open groups.
type plainer struct {
	src   string
	out   strings.Builder
	depth int
}

// step reads one element. It returns false for what has no plain spelling, among
// it a bar outside of all groups, which would split the anchors.
func (p *plainer) step() bool {
	c := p.src[0]
	switch c {
	case '(':
		return p.group()
	case ')', '|':
		if c == ')' {
			p.depth--
		}
		p.put(string(c), 1)
		return p.depth >= 0 && (c == ')' || p.depth > 0)
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
		p.put(form, len(form))
		if len(form) > 1 && form[len(form)-1] == '?' { // lazy, which matches the same whole texts
			text := p.out.String()
			p.out.Reset()
			p.out.WriteString(text[:len(text)-1])
		}
		return true
	case '\\':
		if set, ok := classSet(p.src); ok {
			p.put("["+set+"]", 2)
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

// put writes text instead of the next n bytes.
func (p *plainer) put(text string, n int) {
	p.out.WriteString(text)
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
		p.out.WriteString("[" + inClass(r) + "]")
	case strings.ContainsRune(special, r):
		p.out.WriteString(`\` + string(r))
	case escaped:
		p.out.WriteString(control(r))
	default:
		p.out.WriteRune(r)
	}
}

// class reads a bracket expression.
func (p *plainer) class() bool {
	rest := p.src[1:]
	var b strings.Builder
	b.WriteByte('[')
	if after, negated := strings.CutPrefix(rest, "^"); negated {
		b.WriteByte('^')
		rest = after
	}
	dash := ""
	for first := true; first || !strings.HasPrefix(rest, "]"); first = false {
		if rest == "" || strings.HasPrefix(rest, "[:") {
			return false
		}
		if set, ok := classSet(rest); ok && set[0] != '^' {
			b.WriteString(set)
			rest = rest[2:]
			continue
		}
		low, size, ok := character(rest)
		if !ok {
			return false
		}
		rest = rest[size:]
		switch {
		case strings.HasPrefix(rest, "-") && !strings.HasPrefix(rest, "-]"):
			high, size, ok := character(rest[1:])
			if !ok {
				return false
			}
			rest = rest[1+size:]
			b.WriteString(inClass(low) + "-" + inClass(high))
		case low == '-':
			dash = "-"
		default:
			b.WriteString(inClass(low))
		}
	}
	b.WriteString(dash + "]")
	p.put(b.String(), len(p.src)-len(rest)+1)
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
			_, err := fmt.Sscanf(form, `\x%x`, &r)
			return r, len(form), err == nil
		}
	case strings.IndexByte("tnrfv", c) >= 0:
		return rune("\t\n\r\f\v"[strings.IndexByte("tnrfv", c)]), 2, true
	case c < utf8.RuneSelf && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", c) >= 0:
		return rune(c), 2, true
	}
	return 0, 0, false
}

// inClass spells a character between brackets, also as the end of a range.
func inClass(r rune) string {
	switch {
	case strings.ContainsRune(`\[]`, r):
		return `\` + string(r)
	case r == '^' || r == '-':
		return fmt.Sprintf(`\x%02x`, r)
	case r < ' ' || r == 0x7F:
		return control(r)
	}
	return string(r)
}

// control spells a control character.
func control(r rune) string {
	switch r {
	case '\t':
		return `\t`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	}
	return fmt.Sprintf(`\x%02x`, r)
}
