package raw

import (
	"encoding/json"
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
)

// maxPatterns is how large the regular expressions of a schema may be together, in steps
// of the programs that are made of them: a repetition has what it repeats as often.
const maxPatterns = 250_000

// pattern checks a regular expression, and counts it.
func (c *compiler) pattern(text string) error {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return err
	}
	if c.patterns += programSize(re); c.patterns > maxPatterns {
		return errors.New("with it, those of the schema are too large together: counted repetitions such as {1,255} may be shorter")
	}
	return nil
}

// programSize is about how many steps the program of a regular expression has. Eight
// bounds of a class such as \p{L} need as much memory as a step. Its depth is bounded by
// the parser, and so are its repetitions.
func programSize(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/8
	if re.Op == syntax.OpLiteral {
		n = 1 + len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += programSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

// expression is a regular expression of a schema.
type expression struct {
	*regexp.Regexp
	text string
}

// String returns it as the schema has it.
func (e *expression) String() string { return e.text }

// compiled returns a regular expression that compiler.pattern has let through. The package
// regexp would find out whether one pass is enough for it, which saves hardly anything
// here, and takes time and memory by the cube of its length. It does not where something
// follows $, if only nothing.
func compiled(text string) *expression {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		panic(err)
	}
	return &expression{regexp.MustCompile("(?:" + re.String() + ")(?:)"), text}
}

// plain reports whether a number is written in the one way that an integer has.
func plain(n json.Number) bool { return n != "-0" && !strings.ContainsAny(string(n), ".eE") }
