package schema

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/invopop/jsonschema"
)

// addSizeRules adds the comparisons with a constant. What they compare
// depends on the kind: the length of text, lists and maps, else the value.
func addSizeRules(table map[string]ruleDef) {
	ordered := kindsNumber | kinds(kindText, kindList, kindMap, kindBytes, kindTime, kindDate, kindDuration)
	for _, name := range []string{"min", "max", "gt", "gte", "lt", "lte"} {
		table[name] = ruleDef{classExact, ordered, paramOptional, "1", compileSize}
	}
	sized := ordered &^ kinds(kindTime, kindDate)
	table["len"] = ruleDef{classExact, sized, paramNeeded, "1", compileSize}
	for _, name := range []string{"eq", "ne"} {
		table[name] = ruleDef{classExact, sized | kinds(kindBool), paramNeeded, "1", compileSize}
	}
}

// operator is the comparison that a size rule makes.
func operator(name string) string {
	switch name {
	case "gte":
		return "min"
	case "lte":
		return "max"
	}
	return name
}

func compileSize(r rule, t target) ([]check, *problem) {
	equality := r.name == "eq" || r.name == "ne"
	if !r.hasParam && t.kind != kindTime {
		return nil, r.fault(r.name+" needs a parameter", "write "+r.name+"=1")
	}
	switch t.kind {
	case kindText:
		if equality {
			return equalText(r), nil
		}
		return compileCount(r, t, textCounter)
	case kindList:
		return compileCount(r, t, listCounter)
	case kindMap:
		return compileCount(r, t, mapCounter)
	case kindBytes:
		return compileCount(r, t, bytesCounter)
	case kindInt:
		return compileInt(r, t)
	case kindUint:
		return compileUint(r, t)
	case kindFloat:
		return compileFloat(r, t)
	case kindBool:
		return equalBool(r)
	case kindDuration:
		return compileDuration(r, t)
	}
	return compileTime(r, t)
}

// counter is how one kind of value is counted and how its schema says so.
type counter struct {
	words  *boundWords
	code   string // "Length": minLength, maxLength
	limits func(*jsonschema.Schema) (min, max **uint64)
}

var (
	characterWords = countWords("character", "characters")
	itemWords      = countWords("item", "items")
	memberWords    = countWords("member", "members")
	byteWords      = countWords("byte", "bytes")

	textCounter = counter{characterWords, "Length", func(s *jsonschema.Schema) (a, b **uint64) {
		return &s.MinLength, &s.MaxLength
	}}
	listCounter = counter{itemWords, "Items", func(s *jsonschema.Schema) (a, b **uint64) {
		return &s.MinItems, &s.MaxItems
	}}
	mapCounter = counter{memberWords, "Properties", func(s *jsonschema.Schema) (a, b **uint64) {
		return &s.MinProperties, &s.MaxProperties
	}}
	// []byte travels as base64 text, four characters for three bytes, so its
	// schema can only give the length in steps.
	bytesCounter = counter{byteWords, "", textCounter.limits}
)

// quantity is a number of what is counted, in words.
func (w *boundWords) quantity(n int) string {
	text := strconv.Itoa(n)
	return w.count(text, text)
}

// parseCount reads the parameter of a length rule.
func parseCount(r rule) (uint64, *problem) {
	n, p := parseInteger(r)
	if p != nil {
		return 0, p
	}
	if n < 0 {
		return 0, r.fault("a length is never negative", "write "+r.name+"=0 or more")
	}
	if n > math.MaxInt32 {
		return 0, r.fault("no argument is that long", "write a smaller number, or remove the rule")
	}
	return uint64(n), nil
}

func compileCount(r rule, t target, c counter) ([]check, *problem) {
	n, p := parseCount(r)
	if p != nil {
		return nil, p
	}
	switch operator(r.name) {
	case "min":
		return []check{atLeast(r, t, c, n, -1)}, nil
	case "max":
		return []check{atMost(r, t, c, n, +1)}, nil
	case "gt":
		return []check{atLeast(r, t, c, n+1, -1)}, nil
	case "lt":
		if n == 0 {
			return nil, r.fault("no length is less than 0", "write lt=1 or more, or max=0 for empty values only")
		}
		return []check{atMost(r, t, c, n-1, +1)}, nil
	case "ne":
		return []check{notExactly(r, t, c, n)}, nil
	}
	return []check{atLeast(r, t, c, n, 0), atMost(r, t, c, n, 0)}, nil
}

// lengthCheck is what the rules on a length have in common.
func lengthCheck(r rule, t target, c counter, code string, n uint64, side int) check {
	b := &bound{side: side, limit: strconv.FormatUint(n, 10), words: c.words}
	return check{tag: r.written, code: code, bound: b, want: measured(t.kind, c.words, b.phrase())}
}

func atLeast(r rule, t target, c counter, n uint64, side int) check {
	out := lengthCheck(r, t, c, "min"+c.code, n, side)
	out.emit = func(s *jsonschema.Schema) { min, _ := c.limits(s); raise(min, n) }
	if t.kind == kindBytes {
		out.code, out.note = r.name, "Must be "+out.want+"."
		out.emit = func(s *jsonschema.Schema) { raise(&s.MinLength, base64Length(n)) }
	}
	limit := int(n)
	if t.kind == kindText {
		// A text has at least as many bytes as characters.
		out.text = func(s string) bool { return len(s) >= limit && utf8.RuneCountInString(s) >= limit }
	} else {
		out.count = func(k int) bool { return k >= limit }
	}
	return out
}

func atMost(r rule, t target, c counter, n uint64, side int) check {
	out := lengthCheck(r, t, c, "max"+c.code, n, side)
	out.emit = func(s *jsonschema.Schema) { _, max := c.limits(s); lower(max, n) }
	if t.kind == kindBytes {
		out.code, out.note = r.name, "Must be "+out.want+"."
		out.emit = func(s *jsonschema.Schema) { lower(&s.MaxLength, base64Length(n)) }
	}
	limit := int(n)
	if t.kind == kindText {
		out.text = func(s string) bool { return len(s) <= limit || utf8.RuneCountInString(s) <= limit }
	} else {
		out.count = func(k int) bool { return k <= limit }
	}
	return out
}

// base64Length is the length of the standard encoding of n bytes.
func base64Length(n uint64) uint64 { return (n + 2) / 3 * 4 }

func notExactly(r rule, t target, c counter, n uint64) check {
	limit := int(n)
	out := check{tag: r.written, code: "not", want: measured(t.kind, c.words, "any number of "+c.words.many+" but "+strconv.Itoa(limit))}
	out.count = func(k int) bool { return k != limit }
	if t.kind == kindBytes {
		out.code, out.note = r.name, "Must be "+out.want+"."
		return out
	}
	out.emit = func(s *jsonschema.Schema) {
		not := &jsonschema.Schema{}
		min, max := c.limits(not)
		raise(min, n)
		lower(max, n)
		addNot(s, not)
	}
	return out
}

// equalText is eq and ne on text, where the parameter is the text itself.
func equalText(r rule) []check {
	param := r.param
	if r.name == "eq" {
		return []check{{
			tag: r.written, code: "const", want: oneOf([]any{param}),
			emit: func(s *jsonschema.Schema) { addConst(s, param) },
			text: func(s string) bool { return s == param },
		}}
	}
	return []check{{
		tag: r.written, code: "not", want: otherThan(kindText, param),
		emit: func(s *jsonschema.Schema) { addNot(s, &jsonschema.Schema{Const: param}) },
		text: func(s string) bool { return s != param },
	}}
}

// equalBool is eq and ne on a boolean. Only true and false are taken: the
// grammar would read 1 or T too, and nobody would expect it to.
func equalBool(r rule) ([]check, *problem) {
	if r.param != "true" && r.param != "false" {
		return nil, r.fault("a boolean is true or false", "write "+r.name+"=true or "+r.name+"=false")
	}
	want := r.param == "true"
	if r.name == "eq" {
		return []check{{
			tag: r.written, code: "const", want: r.param,
			emit:    func(s *jsonschema.Schema) { addConst(s, want) },
			boolean: func(b bool) bool { return b == want },
		}}, nil
	}
	return []check{{
		tag: r.written, code: "not", want: strconv.FormatBool(!want),
		emit:    func(s *jsonschema.Schema) { addNot(s, &jsonschema.Schema{Const: want}) },
		boolean: func(b bool) bool { return b != want },
	}}, nil
}

// numericFault says what is wrong with a parameter that should be a number,
// in the cases that have a better answer than "not a number".
func numericFault(r rule) *problem {
	param := r.param
	digits := strings.TrimLeft(param, "+-")
	switch {
	case param == "":
		return r.fault(r.name+" needs a number", "write "+r.name+"=1")
	case strings.Contains(param, ","), strings.Contains(param, "|"):
		return r.fault("0x2C and 0x7C stand for ',' and '|' in tags, not for numbers", "write the number in decimal: 44 or 124")
	case strings.TrimSpace(param) != param:
		return r.fault("the space belongs to the parameter", "remove the space: "+r.name+"="+strings.TrimSpace(param))
	case len(digits) > 1 && digits[0] == '0' && strings.Trim(digits, "0123456789_") == "":
		return r.fault(fmt.Sprintf("a leading 0 would make %s octal", param), "write "+r.name+"="+strings.TrimLeft(digits, "0_")+", or 0o… for octal")
	case len(digits) > 1 && digits[0] == '0' && digits[1] != '.' && !strings.ContainsAny(digits[1:2], "xXoObBeEpP"):
		return r.fault(fmt.Sprintf("a leading 0 makes %s ambiguous", param), "remove the 0")
	}
	return nil
}

// parseInteger reads an integer as the tag grammar does: decimal, or with the
// prefixes 0x, 0o and 0b.
func parseInteger(r rule) (int64, *problem) {
	if p := numericFault(r); p != nil {
		return 0, p
	}
	n, err := strconv.ParseInt(r.param, 0, 64)
	if err == nil {
		return n, nil
	}
	if strings.Contains(err.Error(), "out of range") {
		return 0, r.fault("the number does not fit 64 bits", "write a smaller number")
	}
	return 0, notInteger(r)
}

// notInteger tells apart a fraction, which has a near integer rule, from text.
func notInteger(r rule) *problem {
	f, err := strconv.ParseFloat(r.param, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || math.Abs(f) > math.MaxInt32 {
		return r.fault(fmt.Sprintf("%q is not an integer", r.param), "write "+r.name+"=1, say")
	}
	fix := "write a whole number"
	floor := strconv.FormatFloat(math.Floor(f), 'f', -1, 64)
	ceil := strconv.FormatFloat(math.Ceil(f), 'f', -1, 64)
	switch operator(r.name) {
	case "min", "gt":
		fix = "did you mean gt=" + floor + " or a float64 field?"
	case "max", "lt":
		fix = "did you mean lt=" + ceil + " or a float64 field?"
	}
	return r.fault("an integer rule needs an integer", fix)
}
