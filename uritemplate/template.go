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
	"strings"
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

// Parse reads a template. A variable may stand in it once. The prefix modifier
// ({name:3}) is refused, because the value could not be read back from a URI;
// so are expressions that a URI could not tell apart, such as {a}{b}, and those
// in an order that URIs do not have, such as {&a}{?b}.
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
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '%' && (i+2 >= len(text) || !isHex(text[i+1]) || !isHex(text[i+2])) {
			return t.fault("%q has a %% that starts no escape; write %%25", text)
		}
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"'<>\\^`|", c) >= 0 {
			return t.fault("the character %q must be percent-encoded", c)
		}
	}
	t.literals += len(text)
	t.parts = append(t.parts, part{literal: text})
	return nil
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

// Literals returns how many characters of the template stand for themselves:
// of two templates that match a URI, the one with more is closer to it.
func (t *Template) Literals() int { return t.literals }

// Rooted reports whether a value of a variable can begin with a slash that
// belongs to the form of the URI, as with {+path} in file://{+path} but not in
// file:///{+path}.
func (t *Template) Rooted(name string) bool {
	for i, p := range t.parts {
		for _, v := range p.vars {
			if v.name == name {
				return p.op.char == '+' && (i == 0 || !strings.HasSuffix(t.parts[i-1].literal, "/"))
			}
		}
	}
	return false
}
