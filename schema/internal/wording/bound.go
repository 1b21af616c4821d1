package wording

import (
	"fmt"
	"strconv"
)

// Bound is one end of what a rule permits, or both ends if it permits one value
// only. The rules of one field are stated together, so they keep bounds and not
// finished texts.
type Bound struct {
	Side  int    // -1 for the lower end, +1 for the upper end, 0 for both
	Limit string // "3", "1m", "2026-01-31"
	Open  bool   // the limit itself is outside
	Words *BoundWords
}

// BoundWords are the formats for bounds of one sort of value. The limit is
// their argument; between has two.
type BoundWords struct {
	low, high    string // the limit is inside
	above, below string // the limit is outside
	Exactly      string
	between      string
	one, Many    string // what is counted; "" where the value itself is compared
}

// The words for values that are compared themselves.
var (
	NumberWords   = &BoundWords{"at least %s", "at most %s", "greater than %s", "less than %s", "%s", "between %s and %s", "", ""}
	DurationWords = &BoundWords{"at least %s", "at most %s", "longer than %s", "shorter than %s", "exactly %s", "between %s and %s", "", ""}
	TimeWords     = &BoundWords{"%s or later", "%s or earlier", "after %s", "before %s", "%s", "between %s and %s", "", ""}
	// The limit of NowWords is always the present moment, and is not written.
	NowWords = &BoundWords{"%s or later", "%s or earlier", "in the future", "in the past", "%s", "%s", "", ""}
)

// The words for what lengths count.
var (
	CharacterWords = countWords("character", "characters")
	ItemWords      = countWords("item", "items")
	MemberWords    = countWords("member", "members")
	ByteWords      = countWords("byte", "bytes")
)

// countWords returns the words for a number of things.
func countWords(one, many string) *BoundWords {
	return &BoundWords{low: "at least %s", high: "at most %s", Exactly: "exactly %s", between: "%s to %s", one: one, Many: many}
}

// Phrase returns the bound in words, such as "at least 3 items".
func (b *Bound) Phrase() string {
	w := b.Words
	format := w.Exactly
	switch {
	case b.Side < 0 && b.Open:
		format = w.above
	case b.Side < 0:
		format = w.low
	case b.Side > 0 && b.Open:
		format = w.below
	case b.Side > 0:
		format = w.high
	}
	if w == NowWords && b.Open {
		return format
	}
	return w.Count(fmt.Sprintf(format, b.Limit), b.Limit)
}

// Count appends the word for what is counted to text, in the singular if limit
// is "1". It returns text if nothing is counted.
func (w *BoundWords) Count(text, limit string) string {
	switch {
	case w.Many == "":
		return text
	case limit == "1":
		return text + " " + w.one
	}
	return text + " " + w.Many
}

// PhraseRange returns what lies between two ends in words. Either end may be
// nil; if both are, the result is "".
func PhraseRange(low, high *Bound) string {
	switch {
	case low == nil && high == nil:
		return ""
	case high == nil || low != nil && low.Side == 0:
		return low.Phrase()
	case low == nil || high.Side == 0:
		return high.Phrase()
	case low.Open || high.Open || low.Words != high.Words || low.Words == NowWords:
		return low.Phrase() + " and " + high.Phrase()
	case low.Limit == high.Limit:
		return low.Words.Count(fmt.Sprintf(low.Words.Exactly, low.Limit), low.Limit)
	}
	return low.Words.Count(fmt.Sprintf(low.Words.between, low.Limit, high.Limit), high.Limit)
}

// Least returns the inclusive lower end of a range.
func (w *BoundWords) Least(limit string) *Bound { return &Bound{-1, limit, false, w} }

// Most returns the inclusive upper end of a range.
func (w *BoundWords) Most(limit string) *Bound { return &Bound{+1, limit, false, w} }

// BoundOf returns the bound of a comparison, or nil for eq, ne and the like.
func BoundOf(op, limit string, words *BoundWords) *Bound {
	switch op {
	case "min":
		return words.Least(limit)
	case "max":
		return words.Most(limit)
	case "gt":
		return &Bound{-1, limit, true, words}
	case "lt":
		return &Bound{+1, limit, true, words}
	}
	return nil
}

// Quantity returns a number of what is counted, in words: "1 item", "3 items".
func (w *BoundWords) Quantity(n int) string {
	text := strconv.Itoa(n)
	return w.Count(text, text)
}
