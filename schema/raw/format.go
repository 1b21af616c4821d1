package raw

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// integers returns the check of the formats int64 and uint64, which schemas
// made from Go types use, or nil for any other format. It applies to numbers
// and to strings that hold a number; other strings pass, as drafts demand of a
// format that is not about them.
func integers(name string) func(json.Number) bool {
	switch name {
	case "int64":
		return within(new(big.Rat).SetInt64(math.MinInt64), new(big.Rat).SetInt64(math.MaxInt64))
	case "uint64":
		return within(new(big.Rat), new(big.Rat).SetUint64(math.MaxUint64))
	}
	return nil
}

// within returns a check that a number lies between two bounds, inclusive. It
// decides numbers with huge exponents without expanding them.
func within(low, high *big.Rat) func(json.Number) bool {
	return func(n json.Number) bool {
		text := string(n)
		if !json.Valid([]byte(text)) || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
			return true
		}
		// The exact value of a short text, such as 1e999999999, can fill the memory.
		digits, exponent, _ := strings.Cut(strings.ToLower(text), "e")
		e, err := strconv.Atoi("0" + strings.TrimLeft(exponent, "+-"))
		switch {
		case strings.Trim(digits, "-0.") == "":
			return true
		case len(digits) > 1000 || (err != nil || e > 400) && !strings.HasPrefix(exponent, "-"):
			return false
		case err != nil || e > 400:
			return true
		}
		x := rational(n)
		return x != nil && x.Cmp(low) >= 0 && x.Cmp(high) <= 0
	}
}
