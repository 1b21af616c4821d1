package arguments

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Rules are the keywords that a hint tells of.
type Rules struct {
	Format           string       `json:"format"`
	Encoding         string       `json:"contentEncoding"`
	Pattern          string       `json:"pattern"`
	Minimum          *json.Number `json:"minimum"`
	Maximum          *json.Number `json:"maximum"`
	ExclusiveMinimum *json.Number `json:"exclusiveMinimum"`
	ExclusiveMaximum *json.Number `json:"exclusiveMaximum"`
	MinLength        *int         `json:"minLength"`
	MaxLength        *int         `json:"maxLength"`
	MinItems         *int         `json:"minItems"`
	MaxItems         *int         `json:"maxItems"`
}

// Bounds says bounds as 1..14, and what else a value must be.
func (r Rules) Bounds() string {
	var parts []string
	switch low, high := number(r.Minimum), number(r.Maximum); {
	case low != "" && high != "":
		parts = append(parts, low+".."+high)
	case low != "":
		parts = append(parts, low+" or more")
	case high != "":
		parts = append(parts, "at most "+high)
	}
	if r.ExclusiveMinimum != nil {
		parts = append(parts, "more than "+number(r.ExclusiveMinimum))
	}
	if r.ExclusiveMaximum != nil {
		parts = append(parts, "less than "+number(r.ExclusiveMaximum))
	}
	for _, limits := range []string{counted("character", r.MinLength, r.MaxLength), counted("item", r.MinItems, r.MaxItems)} {
		if limits != "" {
			parts = append(parts, limits)
		}
	}
	if r.Format != "" {
		parts = append(parts, "format "+r.Format)
	}
	if r.base64() {
		return strings.Join(append(parts, "base64; @file sends a file"), ", ") // the pattern would say the same at length
	}
	if r.Pattern != "" {
		parts = append(parts, "matching "+short(r.Pattern))
	}
	return strings.Join(parts, ", ")
}

// base64 reports whether the text stands for bytes.
func (r Rules) base64() bool { return strings.EqualFold(r.Encoding, "base64") }

// shownPattern is how many characters of a pattern a hint shows.
const shownPattern = 60

func short(pattern string) string {
	if runes := []rune(pattern); len(runes) > shownPattern {
		return string(runes[:shownPattern]) + "…"
	}
	return pattern
}

// number returns a bound, or "" for the greatest integer of JavaScript, by which schemas say
// that a number is an integer.
func number(n *json.Number) string {
	if n == nil || strings.TrimPrefix(n.String(), "-") == "9007199254740991" {
		return ""
	}
	return n.String()
}

// counted says how many characters or items there may be, "" if any number.
func counted(what string, low, high *int) string {
	many := func(n int) string {
		if n == 1 {
			return "1 " + what
		}
		return fmt.Sprintf("%d %ss", n, what)
	}
	switch {
	case low != nil && *low <= 0:
		return counted(what, nil, high) // which says nothing
	case low != nil && high != nil && *low == *high:
		return "exactly " + many(*low)
	case low != nil && high != nil:
		return fmt.Sprintf("%d..%d %ss", *low, *high, what)
	case low != nil:
		return "at least " + many(*low)
	case high != nil:
		return "at most " + many(*high)
	}
	return ""
}
