package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/invopop/jsonschema"
)

// addCompareRules adds the comparisons of text with a parameter, and lists of
// allowed values.
func addCompareRules(table map[string]ruleDef) {
	text := kinds(kindText)
	add := func(name, example string, on kindSet, compile func(rule, target) ([]check, *problem)) {
		table[name] = ruleDef{classExact, on, paramNeeded, example, compile}
	}
	add("oneof", "a b c", text|kinds(kindInt, kindUint), compileOneOf)
	add("noneof", "a b c", text|kinds(kindInt, kindUint), compileOneOf)
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

// listParam reads the values of a list rule.
func listParam(r rule) ([]string, *problem) {
	words, odd := splitWords(r.param)
	switch {
	case odd:
		return nil, r.fault("a quote inside a value is dropped by the tag grammar", "quote whole values only, as in "+r.name+"='a b' c")
	case len(words) == 0:
		return nil, r.fault(r.name+" has no values", "write "+r.name+"=a b c")
	}
	for i, w := range words {
		if slices.Contains(words[:i], w) {
			return nil, r.fault(fmt.Sprintf("%s has the value %q twice", r.name, w), "write each value once")
		}
		if !utf8.ValidString(w) {
			return nil, r.fault("the parameter is not valid UTF-8", "write the tag in UTF-8")
		}
	}
	return words, nil
}

// compileOneOf is oneof and noneof.
func compileOneOf(r rule, t target) ([]check, *problem) {
	words, p := listParam(r)
	if p != nil {
		return nil, p
	}
	c := check{tag: r.written, code: "enum"}
	negate := r.name == "noneof"
	var values []any
	switch t.kind {
	case kindText:
		values = anySlice(words)
		set := setOf(words)
		c.text = func(s string) bool { return set[s] != negate }
	case kindInt:
		list, p := integerList(r, t, words, strconv.ParseInt, strconv.FormatInt)
		if p != nil {
			return nil, p
		}
		values = anySlice(list)
		c.integer = func(n int64) bool { return slices.Contains(list, n) != negate }
	default:
		list, p := integerList(r, t, words, strconv.ParseUint, strconv.FormatUint)
		if p != nil {
			return nil, p
		}
		values = anySlice(list)
		c.unsigned = func(n uint64) bool { return slices.Contains(list, n) != negate }
	}
	c.want = oneOf(values)
	if negate {
		c.code, c.want = "not", otherThan(t.kind, values...)
	}
	c.emit = func(s *jsonschema.Schema) {
		if negate {
			addNot(s, &jsonschema.Schema{Enum: values})
			return
		}
		addEnum(s, values)
	}
	return []check{c}, nil
}

func setOf(words []string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, w := range words {
		set[w] = true
	}
	return set
}

// integerList parses the values of oneof on an integer. go-playground compares
// texts, so that only the canonical text of a number can ever match.
func integerList[T int64 | uint64](r rule, t target, words []string, parse func(string, int, int) (T, error), format func(T, int) string) ([]T, *problem) {
	bits := 64
	if t.typ != nil {
		bits = t.typ.Bits()
	}
	list := make([]T, len(words))
	for i, w := range words {
		n, err := parse(w, 10, 64)
		if err != nil {
			return nil, r.fault(fmt.Sprintf("%q is not an integer that fits the field", w), "write whole numbers in decimal")
		}
		if text := format(n, 10); text != w {
			return nil, r.fault(fmt.Sprintf("%q never matches: a value is compared as %q", w, text), "write "+text)
		}
		if _, err := parse(w, 10, bits); err != nil {
			return nil, r.fault(fmt.Sprintf("%s does not fit %s", w, t.typ), "remove it, or choose a wider type")
		}
		list[i] = n
	}
	return list, nil
}

// compileFold is the comparisons that ignore case. They fold as Unicode does:
// K also matches the Kelvin sign, and s the long ſ.
func compileFold(r rule, t target) ([]check, *problem) {
	words := []string{r.param}
	if strings.HasSuffix(r.name, "ci") {
		var p *problem
		if words, p = listParam(r); p != nil {
			return nil, p
		}
	}
	var alternatives []string
	for _, w := range words {
		alternatives = append(alternatives, foldPattern(w))
	}
	pattern := "^(?:" + strings.Join(alternatives, "|") + ")$"
	matches := func(s string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, s) })
	}
	c := check{tag: r.written, code: "pattern", want: oneOf(anySlice(words)) + ", in upper or lower case"}
	if !strings.HasPrefix(r.name, "n") {
		c.text = matches
		c.emit = func(s *jsonschema.Schema) {
			addPattern(s, pattern)
			addExamples(s, anySlice(words)...)
		}
		return []check{c}, nil
	}
	c.code, c.want = "not", otherThan(kindText, anySlice(words)...)+", in upper or lower case"
	c.text = func(s string) bool { return !matches(s) }
	c.emit = func(s *jsonschema.Schema) { addNot(s, &jsonschema.Schema{Pattern: pattern}) }
	return []check{c}, nil
}

// foldPattern is a pattern for the texts that equal s but for case.
func foldPattern(s string) string {
	var b strings.Builder
	for _, r := range s {
		orbit := []rune{r}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			orbit = append(orbit, f)
		}
		if len(orbit) == 1 {
			b.WriteString(regexp.QuoteMeta(string(r)))
			continue
		}
		slices.Sort(orbit)
		b.WriteString("[" + string(orbit) + "]") // letters only: nothing to escape
	}
	return b.String()
}

// classPattern writes the characters of a class, without its brackets.
func classPattern(chars string) string {
	var b strings.Builder
	for _, r := range chars {
		if strings.ContainsRune(`^$\.*+?()[]{}|/-`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// compilePart is the rules on what a text contains, begins or ends with.
func compilePart(r rule, _ target) ([]check, *problem) {
	x := r.param
	switch {
	case x == "":
		return nil, r.fault(r.name+" needs a text: every text contains the empty one", "write "+r.name+"=x")
	case !utf8.ValidString(x):
		return nil, r.fault("the parameter is not valid UTF-8", "write the tag in UTF-8")
	case strings.HasSuffix(r.name, "rune") && utf8.RuneCountInString(x) != 1:
		return nil, r.fault(r.name+" looks at the first character only", "write one character, or use "+strings.Replace(strings.Replace(r.name, "containsrune", "containsany or contains", 1), "excludesrune", "excludesall or excludes", 1))
	}
	quoted, shown := regexp.QuoteMeta(x), oneOf([]any{x})
	c := check{tag: r.written, code: "pattern"}
	var pattern, not string
	switch r.name {
	case "contains", "containsrune":
		pattern, c.want = quoted, "text that contains "+shown
		c.text = func(s string) bool { return strings.Contains(s, x) }
	case "excludes":
		not, c.want = quoted, "text that does not contain "+shown
		c.text = func(s string) bool { return !strings.Contains(s, x) }
	case "startswith":
		pattern, c.want = "^"+quoted, "text that starts with "+shown
		c.text = func(s string) bool { return strings.HasPrefix(s, x) }
	case "endswith":
		pattern, c.want = quoted+"$", "text that ends with "+shown
		c.text = func(s string) bool { return strings.HasSuffix(s, x) }
	case "startsnotwith":
		not, c.want = "^"+quoted, "text that does not start with "+shown
		c.text = func(s string) bool { return !strings.HasPrefix(s, x) }
	case "endsnotwith":
		not, c.want = quoted+"$", "text that does not end with "+shown
		c.text = func(s string) bool { return !strings.HasSuffix(s, x) }
	case "containsany":
		pattern, c.want = "["+classPattern(x)+"]", "text with at least one of the characters "+shown
		c.text = func(s string) bool { return strings.ContainsAny(s, x) }
	default: // excludesall, excludesrune
		pattern, c.want = "^[^"+classPattern(x)+"]*$", "text with none of the characters "+shown
		c.text = func(s string) bool { return !strings.ContainsAny(s, x) }
	}
	c.emit = func(s *jsonschema.Schema) { addPattern(s, pattern) }
	if not != "" {
		c.code = "not"
		c.emit = func(s *jsonschema.Schema) { addNot(s, &jsonschema.Schema{Pattern: not}) }
	}
	return []check{c}, nil
}
