// Package regex limits the patterns of users to the dialect that package regexp
// and ECMA-262 with the u flag read alike, and builds patterns from parts.
//
// JSON Schema says that patterns are ECMA-262, and a client may check with an
// implementation of that. The server checks with package regexp. A pattern that
// the two read differently would therefore mean two things; [Lint] refuses it,
// or rewrites it where that is possible without a change of meaning.
//
// Nothing here keeps state apart from patterns that are compiled on first use.
package regex

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Lint checks that RE2, which package regexp implements, and ECMA-262 with the
// u flag read a pattern alike. It returns the compiled expression and the text
// to advertise.
//
// What both accept but read differently is written out: "." and \s become
// classes with Go's meaning. \d and \w do too, because some implementations
// apply Unicode to them. Anything else outside of the common dialect is a
// *Fault.
func Lint(pattern string) (*regexp.Regexp, string, *Fault) {
	l := &linter{src: pattern}
	if !utf8.ValidString(pattern) {
		return nil, "", l.fault("the pattern is not valid UTF-8", "write it in UTF-8")
	}
	if p := l.run(); p != nil {
		return nil, "", p
	}
	emitted := l.out.String()
	re, err := regexp.Compile(emitted)
	if err != nil {
		return nil, "", l.fault(strings.TrimPrefix(err.Error(), "error parsing regexp: "), "correct the regular expression")
	}
	return re, emitted, nil
}

// Fault is what keeps a pattern from being read alike.
type Fault struct {
	Msg string // what is wrong
	Fix string // what to write instead
}

// linter walks a pattern from front to back, writing the rewritten pattern to
// out. It is for one pattern. pos is the next byte of src, and depth the number
// of open groups.
type linter struct {
	src   string
	pos   int
	out   strings.Builder
	depth int
	// quantifiable is set if the last element can be repeated.
	quantifiable bool
}

// fault returns a Fault. It is a method so that all messages about a pattern
// are made in one way.
func (l *linter) fault(msg, fix string) *Fault {
	return &Fault{msg, fix}
}

// rest returns what has not been read yet.
func (l *linter) rest() string { return l.src[l.pos:] }

// take copies n bytes of the source to the output.
func (l *linter) take(n int) {
	l.out.WriteString(l.src[l.pos : l.pos+n])
	l.pos += n
}

// put writes text instead of n bytes of the source.
func (l *linter) put(text string, n int) {
	l.out.WriteString(text)
	l.pos += n
}

// run reads the whole pattern. It returns the first fault, or nil.
func (l *linter) run() *Fault {
	for l.pos < len(l.src) {
		if p := l.step(); p != nil {
			return p
		}
	}
	if l.depth > 0 {
		return l.fault("a ( is never closed", "add the missing )")
	}
	return nil
}

// step reads one element: a character, an escape, a class, a parenthesis, an
// anchor or a quantifier.
func (l *linter) step() *Fault {
	c := l.src[l.pos]
	switch c {
	case '\\':
		return l.escape()
	case '[':
		return l.class()
	case '(':
		return l.group()
	case ')':
		if l.depth--; l.depth < 0 {
			return l.fault("a ) without a (", `write \) for the character itself`)
		}
		l.take(1)
		l.quantifiable = true
	case '*', '+', '?', '{':
		return l.quantifier(c)
	case ']', '}':
		return l.fault(fmt.Sprintf("a bare %c is an error in ECMA-262", c), fmt.Sprintf(`write \%c`, c))
	case '.':
		l.put(`[^\n]`, 1)
		l.quantifiable = true
	case '^', '$', '|':
		l.take(1)
		l.quantifiable = false
	default:
		_, n := utf8.DecodeRuneInString(l.rest())
		l.take(n)
		l.quantifiable = true
	}
	return nil
}

// quantifierForm matches a quantifier that both dialects have, including a lazy
// one.
var quantifierForm = Lazy(`^(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??`)

// quantifier reads *, +, ? or a repetition in braces. It must follow something
// that can be repeated.
func (l *linter) quantifier(c byte) *Fault {
	form := quantifierForm().FindString(l.rest())
	switch {
	case form == "" && strings.HasPrefix(l.rest(), "{,"):
		return l.fault("{,n} is not a repetition in ECMA-262", "write {0,n}")
	case form == "":
		return l.fault("a bare { is an error in ECMA-262", `write \{`)
	case !l.quantifiable:
		return l.fault(fmt.Sprintf("%c repeats nothing", c), fmt.Sprintf(`put it after what it repeats, or write \%c for the character`, c))
	}
	l.take(len(form))
	l.quantifiable = false
	return nil
}

// groupForm matches the beginnings of groups that both dialects have.
var groupForm = Lazy(`^\((?:\?:|\?<[A-Za-z_][A-Za-z0-9_]*>)?`)

// group reads the beginning of a group.
func (l *linter) group() *Fault {
	rest := l.rest()
	form := groupForm().FindString(rest)
	if form == "(" && strings.HasPrefix(rest, "(?") {
		switch {
		case strings.HasPrefix(rest, "(?P<"):
			return l.fault("(?P<name>…) is not known to ECMA-262", "write (?<name>…)")
		case strings.HasPrefix(rest, "(?="), strings.HasPrefix(rest, "(?!"), strings.HasPrefix(rest, "(?<"):
			return l.fault("RE2 has no look-ahead and look-behind", "say it without, or with a second rule")
		}
		return l.fault("flags inside a pattern are not known to ECMA-262", "spell the cases out, as in [aA]")
	}
	l.depth++
	l.take(len(form))
	l.quantifiable = false
	return nil
}

// syntaxCharacters may be escaped everywhere in ECMA-262 with the u flag; no
// other punctuation may.
const syntaxCharacters = `^$\.*+?()[]{}|/`

// classLetters are the class escapes that are written out, with what they
// become outside and inside of brackets. "" means that it cannot be written
// inside brackets.
var classLetters = map[byte][2]string{
	'd': {`[0-9]`, `0-9`}, 'w': {`[0-9A-Za-z_]`, `0-9A-Za-z_`}, 's': {`[\t\n\f\r ]`, `\t\n\f\r `},
	'D': {`[^0-9]`, ""}, 'W': {`[^0-9A-Za-z_]`, ""}, 'S': {`[^\t\n\f\r ]`, ""},
}

// escape reads a backslash outside of brackets and what follows it.
func (l *linter) escape() *Fault {
	l.quantifiable = true
	if len(l.src) > l.pos+1 {
		c := l.src[l.pos+1]
		if c == 'b' || c == 'B' {
			l.take(2)
			l.quantifiable = false
			return nil
		}
		if text, ok := classLetters[c]; ok {
			l.put(text[0], 2)
			return nil
		}
		if c == '-' {
			return l.fault(`\- outside of brackets is an error in ECMA-262`, "write -")
		}
	}
	_, p := l.character()
	return p
}

var (
	hexForm      = Lazy(`^\\x[0-9a-fA-F]{2}`)
	propertyForm = Lazy(`^\\[pP]\{(?:L|Lu|Ll|Lt|Lm|Lo|M|Mn|Mc|Me|N|Nd|Nl|No|P|Pc|Pd|Ps|Pe|Pi|Pf|Po|S|Sm|Sc|Sk|So|Z|Zs|Zl|Zp)\}`)
)

// character reads an escape that stands for one character or for a Unicode
// property. single reports whether it may be the end of a range.
func (l *linter) character() (single bool, p *Fault) {
	rest := l.rest()
	if len(rest) < 2 {
		return false, l.fault(`the pattern ends with a \`, `write \\ for a backslash`)
	}
	c, size := utf8.DecodeRuneInString(rest[1:])
	switch {
	case strings.ContainsRune(syntaxCharacters, c), strings.ContainsRune("tnfrv", c):
		l.take(2)
		return true, nil
	case c == 'x' && hexForm().MatchString(rest):
		l.take(4)
		return true, nil
	case c == 'p' || c == 'P':
		if form := propertyForm().FindString(rest); form != "" {
			l.take(len(form))
			return false, nil
		}
		return false, l.fault("only general categories such as \\p{L} are read alike everywhere", "write \\p{L}, \\p{Lu}, \\p{N} or the like, or list the characters")
	}
	return false, l.unknownEscape(c, size)
}

// unknownEscape returns the fault of an escape outside of the common dialect,
// with what to write instead.
func (l *linter) unknownEscape(c rune, size int) *Fault {
	escape := `\` + l.rest()[1:1+size]
	fixes := map[rune]string{
		'A': "write ^", 'z': "write $", 'Z': "write $", 'Q': "escape each character", 'E': "escape each character",
		'a': `write \x07`, '0': `write \x00`, 'c': `write the control character as \x01 to \x1F`, 'u': "write the character itself",
		'x': `write \x41 with two hexadecimal digits, or the character itself`, 'C': "write [^\\n]",
	}
	switch fix, ok := fixes[c]; {
	case ok:
		return l.fault(escape+" is not read alike by RE2 and ECMA-262", fix)
	case c >= '1' && c <= '9', c == 'k':
		return l.fault("RE2 has no back-references", "say it without")
	}
	return l.fault(escape+" is an error in ECMA-262", "write "+escape[1:])
}

// class reads a bracket expression. A ']' directly behind the '[' is refused,
// because the dialects disagree on it.
func (l *linter) class() *Fault {
	start := l.pos
	l.take(1)
	if strings.HasPrefix(l.rest(), "^") {
		l.take(1)
	}
	if strings.HasPrefix(l.rest(), "]") {
		return l.fault("a ] right after [ is read as its end by ECMA-262 and as a character by RE2", `write \]`)
	}
	everything := l.everything(start)
	first := true
	for !strings.HasPrefix(l.rest(), "]") {
		if l.pos >= len(l.src) {
			return l.fault("a [ is never closed", "add the missing ]")
		}
		if p := l.classItem(first, everything); p != nil {
			return p
		}
		first = false
	}
	l.take(1)
	l.quantifiable = true
	return nil
}

// everything reports whether the class at start is one such as [\s\S], which
// matches every character. Its halves cannot be written out by themselves and
// need not be.
func (l *linter) everything(start int) bool {
	end := strings.IndexByte(l.src[start:], ']')
	if end < 0 {
		return false
	}
	switch strings.TrimPrefix(l.src[start+1:start+end], "^") {
	case `\s\S`, `\S\s`, `\d\D`, `\D\d`, `\w\W`, `\W\w`:
		return true
	}
	return false
}

// classItem reads a character, a class escape or a range inside brackets.
// Dashes are permitted only where both dialects take them for what they look
// like.
func (l *linter) classItem(first, everything bool) *Fault {
	if strings.HasPrefix(l.rest(), "-") {
		if !first && !strings.HasPrefix(l.rest(), "-]") {
			return l.fault("a - in the middle of a class is read differently", `write \-, or put it last`)
		}
		l.put(`\-`, 1)
		return nil
	}
	single, p := l.classAtom(everything)
	if p != nil {
		return p
	}
	if !strings.HasPrefix(l.rest(), "-") || strings.HasPrefix(l.rest(), "-]") {
		return nil
	}
	if !single {
		return l.fault("a range cannot begin with a class", `write \- for the dash`)
	}
	l.take(1)
	if l.pos >= len(l.src) {
		return l.fault("a [ is never closed", "add the missing ]")
	}
	if strings.HasPrefix(l.rest(), "-") {
		return l.fault("a range that ends with - is hard to read", `write \-`)
	}
	single, p = l.classAtom(false)
	if p == nil && !single {
		p = l.fault("a range cannot end with a class", `write \- for the dash`)
	}
	return p
}

// classAtom reads one element inside brackets. single reports whether it is a
// single character.
func (l *linter) classAtom(everything bool) (single bool, p *Fault) {
	rest := l.rest()
	if rest[0] != '\\' {
		if strings.HasPrefix(rest, "[:") {
			return false, l.fault("[:name:] is not known to ECMA-262", "write the characters, as in [a-zA-Z]")
		}
		r, n := utf8.DecodeRuneInString(rest)
		if strings.ContainsRune(`[(){}/|^`, r) {
			l.put(`\`+string(r), n) // so that the v flag takes it too
		} else {
			l.take(n)
		}
		return true, nil
	}
	if len(rest) < 2 {
		return false, l.fault(`the pattern ends with a \`, `write \\ for a backslash`)
	}
	c := rest[1]
	if text, ok := classLetters[c]; ok {
		switch {
		case everything:
			l.take(2)
		case text[1] == "":
			return false, l.fault(`\`+string(c)+" inside brackets cannot be written out", "list the characters, or exclude the others with [^…]")
		default:
			l.put(text[1], 2)
		}
		return false, nil
	}
	switch c {
	case '-':
		l.take(2)
		return true, nil
	case 'b', 'B':
		return false, l.fault(`\`+string(c)+" inside brackets is read differently", `write \x08 for the backspace`)
	}
	return l.character()
}
