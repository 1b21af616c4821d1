package inspector

import (
	"bytes"
	"encoding/json"
)

// tokens estimates how many tokens a definition takes in the context of a model.
// Tokenizers differ; of JSON with English words most take one for about four
// bytes, and one for each sign between words.
func tokens(text []byte) int {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return len(text) / 4
	}
	n, word := 0, 0
	end := func() {
		n += (word + 5) / 6
		word = 0
	}
	for _, c := range b.Bytes() {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= 0x80:
			word++
		case c >= '0' && c <= '9':
			word += 2
		case c == ' ' || c == '"':
			end()
		default:
			end()
			n++
		}
	}
	end()
	return n
}

// indented is JSON with its members on lines of their own, or what is there.
func indented(text []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return string(text)
	}
	return b.String()
}
