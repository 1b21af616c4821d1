package schema

import "fmt"

// bound is one end of what a rule allows, or both ends when it allows one
// value only. Rules of one field are told together, so their words are made
// from bounds and not from finished texts.
type bound struct {
	side  int    // -1 for the lower end, +1 for the upper end, 0 for both
	limit string // "3", "1m", "2026-01-31"
	open  bool   // the limit itself is outside
	words *boundWords
}

// boundWords are formats for bounds of one sort of value.
type boundWords struct {
	low, high    string // the limit is inside
	above, below string // the limit is outside
	exactly      string
	between      string
	one, many    string // what is counted; "" where the value itself is compared
}

var (
	numberWords   = &boundWords{"at least %s", "at most %s", "greater than %s", "less than %s", "%s", "between %s and %s", "", ""}
	durationWords = &boundWords{"at least %s", "at most %s", "longer than %s", "shorter than %s", "exactly %s", "between %s and %s", "", ""}
	timeWords     = &boundWords{"%s or later", "%s or earlier", "after %s", "before %s", "%s", "between %s and %s", "", ""}
	// The limit of these is always now.
	nowWords = &boundWords{"%s or later", "%s or earlier", "in the future", "in the past", "%s", "%s", "", ""}
)

// countWords are the words for a number of things.
func countWords(one, many string) *boundWords {
	return &boundWords{low: "at least %s", high: "at most %s", exactly: "exactly %s", between: "%s to %s", one: one, many: many}
}

func (b *bound) phrase() string {
	w := b.words
	format := w.exactly
	switch {
	case b.side < 0 && b.open:
		format = w.above
	case b.side < 0:
		format = w.low
	case b.side > 0 && b.open:
		format = w.below
	case b.side > 0:
		format = w.high
	}
	if w == nowWords && b.open {
		return format
	}
	return w.count(fmt.Sprintf(format, b.limit), b.limit)
}

// count puts the word for what is counted behind text; limit is the number
// that the word follows.
func (w *boundWords) count(text, limit string) string {
	switch {
	case w.many == "":
		return text
	case limit == "1":
		return text + " " + w.one
	}
	return text + " " + w.many
}

// phraseRange says what lies between two ends, either of which may be nil.
func phraseRange(low, high *bound) string {
	switch {
	case low == nil && high == nil:
		return ""
	case high == nil || low != nil && low.side == 0:
		return low.phrase()
	case low == nil || high.side == 0:
		return high.phrase()
	case low.open || high.open || low.words != high.words || low.words == nowWords:
		return low.phrase() + " and " + high.phrase()
	case low.limit == high.limit:
		return low.words.count(fmt.Sprintf(low.words.exactly, low.limit), low.limit)
	}
	return low.words.count(fmt.Sprintf(low.words.between, low.limit, high.limit), high.limit)
}

// boundOp makes the bound of an ordering rule; nil for eq, ne and the like.
func boundOp(op, limit string, words *boundWords) *bound {
	switch op {
	case "min":
		return &bound{-1, limit, false, words}
	case "max":
		return &bound{+1, limit, false, words}
	case "gt":
		return &bound{-1, limit, true, words}
	case "lt":
		return &bound{+1, limit, true, words}
	}
	return nil
}

// measured is a phrase about a value of some kind, ready to follow "must be".
func measured(kind valueKind, words *boundWords, phrase string) string {
	if words.many == "" {
		return phrase
	}
	switch kind {
	case kindText:
		return phrase + " long"
	case kindMap:
		return "an object with " + phrase
	case kindBytes:
		return "base64 text of " + phrase
	}
	return "an array of " + phrase
}
