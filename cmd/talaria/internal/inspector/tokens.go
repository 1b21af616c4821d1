package inspector

import (
	"bytes"
	"encoding/json"
)

// tokens estimates how many tokens a definition takes in the context of a model, as
// compact JSON. Tokenizers differ; most take one for a word of up to ten letters, and
// one for up to four signs between words. A digit counts twice, and so does a byte of
// a letter beyond ASCII. TestTokens says how far it is off.
func tokens(text []byte) int {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return len(text) / 4
	}
	n, word, signs := 0, 0, 0
	end := func() {
		n += (word+9)/10 + (signs+3)/4
		word, signs = 0, 0
	}
	for _, c := range b.Bytes() {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		wide := c >= '0' && c <= '9' || c >= 0x80
		if c == ' ' || (letter || wide) != (word > 0) {
			end()
		}
		switch {
		case letter:
			word++
		case wide:
			word += 2
		case c != ' ':
			signs++
		}
	}
	end()
	return n
}

// maxIndent is how long the indentation of a text may be in any case, in bytes. That of
// a longer one may be as long as eight of the text: nested deep enough, it would be as
// long as the square of it.
const maxIndent = 1 << 20

// indented is JSON with its members on lines of their own, or what is there.
func indented(text []byte) string {
	var b bytes.Buffer
	if indentation(text) > max(maxIndent, 8*len(text)) || json.Indent(&b, text, "", "  ") != nil {
		return string(text)
	}
	return b.String()
}

// indentation is how many bytes indented adds to a text, about.
func indentation(text []byte) (n int) {
	depth, quoted := 0, false
	for at := 0; at < len(text); at++ {
		switch c := text[at]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			at++
		case quoted:
		case c == '{' || c == '[':
			depth++
			n += 1 + 2*depth
		case c == '}' || c == ']':
			depth--
			n += 1 + 2*depth
		case c == ',':
			n += 1 + 2*depth
		}
	}
	return n
}
