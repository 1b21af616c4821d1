// Package uritemplate parses URI templates (RFC 6570, levels 1 to 3, and lists
// of level 4), expands them, and matches URIs against them.
//
//	t, _ := uritemplate.Parse("users://{id}/files/{+path}{?rev}")
//	values, ok := t.Match("users://7/files/a/b.txt?rev=2")
//	// values["id"] is ["7"], values["path"] is ["a/b.txt"]
//
// RFC 6570 defines expansion only. Matching reverses it: what [Template.Expand]
// makes of values, [Template.Match] reads back. Parse therefore refuses
// templates for which that is not possible, such as {a}{b}, whose values a URI
// does not separate.
//
// A template is compiled into one regular expression with a group for each
// variable, or for each set of named parameters. Package regexp matches in time
// linear in the URI, so that a hostile URI costs no more than a harmless one of
// its length. A [Template] is immutable.
package uritemplate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Template is a parsed template. It does not change and is safe for concurrent
// use.
type Template struct {
	text     string
	parts    []part
	names    []string
	prefix   string // what every URI that fits starts with
	literals int
	pattern  *regexp.Regexp
	groups   []group
}

// Parse reads a template. A variable may occur once. Parse refuses what Match
// could not read back: the prefix modifier ({name:3}), expressions without a separator,
// such as {a}{b}, and an order that URIs do not have, such as {&a}{?b}.
func Parse(text string) (*Template, error) {
	t := &Template{text: text}
	for rest := text; rest != ""; {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			open = len(rest)
		} else if rest[open] == '}' {
			return nil, t.fault("there is a } without its {")
		}
		if open > 0 {
			if err := t.addLiteral(rest[:open]); err != nil {
				return nil, err
			}
			rest = rest[open:]
			continue
		}
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return nil, t.fault("%q lacks its }", rest)
		}
		if err := t.addExpression(rest[1:end]); err != nil {
			return nil, err
		}
		rest = rest[end+1:]
	}
	if len(t.parts) > 0 {
		t.prefix = t.parts[0].literal
	}
	return t, t.compile()
}

// fault returns an error about the template, which it names.
func (t *Template) fault(format string, args ...any) error {
	return fmt.Errorf("URI template %q: %s", t.text, fmt.Sprintf(format, args...))
}

// addLiteral adds literal text, which must consist of characters that may occur
// in a URI.
func (t *Template) addLiteral(text string) error {
	for i, c := range text {
		if c == '%' && (i+2 >= len(text) || !isHex(text[i+1]) || !isHex(text[i+2])) {
			return t.fault("%q has a %% that starts no escape; write %%25", text)
		}
		if c <= ' ' || c >= 0x7f || strings.ContainsRune("\"'<>\\^`|", c) {
			_, size := utf8.DecodeRuneInString(text[i:])
			return t.fault("the character %q must be percent-encoded, as %s", text[i:i+size], escaped(text[i:i+size]))
		}
	}
	t.literals += len(text)
	t.parts = append(t.parts, part{literal: text})
	return nil
}

// escaped returns text with each byte percent-encoded.
func escaped(text string) (out string) {
	for i := range len(text) {
		out += fmt.Sprintf("%%%02X", text[i])
	}
	return out
}

// addExpression adds the expression whose text, without braces, is given.
func (t *Template) addExpression(text string) error {
	p := part{op: &operators[0]}
	if text != "" {
		for i := range operators[1:] {
			if op := &operators[i+1]; op.char == text[0] {
				p.op = op
			}
		}
		if strings.IndexByte("=,!@|$", text[0]) >= 0 {
			return t.fault("{%s}: the operator %q is reserved and means nothing", text, text[0])
		}
		if p.op.char != 0 {
			text = text[1:]
		}
	}
	for name := range strings.SplitSeq(text, ",") {
		name, explode := strings.CutSuffix(name, "*")
		if strings.Contains(name, ":") {
			return t.fault("{%s}: a prefix such as :3 cannot be read back from a URI", text)
		}
		if !validName(name) {
			return t.fault("{%s}: %q is no variable; names have letters, digits, '_' and '.'", text, name)
		}
		for _, n := range t.names {
			if n == name {
				return t.fault("variable %q is there twice", name)
			}
		}
		t.names = append(t.names, name)
		p.vars = append(p.vars, variable{name, explode})
	}
	t.parts = append(t.parts, p)
	return nil
}

// validName reports whether name is a varname of RFC 6570, section 2.3, without
// percent-encoded characters.
func validName(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" {
			return false
		}
		for i := range len(label) {
			if c := label[i]; !isLetterOrDigit(c) && c != '_' {
				return false
			}
		}
	}
	return true
}

// isLetterOrDigit and isHex report whether an ASCII character belongs to a
// class.
func isLetterOrDigit(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// String returns the text of the template.
func (t *Template) String() string { return t.text }

// Names returns the variables in their order.
func (t *Template) Names() []string { return append([]string(nil), t.names...) }

// Expand returns the URI for values, which Match reads. Variables without a
// value are left out; values of names that are not in the template are ignored.
// Values are text: bytes that are no UTF-8 become U+FFFD. In {+a} and {#a}
// reserved characters and escapes stay as they are, except for the characters
// that end the value or begin a later expression: those are encoded, so that
// they are read as part of the value.
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

// Match returns the values that uri has where the template has variables; ok
// is false if uri does not fit. A variable that the URI has nothing of is missing
// in the values; one whose name or separator is there without a value is empty,
// as a in ?a= and in a path that ends with the / of {/a}. Query parameters may come in
// any order; one that the template does not have, or has once and the URI twice, does
// not fit.
//
// Values are percent-decoded once and may then hold anything, slashes and
// ".." too.
func (t *Template) Match(uri string) (values Values, ok bool) {
	if !strings.HasPrefix(uri, t.prefix) {
		return nil, false
	}
	found := t.pattern.FindStringSubmatchIndex(uri)
	if found == nil {
		return nil, false
	}
	values = make(Values, len(t.names))
	for i, g := range t.groups {
		from, to := found[2*i+2], found[2*i+3]
		switch {
		case from < 0:
			continue // its separator is not there
		case from < to:
		case g.op.named || g.vars[0].parts(g.op):
			continue
		case t.bare(i, found):
			continue
		}
		if text := uri[from:to]; g.op.named {
			ok = g.pairs(values, text)
		} else {
			ok = g.list(values, text)
		}
		if !ok {
			return nil, false
		}
	}
	return values, true
}

// bare reports whether group i, which is empty, has neither a separator nor
// anything after it in its expression: {a,b} has an empty a in ",5" and none in
// "".
func (t *Template) bare(i int, found []int) bool {
	g := t.groups[i]
	if !g.first || g.op.first != "" {
		return false
	}
	return i+1 == len(t.groups) || t.groups[i+1].first || found[2*i+4] < 0
}

// compile makes the regular expression and its groups, or returns why the
// template cannot be matched.
func (t *Template) compile() error {
	var b strings.Builder
	b.WriteString("^")
	for i := range t.parts {
		p, after := &t.parts[i], t.parts[i+1:]
		if p.op == nil {
			b.WriteString(regexp.QuoteMeta(p.literal))
			continue
		}
		if why := unreadable(*p, after); why != "" {
			return t.fault("%s", why)
		}
		p.except = except(*p, after)
		t.expression(&b, *p, after)
	}
	b.WriteString("$")
	var err error
	if t.pattern, err = regexp.Compile(b.String()); err != nil {
		return t.fault("%v", err)
	}
	return nil
}

// expression writes the pattern of one expression and adds its groups.
func (t *Template) expression(b *strings.Builder, p part, after []part) {
	switch p.op.char {
	case ';', '&':
		b.WriteString(`((?:` + p.op.sep + unit(p.except) + `*)*)`)
		t.groups = append(t.groups, group{p.vars, p.op, true})
	case '?':
		b.WriteString(`(?:\?(` + unit("#") + `*))?`)
		vars := p.vars
		for _, q := range after { // it takes the parameters of a later {&…} too
			if q.op != nil && q.op.char == '&' {
				vars = append(vars[:len(vars):len(vars)], q.vars...)
			}
		}
		t.groups = append(t.groups, group{vars, p.op, true})
	default:
		t.positional(b, p, after)
	}
}

// positional writes the pattern of variables that are known by their place. The
// last of them also takes what its separator would end before.
func (t *Template) positional(b *strings.Builder, p part, after []part) {
	repeat := repeat(after)
	// A comma is encoded in the parts of {/a*}, and not between the values of a
	// list, which must not be taken for such a part.
	listsAfter := slices.ContainsFunc(after, func(q part) bool { return q.op != nil && q.op.place == 0 || strings.Contains(q.literal, ",") })
	for i, v := range p.vars {
		before := p.op.sep
		if i == 0 {
			before = p.op.first
		}
		value := unit(p.except) + repeat
		if i < len(p.vars)-1 {
			value = unit(p.except+p.op.sep) + repeat
		}
		quoted := regexp.QuoteMeta(before)
		switch {
		case v.parts(p.op):
			except := p.except + p.op.sep
			if listsAfter || p.op.char == '.' {
				except += ","
			}
			b.WriteString(`((?:` + quoted + unit(except) + repeat + `)` + repeat + `)`)
		case before == "":
			b.WriteString(`(` + value + `)`)
		default:
			b.WriteString(`(?:` + quoted + `(` + value + `))?`)
		}
		t.groups = append(t.groups, group{[]variable{v}, p.op, i == 0})
	}
}
