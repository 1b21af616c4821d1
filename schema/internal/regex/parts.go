package regex

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// Fold is a pattern for the texts that equal s but for case.
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

// Class writes the characters of a class, without its brackets.
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

// Lazy returns a pattern that is compiled when it is first needed, so
// that importing this package costs next to nothing.
func Lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// UpTo is the pattern of the integers from 1 to max, one spelling each.
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

// anyDigits is the pattern of count digits, or of at most as many.
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
