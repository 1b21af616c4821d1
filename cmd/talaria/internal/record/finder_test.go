package record

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestFinder(t *testing.T) {
	for _, test := range []struct {
		text, word string
		want       bool
	}{
		{"", "a", false}, {"a", "a", true}, {"A", "a", true}, {"b", "a", false}, {"xxAbC", "abc", true}, {"xxAb", "abc", false},
		{"aaab", "aab", true}, {"AaAb", "aab", true}, {"a-B", "a-b", true}, {"[", "{", false}, {"{", "[", false}, {"1", "1", true}, {"@", "`", false},
		{"ÄRGER", "ärger", true}, {"Ärger", "rger", true}, {"x", "é", false}, {"bAbAB", "abab", true},
		{"РЯД 1", "ряд", true}, {"ряд", "ряз", false}, {"pPpPpPpPpppQ", "q", true}, {"", "", true}, {"aaaaaaa\xffB", "b", true}, {"\xc3\x89", "é", true}, {"ȺȺ", "a", false},
	} {
		if got := newFinder(test.word).in([]byte(test.text)); got != test.want {
			t.Errorf("%q has %q: %v", test.text, test.word, got)
		}
	}
}

// TestFinderAnywhere: a word is found wherever it is, and nowhere else.
func TestFinderAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n int) string {
		const signs = "aAbB[{0 @"
		b := make([]byte, n)
		for i := range b {
			b[i] = signs[r.IntN(len(signs))]
		}
		return string(b)
	}
	found := 0
	for range 20_000 {
		text, word := random(r.IntN(40)), random(r.IntN(4))
		want := strings.Contains(strings.ToLower(text), strings.ToLower(word))
		if newFinder(word).in([]byte(text)) != want {
			t.Fatalf("%q has %q: %v", text, word, !want)
		}
		if want {
			found++
		}
	}
	if found < 1000 || found > 19_000 {
		t.Errorf("%d of them are found", found)
	}
}
