package uritemplate

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Values are the values of variables, decoded. A value is a list; a single
// text is a list of one.
type Values map[string][]string

// group returns how to read one group of the regular expression.
type group struct {
	vars  []variable // one, or those that share a named part
	op    *operator
	first bool // of its expression
}

// unreadable returns why p could not be read back from a URI that also has the
// values of the parts after it; "" if it could.
func unreadable(p part, after []part) string {
	text := "" // between p and the expression that is examined
	for _, q := range after {
		if q.op == nil {
			text += q.literal
			continue
		}
		switch {
		case text == "" && ambiguous(p.op, q.op):
			return braces(p) + " and " + braces(q) + " cannot be told apart in a URI; put text between them"
		case p.op.place > q.op.place || p.op.place > 0 && q.op.char == '?' || p.op.char == '#':
			return braces(q) + " cannot be read back after " + braces(p) + "; a query begins once and goes on to the #, and what follows a # is all its own"
		case q.op.sep == "," && len(q.vars) > 1 && strings.Contains(text, ","):
			return fmt.Sprintf("the comma between %s and %s cannot be told from those of a list; write another text", braces(p), braces(q))
		case text == "" || !p.op.named:
		case (q.op.place == 0 || q.op.sep == p.op.sep) && strings.IndexByte(p.op.ends, text[0]) < 0:
			return fmt.Sprintf("the text %q between %s and %s cannot be told from a value; begin it with %s or move it", text, braces(p), braces(q), p.op.sep)
		case q.op.sep == p.op.sep && setsOne(text, p, q):
			return fmt.Sprintf("the text %q between %s and %s sets one of their variables", text, braces(p), braces(q))
		}
	}
	return ""
}

// setsOne reports whether literal text contains a parameter that is also a
// variable of p or q.
func setsOne(text string, p, q part) bool {
	for pair := range strings.SplitSeq(text, p.op.sep) {
		name, _, _ := strings.Cut(pair, "=")
		if p.has(name) || q.has(name) {
			return true
		}
	}
	return false
}

// ambiguous reports whether the values of two neighbouring expressions run into
// each other. Either may be missing, so all expressions without text between
// them are neighbours.
func ambiguous(a, b *operator) bool {
	switch b.char {
	case 0, '+':
		return true
	case '/':
		return a.reserved || a.char == '/'
	case '.':
		return a.char == '+' || a.char == '.' || a.named
	case ';', '&':
		return a.char == b.char
	}
	return false
}

// braces returns the expression as it is written in the template.
func braces(p part) string {
	names := make([]string, len(p.vars))
	for i, v := range p.vars {
		names[i] = v.name
	}
	op := ""
	if p.op.char != 0 {
		op = string(p.op.char)
	}
	return "{" + op + strings.Join(names, ",") + "}"
}

// except returns the characters that are percent-encoded in a value of p,
// because they end it or begin a part after it.
func except(p part, after []part) string {
	not := p.op.ends
	for _, q := range after {
		switch {
		case q.op == nil && strings.Contains(q.literal, "?") && p.op.char == '+':
			not += "?"
		case q.op != nil && (q.op.char == '?' || q.op.char == '&' || q.op.char == ';'):
			not += q.op.first
		}
	}
	return not
}

// unit returns the pattern of one character of a value. A percent-encoded byte
// is one character, no part of which can belong to what follows.
func unit(except string) string {
	return "(?:%[0-9A-Fa-f]{2}|[^%" + regexp.QuoteMeta(except) + "])"
}

// repeat returns how often the characters of a value may repeat: as often as
// possible, except that a dot which may begin an expression ends it.
func repeat(after []part) string {
	for _, q := range after {
		if q.op == nil {
			break
		}
		if q.op.char == '.' {
			return "*?"
		}
	}
	return "*"
}

// list decodes a value that is known by its place; it returns false if the
// value cannot be decoded.
func (g group) list(values Values, text string) bool {
	v, sep := g.vars[0], ","
	if v.parts(g.op) {
		sep, text = g.op.sep, text[1:] // it begins with its separator
	}
	list, ok := decodeList(text, sep)
	values[v.name] = list
	return ok
}

// pairs decodes name=value pairs. It returns false for a name that the template
// does not have, or has once and the URI twice.
func (g group) pairs(values Values, text string) bool {
	if g.op.char != '?' {
		text = text[1:]
	}
	for pair := range strings.SplitSeq(text, g.op.sep) {
		name, value, _ := strings.Cut(pair, "=")
		v := g.find(name)
		if v == nil || !v.explode && values[v.name] != nil {
			return false
		}
		sep := ","
		if v.explode {
			sep = ""
		}
		list, ok := decodeList(value, sep)
		if !ok {
			return false
		}
		values[v.name] = append(values[v.name], list...)
	}
	return true
}

// find returns the variable with a name, or nil.
func (g group) find(name string) *variable {
	for i := range g.vars {
		if g.vars[i].name == name {
			return &g.vars[i]
		}
	}
	return nil
}

// decodeList splits text at sep and decodes each part. With an empty sep there
// is one part.
func decodeList(text, sep string) (list []string, ok bool) {
	parts := []string{text}
	if sep != "" {
		parts = strings.Split(text, sep)
	}
	for i, p := range parts {
		decoded, err := url.PathUnescape(p)
		if err != nil || !utf8.ValidString(decoded) {
			return nil, false
		}
		parts[i] = decoded
	}
	return parts, true
}
