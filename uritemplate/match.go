package uritemplate

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Values are the values of variables, decoded. A value is a list; a single
// text is a list of one.
type Values map[string][]string

// group says how to read one group of the pattern.
type group struct {
	vars  []variable // one, or those that share a named part
	op    *operator
	first bool // of its expression
}

// compile makes the pattern that URIs are matched with. Package regexp takes
// time linear in the URI, so that no URI can be made to take long.
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

// unreadable says why p could not be read back from a URI that has the values
// of what comes after it too; it is "" if it can be.
func unreadable(p part, after []part) string {
	text := "" // between p and the expression that is looked at
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

// setsOne tells whether text has a parameter that is a variable of p or q.
func setsOne(text string, p, q part) bool {
	for pair := range strings.SplitSeq(text, p.op.sep) {
		name, _, _ := strings.Cut(pair, "=")
		if p.has(name) || q.has(name) {
			return true
		}
	}
	return false
}

func (p part) has(name string) bool {
	return slices.ContainsFunc(p.vars, func(v variable) bool { return v.name == name })
}

// ambiguous tells whether the values of two neighbours run into each other.
// Either may be missing, so that all expressions without text between them are
// neighbours.
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

// except lists the characters that do not stand for themselves in a value of p,
// because they end it or begin something that comes after it.
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

// unit is the pattern of one character of a value. An escape is one character,
// of which no part can belong to what follows.
func unit(except string) string {
	return "(?:%[0-9A-Fa-f]{2}|[^%" + regexp.QuoteMeta(except) + "])"
}

// expression writes the pattern of one expression.
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

// repeat is how often the characters of a value come: as often as possible,
// but a dot that may begin an expression ends it.
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

// positional writes the pattern of variables that are known by their place. The
// last of them takes what its separator would end before.
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

// parts tells whether each value of v's list is a part of its own, which begins
// with the separator.
func (v variable) parts(op *operator) bool {
	return v.explode && (op.sep == "/" || op.sep == ".")
}

// Match returns the values that uri has where the template has variables; ok
// is false if uri does not fit. A variable that the URI has nothing of is missing
// in the values; one whose name or separator is there without a value is empty,
// as a in ?a= and in a path that ends with the / of {/a}. Query parameters may come in any order; one that the template does
// not have, or has once and the URI twice, does not fit.
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

// list reads a value that is known by its place.
func (g group) list(values Values, text string) bool {
	v, sep := g.vars[0], ","
	if v.parts(g.op) {
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

// bare tells whether group i, which found nothing, has no separator and nothing
// after it in its expression: {a,b} has an empty a in ",5", and none in "".
func (t *Template) bare(i int, found []int) bool {
	g := t.groups[i]
	if !g.first || g.op.first != "" {
		return false
	}
	return i+1 == len(t.groups) || t.groups[i+1].first || found[2*i+4] < 0
}
