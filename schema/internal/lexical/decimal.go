package lexical

import (
	"cmp"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

// MaxExponent and MaxDigits bound the numbers that are compared exactly. A
// number such as 1e999999999 is a short text, but its exact value would fill
// the memory.
const (
	MaxExponent = 400
	MaxDigits   = 1000
)

// Bounded reports whether a number in JSON's grammar is within MaxExponent and
// MaxDigits.
func Bounded(text string) bool {
	digits, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	e, err := strconv.Atoi(cmp.Or(exponent, "0"))
	return err == nil && e <= MaxExponent && e >= -MaxExponent && len(digits) <= MaxDigits
}

// Decimal returns the exact value of a number in JSON's grammar; ok is false if
// it is not Bounded.
func Decimal(text string) (*big.Rat, bool) {
	if !Bounded(text) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// IsNumber reports whether s is a number in JSON's grammar.
func IsNumber(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	return digits != "" && digits[0] >= '0' && digits[0] <= '9' && json.Valid([]byte(s))
}
