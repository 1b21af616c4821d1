package wording

import (
	"fmt"
	"strconv"
)

// Bound is one end of what a rule allows, or both ends when it allows one
// value only. Rules of one field are told together, so their words are made
// from bounds and not from finished texts.
type Bound struct {
	Side  int    // -1 for the lower end, +1 for the upper end, 0 for both
	Limit string // "3", "1m", "2026-01-31"
	Open  bool   // the limit itself is outside
	Words *BoundWords
}

// BoundWords are formats for bounds of one sort of value.
type BoundWords struct {
	low, high    string // the limit is inside
	above, below string // the limit is outside
	Exactly      string
	between      string
	one, Many    string // what is counted; "" where the value itself is compared
}

var (
	NumberWords   = &BoundWords{"at least %s", "at most %s", "greater than %s", "less than %s", "%s", "between %s and %s", "", ""}
	DurationWords = &BoundWords{"at least %s", "at most %s", "longer than %s", "shorter than %s", "exactly %s", "between %s and %s", "", ""}
	TimeWords     = &BoundWords{"%s or later", "%s or earlier", "after %s", "before %s", "%s", "between %s and %s", "", ""}
	// The limit of these is always now.
	NowWords = &BoundWords{"%s or later", "%s or earlier", "in the future", "in the past", "%s", "%s", "", ""}
)

// The words for what lengths count.
var (
	CharacterWords = countWords("character", "characters")
	ItemWords      = countWords("item", "items")
	MemberWords    = countWords("member", "members")
	ByteWords      = countWords("byte", "bytes")
)

// countWords are the words for a number of things.
func countWords(one, many string) *BoundWords {
	return &BoundWords{low: "at least %s", high: "at most %s", Exactly: "exactly %s", between: "%s to %s", one: one, Many: many}
}

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

// Count puts the word for what is counted behind text; limit is the number
// that the word follows.
func (w *BoundWords) Count(text, limit string) string {
	switch {
	case w.Many == "":
		return text
	case limit == "1":
		return text + " " + w.one
	}
	return text + " " + w.Many
}

// PhraseRange says what lies between two ends, either of which may be nil.
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

// Least makes the lower end of a range.
func (w *BoundWords) Least(limit string) *Bound { return &Bound{-1, limit, false, w} }

// Most makes the upper end of a range.
func (w *BoundWords) Most(limit string) *Bound { return &Bound{+1, limit, false, w} }

// BoundOf makes the bound of an ordering rule; nil for eq, ne and the like.
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

// Quantity is a number of what is counted, in words.
func (w *BoundWords) Quantity(n int) string {
	text := strconv.Itoa(n)
	return w.Count(text, text)
}
