package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
)

// addBound writes the keyword of an ordering.
func addBound(s *jsonschema.Schema, op string, n json.Number) {
	switch op {
	case "min":
		raiseNumber(&s.Minimum, n)
	case "max":
		lowerNumber(&s.Maximum, n)
	case "gt":
		raiseNumber(&s.ExclusiveMinimum, n)
	case "lt":
		lowerNumber(&s.ExclusiveMaximum, n)
	case "len", "eq":
		addConst(s, n)
	case "ne":
		addNot(s, &jsonschema.Schema{Const: n})
	}
}

// boundCode is the keyword that addBound writes.
func boundCode(op string) string {
	return map[string]string{
		"min": "minimum", "max": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum",
		"len": "const", "eq": "const", "ne": "not",
	}[op]
}

// boundWant says an ordering in words; n is the bound as text.
func boundWant(op, n string) string {
	switch op {
	case "min":
		return "at least " + n
	case "max":
		return "at most " + n
	case "gt":
		return "greater than " + n
	case "lt":
		return "less than " + n
	case "ne":
		return "anything but " + n
	}
	return n
}

// compareWith makes the function for op with the bound n.
func compareWith[T int64 | uint64 | float64](op string, n T) func(T) bool {
	switch op {
	case "min":
		return func(v T) bool { return v >= n }
	case "max":
		return func(v T) bool { return v <= n }
	case "gt":
		return func(v T) bool { return v > n }
	case "lt":
		return func(v T) bool { return v < n }
	case "ne":
		return func(v T) bool { return v != n }
	}
	return func(v T) bool { return v == n }
}

// boundCheck is what all number rules have in common.
func boundCheck(r rule, n json.Number) check {
	op := operator(r.name)
	return check{
		tag: r.written, code: boundCode(op), want: boundWant(op, string(n)),
		emit: func(s *jsonschema.Schema) { addBound(s, op, n) },
	}
}

func compileInt(r rule, t target) ([]check, *problem) {
	n, p := parseInteger(r)
	if p != nil {
		return nil, p
	}
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	if t.typ != nil {
		low >>= 64 - t.typ.Bits()
		high >>= 64 - t.typ.Bits()
	}
	op := operator(r.name)
	never := op == "min" && n > high || op == "gt" && n >= high || op == "max" && n < low || op == "lt" && n <= low ||
		(op == "len" || op == "eq") && (n < low || n > high)
	if never {
		return nil, outOfType(r, t)
	}
	c := boundCheck(r, json.Number(strconv.FormatInt(n, 10)))
	c.integer = compareWith(op, n)
	return []check{c}, nil
}

func outOfType(r rule, t target) *problem {
	return r.fault(fmt.Sprintf("no %s can satisfy %s", t.typ, r.written), "choose a bound inside the type, or a wider type")
}

func compileUint(r rule, t target) ([]check, *problem) {
	if p := numericFault(r); p != nil {
		return nil, p
	}
	n, err := strconv.ParseUint(r.param, 0, 64)
	if err != nil {
		switch {
		case strings.HasPrefix(r.param, "-"):
			return nil, r.fault("an unsigned integer is never negative", "write "+r.name+"=0 or more, or use a signed type")
		case strings.Contains(err.Error(), "out of range"):
			return nil, r.fault("the number does not fit 64 bits", "write a smaller number")
		}
		return nil, notInteger(r)
	}
	high := uint64(math.MaxUint64)
	if t.typ != nil {
		high >>= 64 - t.typ.Bits()
	}
	op := operator(r.name)
	if op == "min" && n > high || op == "gt" && n >= high || op == "lt" && n == 0 || (op == "len" || op == "eq") && n > high {
		return nil, outOfType(r, t)
	}
	c := boundCheck(r, json.Number(strconv.FormatUint(n, 10)))
	c.unsigned = compareWith(op, n)
	return []check{c}, nil
}

func compileFloat(r rule, t target) ([]check, *problem) {
	if p := numericFault(r); p != nil {
		return nil, p
	}
	f, err := strconv.ParseFloat(r.param, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, r.fault(fmt.Sprintf("%q is not a finite number", r.param), "write "+r.name+"=1.5, say")
	}
	// The bound is advertised as it is written, and enforced as advertised:
	// for a float32 this is finer than what the type can hold.
	text := json.Number(r.param)
	if !isJSONNumber(r.param) {
		text = json.Number(strconv.FormatFloat(f, 'f', -1, 64))
	}
	c := boundCheck(r, text)
	c.float = compareWith(operator(r.name), f)
	return []check{c}, nil
}

// isJSONNumber reports whether s is a number in JSON's grammar.
func isJSONNumber(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	return digits != "" && digits[0] >= '0' && digits[0] <= '9' && json.Valid([]byte(s))
}
