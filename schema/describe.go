package schema

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// noun is what a value of a node's type is called, with an example.
func (n *node) noun() (name, example string) {
	switch n.kind {
	case nodeString:
		name = "a string"
	case nodeText:
		name = "a string"
		if n.said.name != "" {
			return n.said.name, n.said.example
		}
	case nodeInt, nodeUint, nodeBigInt:
		name = "an integer"
	case nodeFloat, nodeNumber:
		name = "a number"
	case nodeBool:
		name = "true or false"
	case nodeBytes:
		name = "base64 text"
	case nodeTime:
		return "a date and time with an offset", "2026-01-31T09:30:00Z"
	case nodeDuration:
		switch {
		case n.unit != 0:
			return "a whole number of " + unitWord(n.unit), ""
		case n.iso:
			return "a duration in ISO 8601 form", "PT1H30M"
		}
		return "a duration", "1h30m"
	case nodeURL:
		return "a URL", "https://example.com/a"
	case nodeList, nodeArray:
		name = "an array"
		if n.kind == nodeArray {
			name += " of exactly " + itemWords.count(strconv.Itoa(n.length), strconv.Itoa(n.length))
		}
	case nodeMap, nodeObject:
		name = "an object"
	case nodeUnion:
		return "an object whose " + n.union.decl.tag + " is " + oneOf(anySlice(n.union.names)), ""
	case nodeOpaque:
		if name = typeNouns[n.name]; name == "" {
			name = "a value as its schema says"
		}
	default:
		name = "any value"
	}
	if n.quoted {
		name += " inside a string"
	}
	return name, ""
}

// typeNouns are the nouns for the types of JSON Schema.
var typeNouns = map[string]string{"string": "a string", "integer": "an integer", "number": "a number",
	"boolean": "true or false", "array": "an array", "object": "an object"}

// unitWord names the unit of a Duration that travels as an integer.
func unitWord(unit int64) string {
	return map[time.Duration]string{time.Nanosecond: "nanoseconds", time.Microsecond: "microseconds",
		time.Millisecond: "milliseconds", time.Second: "seconds", time.Minute: "minutes", time.Hour: "hours"}[time.Duration(unit)]
}

// describe says what a node accepts: "an integer between 1 and 100".
func (n *node) describe() string {
	if n.kind == nodeNull || n.kind == nodeRef {
		return n.elem.describe()
	}
	return n.orNull(n.phrase(" of "))
}

func (n *node) orNull(text string) string {
	switch {
	case !n.nullable && !n.inNull:
		return text
	case strings.Count(text, " ") > 1:
		return text + ", or null"
	}
	return text + " or null"
}

// brief is describe without the article, for use in brackets.
func (n *node) brief() string {
	if n.kind == nodeNull || n.kind == nodeRef {
		return n.elem.brief()
	}
	text := n.orNull(n.phrase(", "))
	if short, ok := strings.CutPrefix(text, "a "); ok {
		return short
	}
	return strings.TrimPrefix(text, "an ")
}

// phrase tells a node's type and rules in one phrase. Most rules name the type
// along with what they ask: "a UUID" is text. A string's length comes behind of.
func (n *node) phrase(of string) string {
	var nouns, traits []string
	for i := range n.checks {
		switch c := &n.checks[i]; {
		case c.bound != nil:
		case c.trait:
			traits = append(traits, c.want)
		default:
			nouns = append(nouns, c.want)
		}
	}
	head, example := n.noun()
	limits := phraseRange(n.ends())
	if len(nouns) > 0 {
		head, example = strings.Join(nouns, " and "), ""
		limits = phraseRange(n.ownEnds())
	}
	long := len(nouns) > 0 || strings.Contains(head, " offset") || strings.Contains(head, " form") || n.unit != 0
	switch {
	case limits == "" && example == "":
	case limits == "" && long:
		head += ", such as " + example
	case limits == "":
		head += " such as " + example
	case long:
		head += ", " + limits
	case n.kind == nodeString:
		head += of + limits
	default:
		head += n.joint(limits) + limits
	}
	return strings.Join(append([]string{head}, traits...), ", ")
}

// joint is what stands between a noun and its limits.
func (n *node) joint(limits string) string {
	kind := n.target(nil).kind
	switch {
	case kind == kindMap:
		return " with "
	case kind == kindList, kind == kindBytes, strings.HasPrefix(limits, "at "):
		return " of "
	case strings.HasSuffix(limits, "later"), strings.HasSuffix(limits, "earlier"):
		return ", "
	}
	return " "
}

// ownEnds returns the lower and the upper bound among a node's checks.
func (n *node) ownEnds() (low, high *bound) {
	for i := range n.checks {
		b := n.checks[i].bound
		switch {
		case b == nil:
		case b.side == 0:
			return b, b
		case b.side < 0 && low == nil:
			low = b
		case b.side > 0 && high == nil:
			high = b
		}
	}
	return low, high
}

// ends is ownEnds with what an integer type can hold.
func (n *node) ends() (low, high *bound) {
	low, high = n.ownEnds()
	typeLow, typeHigh := n.typeRange()
	if low == nil && typeLow != "" {
		low = &bound{-1, typeLow, false, numberWords}
	}
	if high == nil && typeHigh != "" {
		high = &bound{+1, typeHigh, false, numberWords}
	}
	return low, high
}

// typeRange is what an integer type can hold, where the schema says so.
func (n *node) typeRange() (low, high string) {
	switch {
	case n.kind == nodeInt && n.bits < 64:
		return strconv.FormatInt(-1<<(n.bits-1), 10), strconv.FormatInt(1<<(n.bits-1)-1, 10)
	case n.kind == nodeUint && n.bits < 64:
		return "0", strconv.FormatUint(math.MaxUint64>>(64-n.bits), 10)
	case n.kind == nodeUint:
		return "0", ""
	}
	return "", ""
}

// wanted says what a check expects. One end of a range is told together with
// the other.
func (n *node) wanted(c *check) string {
	if c.bound == nil {
		return c.want
	}
	low, high := n.ends()
	if c.bound != low && c.bound != high {
		return c.want
	}
	return n.measured(low, high)
}

// measured says that a value lies between two ends.
func (n *node) measured(low, high *bound) string {
	text := phraseRange(low, high)
	switch {
	case text == "":
		return ""
	case n.kind == nodeDuration && n.unit != 0:
		return text + " " + unitWord(n.unit)
	case low != nil:
		return measured(n.target(nil).kind, low.words, text)
	}
	return measured(n.target(nil).kind, high.words, text)
}

// oneOf lists values as JSON: `one of "a", "b"`.
func oneOf(values []any) string {
	if len(values) == 1 {
		return string(appendAny(nil, values[0]))
	}
	return "one of " + jsonList(values)
}

func jsonList(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(appendAny(nil, v))
	}
	return strings.Join(words, ", ")
}

var typeNoun = map[valueKind]string{kindText: "a string", kindInt: "an integer", kindUint: "an integer", kindFloat: "a number"}

// otherThan says that a value of a kind is none of some.
func otherThan(kind valueKind, values ...any) string {
	if len(values) == 1 {
		return typeNoun[kind] + " other than " + jsonList(values)
	}
	return typeNoun[kind] + " other than any of " + jsonList(values)
}

// shortDuration writes a duration as Go does, without units that are 0.
func shortDuration(d time.Duration) string {
	s := d.String()
	if cutSeconds, ok := strings.CutSuffix(s, "m0s"); ok {
		s = cutSeconds + "m"
	}
	if cutMinutes, ok := strings.CutSuffix(s, "h0m"); ok {
		s = cutMinutes + "h"
	}
	return s
}
