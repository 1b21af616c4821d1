package raw

import (
	"encoding/json"
	"errors"
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
// bounds of what a class such as \p{L} takes need as much memory as a step. Its depth is
// bounded by the parser, and so are its repetitions.
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

// plain reports whether a number is written in the one way that an integer has.
func plain(n json.Number) bool { return n != "-0" && !strings.ContainsAny(string(n), ".eE") }
