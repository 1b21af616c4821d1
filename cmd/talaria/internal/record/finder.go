package record

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

// finder finds a word in texts, in upper or lower case. It makes no copy of a text: all
// that is kept is searched.
type finder struct {
	word  string // in lower case
	mask  []byte // the bits in which the cases of its letters differ
	begin []byte // the word with those bits set
}

func newFinder(word string) *finder {
	f := &finder{word: strings.ToLower(word)}
	for _, r := range f.word {
		form := utf8.AppendRune(nil, r)
		mask := make([]byte, len(form))
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			if utf8.RuneLen(other) == len(form) { // else the word would have another length
				for i, c := range utf8.AppendRune(nil, other) {
					mask[i] |= c ^ form[i]
				}
			}
		}
		for i, c := range form {
			f.begin = append(f.begin, c|mask[i])
		}
		f.mask = append(f.mask, mask...)
	}
	return f
}

// Each byte of a number is 1, or has its highest bit.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// in reports whether a text has the word. An empty word is in every text. It looks for
// the first two bytes at eight places at a time, which takes as long for common letters
// as for rare ones.
func (f *finder) in(text []byte) bool {
	switch {
	case len(f.word) == 0:
		return true
	case len(text) < len(f.word):
		return false
	}
	at, last := 0, len(text)-len(f.word)
	first, firstMask := ones*uint64(f.begin[0]), ones*uint64(f.mask[0])
	second, secondMask := uint64(0), uint64(0)
	if len(f.begin) > 1 {
		second, secondMask = ones*uint64(f.begin[1]), ones*uint64(f.mask[1])
	} else {
		second, secondMask = ones*0xff, ones*0xff // which is any
	}
	for ; at+9 <= len(text) && at <= last; at += 8 {
		odd := (binary.LittleEndian.Uint64(text[at:]) | firstMask) ^ first | (binary.LittleEndian.Uint64(text[at+1:]) | secondMask) ^ second
		for same := (odd - ones) &^ odd & highs; same != 0; same &= same - 1 { // the bytes that are 0, and some that are 1
			if n := at + bits.TrailingZeros64(same)/8; n <= last && f.begins(text[n:]) {
				return true
			}
		}
	}
	for ; at <= last; at++ {
		if f.begins(text[at:]) {
			return true
		}
	}
	return false
}

// begins reports whether a text begins with the word.
func (f *finder) begins(text []byte) bool {
	ascii := true
	for i, c := range f.begin {
		if text[i]|f.mask[i] != c {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || bytes.EqualFold(text[:len(f.word)], []byte(f.word))
}
