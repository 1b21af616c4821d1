package toolsearch

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// A word is one word of a text, folded. Words of one run of Chinese, Japanese or Korean letters
// overlap: each has two letters of it.
type word struct {
	text string // as it is written, folded
	stem string // without the endings that inflection adds
	run  int    // number of the run that a bigram belongs to; 0 for other words
}

// maxWords is the most words of a text that are read.
const maxWords = 400

// wordsOf returns the words of a text in the order of the text: it is normalized (NFKC), and
// split where the case, or the script of Chinese, Japanese and Korean letters, changes.
func wordsOf(text string) (words []word) {
	text = norm.NFKC.String(text)
	fold := cases.Fold()
	runs := 0
	add := func(part string, kind script) {
		switch {
		case part == "", kind == none:
		case kind == letters:
			folded := fold.String(part)
			words = append(words, word{text: folded, stem: stemOf(folded)})
		default:
			runs++
			for _, pair := range bigrams(part) {
				words = append(words, word{text: pair, stem: pair, run: runs})
			}
		}
	}
	start, kind := 0, none // of the word in progress
	var before, last rune  // the letters before
	lastAt := 0
	for at, r := range text {
		next := scriptOf(r)
		switch {
		case next == mark && kind != none:
			continue // an accent belongs to the letter before it
		case next == mark:
			next = none
		}
		inside := next == letters && kind == letters
		switch {
		case inside && unicode.IsUpper(before) && unicode.IsUpper(last) && unicode.IsLower(r): // HTTPServer
			add(text[start:lastAt], kind)
			start = lastAt
		case next != kind, inside && unicode.IsLower(last) && unicode.IsUpper(r): // listServers
			add(text[start:at], kind)
			start = at
		}
		if len(words) >= maxWords {
			return words
		}
		kind, before, last, lastAt = next, last, r, at
	}
	add(text[start:], kind)
	return words
}

// script is what a rune is for splitting.
type script int

const (
	none script = iota
	letters
	mark
	han
	hiragana
	katakana
	hangul
)

// scriptOf returns the script of a rune.
func scriptOf(r rune) script {
	switch {
	case r < utf8.RuneSelf:
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return letters
		}
		return none
	case r == 'ー':
		return katakana
	case unicode.Is(unicode.Han, r):
		return han
	case unicode.Is(unicode.Hiragana, r):
		return hiragana
	case unicode.Is(unicode.Katakana, r):
		return katakana
	case unicode.Is(unicode.Hangul, r):
		return hangul
	case unicode.IsMark(r):
		return mark
	case unicode.IsLetter(r), unicode.IsNumber(r):
		return letters
	}
	return none
}

// bigrams returns each two letters of a run that follow each other; of one letter, that.
func bigrams(run string) (pairs []string) {
	starts := make([]int, 0, len(run)/3+1)
	for at := range run {
		starts = append(starts, at)
	}
	if len(starts) == 1 {
		return []string{run}
	}
	for i := 0; i+1 < len(starts) && i < maxWords; i++ {
		end := len(run)
		if i+2 < len(starts) {
			end = starts[i+2]
		}
		pairs = append(pairs, run[starts[i]:end])
	}
	return pairs
}

// stemOf removes the endings of English plurals, participles and gerunds, and a final e or y.
// Other languages have too many endings for a short table: near finds those words by their
// beginning.
func stemOf(w string) string {
	for i := range len(w) {
		if w[i] < 'a' || w[i] > 'z' {
			return w
		}
	}
	switch {
	case len(w) < 3:
		return w
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case hasSuffix(w, "sses", "shes", "ches", "xes", "zes"):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "s") && !hasSuffix(w, "ss", "us", "is"):
		w = w[:len(w)-1]
	}
	switch {
	case strings.HasSuffix(w, "ied") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "ed") && hasVowel(w[:len(w)-2]):
		w = undoubled(w[:len(w)-2])
	case strings.HasSuffix(w, "ing") && hasVowel(w[:len(w)-3]):
		w = undoubled(w[:len(w)-3])
	}
	if n := len(w); n > 3 && w[n-1] == 'e' {
		w = w[:n-1]
	} else if n > 2 && w[n-1] == 'y' && !vowel(w[n-2]) {
		w = w[:n-1] + "i"
	}
	return w
}

// hasSuffix reports whether w has one of the endings.
func hasSuffix(w string, endings ...string) bool {
	for _, ending := range endings {
		if strings.HasSuffix(w, ending) {
			return true
		}
	}
	return false
}

// vowel reports whether a letter is a vowel.
func vowel(c byte) bool { return strings.IndexByte("aeiou", c) >= 0 }

// hasVowel reports whether w can be a word of its own: "runn" is, "th" of "thing" is not.
func hasVowel(w string) bool { return len(w) > 2 && strings.ContainsAny(w, "aeiouy") }

// undoubled returns run for runn.
func undoubled(w string) string {
	if n := len(w); n > 3 && w[n-1] == w[n-2] && !vowel(w[n-1]) && w[n-1] != 'l' && w[n-1] != 's' && w[n-1] != 'z' {
		return w[:n-1]
	}
	return w
}

// minPrefix is how many letters words that resemble each other begin with, at least.
const minPrefix = 4

// near reports whether two stems are of one word, as notifi and notific are, or one begins
// with the other, as repo and repositori do. Scripts other than Latin need less, as their
// languages inflect more.
func near(a, b string) bool {
	common, rest := 0, b
	for _, r := range a {
		other, size := utf8.DecodeRuneInString(rest)
		if other != r {
			break
		}
		rest = rest[size:]
		common++
	}
	m, n := utf8.RuneCountInString(a), utf8.RuneCountInString(b)
	first, _ := utf8.DecodeRuneInString(a)
	switch long := max(m, n); {
	case common < minPrefix:
		return false
	case common == min(m, n):
		return true
	case !unicode.Is(unicode.Latin, first):
		return 2*common >= long
	default:
		return common > minPrefix && 10*common >= 7*long
	}
}

// isHiragana reports whether a text begins with Hiragana.
func isHiragana(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return scriptOf(r) == hiragana
}

// cut returns the beginning of a text, most bytes at most, without half a letter.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// isNumber reports whether a word has only digits.
func isNumber(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !unicode.IsNumber(r) }) < 0
}
