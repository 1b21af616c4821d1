package regex

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// Fold returns a pattern, without anchors, for the texts that equal s if case
// is ignored, by Unicode's simple folding. The flag (?i) would say the same but
// is not known to ECMA-262.
func Fold(s string) string {
	var b strings.Builder
	for _, r := range s {
		orbit := []rune{r}
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			orbit = append(orbit, f)
		}
		if len(orbit) == 1 {
			b.WriteString(regexp.QuoteMeta(string(r)))
			continue
		}
		slices.Sort(orbit)
		b.WriteString("[" + string(orbit) + "]") // letters only: nothing to escape
	}
	return b.String()
}

// Class returns the text of a class with the given characters, without its
// brackets.
func Class(chars string) string {
	var b strings.Builder
	for _, r := range chars {
		if strings.ContainsRune(`^$\.*+?()[]{}|/-`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Lazy returns a function that compiles a pattern on first use, so that
// importing this package costs next to nothing. The function is safe for
// concurrent use and panics if the pattern is wrong.
func Lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// UpTo returns a pattern, without anchors, for the integers from 1 to max in
// decimal without leading zeros.
func UpTo(max uint64) string {
	digits := strconv.FormatUint(max, 10)
	var forms []string
	if len(digits) > 1 {
		forms = append(forms, "[1-9]"+anyDigits(len(digits)-2, true))
	}
	for i := range len(digits) {
		low, high := byte('0'), digits[i]-1
		if i == 0 {
			low = '1'
		}
		if i == len(digits)-1 {
			high++ // max itself
		}
		if low <= high {
			forms = append(forms, digits[:i]+"["+string(low)+"-"+string(high)+"]"+anyDigits(len(digits)-1-i, false))
		}
	}
	return strings.Join(forms, "|")
}

// anyDigits returns the pattern of count digits, or of up to count digits if
// atMost is set.
func anyDigits(count int, atMost bool) string {
	from := strconv.Itoa(count)
	if atMost {
		from = "0," + from
	}
	if count == 0 {
		return ""
	}
	return "[0-9]{" + from + "}"
}

// Base64 matches the standard encoding of bytes, with padding.
const Base64 = `^(?:[A-Za-z0-9+\/]{4})*(?:[A-Za-z0-9+\/]{2}==|[A-Za-z0-9+\/]{3}=)?$`
