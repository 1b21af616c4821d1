package uritemplate

import "strings"

// Expand returns the URI for values. Variables without a value are left out;
// values of names that are not in the template are ignored.
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
			p.op.expand(&b, v, list)
		}
	}
	return b.String()
}

func (op *operator) expand(b *strings.Builder, v variable, list []string) {
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
			if value == "" && len(list) == 1 {
				b.WriteString(op.empty)
				continue
			}
			b.WriteByte('=')
		}
		op.escape(b, value)
	}
}

const upperHex = "0123456789ABCDEF"

// escape writes value with every character encoded that may not stand there.
func (op *operator) escape(b *strings.Builder, value string) {
	for i := range len(value) {
		c := value[i]
		switch {
		case isLetterOrDigit(c), strings.IndexByte("-._~", c) >= 0,
			op.reserved && strings.IndexByte(":/?#[]@!$&'()*+,;=", c) >= 0,
			op.reserved && c == '%' && i+2 < len(value) && isHex(value[i+1]) && isHex(value[i+2]):
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		}
	}
}
