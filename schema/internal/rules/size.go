package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/schemadoc"
	"github.com/talaria-go/mcp/schema/internal/tags"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// addSizeRules adds the comparisons with a constant. Depending on the kind they
// compare the length of text, lists and maps, or the value.
func addSizeRules(table map[string]ruleDef) {
	ordered := kindsNumber | kinds(KindText, KindList, KindMap, KindBytes, KindTime, KindDate, KindDuration)
	for _, name := range []string{"min", "max", "gt", "gte", "lt", "lte"} {
		table[name] = ruleDef{ClassExact, ordered, ParamOptional, "1", compileSize}
	}
	sized := ordered &^ kinds(KindTime, KindDate)
	table["len"] = ruleDef{ClassExact, sized, ParamNeeded, "1", compileSize}
	for _, name := range []string{"eq", "ne"} {
		table[name] = ruleDef{ClassExact, sized | kinds(KindBool), ParamNeeded, "1", compileSize}
	}
}

// Operator returns the comparison that a size rule makes: gte and lte are other
// names for min and max.
func Operator(name string) string {
	switch name {
	case "gte":
		return "min"
	case "lte":
		return "max"
	}
	return name
}

// compileSize compiles min, max, gt, gte, lt, lte, len, eq and ne by the kind
// of the target.
func compileSize(r tags.Rule, t Target) ([]Check, *tags.Problem) {
	equality := r.Name == "eq" || r.Name == "ne"
	if !r.HasParam && t.Kind != KindTime {
		return nil, r.Fault(r.Name+" needs a parameter", "write "+r.Name+"=1")
	}
	switch t.Kind {
	case KindText:
		if equality {
			return equalText(r), nil
		}
		return compileCount(r, t, textCounter)
	case KindList:
		return compileCount(r, t, listCounter)
	case KindMap:
		return compileCount(r, t, mapCounter)
	case KindBytes:
		return compileCount(r, t, bytesCounter)
	case KindInt, KindUint, KindFloat:
		return compileNumber(r, t)
	case KindBool:
		return equalBool(r)
	case KindDuration:
		return compileDuration(r, t)
	}
	return compileTime(r, t)
}

// counter is how the length of one kind of value is counted and how a schema
// limits it.
type counter struct {
	words  *wording.BoundWords
	code   string // "Length": minLength, maxLength
	limits func(*jsonschema.Schema) (min, max **uint64)
}

var (
	textCounter = counter{wording.CharacterWords, "Length", func(s *jsonschema.Schema) (a, b **uint64) {
		return &s.MinLength, &s.MaxLength
	}}
	listCounter = counter{wording.ItemWords, "Items", func(s *jsonschema.Schema) (a, b **uint64) {
		return &s.MinItems, &s.MaxItems
	}}
	mapCounter = counter{wording.MemberWords, "Properties", func(s *jsonschema.Schema) (a, b **uint64) {
		return &s.MinProperties, &s.MaxProperties
	}}
	// []byte travels as base64 text, four characters for three bytes, so its
	// schema can only give the length in steps.
	bytesCounter = counter{wording.ByteWords, "", textCounter.limits}
)

// parseCount reads the parameter of a rule on a length.
func parseCount(r tags.Rule) (uint64, *tags.Problem) {
	n, p := parseInteger(r)
	if p != nil {
		return 0, p
	}
	if n < 0 {
		return 0, r.Fault("a length is never negative", "write "+r.Name+"=0 or more")
	}
	if n > math.MaxInt32 {
		return 0, r.Fault("no argument is that long", "write a smaller number, or remove the rule")
	}
	return uint64(n), nil
}

// compileCount compiles the comparisons of a length. An exclusive limit becomes
// an inclusive one, because lengths are whole numbers and JSON Schema has no
// keyword for the former.
func compileCount(r tags.Rule, t Target, c counter) ([]Check, *tags.Problem) {
	n, p := parseCount(r)
	if p != nil {
		return nil, p
	}
	switch Operator(r.Name) {
	case "min":
		return []Check{atLeast(r, t, c, n, -1)}, nil
	case "max":
		return []Check{atMost(r, t, c, n, +1)}, nil
	case "gt":
		return []Check{atLeast(r, t, c, n+1, -1)}, nil
	case "lt":
		if n == 0 {
			return nil, r.Fault("no length is less than 0", "write lt=1 or more, or max=0 for empty values only")
		}
		return []Check{atMost(r, t, c, n-1, +1)}, nil
	case "ne":
		return []Check{notExactly(r, t, c, n)}, nil
	}
	return []Check{atLeast(r, t, c, n, 0), atMost(r, t, c, n, 0)}, nil
}

// lengthCheck returns what the checks of a length have in common.
func lengthCheck(r tags.Rule, t Target, c counter, code string, n uint64, side int) Check {
	b := &wording.Bound{Side: side, Limit: strconv.FormatUint(n, 10), Words: c.words}
	return Check{Tag: r.Written, Code: code, Bound: b, Want: Measured(t.Kind, c.words, b.Phrase())}
}

// atLeast returns the check of a lower limit. side is 0 if it is one half of an
// exact length.
func atLeast(r tags.Rule, t Target, c counter, n uint64, side int) Check {
	out := lengthCheck(r, t, c, "min"+c.code, n, side)
	out.Emit = func(s *jsonschema.Schema) { min, _ := c.limits(s); schemadoc.Raise(min, n) }
	if t.Kind == KindBytes {
		out.Code, out.Note = r.Name, "Must be "+out.Want+"."
		out.Emit = func(s *jsonschema.Schema) { schemadoc.Raise(&s.MinLength, base64Length(n)) }
	}
	limit := int(n)
	if t.Kind == KindText {
		// A text has at least as many bytes as characters.
		out.Test = TextTest(func(s string) bool { return len(s) >= limit && utf8.RuneCountInString(s) >= limit })
	} else {
		out.Test = CountTest(func(k int) bool { return k >= limit })
	}
	return out
}

// atMost returns the check of an upper limit; side is as for atLeast.
func atMost(r tags.Rule, t Target, c counter, n uint64, side int) Check {
	out := lengthCheck(r, t, c, "max"+c.code, n, side)
	out.Emit = func(s *jsonschema.Schema) { _, max := c.limits(s); schemadoc.Lower(max, n) }
	if t.Kind == KindBytes {
		out.Code, out.Note = r.Name, "Must be "+out.Want+"."
		out.Emit = func(s *jsonschema.Schema) { schemadoc.Lower(&s.MaxLength, base64Length(n)) }
	}
	limit := int(n)
	if t.Kind == KindText {
		out.Test = TextTest(func(s string) bool { return len(s) <= limit || utf8.RuneCountInString(s) <= limit })
	} else {
		out.Test = CountTest(func(k int) bool { return k <= limit })
	}
	return out
}

// base64Length returns the length of the standard encoding of n bytes, padding
// included.
func base64Length(n uint64) uint64 { return (n + 2) / 3 * 4 }

// notExactly returns the check of ne on a length.
func notExactly(r tags.Rule, t Target, c counter, n uint64) Check {
	limit := int(n)
	out := Check{Tag: r.Written, Code: "not", Want: Measured(t.Kind, c.words, "any number of "+c.words.Many+" but "+strconv.Itoa(limit))}
	out.Test = CountTest(func(k int) bool { return k != limit })
	if t.Kind == KindBytes {
		out.Code, out.Note = r.Name, "Must be "+out.Want+"."
		return out
	}
	out.Emit = func(s *jsonschema.Schema) {
		not := &jsonschema.Schema{}
		min, max := c.limits(not)
		schemadoc.Raise(min, n)
		schemadoc.Lower(max, n)
		schemadoc.AddNot(s, not)
	}
	return out
}

// equalText returns the check of eq or ne on text. The parameter is the text.
func equalText(r tags.Rule) []Check {
	return equal(r, r.Param, OtherThan(KindText, r.Param), func(same bool) predicate {
		return TextTest(func(s string) bool { return (s == r.Param) == same })
	})
}

// equalBool returns the check of eq or ne on a boolean. Only true and false are
// accepted, although go-playground's grammar would also read 1 and T.
func equalBool(r tags.Rule) ([]Check, *tags.Problem) {
	if r.Param != "true" && r.Param != "false" {
		return nil, r.Fault("a boolean is true or false", "write "+r.Name+"=true or "+r.Name+"=false")
	}
	want := r.Param == "true"
	return equal(r, want, strconv.FormatBool(!want), func(same bool) predicate {
		return BoolTest(func(b bool) bool { return (b == want) == same })
	}), nil
}

// equal returns the check of eq with a value or of ne. other says what else the
// value may be, and test returns the test for either case.
func equal(r tags.Rule, value any, other string, test func(same bool) predicate) []Check {
	if r.Name == "eq" {
		return []Check{{
			Tag: r.Written, Code: "const", Want: wording.OneOf([]any{value}),
			Emit: func(s *jsonschema.Schema) { schemadoc.AddConst(s, value) }, Test: test(true),
		}}
	}
	return []Check{{
		Tag: r.Written, Code: "not", Want: other,
		Emit: func(s *jsonschema.Schema) { schemadoc.AddNot(s, &jsonschema.Schema{Const: value}) }, Test: test(false),
	}}
}

// numericFault returns what is wrong with a parameter that should be a number,
// in the cases for which there is better advice than "not a number", and nil
// otherwise.
func numericFault(r tags.Rule) *tags.Problem {
	param := r.Param
	digits := strings.TrimLeft(param, "+-")
	switch {
	case param == "":
		return r.Fault(r.Name+" needs a number", "write "+r.Name+"=1")
	case strings.Contains(param, ","), strings.Contains(param, "|"):
		return r.Fault("0x2C and 0x7C stand for ',' and '|' in tags, not for numbers", "write the number in decimal: 44 or 124")
	case strings.TrimSpace(param) != param:
		return r.Fault("the space belongs to the parameter", "remove the space: "+r.Name+"="+strings.TrimSpace(param))
	case len(digits) > 1 && digits[0] == '0' && strings.Trim(digits, "0123456789_") == "":
		return r.Fault(fmt.Sprintf("a leading 0 would make %s octal", param), "write "+r.Name+"="+strings.TrimLeft(digits, "0_")+", or 0o… for octal")
	case len(digits) > 1 && digits[0] == '0' && digits[1] != '.' && !strings.ContainsAny(digits[1:2], "xXoObBeEpP"):
		return r.Fault(fmt.Sprintf("a leading 0 makes %s ambiguous", param), "remove the 0")
	}
	return nil
}

// parseInteger reads an integer in the tag grammar: decimal, or with the prefix
// 0x, 0o or 0b.
func parseInteger(r tags.Rule) (int64, *tags.Problem) {
	if p := numericFault(r); p != nil {
		return 0, p
	}
	n, err := strconv.ParseInt(r.Param, 0, 64)
	if err == nil {
		return n, nil
	}
	if strings.Contains(err.Error(), "out of range") {
		return 0, r.Fault("the number does not fit 64 bits", "write a smaller number")
	}
	return 0, notInteger(r)
}

// notInteger returns the problem of a parameter that is not an integer. For a
// fraction it suggests the integer rule that means the same.
func notInteger(r tags.Rule) *tags.Problem {
	f, err := strconv.ParseFloat(r.Param, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || math.Abs(f) > math.MaxInt32 {
		return r.Fault(fmt.Sprintf("%q is not an integer", r.Param), "write "+r.Name+"=1, say")
	}
	fix := "write a whole number"
	floor := strconv.FormatFloat(math.Floor(f), 'f', -1, 64)
	ceil := strconv.FormatFloat(math.Ceil(f), 'f', -1, 64)
	switch Operator(r.Name) {
	case "min", "gt":
		fix = "did you mean gt=" + floor + " or a float64 field?"
	case "max", "lt":
		fix = "did you mean lt=" + ceil + " or a float64 field?"
	}
	return r.Fault("an integer rule needs an integer", fix)
}

// Measured turns a phrase about a length into one about a value of that kind,
// ready to follow "must be". Phrases about values are returned unchanged.
func Measured(kind Kind, words *wording.BoundWords, phrase string) string {
	if words.Many == "" {
		return phrase
	}
	switch kind {
	case KindText:
		return phrase + " long"
	case KindMap:
		return "an object with " + phrase
	case KindBytes:
		return "base64 text of " + phrase
	}
	return "an array of " + phrase
}

// OtherThan returns a phrase for a value of a kind other than the given
// ones.
func OtherThan(kind Kind, values ...any) string {
	if len(values) == 1 {
		return typeNoun[kind] + " other than " + wording.List(values)
	}
	return typeNoun[kind] + " other than any of " + wording.List(values)
}

// typeNoun is what OtherThan calls the values of a kind.
var typeNoun = map[Kind]string{KindText: "a string", KindInt: "an integer", KindUint: "an integer", KindFloat: "a number"}
