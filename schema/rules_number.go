package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
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
func boundCheck(r rule, kind valueKind, n json.Number) check {
	op := operator(r.name)
	c := check{tag: r.written, code: boundCode(op), emit: func(s *jsonschema.Schema) { addBound(s, op, n) }}
	c.words(op, string(n), numberWords, typeNoun[kind]+" other than ")
	return c
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
	c := boundCheck(r, t.kind, json.Number(strconv.FormatInt(n, 10)))
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
	c := boundCheck(r, t.kind, json.Number(strconv.FormatUint(n, 10)))
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
	c := boundCheck(r, t.kind, text)
	c.float = compareWith(operator(r.name), f)
	if exact, ok := exactNumber(string(text)); ok {
		holds := compareWith(operator(r.name), int64(0))
		c.long = len(text) > exactDigits
		c.decimal = func(x *big.Rat) bool { return holds(int64(x.Cmp(exact))) }
	}
	return []check{c}, nil
}

// isJSONNumber reports whether s is a number in JSON's grammar.
func isJSONNumber(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	return digits != "" && digits[0] >= '0' && digits[0] <= '9' && json.Valid([]byte(s))
}

// exactNumber reads a decimal without rounding. It is false for text so long,
// or an exponent so large, that the exact value would fill the memory.
func exactNumber(text string) (*big.Rat, bool) {
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if e, err := strconv.Atoi(cmp.Or(exponent, "0")); err != nil || e > maxExponent || e < -maxExponent || len(text) > maxDigits {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// exactDigits is how many digits a float64 keeps of any decimal.
const exactDigits = 15

// holds checks a float. Two decimals that a float64 keeps apart are compared as
// such, which is fast; others are compared exactly.
func (c *check) holds(v float64, text []byte) bool {
	if c.decimal != nil && (c.long || len(text) > exactDigits || v == 0 && len(text) > 2) {
		if x, ok := exactNumber(string(text)); ok {
			return c.decimal(x)
		}
	}
	return c.float(v)
}
