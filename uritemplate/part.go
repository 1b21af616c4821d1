package uritemplate

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

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

// escape writes value with every character percent-encoded that is not
// allowed there.
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

// operator is the character behind the brace and what it means (RFC 6570,
// appendix A).
type operator struct {
	char     byte   // 0 for none
	first    string // before the first variable
	sep      string // between variables
	named    bool   // name=value
	empty    string // after the name of an empty value
	reserved bool   // reserved characters stand for themselves
	ends     string // characters that cannot be in a value when a URI is read
	place    int    // in a URI: 0 for its path, 1 for the query, 2 for the fragment
}

// operators are the operators of RFC 6570, appendix A; the first is the absence
// of one.
var operators = []operator{
	{0, "", ",", false, "", false, "/?#", 0},
	{'+', "", ",", false, "", true, "#", 0},
	{'#', "#", ",", false, "", true, "", 2},
	{'.', ".", ".", false, "", false, "/?#", 0},
	{'/', "/", "/", false, "", false, "/?#", 0},
	{';', ";", ";", true, "", false, ";/?#", 0},
	{'?', "?", "&", true, "=", false, "&#", 1},
	{'&', "&", "&", true, "=", false, "&#", 1},
}

// part is a literal, or an expression with an operator.
type part struct {
	literal string
	vars    []variable // of an expression; nil for a literal
	op      *operator
	except  string // characters that do not stand for themselves in its values
}

// variable is a variable of an expression. explode is the modifier '*'.
type variable struct {
	name    string
	explode bool
}

// has reports whether the expression has a variable.
func (p part) has(name string) bool {
	return slices.ContainsFunc(p.vars, func(v variable) bool { return v.name == name })
}

// parts reports whether each value of the variable's list is a part of its own
// that begins with the separator.
func (v variable) parts(op *operator) bool {
	return v.explode && (op.sep == "/" || op.sep == ".")
}
