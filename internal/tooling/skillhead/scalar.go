package skillhead

import (
	"encoding/json"
	"fmt"
	"strings"
)

// plain returns what text without quotes stands for. Libraries differ in what they
// take for a number, a date or a boolean: text that one of them could take for
// something else has to be in quotes.
func plain(text string) (any, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	}
	if number(text) {
		return json.Number(text), nil
	}
	if err := plainText(text); err != nil {
		return nil, err
	}
	return text, nil
}

// plainText returns why text cannot stand for itself without quotes, other than
// for the place that it is in.
func plainText(text string) error {
	if version(text) {
		return nil // the only form of numerals that is text to all clients
	}
	// Words for a boolean, for null, for special numbers such as NaN or for a key of
	// YAML itself, in one version or the other and in any case: two programs may even
	// differ about which cases count.
	switch strings.ToLower(text) {
	case "y", "yes", "n", "no", "on", "off", "true", "false", "null", "~", "=", "<<",
		"nan", ".nan", "inf", ".inf", "-inf", "-.inf", "+inf", "+.inf", "infinity", "-infinity", "+infinity":
		return fmt.Errorf("%q means different things to different programs; put it in quotes", text)
	}
	// All that numbers, dates and times are written with, in any base, with or without
	// exponents, separators and zones. Such text without quotes is rarely useful, so
	// that the grammars of all libraries need not be known.
	switch text[0] {
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '+', '-', '.':
		if strings.Trim(text, "0123456789+-._:, eExXobBTZtzacdfACDF") == "" {
			return fmt.Errorf("%.40q is a number or a date to some programs and text to others; put it in quotes", text)
		}
	}
	return nil
}

// number reports whether text is an integer or a decimal that all programs read
// alike, and exactly: 15 digits are what the numbers of JavaScript tell apart, and a
// leading zero makes an octal number for some.
func number(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	whole, fraction, decimal := strings.Cut(digits, ".")
	switch {
	case !numeral(whole), decimal && !numeral(fraction), len(whole)+len(fraction) > 15:
		return false
	case whole[0] == '0' && len(whole) > 1:
		return false
	}
	// Minus nothing is an integer for some, and for others a float that prints as 0.
	return digits == text || strings.Trim(digits, "0.") != ""
}

// version reports whether text is three or more numerals with dots between them,
// which is never a number.
func version(text string) bool {
	parts := strings.Split(text, ".")
	for _, part := range parts {
		if !numeral(part) {
			return false
		}
	}
	return len(parts) > 2
}

// numeral reports whether text has digits and nothing else.
func numeral(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
