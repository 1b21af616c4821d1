package schema

import (
	"slices"
	"strconv"
	"strings"
)

// kindWords are a node's type as in "must be …" and as in "(…)".
var kindWords = map[nodeKind][2]string{
	nodeString:   {"a string", "string"},
	nodeInt:      {"an integer", "integer"},
	nodeUint:     {"an integer", "integer"},
	nodeFloat:    {"a number", "number"},
	nodeBool:     {"true or false", "true or false"},
	nodeBytes:    {"base64 text", "base64 text"},
	nodeTime:     {"a date and time with offset, such as 2026-01-31T09:30:00Z", "date-time"},
	nodeDuration: {`a duration such as "1h30m"`, "duration"},
	nodeText:     {"a string", "string"},
	nodeURL:      {"a URL", "URL"},
	nodeNumber:   {"a number", "number"},
	nodeBigInt:   {"an integer", "integer"},
	nodeRaw:      {"a JSON value", "any value"},
	nodeAny:      {"a JSON value", "any value"},
	nodeList:     {"an array", "array"},
	nodeArray:    {"an array", "array"},
	nodeMap:      {"an object", "object"},
	nodeObject:   {"an object", "object"},
	nodeUnion:    {"an object", "object"},
	nodeOpaque:   {"a value of the given schema", "see the schema"},
}

// words returns a node's type in words.
func (n *node) words() (long, short string) {
	if n.kind == nodeNull || n.kind == nodeRef {
		return n.elem.words()
	}
	w := kindWords[n.kind]
	switch {
	case n.kind == nodeDuration && n.unit != 0:
		w = [2]string{"an integer", "integer"}
	case n.kind == nodeDuration && n.iso:
		w[0] = `a duration such as "PT1H30M"`
	case n.quoted:
		w = [2]string{w[0] + " inside a string", w[1] + " inside a string"}
	case n.kind == nodeOpaque && n.name != "":
		w = [2]string{"of type " + n.name, n.name}
	}
	return w[0], w[1]
}

// describe says what a node accepts: "an integer between 1 and 100".
func (n *node) describe() string {
	long, _ := n.words()
	text := n.phrase(long)
	if n.nullable {
		text += " or null"
	}
	return text
}

// brief is describe without the article, for use in brackets.
func (n *node) brief() string {
	_, short := n.words()
	return n.phrase(short)
}

// phrase puts a node's rules behind its type.
func (n *node) phrase(typ string) string {
	if n.kind == nodeNull || n.kind == nodeRef {
		return n.elem.phrase(typ)
	}
	var parts []string
	low, high := n.bounds()
	if r := between(low, high); r != "" {
		parts = append(parts, r)
	}
	for i := range n.checks {
		c := &n.checks[i]
		switch {
		case c.want == low || c.want == high || slices.Contains(parts, c.want):
		case c.code == "enum" || c.code == "const":
			if strings.HasPrefix(typ, "a") { // "a string" and so on says less than the list
				return c.want
			}
			parts = append(parts, c.want)
		default:
			parts = append(parts, c.want)
		}
	}
	if len(parts) == 0 {
		return typ
	}
	separator := ", "
	if n.numeric() && !strings.HasPrefix(parts[0], "a ") {
		separator = " "
		if strings.HasPrefix(parts[0], "at ") {
			separator = " of "
		}
	}
	return typ + separator + strings.Join(parts, ", ")
}

func (n *node) numeric() bool {
	return n.kind == nodeInt || n.kind == nodeUint || n.kind == nodeFloat
}

// bounds returns the "at least …" and "at most …" of a node; either may be "".
func (n *node) bounds() (low, high string) {
	for i := range n.checks {
		switch w := n.checks[i].want; {
		case low == "" && strings.HasPrefix(w, "at least "):
			low = w
		case high == "" && strings.HasPrefix(w, "at most "):
			high = w
		}
	}
	if n.kind == nodeInt && n.bits < 64 || n.kind == nodeUint {
		typeLow, typeHigh := n.typeRange()
		if low == "" && !hasCode(n, "exclusiveMinimum") {
			low = typeLow
		}
		if high == "" && n.bits < 64 && !hasCode(n, "exclusiveMaximum") {
			high = typeHigh
		}
	}
	return low, high
}

// typeRange is what an integer type can hold, in words.
func (n *node) typeRange() (low, high string) {
	if n.kind == nodeUint {
		return "at least 0", "at most " + strconv.FormatUint(1<<n.bits-1, 10)
	}
	return "at least " + strconv.FormatInt(-1<<(n.bits-1), 10), "at most " + strconv.FormatInt(1<<(n.bits-1)-1, 10)
}

// between joins two bounds: "between 1 and 100", "between 2 and 5 items".
func between(low, high string) string {
	if low == "" || high == "" {
		return low + high
	}
	a, unitA, _ := strings.Cut(strings.TrimPrefix(low, "at least "), " ")
	b, unitB, _ := strings.Cut(strings.TrimPrefix(high, "at most "), " ")
	if unitA != "" && unitB != "" && strings.TrimSuffix(unitA, "s") != strings.TrimSuffix(unitB, "s") {
		return low + ", " + high
	}
	text := "between " + a + " and " + b
	if unitB != "" {
		text += " " + unitB
	}
	return text
}

// wanted says what a check expects, together with its counterpart: both ends
// of a range.
func (n *node) wanted(c *check) string {
	low, high := n.bounds()
	if c.want == low || c.want == high {
		return n.ofType(between(low, high))
	}
	return n.ofType(c.want)
}

// ofType puts the type in front of a numeric bound or a length.
func (n *node) ofType(want string) string {
	long, _ := n.words()
	for _, prefix := range []string{"between ", "at least ", "at most ", "exactly ", "greater ", "less "} {
		if !strings.HasPrefix(want, prefix) {
			continue
		}
		if n.numeric() {
			return want
		}
		if n.kind == nodeString {
			return want + " long"
		}
		return long + " of " + want
	}
	return want
}
