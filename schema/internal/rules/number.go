package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/lexical"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"
	"github.com/talaria-go/mcp/schema/internal/tags"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// Number is a number of a document, or the limit in a tag. Every rule on
// numbers is written once over this type, for integers, floating-point numbers
// and durations, which are integers of nanoseconds.
//
// Comparing two numbers does not round. The schema that callers see speaks of
// decimals as they are written, and 0.1 is not the float64 next to it. There
// are two forms: an integer has a sign and a magnitude; any other number has
// its text and the nearest float64, which is enough if both numbers are short.
type Number struct {
	Integer   bool // sign and magnitude are the value; otherwise float and text
	Negative  bool // never set for 0
	Magnitude uint64
	Float     float64  // the nearest float64
	Text      string   // the decimal as written; "" if float is the value
	exact     *big.Rat // the value of text, for limits: it is needed for each document
}

// SignedNumber returns an int64 as a Number.
func SignedNumber(v int64) Number {
	if v < 0 {
		return Number{Integer: true, Negative: true, Magnitude: -uint64(v)}
	}
	return Number{Integer: true, Magnitude: uint64(v)}
}

// unsignedNumber returns a uint64 as a Number.
func unsignedNumber(v uint64) Number { return Number{Integer: true, Magnitude: v} }

// decimalLimit returns the limit that a tag gives as a decimal, in JSON's
// grammar. Its exact value is computed once, since every document needs it.
func decimalLimit(float float64, text string) Number {
	exact, _ := lexical.Decimal(text)
	return Number{Float: float, Text: text, exact: exact}
}

// NumberOf returns the number in a value of a numeric kind, and 0 for any other
// value.
func NumberOf(v reflect.Value) Number {
	switch x := PlainValue(v).(type) {
	case int64:
		return SignedNumber(x)
	case uint64:
		return unsignedNumber(x)
	case float64:
		return decimalLimit(x, string(wording.AppendJSON(nil, x)))
	}
	return Number{}
}

// exactDigits is the number of decimal digits that a float64 keeps of any
// decimal.
const exactDigits = 15

// rounded reports whether the float64 may stand for other decimals too.
// Decimals of few digits differ in their float64 as well, which is faster to
// compare.
func (n Number) rounded() bool {
	return len(n.Text) > exactDigits || n.Float == 0 && len(n.Text) > 2 && n.exact == nil
}

// compare returns -1, 0 or +1 as n is less than, equal to or greater than m.
func (n Number) compare(m Number) int {
	switch {
	case n.Integer && m.Integer:
		switch {
		case n.Negative != m.Negative:
			return n.sign() - m.sign()
		case n.Negative:
			return cmp.Compare(m.Magnitude, n.Magnitude)
		}
		return cmp.Compare(n.Magnitude, m.Magnitude)
	case n.rounded() || m.rounded():
		return n.Rat().Cmp(m.Rat())
	}
	return cmp.Compare(n.nearest(), m.nearest())
}

// sign returns -1 for a negative integer and 0 for any other.
func (n Number) sign() int {
	if n.Negative {
		return -1
	}
	return 0
}

// nearest returns the nearest float64.
func (n Number) nearest() float64 {
	switch {
	case !n.Integer:
		return n.Float
	case n.Negative:
		return -float64(n.Magnitude)
	}
	return float64(n.Magnitude)
}

// IsZero reports whether the number is 0.
func (n Number) IsZero() bool { return n.compare(Number{Integer: true}) == 0 }

// Rat returns the exact value, or for a decimal beyond the limits of package
// lexical the value of its float64. It must not be modified.
func (n Number) Rat() *big.Rat {
	if n.Integer {
		x := new(big.Rat).SetUint64(n.Magnitude)
		if n.Negative {
			x.Neg(x)
		}
		return x
	}
	if n.exact != nil {
		return n.exact
	}
	x, ok := lexical.Decimal(n.Text)
	if !ok {
		x, _ = new(big.Rat).SetString(strconv.FormatFloat(n.Float, 'g', -1, 64))
	}
	return x
}

// any returns an integer as an int64, or as a uint64 if it is too large for
// that.
func (n Number) any() any {
	if !n.Negative && n.Magnitude > math.MaxInt64 {
		return n.Magnitude
	}
	return int64(n.Bits())
}

// Bits returns an integer in two's complement.
func (n Number) Bits() uint64 {
	if n.Negative {
		return -n.Magnitude
	}
	return n.Magnitude
}

// Signed reports whether an integer fits an int64.
func (n Number) Signed() bool {
	return n.Magnitude <= math.MaxInt64 || n.Negative && n.Magnitude == 1<<63
}

// String returns the number in JSON's grammar.
func (n Number) String() string {
	switch {
	case !n.Integer:
		return n.Text
	case n.Negative:
		return "-" + strconv.FormatUint(n.Magnitude, 10)
	}
	return strconv.FormatUint(n.Magnitude, 10)
}

// addBound adds the keyword for a comparison with n.
func addBound(s *jsonschema.Schema, op string, n json.Number) {
	switch op {
	case "min":
		schemadoc.RaiseNumber(&s.Minimum, n)
	case "max":
		schemadoc.LowerNumber(&s.Maximum, n)
	case "gt":
		schemadoc.RaiseNumber(&s.ExclusiveMinimum, n)
	case "lt":
		schemadoc.LowerNumber(&s.ExclusiveMaximum, n)
	case "len", "eq":
		schemadoc.AddConst(s, n)
	case "ne":
		schemadoc.AddNot(s, &jsonschema.Schema{Const: n})
	}
}

// boundCode returns the name of the keyword that addBound adds.
func boundCode(op string) string {
	return map[string]string{
		"min": "minimum", "max": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum",
		"len": "const", "eq": "const", "ne": "not",
	}[op]
}

// ordering returns what the result of a comparison with the limit means for op.
func ordering(op string) func(c int) bool {
	switch op {
	case "min", "gte":
		return func(c int) bool { return c >= 0 }
	case "max", "lte":
		return func(c int) bool { return c <= 0 }
	case "gt":
		return func(c int) bool { return c > 0 }
	case "lt":
		return func(c int) bool { return c < 0 }
	case "ne":
		return func(c int) bool { return c != 0 }
	}
	return func(c int) bool { return c == 0 }
}

// compareWith returns the test of a comparison with a limit.
func compareWith(op string, limit Number) NumberTest {
	holds := ordering(op)
	return func(v Number) bool { return holds(v.compare(limit)) }
}

// compileNumber compiles the comparisons on numbers. A limit that every value
// of the type satisfies, or none, is a problem: a different limit or type was
// meant.
func compileNumber(r tags.Rule, t Target) ([]Check, *tags.Problem) {
	limit, p := limitOf(r, t)
	if p != nil {
		return nil, p
	}
	op := Operator(r.Name)
	if low, high, ok := typeLimits(t); ok {
		below, above := limit.compare(low), limit.compare(high)
		none := "no"
		switch {
		case op == "min" && above > 0, op == "gt" && above >= 0, op == "max" && below < 0, op == "lt" && below <= 0,
			(op == "len" || op == "eq") && (below < 0 || above > 0):
		case below < 0 || above > 0:
			none = "every"
		default:
			none = ""
		}
		if none == "no" {
			return nil, r.Fault(fmt.Sprintf("no %s can satisfy %s", t.Type, r.Written), "choose a bound inside the type, or a wider type")
		} else if none != "" {
			return nil, r.Fault(fmt.Sprintf("every %s satisfies %s", t.Type, r.Written), "choose a bound inside the type, or a wider type")
		}
	}
	n := json.Number(limit.String())
	c := Check{Tag: r.Written, Code: boundCode(op), Emit: func(s *jsonschema.Schema) { addBound(s, op, n) }, Test: compareWith(op, limit)}
	c.words(op, string(n), wording.NumberWords, typeNoun[t.Kind]+" other than ")
	return []Check{c}, nil
}

// typeLimits returns the smallest and the largest number of a target's type. ok
// is false for float64, where every finite number fits.
func typeLimits(t Target) (low, high Number, ok bool) {
	bits := 64
	if t.Type != nil {
		bits = t.Type.Bits()
	}
	switch t.Kind {
	case KindInt:
		return SignedNumber(math.MinInt64 >> (64 - bits)), SignedNumber(math.MaxInt64 >> (64 - bits)), true
	case KindUint:
		return Number{Integer: true}, unsignedNumber(math.MaxUint64 >> (64 - bits)), true
	}
	return Number{Float: -math.MaxFloat32}, Number{Float: math.MaxFloat32}, bits == 32
}

// limitOf reads the number in a rule on a number, a length or a duration.
func limitOf(r tags.Rule, t Target) (Number, *tags.Problem) {
	switch t.Kind {
	case KindUint:
		return unsignedLimit(r)
	case KindFloat:
		return floatLimit(r)
	case KindDuration:
		d, p := durationParam(r, t)
		return SignedNumber(int64(d)), p
	}
	n, p := parseInteger(r)
	return SignedNumber(n), p
}

// unsignedLimit reads the limit of an unsigned integer. A negative limit has a
// message of its own, because it is a mistake about the type and not about the
// number.
func unsignedLimit(r tags.Rule) (Number, *tags.Problem) {
	if p := numericFault(r); p != nil {
		return Number{}, p
	}
	n, err := strconv.ParseUint(r.Param, 0, 64)
	switch {
	case err == nil:
		return unsignedNumber(n), nil
	case strings.HasPrefix(r.Param, "-"):
		return Number{}, r.Fault("an unsigned integer is never negative", "write "+r.Name+"=0 or more, or use a signed type")
	case strings.Contains(err.Error(), "out of range"):
		return Number{}, r.Fault("the number does not fit 64 bits", "write a smaller number")
	}
	return Number{}, notInteger(r)
}

// floatLimit reads the limit of a floating-point number and keeps its text,
// which is what the schema says: for a float32 it is more precise than the
// type.
func floatLimit(r tags.Rule) (Number, *tags.Problem) {
	if p := numericFault(r); p != nil {
		return Number{}, p
	}
	f, err := strconv.ParseFloat(r.Param, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return Number{}, r.Fault(fmt.Sprintf("%q is not a finite number", r.Param), "write "+r.Name+"=1.5, say")
	}
	text := r.Param
	if !lexical.IsNumber(text) {
		text = strconv.FormatFloat(f, 'f', -1, 64)
	}
	return decimalLimit(f, text), nil
}
