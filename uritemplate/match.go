package uritemplate

import (
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Values are the values of variables, decoded. A value is a list; a single
// text is a list of one.
type Values map[string][]string

// group says how to read one group of the pattern.
type group struct {
	vars []variable // one, or those that share a named part
	op   *operator
}

// compile makes the pattern that URIs are matched with. Package regexp takes
// time linear in the URI, so that no URI can be made to take long.
func (t *Template) compile() error {
	var b strings.Builder
	b.WriteString("^")
	for i, p := range t.parts {
		if p.op == nil {
			b.WriteString(regexp.QuoteMeta(p.literal))
			continue
		}
		var next *part
		if i+1 < len(t.parts) {
			next = &t.parts[i+1]
		}
		if next != nil && next.op != nil && ambiguous(p.op, next.op) {
			return t.fault("%s and %s cannot be told apart in a URI; put text between them", braces(p), braces(*next))
		}
		t.expression(&b, p, next, t.parts[i+1:])
	}
	b.WriteString("$")
	var err error
	if t.pattern, err = regexp.Compile(b.String()); err != nil {
		return t.fault("%v", err)
	}
	return nil
}

// ambiguous tells whether the values of two neighbours run into each other.
func ambiguous(a, b *operator) bool {
	switch b.char {
	case 0, '+':
		return true
	case '/':
		return a.reserved || a.char == '/'
	case '.', ';':
		return a.char == '+' || a.char == b.char
	case '?', '&', '#':
		return a.char == '#' || a.char == b.char
	}
	return false
}

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

// expression writes the pattern of one expression.
func (t *Template) expression(b *strings.Builder, p part, next *part, after []part) {
	switch p.op.char {
	case ';':
		b.WriteString(`((?:;[^;/?#]*)*)`)
		t.groups = append(t.groups, group{p.vars, p.op})
	case '?':
		b.WriteString(`(?:\?([^#]*))?`)
		vars := p.vars
		for _, q := range after { // it takes the parameters of a later {&…} too
			if q.op != nil && q.op.char == '&' {
				vars = append(vars[:len(vars):len(vars)], q.vars...)
			}
		}
		t.groups = append(t.groups, group{vars, p.op})
	case '&':
		b.WriteString(`((?:&[^#&]*)*)`)
		t.groups = append(t.groups, group{p.vars, p.op})
	default:
		repeat := "*"
		if next != nil && next.op != nil && (next.op.char == '.' || next.op.char == ';') {
			repeat = "*?" // what follows takes what it can
		}
		t.positional(b, p, valueClass(p, after)+repeat)
	}
}

// valueClass is the set of characters in a value of p.
func valueClass(p part, after []part) string {
	not := "/?#"
	switch p.op.char {
	case '+':
		not = "#"
		for _, q := range after {
			if q.op != nil && q.op.char == '?' || strings.Contains(q.literal, "?") {
				not = "?#"
			}
		}
	case '#':
		not = ""
	}
	if len(p.vars) > 1 {
		if p.op.sep != "/" {
			not += p.op.sep
		}
	}
	if not == "" {
		return "."
	}
	return "[^" + not + "]"
}

// positional writes the pattern of variables that are known by their place.
func (t *Template) positional(b *strings.Builder, p part, value string) {
	for i, v := range p.vars {
		before := p.op.sep
		if i == 0 {
			before = p.op.first
		}
		quoted := regexp.QuoteMeta(before)
		switch {
		case v.explode && (p.op.sep == "/" || p.op.sep == "."):
			b.WriteString(`((?:` + quoted + `[^` + p.op.sep + `/?#]*)*)`)
		case before == "":
			b.WriteString(`(` + value + `)`)
		default:
			b.WriteString(`(?:` + quoted + `(` + value + `))?`)
		}
		t.groups = append(t.groups, group{[]variable{v}, p.op})
	}
}

// Match returns the values that uri has where the template has variables; ok
// is false if uri does not fit. Variables that are empty or missing in the
// URI are missing in the values, except a named one without value (?a=), which
// is empty. Query parameters may come in any order; one that the template does
// not have, or has once and the URI twice, does not fit.
//
// Values are percent-decoded once and may then hold anything, slashes and
// ".." too.
func (t *Template) Match(uri string) (values Values, ok bool) {
	if !strings.HasPrefix(uri, t.prefix) {
		return nil, false
	}
	found := t.pattern.FindStringSubmatch(uri)
	if found == nil {
		return nil, false
	}
	values = make(Values, len(t.names))
	for i, g := range t.groups {
		text := found[i+1]
		if text == "" {
			continue
		}
		if g.op.named {
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

// list reads a value that is known by its place.
func (g group) list(values Values, text string) bool {
	v, sep := g.vars[0], ","
	if v.explode && (g.op.sep == "/" || g.op.sep == ".") {
		sep, text = g.op.sep, text[1:] // it begins with its separator
	}
	list, ok := decodeList(text, sep)
	values[v.name] = list
	return ok
}

// pairs reads name=value pairs.
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

func (g group) find(name string) *variable {
	for i := range g.vars {
		if g.vars[i].name == name {
			return &g.vars[i]
		}
	}
	return nil
}

// decodeList splits text and decodes each part; without sep it is one part.
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
