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

// maxOnePass is how large a regular expression may be for the package regexp to look
// whether one pass is enough for it. That needs time by the square of its steps, and
// memory for the bounds of all that may follow each of them.
const maxOnePass = 300

// pattern checks a regular expression, and counts it. Eight bounds of what a class such as
// \p{L} takes need as much memory as a step.
func (c *compiler) pattern(text string) error {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return err
	}
	steps, bounds := programSize(re)
	if c.patterns += steps + bounds/8; c.patterns > maxPatterns {
		return errors.New("with it, those of the schema are too large together: counted repetitions such as {1,255} may be shorter")
	}
	return nil
}

// programSize is about how many steps the program of a regular expression has, and how
// many bounds its classes. Its depth is bounded by the parser, and so are its repetitions.
func programSize(re *syntax.Regexp) (steps, bounds int) {
	steps = 1
	if re.Op == syntax.OpLiteral {
		steps += len(re.Rune)
	} else {
		bounds = len(re.Rune)
	}
	for _, sub := range re.Sub {
		s, b := programSize(sub)
		steps, bounds = steps+s, bounds+b
	}
	if re.Op == syntax.OpRepeat {
		times := max(re.Min, re.Max, 1)
		steps, bounds = steps*times, bounds*times
	}
	return steps, bounds
}

// expression is a regular expression of a schema.
type expression struct {
	*regexp.Regexp
	text string
}

// String returns it as the schema has it.
func (e *expression) String() string { return e.text }

// compiled returns a regular expression that compiler.pattern has let through.
func compiled(text string) *expression {
	re, err := syntax.Parse(text, syntax.Perl)
	if steps, bounds := programSize(re); err == nil && steps+bounds > maxOnePass {
		// With something after what may be $ one pass is never enough.
		return &expression{regexp.MustCompile("(?:" + re.String() + ")(?:)"), text}
	}
	return &expression{regexp.MustCompile(text), text}
}

// plain reports whether a number is written in the one way that an integer has.
func plain(n json.Number) bool { return n != "-0" && !strings.ContainsAny(string(n), ".eE") }
