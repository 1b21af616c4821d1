package uritemplate

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// Expand returns the URI for values, which Match reads. Variables without a
// value are left out; values of names that are not in the template are ignored.
// Values are text: bytes that are no UTF-8 become U+FFFD. In {+a} and {#a}
// reserved characters and escapes stay as they are, but for the characters that
// end the value or begin a later expression: those are encoded, so that they are
// read as part of the value.
func (t *Template) Expand(values Values) string {
	var b strings.Builder
	for _, p := range t.parts {
		if p.op == nil {
			b.WriteString(p.literal)
			continue
		}
		before := p.op.first
		for _, v := range p.vars {
			list := values[v.name]
			if len(list) == 0 {
				continue
			}
			b.WriteString(before)
			before = p.op.sep
			p.expand(&b, v, list)
		}
	}
	return b.String()
}

// expand writes the values of one variable, by the rules of the operator (RFC
// 6570, section 3.2.1).
func (p *part) expand(b *strings.Builder, v variable, list []string) {
	op := p.op
	sep := ","
	if v.explode {
		sep = op.sep
	}
	for i, value := range list {
		if i > 0 {
			b.WriteString(sep)
		}
		if op.named && (i == 0 || v.explode) {
			b.WriteString(v.name)
			if value == "" && (v.explode || len(list) == 1) {
				b.WriteString(op.empty)
				continue
			}
			b.WriteByte('=')
		}
		p.escape(b, value)
	}
}

// upperHex are the digits of percent-encoding.
const upperHex = "0123456789ABCDEF"

// escape writes value with every character percent-encoded that may not stand
// there.
func (p *part) escape(b *strings.Builder, value string) {
	value = strings.ToValidUTF8(value, "\uFFFD")
	escaped := p.escaped(value, p.op.reserved)
	if text, err := url.PathUnescape(escaped); err != nil || !utf8.ValidString(text) {
		escaped = p.escaped(value, false) // its escapes stand for no text
	}
	b.WriteString(escaped)
}

// escaped returns value percent-encoded. With keep, escapes in value stay as
// they are.
func (p *part) escaped(value string, keep bool) string {
	var b strings.Builder
	for i := range len(value) {
		c := value[i]
		switch {
		case isLetterOrDigit(c), strings.IndexByte("-._~", c) >= 0,
			p.op.reserved && strings.IndexByte(":/?#[]@!$&'()*+,;=", c) >= 0 && strings.IndexByte(p.except, c) < 0,
			keep && c == '%' && i+2 < len(value) && isHex(value[i+1]) && isHex(value[i+2]):
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		}
	}
	return b.String()
}
