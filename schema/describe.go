package schema

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/schema/civil"

	"github.com/talaria-go/mcp/schema/internal/lexical"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// noun is what a value of a node's type is called, with an example for forms
// that are not obvious; the example is "" where there is none to give.
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
			return "a whole number of " + lexical.UnitWord(n.unit), ""
		case n.iso:
			return "a duration in ISO 8601 form", "PT1H30M"
		}
		return "a duration", "1h30m"
	case nodeURL:
		return "a URL", "https://example.com/a"
	case nodeList, nodeArray:
		name = "an array"
		if n.kind == nodeArray {
			name += " of exactly " + wording.ItemWords.Count(strconv.Itoa(n.length), strconv.Itoa(n.length))
		}
	case nodeMap, nodeObject:
		name = "an object"
	case nodeUnion:
		return "an object whose " + n.union.decl.tag + " is " + wording.OneOf(rules.AnySlice(n.union.names)), ""
	case nodeOpaque:
		if name = wording.TypeNouns[n.name]; name == "" {
			name = "a value as its schema says"
		}
	default:
		name = "any value"
	}
	if n.quoted && !n.isKey {
		name += " inside a string"
	}
	return name, ""
}

// describe says what a node accepts, type and rules in one phrase: "an integer
// between 1 and 100". It is what an issue expects.
func (n *node) describe() string {
	if n.kind == nodeNull || n.kind == nodeRef {
		return n.elem.describe()
	}
	return n.orNull(n.phrase(" of "))
}

// orNull adds that null is accepted too.
func (n *node) orNull(text string) string {
	switch {
	case !n.nullable && !n.inNull:
		return text
	case strings.Count(text, " ") > 1:
		return text + ", or null"
	}
	return text + " or null"
}

// brief is describe without the article, for use in brackets behind "is
// required".
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
		case c.Bound != nil:
		case c.Trait:
			traits = append(traits, c.Want)
		default:
			nouns = append(nouns, c.Want)
		}
	}
	head, example := n.noun()
	limits := wording.PhraseRange(n.ends())
	if len(nouns) > 0 {
		head, example = strings.Join(nouns, " and "), ""
		limits = wording.PhraseRange(n.ownEnds())
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

// joint is what stands between a noun and its limits, so that both read as one
// phrase.
func (n *node) joint(limits string) string {
	kind := n.target().Kind
	switch {
	case kind == rules.KindMap:
		return " with "
	case kind == rules.KindList, kind == rules.KindBytes, strings.HasPrefix(limits, "at "):
		return " of "
	case strings.HasSuffix(limits, "later"), strings.HasSuffix(limits, "earlier"):
		return ", "
	}
	return " "
}

// ownEnds returns the lower and the upper bound among a node's checks; either
// may be nil. A rule that allows one value is both.
func (n *node) ownEnds() (low, high *wording.Bound) {
	for i := range n.checks {
		b := n.checks[i].Bound
		switch {
		case b == nil:
		case b.Side == 0:
			return b, b
		case b.Side < 0 && low == nil:
			low = b
		case b.Side > 0 && high == nil:
			high = b
		}
	}
	return low, high
}

// ends is ownEnds with what an integer type can hold where no rule says less.
func (n *node) ends() (low, high *wording.Bound) {
	low, high = n.ownEnds()
	typeLow, typeHigh := n.typeRange()
	if low == nil && typeLow != "" {
		low = wording.NumberWords.Least(typeLow)
	}
	if high == nil && typeHigh != "" {
		high = wording.NumberWords.Most(typeHigh)
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
// the other: whoever mends the value needs both.
func (n *node) wanted(c *rules.Check) string {
	if c.Bound == nil {
		return c.Want
	}
	low, high := n.ends()
	if c.Bound != low && c.Bound != high {
		return c.Want
	}
	return n.measured(low, high)
}

// measured says that a value lies between two ends.
func (n *node) measured(low, high *wording.Bound) string {
	text := wording.PhraseRange(low, high)
	switch {
	case text == "":
		return ""
	case n.kind == nodeDuration && n.unit != 0:
		return text + " " + lexical.UnitWord(n.unit)
	case low != nil:
		return rules.Measured(n.target().Kind, low.Words, text)
	}
	return rules.Measured(n.target().Kind, high.Words, text)
}

// examples are two or so texts that the rules of a date, a time or a duration
// accept: their form is not obvious to everyone.
func (n *node) examples() []any {
	var candidates []string
	switch {
	case n.kind == nodeDuration && n.unit == 0 && n.iso:
		candidates = []string{"PT30S", "PT1H30M"}
	case n.kind == nodeDuration && n.unit == 0:
		candidates = []string{"30s", "1h30m"}
	case n.typ == reflect.TypeFor[civil.TimeOfDay]():
		candidates = []string{"09:30", "23:59:59"}
	case n.typ == reflect.TypeFor[civil.NaiveDateTime]():
		candidates = []string{"2026-01-31T09:30:00"}
	default:
		return nil
	}
	if low, high := n.ownEnds(); low != nil || high != nil {
		for _, b := range []*wording.Bound{low, high} {
			if b != nil && !b.Open {
				candidates = append(candidates, b.Limit)
			}
		}
	}
	var fine []any
	for _, text := range candidates {
		if len(fine) < 2 && !slices.Contains(fine, any(text)) && n.passes(text) {
			fine = append(fine, text)
		}
	}
	return fine
}

// passes tells whether a text has a node's form and passes its checks, but for
// custom rules.
func (n *node) passes(text string) bool {
	own := *n
	own.ptrs, own.special = nil, true
	own.checks = slices.DeleteFunc(slices.Clone(n.checks), func(c rules.Check) bool { _, custom := c.Test.(rules.CustomTest); return custom })
	p := &Plan{opts: &Options{}, root: &own, typ: n.typ, maxDepth: defaultMaxDepth, maxValues: defaultMaxValues}
	return p.decode(context.Background(), jsonx.AppendString(nil, text), slotOf(reflect.New(n.typ)), false, nil) == nil
}

// shown writes a value that is compared as it looks in JSON, in the form that
// its field has.
func (n *node) shown(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Time:
		return wording.Quote(x.Format(time.RFC3339Nano))
	case time.Duration:
		if n.unit != 0 {
			return strconv.FormatInt(int64(x)/n.unit, 10)
		}
		return wording.Quote(lexical.FormatDuration(x, n.iso))
	case fmt.Stringer:
		if n.kind == nodeText {
			return wording.Quote(x.String())
		}
	}
	if v.Kind() == reflect.String {
		return wording.Quote(v.String())
	}
	return string(wording.AppendJSON(nil, rules.PlainValue(v)))
}
