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

// noun returns what a value of the node's type is called in messages, with an
// article, and an example for forms that are not obvious. The example is "" if
// there is none to give.
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

// describe returns what a node accepts, type and rules in one phrase, such as
// "an integer between 1 and 100". It is the Expected of an issue about the
// type.
func (n *node) describe() string {
	if n.kind == nodeNull || n.kind == nodeRef {
		return n.elem.describe()
	}
	return n.orNull(n.phrase(" of "))
}

// orNull appends "or null" to a phrase if the node accepts null. A long phrase
// gets a comma first, because "or" may occur in it already.
func (n *node) orNull(text string) string {
	switch {
	case !n.nullable && !n.inNull:
		return text
	case strings.Count(text, " ") > 1:
		return text + ", or null"
	}
	return text + " or null"
}

// brief is describe without the article, for the brackets behind "is required".
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

// phrase returns a node's type and rules in one phrase, without null. Most
// rules name the type along with what they demand ("a UUID" is text), so their
// words replace the noun; rules with Check.Trait set only add to it. of is what
// is between "a string" and its length.
//
// The limits are left out of the list of rules and told as one range, so that
// min=1,max=9 reads "between 1 and 9".
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

// joint returns the word between a noun and its limits: "an array of at least 2
// items", "an object with 1 to 3 members".
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

// ownEnds returns the lower and the upper bound among the checks of a node;
// either may be nil. A rule that allows exactly one value, such as len=3, is
// both. If several rules bound one side, the first is returned.
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

// ends is ownEnds completed by what the integer type can hold, on a side where
// no rule sets a bound.
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

// typeRange returns the smallest and the largest value of the integer type in
// decimal, or "" where the schema has no such keyword: the limits of 64 bits
// are said by a format.
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

// wanted returns what a check demands. A check that is one end of a range names
// both ends, because a correction needs both.
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

// measured returns the phrase for a value between two bounds, in the unit of
// the node. One of the bounds may be nil.
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

// examples returns at most two texts that the rules of a time of day, a local
// date and time, or a duration accept, for the examples keyword: their form is
// not obvious to every model. Texts that break the node's rules are left out;
// bounds of the rules are tried as well.
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

// passes reports whether a text has the form of the node and passes its checks.
// Custom rules are not run, because they need the context of a call.
func (n *node) passes(text string) bool {
	own := *n
	own.ptrs, own.special = nil, true
	own.checks = slices.DeleteFunc(slices.Clone(n.checks), func(c rules.Check) bool { _, custom := c.Test.(rules.CustomTest); return custom })
	p := &Plan{opts: &Options{}, root: &own, typ: n.typ, maxDepth: defaultMaxDepth, maxValues: defaultMaxValues}
	return p.decode(context.Background(), jsonx.AppendString(nil, text), slotOf(reflect.New(n.typ)), false, nil) == nil
}

// shown returns a decoded value as it looks in JSON, in the form that its field
// has. Messages of comparisons quote it.
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
