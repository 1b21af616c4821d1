package schema

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/internal/lexical"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// boolText reads the words true and false, in any case if anyCase is set. Other
// words, such as yes and 1, are not taken for booleans, because what they mean
// depends on who says them.
func boolText(b []byte, anyCase bool) (v, known bool) {
	if len(b) > 5 {
		return false, false
	}
	var low [5]byte
	for i, c := range b {
		if anyCase && 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		low[i] = c
	}
	switch string(low[:len(b)]) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// boolean reads into a bool. With json:",string" the form is the string and the
// bare value is a coercion; without it the other way round.
func (d *decoder) boolean(n *node, p slot, k jsonx.Kind) bool {
	start := d.s.Pos
	var v bool
	switch {
	case k == jsonx.Bool && (!n.quoted || d.coerces(n)):
		b, err := d.s.Bool()
		if err != nil {
			return d.stop(err)
		}
		v = b
		if n.quoted {
			d.coerce()
		}
	case k == jsonx.String && (n.quoted || d.coerces(n)):
		str, err := d.s.Str()
		if err != nil {
			return d.stop(err)
		}
		var known bool
		if v, known = boolText(str, !n.quoted); !known {
			d.wrongType(n, d.s.Buf[start:d.s.Pos])
			return true
		}
		if !n.quoted {
			d.coerce()
		}
	default:
		return d.mismatch(n)
	}
	if n.orZero && !v {
		return true
	}
	for i := range n.checks {
		if test, ok := n.checks[i].Test.(rules.BoolTest); ok && !test(v) {
			d.fail(n, &n.checks[i], strconv.FormatBool(v), "")
		}
	}
	*in[bool](p) = v
	return true
}

// numberText returns the text of the number at the scanner. In lenient mode,
// and for quoted nodes, the number may be inside a string. plain is set if the
// text has neither a fraction nor an exponent. found is false if there is no
// number; the value has been read and reported then. The text is part of the
// document and must be copied to be kept. ok is false if the walk ends.
func (d *decoder) numberText(n *node, k jsonx.Kind) (text []byte, plain, found, ok bool) {
	start := d.s.Pos
	switch {
	case k == jsonx.Number && (!n.quoted || d.coerces(n)):
		text, plain, err := d.s.Number()
		if err != nil {
			return nil, false, false, d.stop(err)
		}
		if n.quoted {
			d.coerce()
		}
		return text, plain, true, true
	case k == jsonx.String && (n.quoted || d.coerces(n)):
		str, err := d.s.Str()
		if err != nil {
			return nil, false, false, d.stop(err)
		}
		if !n.quoted {
			str = trimSpace(str)
		}
		inner := jsonx.Scanner{Buf: str}
		if inner.Peek() == jsonx.Number {
			text, plain, err := inner.Number()
			if err == nil && len(text) == len(str) && (!n.quoted || n.kind == nodeFloat || plain && !(len(str) == 2 && str[0] == '-' && str[1] == '0')) {
				if !n.quoted {
					d.coerce()
				}
				return text, plain, true, true
			}
		}
		d.wrongType(n, d.s.Buf[start:d.s.Pos])
		return nil, false, false, true
	}
	return nil, false, false, d.mismatch(n)
}

// trimSpace is bytes.TrimSpace for the white space of JSON.
func trimSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\n' || b[0] == '\r') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t' || b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

// number reads every kind that travels as a number. Integers are read from
// their text: a detour through float64 would change those beyond 2^53.
func (d *decoder) number(n *node, p slot, k jsonx.Kind) bool {
	text, plain, found, ok := d.numberText(n, k)
	if !found {
		return ok
	}
	switch n.kind {
	case nodeFloat:
		d.float(n, p, text)
		return true
	case nodeNumber:
		*in[json.Number](p) = json.Number(text)
		return true
	case nodeBigInt:
		d.bigInt(n, p, text, plain)
		return true
	}
	negative, magnitude, form := exactInteger(text, plain)
	if form == jsonx.Fraction {
		d.wrongType(n, text)
		return true
	}
	v := rules.Number{Integer: true, Negative: negative && magnitude != 0, Magnitude: magnitude}
	if n.kind == nodeDuration {
		d.units(n, p, text, v, form)
	} else {
		d.integer(n, p, text, v, form)
	}
	return true
}

// integer stores an integer. The rules are checked before the range of the
// type, so that a number outside of both is reported by the rule, which tells
// more.
func (d *decoder) integer(n *node, p slot, text []byte, v rules.Number, form jsonx.NumberForm) {
	if form == jsonx.Huge || n.kind == nodeUint && v.Negative || n.kind == nodeInt && !v.Signed() {
		d.tooLarge(n, text, text[0] == '-', "an integer that fits 64 bits")
		return
	}
	if n.orZero && v.Magnitude == 0 {
		return
	}
	bits := v.Bits()
	spare := 64 - n.bits
	fits := bits == bits<<spare>>spare
	if n.kind == nodeInt {
		fits = int64(bits) == int64(bits)<<spare>>spare
	}
	if checkNumber(d, n, v, text, wording.Cut) && !fits {
		d.tooLarge(n, text, v.Negative, "")
		return
	}
	switch n.bits { // the bits of signed and unsigned integers are the same
	case 8:
		*in[uint8](p) = uint8(bits)
	case 16:
		*in[uint16](p) = uint16(bits)
	case 32:
		*in[uint32](p) = uint32(bits)
	default:
		*in[uint64](p) = bits
	}
}

// checkNumber runs the checks of a number and reports whether all hold. show
// turns its text into what an issue quotes.
func checkNumber[T string | []byte](d *decoder, n *node, v rules.Number, text T, show func(string) string) (good bool) {
	good = true
	for i := range n.checks {
		if test, ok := n.checks[i].Test.(rules.NumberTest); ok && !test(v) {
			d.fail(n, &n.checks[i], show(string(text)), "")
			good = false
		}
	}
	return good
}

// tooLarge records an integer outside of what its type can hold. If the schema
// says so with minimum or maximum, that keyword is the rule of the issue.
func (d *decoder) tooLarge(n *node, text []byte, negative bool, limit string) {
	low, high := n.ends()
	rule, want := wording.RuleRange, limit
	switch {
	case negative && low != nil:
		rule, want = "minimum", n.measured(low, high)
	case !negative && high != nil:
		rule, want = "maximum", n.measured(low, high)
	}
	d.misfit(n, rule, want, wording.Cut(string(text)), "")
}

// units stores a Duration that travels as a number of its units.
func (d *decoder) units(n *node, p slot, text []byte, v rules.Number, form jsonx.NumberForm) {
	if limit := math.MaxInt64 / n.unit; form == jsonx.Huge || v.Magnitude > uint64(limit) {
		rule := "maximum"
		switch {
		case n.unit == 1:
			rule = wording.RuleRange
		case text[0] == '-':
			rule = "minimum"
		}
		low, high := n.ownEnds()
		if low == nil {
			low = wording.NumberWords.Least(strconv.FormatInt(-limit, 10))
		}
		if high == nil {
			high = wording.NumberWords.Most(strconv.FormatInt(limit, 10))
		}
		d.misfit(n, rule, n.measured(low, high), wording.Cut(string(text)), "")
		return
	}
	if v.Magnitude *= uint64(n.unit); n.orZero && v.Magnitude == 0 {
		return
	}
	checkNumber(d, n, v, text, wording.Cut)
	*in[uint64](p) = v.Bits()
}

// float stores a floating-point number. Rules see its decimal text besides the
// float64. A number that would become infinite is an issue. So is one that only
// rounding makes a float32: the schema compares what is written.
func (d *decoder) float(n *node, p slot, text []byte) {
	// The string lives as long as text does: no test keeps it.
	decimal := borrowed(text)
	v, err := strconv.ParseFloat(decimal, 64)
	short := v
	if n.bits == 32 { // rounded once, from the text
		short, err = strconv.ParseFloat(decimal, 32)
	}
	if err != nil && n.bits == 32 && !n.quoted {
		d.beyondFloat32(n, text)
		return
	}
	if err != nil {
		d.misfit(n, wording.RuleRange, "a number that fits "+strconv.Itoa(int(n.bits))+" bits", wording.Cut(string(text)), "")
		return
	}
	if n.orZero && v == 0 {
		return
	}
	number := rules.Number{Float: v, Text: decimal}
	good := checkNumber(d, n, number, text, wording.Cut)
	if n.bits == 64 {
		*in[float64](p) = v
		return
	}
	*in[float32](p) = float32(short)
	if good && math.Abs(short) == math.MaxFloat32 && !n.quoted && exceedsFloat32(number) {
		d.beyondFloat32(n, text)
	}
}

// exceedsFloat32 reports whether a number is outside of the bounds that the schema names
// for float32, although it is rounded to the greatest one: up to half a step above it
// would round down. The numbers are compared exactly, which happens for that value only.
func exceedsFloat32(v rules.Number) bool {
	limit, _ := new(big.Rat).SetString(maxFloat32)
	return new(big.Rat).Abs(v.Rat()).Cmp(limit) > 0
}

// beyondFloat32 records a number outside of the bounds that the schema names for the
// type. A bound of a rule on the other side is reported with it, since a correction
// needs both.
func (d *decoder) beyondFloat32(n *node, text []byte) {
	low, high := n.ownEnds()
	rule := "maximum"
	if text[0] == '-' {
		rule = "minimum"
	}
	if low == nil {
		low = wording.NumberWords.Least("-" + maxFloat32)
	}
	if high == nil {
		high = wording.NumberWords.Most(maxFloat32)
	}
	d.misfit(n, rule, n.measured(low, high), wording.Cut(string(text)), "")
}

// maxBigDigits bounds big.Int values: reading one takes time that grows with
// the square of its length.
const maxBigDigits = 1000

// bigInt reads an integer of any size up to maxBigDigits.
func (d *decoder) bigInt(n *node, p slot, text []byte, plain bool) {
	integer, form := text, jsonx.Whole
	if !plain {
		integer, form = jsonx.Integer(text, maxBigDigits)
	}
	switch {
	case form == jsonx.Fraction:
		d.wrongType(n, text)
	case form == jsonx.Huge || len(integer) > maxBigDigits+1 || len(integer) > maxBigDigits && integer[0] != '-':
		d.misfit(n, wording.RuleRange, "an integer of at most "+strconv.Itoa(maxBigDigits)+" digits", wording.Cut(string(text)), "")
	default:
		in[big.Int](p).SetString(string(integer), 10)
	}
}

// exactInteger reads a JSON number as an integer. 1.0 and 1e2 are integers, as
// in JSON Schema. text must be a valid number; plain says that it has neither a
// fraction nor an exponent. The magnitude is meaningful for jsonx.Whole only.
func exactInteger(text []byte, plain bool) (negative bool, magnitude uint64, form jsonx.NumberForm) {
	if text[0] == '-' {
		negative, text = true, text[1:]
	}
	if !plain {
		return wideInteger(negative, text)
	}
	for _, c := range text {
		digit := uint64(c - '0')
		if magnitude > (math.MaxUint64-digit)/10 {
			return negative, 0, jsonx.Huge
		}
		magnitude = magnitude*10 + digit
	}
	return negative, magnitude, jsonx.Whole
}

// wideInteger is exactInteger for text with a fraction or an exponent.
func wideInteger(negative bool, text []byte) (bool, uint64, jsonx.NumberForm) {
	digits, form := jsonx.Integer(text, 20) // as many as 64 bits need
	if form != jsonx.Whole {
		return negative, 0, form
	}
	_, magnitude, form := exactInteger(digits, true)
	return negative, magnitude, form
}

// str reads into a string. In lenient mode it also takes an integer, because
// models write codes and room numbers without quotes. A number with a fraction
// or an exponent is refused: 1.0 and 1 are one number and two texts.
func (d *decoder) str(n *node, p slot, k jsonx.Kind) bool {
	var v string
	switch {
	case k == jsonx.String:
		b, err := d.s.Str()
		if err != nil {
			return d.stop(err)
		}
		v = string(b)
	case k == jsonx.Number && n.plain && d.coerces(n):
		text, plain, err := d.s.Number()
		if err != nil {
			return d.stop(err)
		}
		if !plain || string(text) == "-0" {
			d.wrongType(n, text)
			return true
		}
		v = string(text)
		d.coerce()
	default:
		return d.mismatch(n)
	}
	for i := range n.checks {
		if test, ok := n.checks[i].Test.(rules.TextTest); ok && !test(v) {
			return d.badText(n, p, v)
		}
	}
	*in[string](p) = v
	return true
}

// badText handles a string that breaks a check. An enum value surrounded by
// spaces is taken without them. Any other text is reported, and stored for the
// rules among members, which need something to compare.
func (d *decoder) badText(n *node, p slot, v string) bool {
	if n.orZero && v == "" {
		return true
	}
	if trimmed := strings.TrimSpace(v); trimmed != v && d.coerces(n) && hasCode(n, "enum") && passesText(n, trimmed) {
		*in[string](p) = trimmed
		d.coerce()
		return true
	}
	d.failText(n, v)
	*in[string](p) = v
	return true
}

// failText records every check that a text breaks, with the reason if the check
// knows it.
func (d *decoder) failText(n *node, v string) {
	for i := range n.checks {
		c := &n.checks[i]
		if test, ok := c.Test.(rules.TextTest); !ok || test(v) {
			continue
		}
		why := ""
		if c.Why != nil {
			why = c.Why(v)
		}
		d.fail(n, c, wording.Quote(v), why)
	}
}

// passesText reports whether a text passes all checks of the node that look at
// text.
func passesText(n *node, v string) bool {
	for i := range n.checks {
		if test, ok := n.checks[i].Test.(rules.TextTest); ok && !test(v) {
			return false
		}
	}
	return true
}

// text reads the types that travel as strings and are not strings in Go.
func (d *decoder) text(n *node, p slot, k jsonx.Kind) bool {
	if k != jsonx.String {
		return d.mismatch(n)
	}
	b, err := d.s.Str()
	if err != nil {
		return d.stop(err)
	}
	switch n.kind {
	case nodeBytes:
		d.bytes(n, p, b)
	case nodeTime:
		d.time(n, p, b)
	case nodeDuration:
		d.duration(n, p, string(b))
	case nodeURL:
		u, err := url.Parse(string(b))
		valid := lexical.Format("uri-reference")
		fits := err == nil && valid(string(b))
		if err == nil && !fits && d.coerces(n) { // what a URI cannot have is encoded by String, and may be in a query
			plain := *u
			plain.RawQuery = ""
			if fits = valid(plain.String()); fits {
				d.coerce()
			}
		}
		if !fits {
			d.misfit(n, "format", n.describe(), wording.Quote(string(b)), "")
			return true
		}
		*in[url.URL](p) = *u
	default:
		d.unmarshal(n, p, b)
	}
	return true
}

// bytes stores base64 in the standard alphabet with padding. Line breaks, which
// Go's decoder ignores, are refused because the pattern in the schema does not
// permit them.
func (d *decoder) bytes(n *node, p slot, b []byte) {
	out := make([]byte, base64.StdEncoding.DecodedLen(len(b)))
	size, err := base64.StdEncoding.Decode(out, b)
	if err != nil || strings.ContainsAny(string(b), "\r\n") {
		d.misfit(n, "pattern", n.describe(), wording.Quote(string(b)), "use the alphabet A-Z a-z 0-9 + / with = at the end, without line breaks")
		return
	}
	out = out[:size]
	d.counts(n, size, wording.ByteWords)
	*in[[]byte](p) = out
}

// time stores a point in time in the form of RFC 3339. time.Time's own parser
// accepts forms that the format date-time does not have.
func (d *decoder) time(n *node, p slot, b []byte) {
	t, fault := lexical.ParseRFC3339(b)
	if fault != "" {
		d.misfit(n, "format", n.describe(), wording.Quote(string(b)), fault)
		return
	}
	*in[time.Time](p) = t
}

// duration stores a Duration that travels as text, in Go's form or that of ISO
// 8601.
func (d *decoder) duration(n *node, p slot, s string) {
	parse, rule := lexical.ParseDuration, "pattern"
	if n.iso {
		parse, rule = lexical.ParseISODuration, "format"
	}
	v, err := parse(s)
	if err != nil {
		d.misfit(n, rule, n.describe(), wording.Quote(s), err.Error())
		return
	}
	if n.orZero && v == 0 {
		return
	}
	checkNumber(d, n, rules.SignedNumber(int64(v)), s, wording.Quote)
	*in[time.Duration](p) = v
}

// unmarshal stores a type with a text form. UnmarshalText gets a copy of the
// bytes, since it may keep them, and only text that has passed the checks.
func (d *decoder) unmarshal(n *node, p slot, b []byte) {
	if n.orZero && len(b) == 0 {
		return
	}
	if len(n.checks) > 0 && !passesText(n, string(b)) {
		trimmed := bytes.TrimSpace(b)
		if len(trimmed) == len(b) || !d.coerces(n) || !hasCode(n, "enum") || !passesText(n, string(trimmed)) {
			d.failText(n, string(b))
			return
		}
		b = trimmed
		d.coerce()
	}
	u, ok := p.value(n.typ).Addr().Interface().(encoding.TextUnmarshaler)
	if !ok {
		return // a result type that can only be written
	}
	own := append([]byte(nil), b...) // it may keep them
	if err := u.UnmarshalText(own); err != nil {
		d.badForm(n, string(b), err)
	}
}

// badForm records that UnmarshalText refused a text. The messages of the types
// in package civil are meant for the caller. Errors of other types are written
// for programmers and are shown only if the type has no name here.
func (d *decoder) badForm(n *node, text string, err error) {
	rule := "format"
	if s := n.textSchema(); s.Format == "" && s.Pattern != "" {
		rule = "pattern"
	} else if s.Format == "" {
		rule = wording.RuleCustom
	}
	var bad *civil.ParseError
	switch {
	case errors.As(err, &bad):
		d.misfit(n, rule, n.describe(), wording.Quote(text), bad.Message)
		return
	case n.said.name != "" || d.hides(n):
		d.misfit(n, rule, n.describe(), wording.Quote(text), "")
		return
	}
	is := Issue{Path: wording.Pointer(d.path), Rule: rule, Expected: n.describe(), Got: wording.Quote(text), Message: "is not valid: " + err.Error()}
	if !strings.Contains(is.Message, text) {
		is.Message += "; got " + is.Got
	}
	d.add(n, is)
}

// listed reports whether the value at the scanner can stand for a list of one item. A
// list inside of a list cannot: ["a","b"] could be one list or two.
func (d *decoder) listed() bool {
	return len(d.path) == 0 || !d.path[len(d.path)-1].IsItem()
}

// ofObjects reports whether the values of a node are objects.
func ofObjects(n *node) bool {
	switch n.kind {
	case nodeObject, nodeMap, nodeUnion:
		return true
	case nodeNull, nodeRef:
		return ofObjects(n.elem)
	}
	return false
}

// single reports whether the value at the scanner, of kind k, can be nothing but
// one item of a list of elem. Text that may be JSON is left to fromText.
func (d *decoder) single(elem *node, k jsonx.Kind) bool {
	switch elem.kind {
	case nodeObject, nodeMap, nodeUnion:
		return k == jsonx.Object
	case nodeNull, nodeRef:
		return d.single(elem.elem, k)
	case nodeAny, nodeRaw, nodeOpaque:
		if k != jsonx.String {
			return k == jsonx.Object || k == jsonx.Number || k == jsonx.Bool
		}
	case nodeInt, nodeUint, nodeFloat, nodeNumber, nodeBigInt, nodeBool, nodeString, nodeBytes, nodeTime, nodeText, nodeURL, nodeDuration:
		if k != jsonx.String {
			return k == jsonx.Number && elem.kind != nodeBool && (elem.name != "string" || elem.kind == nodeString) || k == jsonx.Bool && elem.kind == nodeBool
		}
	default:
		return false
	}
	probe := d.s
	text, err := probe.Str()
	text = trimSpace(text)
	return err == nil && len(text) > 0 && text[0] != '[' && text[0] != '{'
}

// wrap reads the value at the scanner as the only item of a list.
func (d *decoder) wrap(n *node, p slot) bool {
	start := d.s.Pos
	if !d.skip() {
		return false
	}
	d.coerce()
	inner := append(append([]byte{'['}, d.s.Buf[start:d.s.Pos]...), ']')
	outer := d.s
	d.s = jsonx.Scanner{Buf: inner, MaxDepth: d.plan.maxDepth}
	d.s.SetDepth(outer.Depth())
	d.values--
	ok := d.plainValue(n, p, jsonx.Array)
	d.s = outer
	return ok
}
