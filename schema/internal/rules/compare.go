package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/regex"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"
	"github.com/talaria-go/mcp/schema/internal/tags"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// addCompareRules adds the comparisons of text with a parameter, and the lists
// of permitted and refused values.
func addCompareRules(table map[string]ruleDef) {
	text := kinds(KindText)
	add := func(name, example string, on kindSet, compile func(tags.Rule, Target) ([]Check, *tags.Problem)) {
		table[name] = ruleDef{ClassExact, on, ParamNeeded, example, compile}
	}
	add("oneof", "a b c", text|kinds(KindInt, KindUint), compileOneOf)
	add("noneof", "a b c", text|kinds(KindInt, KindUint), compileOneOf)
	add("oneofci", "a b c", text, compileFold)
	add("noneofci", "a b c", text, compileFold)
	add("eq_ignore_case", "a", text, compileFold)
	add("ne_ignore_case", "a", text, compileFold)
	for _, name := range []string{
		"contains", "excludes", "startswith", "endswith", "startsnotwith", "endsnotwith",
		"containsany", "excludesall", "containsrune", "excludesrune",
	} {
		add(name, "x", text, compilePart)
	}
}

// listParam reads the values of a list rule. Values that occur twice are a
// problem.
func listParam(r tags.Rule) ([]string, *tags.Problem) {
	words, odd := tags.Words(r.Param)
	switch {
	case odd:
		return nil, r.Fault("a quote inside a value is dropped by the tag grammar", "quote whole values only, as in "+r.Name+"='a b' c")
	case len(words) == 0:
		return nil, r.Fault(r.Name+" has no values", "write "+r.Name+"=a b c")
	}
	for i, w := range words {
		if slices.Contains(words[:i], w) {
			return nil, r.Fault(fmt.Sprintf("%s has the value %q twice", r.Name, w), "write each value once")
		}
		if !utf8.ValidString(w) {
			return nil, r.Fault("the parameter is not valid UTF-8", "write the tag in UTF-8")
		}
	}
	return words, nil
}

// compileOneOf compiles oneof and noneof, on text and on integers.
func compileOneOf(r tags.Rule, t Target) ([]Check, *tags.Problem) {
	words, p := listParam(r)
	if p != nil {
		return nil, p
	}
	c := Check{Tag: r.Written, Code: "enum"}
	negate := r.Name == "noneof"
	var values []any
	if t.Kind == KindText {
		values = AnySlice(words)
		set := setOf(words)
		c.Test = TextTest(func(s string) bool { return set[s] != negate })
	} else {
		list, p := integerList(r, t, words)
		if p != nil {
			return nil, p
		}
		for _, n := range list {
			values = append(values, n.any())
		}
		c.Test = NumberTest(func(v Number) bool { return slices.Contains(list, v) != negate })
	}
	c.Want = wording.OneOf(values)
	if negate {
		c.Code, c.Want = "not", OtherThan(t.Kind, values...)
	}
	c.Emit = func(s *jsonschema.Schema) {
		if negate {
			schemadoc.AddNot(s, &jsonschema.Schema{Enum: values})
			return
		}
		schemadoc.AddEnum(s, values)
	}
	return []Check{c}, nil
}

// setOf returns the words as a set.
func setOf(words []string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, w := range words {
		set[w] = true
	}
	return set
}

// integerList reads the values of oneof on an integer. go-playground compares
// texts, so only the canonical text of a number could ever match there; any
// other form is a problem here.
func integerList(r tags.Rule, t Target, words []string) ([]Number, *tags.Problem) {
	list := make([]Number, len(words))
	low, high, _ := typeLimits(t)
	for i, w := range words {
		signed, err := strconv.ParseInt(w, 10, 64)
		n := SignedNumber(signed)
		if err != nil || t.Kind == KindUint {
			n.Negative = false
			n.Magnitude, err = strconv.ParseUint(w, 10, 64)
		}
		if err != nil {
			return nil, r.Fault(fmt.Sprintf("%q is not an integer that fits the field", w), "write whole numbers in decimal")
		}
		if text := n.String(); text != w {
			return nil, r.Fault(fmt.Sprintf("%q never matches: a value is compared as %q", w, text), "write "+text)
		}
		if n.compare(low) < 0 || n.compare(high) > 0 {
			return nil, r.Fault(fmt.Sprintf("%s does not fit %s", w, t.Type), "remove it, or choose a wider type")
		}
		list[i] = n
	}
	return list, nil
}

// compileFold compiles the comparisons that ignore case, by Unicode's simple
// folding: K also matches the Kelvin sign, and s the long ſ.
func compileFold(r tags.Rule, t Target) ([]Check, *tags.Problem) {
	words := []string{r.Param}
	if strings.HasSuffix(r.Name, "ci") {
		var p *tags.Problem
		if words, p = listParam(r); p != nil {
			return nil, p
		}
	}
	var alternatives []string
	for _, w := range words {
		alternatives = append(alternatives, regex.Fold(w))
	}
	pattern := "^(?:" + strings.Join(alternatives, "|") + ")$"
	matches := func(s string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, s) })
	}
	c := Check{Tag: r.Written, Code: "pattern", Want: wording.OneOf(AnySlice(words)) + ", in upper or lower case"}
	if !strings.HasPrefix(r.Name, "n") {
		c.Test = TextTest(matches)
		c.Emit = func(s *jsonschema.Schema) {
			schemadoc.AddPattern(s, pattern)
			schemadoc.AddExamples(s, AnySlice(words)...)
		}
		return []Check{c}, nil
	}
	c.Code, c.Want = "not", OtherThan(KindText, AnySlice(words)...)+", in upper or lower case"
	c.Test = TextTest(func(s string) bool { return !matches(s) })
	c.Emit = func(s *jsonschema.Schema) { schemadoc.AddNot(s, &jsonschema.Schema{Pattern: pattern}) }
	return []Check{c}, nil
}

// compilePart compiles the rules about what a text contains, starts or ends
// with.
func compilePart(r tags.Rule, _ Target) ([]Check, *tags.Problem) {
	x := r.Param
	switch {
	case x == "":
		return nil, r.Fault(r.Name+" needs a text: every text contains the empty one", "write "+r.Name+"=x")
	case !utf8.ValidString(x):
		return nil, r.Fault("the parameter is not valid UTF-8", "write the tag in UTF-8")
	case strings.HasSuffix(r.Name, "rune") && utf8.RuneCountInString(x) != 1:
		return nil, r.Fault(r.Name+" looks at the first character only", "write one character, or use "+strings.Replace(strings.Replace(r.Name, "containsrune", "containsany or contains", 1), "excludesrune", "excludesall or excludes", 1))
	}
	quoted, shown := regexp.QuoteMeta(x), wording.OneOf([]any{x})
	c := Check{Tag: r.Written, Code: "pattern"}
	var pattern, not string
	switch r.Name {
	case "contains", "containsrune":
		pattern, c.Want = quoted, "text that contains "+shown
		c.Test = TextTest(func(s string) bool { return strings.Contains(s, x) })
	case "excludes":
		not, c.Want = quoted, "text that does not contain "+shown
		c.Test = TextTest(func(s string) bool { return !strings.Contains(s, x) })
	case "startswith":
		pattern, c.Want = "^"+quoted, "text that starts with "+shown
		c.Test = TextTest(func(s string) bool { return strings.HasPrefix(s, x) })
	case "endswith":
		pattern, c.Want = quoted+"$", "text that ends with "+shown
		c.Test = TextTest(func(s string) bool { return strings.HasSuffix(s, x) })
	case "startsnotwith":
		not, c.Want = "^"+quoted, "text that does not start with "+shown
		c.Test = TextTest(func(s string) bool { return !strings.HasPrefix(s, x) })
	case "endsnotwith":
		not, c.Want = quoted+"$", "text that does not end with "+shown
		c.Test = TextTest(func(s string) bool { return !strings.HasSuffix(s, x) })
	case "containsany":
		pattern, c.Want = "["+regex.Class(x)+"]", "text with at least one of the characters "+shown
		c.Test = TextTest(func(s string) bool { return strings.ContainsAny(s, x) })
	default: // excludesall, excludesrune
		pattern, c.Want = "^[^"+regex.Class(x)+"]*$", "text with none of the characters "+shown
		c.Test = TextTest(func(s string) bool { return !strings.ContainsAny(s, x) })
	}
	c.Emit = func(s *jsonschema.Schema) { schemadoc.AddPattern(s, pattern) }
	if not != "" {
		c.Code = "not"
		c.Emit = func(s *jsonschema.Schema) { schemadoc.AddNot(s, &jsonschema.Schema{Pattern: not}) }
	}
	return []Check{c}, nil
}
