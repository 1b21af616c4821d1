package schema

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"unsafe"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// numberForm says what an integer parser made of a number.
type numberForm byte

const (
	formInteger  numberForm = iota
	formFraction            // it has a fraction
	formHuge                // it does not fit 64 bits
)

// exactInteger reads a JSON number as an integer: 1.0 and 1e2 are integers in
// JSON. The text must be a number.
func exactInteger(text []byte, plain bool) (negative bool, magnitude uint64, form numberForm) {
	if text[0] == '-' {
		negative, text = true, text[1:]
	}
	if !plain {
		return wideInteger(negative, text)
	}
	for _, c := range text {
		digit := uint64(c - '0')
		if magnitude > (math.MaxUint64-digit)/10 {
			return negative, 0, formHuge
		}
		magnitude = magnitude*10 + digit
	}
	return negative, magnitude, formInteger
}

// wideInteger is exactInteger for text with a fraction or an exponent.
func wideInteger(negative bool, text []byte) (bool, uint64, numberForm) {
	digits := make([]byte, 0, len(text))
	point, exponent := -1, 0
	for i, c := range text {
		switch {
		case c == '.':
			point = len(digits)
		case c == 'e' || c == 'E':
			// Beyond this an exponent is only large, whatever the digits are.
			const huge = 1 << 20
			e, err := strconv.Atoi(string(text[i+1:]))
			if err != nil || e > huge || e < -huge {
				e = huge
				if text[i+1] == '-' {
					e = -huge
				}
			}
			exponent = e
		default:
			digits = append(digits, c)
			continue
		}
		if c != '.' {
			break
		}
	}
	if point < 0 {
		point = len(digits)
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	zeros := 0
	for zeros < len(digits) && digits[zeros] == '0' {
		zeros++
	}
	if zeros == len(digits) {
		return negative, 0, formInteger
	}
	size := point + exponent // digits before the point
	switch {
	case size < len(digits):
		return negative, 0, formFraction
	case size-zeros > 20:
		return negative, 0, formHuge
	}
	digits = digits[zeros:]
	for len(digits) < size-zeros {
		digits = append(digits, '0')
	}
	return exactIntegerOf(negative, digits)
}

func exactIntegerOf(negative bool, digits []byte) (bool, uint64, numberForm) {
	_, magnitude, form := exactInteger(digits, true)
	return negative, magnitude, form
}

// numberText returns the text of the number at the scanner: a number, or in
// lenient mode or for quoted nodes a string that holds one. found is false if
// there is something else; it has been read then.
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

func trimSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\n' || b[0] == '\r') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t' || b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

func (d *decoder) number(n *node, p unsafe.Pointer, k jsonx.Kind) bool {
	text, plain, found, ok := d.numberText(n, k)
	if !found {
		return ok
	}
	switch n.kind {
	case nodeFloat:
		d.float(n, p, text)
		return true
	case nodeNumber:
		*(*json.Number)(p) = json.Number(text)
		return true
	case nodeBigInt:
		d.bigInt(n, p, text, plain)
		return true
	}
	negative, magnitude, form := exactInteger(text, plain)
	if form == formFraction {
		d.wrongType(n, text)
		return true
	}
	switch n.kind {
	case nodeInt:
		d.int(n, p, text, negative, magnitude, form)
	case nodeUint:
		d.uint(n, p, text, negative, magnitude, form)
	default:
		d.units(n, p, text, negative, magnitude, form)
	}
	return true
}

// signed makes an int64 of sign and magnitude.
func signed(negative bool, magnitude uint64) (int64, bool) {
	if negative {
		return -int64(magnitude), magnitude <= 1<<63
	}
	return int64(magnitude), magnitude <= math.MaxInt64
}

func (d *decoder) int(n *node, p unsafe.Pointer, text []byte, negative bool, magnitude uint64, form numberForm) {
	v, fits := signed(negative, magnitude)
	if form == formHuge || !fits {
		d.tooLarge(n, text, negative, "an integer that fits 64 bits")
		return
	}
	if n.orZero && v == 0 {
		return
	}
	good := true
	for i := range n.checks {
		if c := &n.checks[i]; c.integer != nil && !c.integer(v) {
			d.fail(n, c, cut(string(text)), "")
			good = false
		}
	}
	if n.bits < 64 && good && v != v<<(64-n.bits)>>(64-n.bits) {
		d.tooLarge(n, text, negative, "")
		return
	}
	switch n.bits {
	case 8:
		*(*int8)(p) = int8(v)
	case 16:
		*(*int16)(p) = int16(v)
	case 32:
		*(*int32)(p) = int32(v)
	default:
		*(*int64)(p) = v
	}
}

func (d *decoder) uint(n *node, p unsafe.Pointer, text []byte, negative bool, v uint64, form numberForm) {
	if form == formHuge || negative && v != 0 {
		d.tooLarge(n, text, negative, "an integer that fits 64 bits")
		return
	}
	if n.orZero && v == 0 {
		return
	}
	good := true
	for i := range n.checks {
		if c := &n.checks[i]; c.unsigned != nil && !c.unsigned(v) {
			d.fail(n, c, cut(string(text)), "")
			good = false
		}
	}
	if n.bits < 64 && good && v>>n.bits != 0 {
		d.tooLarge(n, text, false, "")
		return
	}
	switch n.bits {
	case 8:
		*(*uint8)(p) = uint8(v)
	case 16:
		*(*uint16)(p) = uint16(v)
	case 32:
		*(*uint32)(p) = uint32(v)
	default:
		*(*uint64)(p) = v
	}
}

// tooLarge records an integer outside of what its type holds. Where the schema
// says so with minimum or maximum, that is the rule.
func (d *decoder) tooLarge(n *node, text []byte, negative bool, limit string) {
	low, high := n.ends()
	rule, want := ruleRange, limit
	switch {
	case negative && low != nil:
		rule, want = "minimum", n.measured(low, high)
	case !negative && high != nil:
		rule, want = "maximum", n.measured(low, high)
	}
	d.misfit(n, rule, want, cut(string(text)), "")
}

// units reads a Duration that travels as a number of its units.
func (d *decoder) units(n *node, p unsafe.Pointer, text []byte, negative bool, magnitude uint64, form numberForm) {
	v, fits := signed(negative, magnitude)
	if limit := math.MaxInt64 / n.unit; form == formHuge || !fits || v > limit || v < -limit {
		rule := "maximum"
		switch {
		case n.unit == 1:
			rule = ruleRange
		case negative:
			rule = "minimum"
		}
		low, high := n.ownEnds()
		if low == nil {
			low = &bound{-1, strconv.FormatInt(-limit, 10), false, numberWords}
		}
		if high == nil {
			high = &bound{+1, strconv.FormatInt(limit, 10), false, numberWords}
		}
		d.misfit(n, rule, n.measured(low, high), cut(string(text)), "")
		return
	}
	v *= n.unit
	for i := range n.checks {
		if c := &n.checks[i]; c.integer != nil && !c.integer(v) {
			d.fail(n, c, cut(string(text)), "")
		}
	}
	*(*int64)(p) = v
}

func (d *decoder) float(n *node, p unsafe.Pointer, text []byte) {
	v, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), 64)
	if err != nil || n.bits == 32 && math.Abs(v) > math.MaxFloat32 {
		d.misfit(n, ruleRange, "a number that fits "+strconv.Itoa(int(n.bits))+" bits", cut(string(text)), "")
		return
	}
	if n.orZero && v == 0 {
		return
	}
	for i := range n.checks {
		if c := &n.checks[i]; c.float != nil && !c.holds(v, text) {
			d.fail(n, c, cut(string(text)), "")
		}
	}
	if n.bits == 32 {
		*(*float32)(p) = float32(v)
	} else {
		*(*float64)(p) = v
	}
}

// maxBigDigits bounds big.Int values: reading one takes time that grows with
// the square of its length.
const maxBigDigits = 1000

func (d *decoder) bigInt(n *node, p unsafe.Pointer, text []byte, plain bool) {
	big := (*big.Int)(p)
	if plain && len(text) <= maxBigDigits {
		big.SetString(string(text), 10)
		return
	}
	if !plain {
		negative, magnitude, form := exactInteger(text, false)
		switch form {
		case formInteger:
			if big.SetUint64(magnitude); negative {
				big.Neg(big)
			}
			return
		case formFraction:
			d.wrongType(n, text)
			return
		}
	}
	d.misfit(n, ruleRange, "an integer of at most "+strconv.Itoa(maxBigDigits)+" digits without an exponent", cut(string(text)), "")
}
