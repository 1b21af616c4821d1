package schema

import (
	"strings"
	"unicode/utf8"
)

// class reads a bracket expression.
func (l *linter) class() *problem {
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

// everything reports a class such as [\s\S], whose halves need no rewriting
// because together they are all characters.
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

// classItem reads a character, a class escape or a range.
func (l *linter) classItem(first, everything bool) *problem {
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

// classAtom reads one element of a class and reports whether it is a single
// character.
func (l *linter) classAtom(everything bool) (single bool, p *problem) {
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
