package jsonx

import "strconv"

// NumberForm says what a JSON number is for a reader of integers.
type NumberForm byte

// The forms of a number.
const (
	Whole    NumberForm = iota // an integer that has no more digits than allowed
	Fraction                   // not an integer
	Huge                       // an integer with more digits
)

// Integer writes a number without fraction and exponent, if it is an integer of at
// most limit digits. JSON Schema decides by value: 1.0 and 1e2 are integers. text must
// be a valid number. No more than limit digits are written, because 1e999999999 is a
// short text for many of them.
func Integer(text []byte, limit int) (plain []byte, form NumberForm) {
	d := decimalOf(text)
	switch {
	case len(d.digits) == 0:
		return []byte{'0'}, Whole
	case d.exponent < 0:
		return nil, Fraction
	case len(d.digits)+d.exponent > limit:
		return nil, Huge
	}
	if plain = d.digits; d.negative {
		plain = append([]byte{'-'}, plain...)
	}
	for range d.exponent {
		plain = append(plain, '0')
	}
	return plain, Whole
}

// longestPlain is how many digits Canonical writes without an exponent.
const longestPlain = 40

// Canonical returns the one text that stands for all numbers of that value. It is at
// most longestPlain bytes longer than text, which must be a valid number. One with an
// exponent of a thousand million or more represents only itself.
func Canonical(text []byte) []byte {
	plain, form := Integer(text, longestPlain)
	if form == Whole {
		return plain
	}
	d := decimalOf(text)
	if d.exponent >= hugeExponent || d.exponent <= -hugeExponent {
		return text
	}
	if plain = d.digits; d.negative {
		plain = append([]byte{'-'}, plain...)
	}
	return strconv.AppendInt(append(plain, 'e'), int64(d.exponent), 10)
}

// decimal is a number: digits × 10^exponent. The digits have zeros neither in front
// nor at the end, so that the number is an integer unless the exponent is negative;
// 0 has no digits.
type decimal struct {
	negative bool
	digits   []byte
	exponent int
}

// hugeExponent takes the place of larger exponents. A text has fewer digits, so that
// they cannot make up for it.
const hugeExponent = 1e9

// decimalOf takes a valid number apart.
func decimalOf(text []byte) (d decimal) {
	if text[0] == '-' {
		d.negative, text = true, text[1:]
	}
	d.digits = make([]byte, 0, len(text)+1)
	fraction := false
	for i, c := range text {
		switch c {
		case '.':
			fraction = true
			continue
		case 'e', 'E':
			e, err := strconv.ParseInt(string(text[i+1:]), 10, 64)
			if err != nil || e > hugeExponent || e < -hugeExponent {
				e = hugeExponent
				if text[i+1] == '-' {
					e = -hugeExponent
				}
			}
			d.exponent += int(e)
			return d.trim()
		}
		d.digits = append(d.digits, c)
		if fraction {
			d.exponent--
		}
	}
	return d.trim()
}

// trim takes the zeros at both ends off.
func (d decimal) trim() decimal {
	for len(d.digits) > 0 && d.digits[len(d.digits)-1] == '0' {
		d.digits = d.digits[:len(d.digits)-1]
		d.exponent++
	}
	for len(d.digits) > 0 && d.digits[0] == '0' {
		d.digits = d.digits[1:]
	}
	return d
}
