// Package shellwords splits command lines as a shell does: at spaces, with quotes
// and backslashes.
package shellwords

import (
	"encoding/json"
	"errors"
	"strings"
)

// Word is one word of a line.
type Word struct {
	Text  string // without the quotes
	Start int    // where it begins in the line, in bytes
}

// ErrOpenQuote is the error of a line in which a quote is not closed.
var ErrOpenQuote = errors.New("a quote is not closed")

// Split returns the words of a line. Single quotes keep everything as it is;
// inside double quotes a backslash is before " and \. Outside of quotes a
// backslash makes a space, a quote or a backslash an ordinary character, and is
// one itself before anything else, so that C:\dir stays what it is. JSON after :=
// is taken as it stands.
func Split(line string) ([]Word, error) {
	list, open := scan(line)
	if open {
		return nil, ErrOpenQuote
	}
	return list, nil
}

// Partial returns the words of a line that is not finished, for completion: the
// last one is the word in progress, and empty after a space. An open quote
// counts as closed.
func Partial(line string) []Word {
	list, open := scan(line)
	if !open && (line == "" || blank(line[len(line)-1])) {
		if n := len(list); n == 0 || line == "" || !escapedEnd(line) {
			list = append(list, Word{Start: len(line)})
		}
	}
	return list
}

// Texts returns the texts of words.
func Texts(list []Word) []string {
	texts := make([]string, len(list))
	for i, w := range list {
		texts[i] = w.Text
	}
	return texts
}

// Quote returns text so that Split gives it back as one word.
func Quote(text string) string {
	if text != "" && !strings.ContainsAny(text, " \t\n\r'\"\\") && !strings.Contains(text, ":=") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// scan splits a line and tells whether it ends inside a quote.
func scan(line string) (list []Word, open bool) {
	var text strings.Builder
	var quote byte
	start := -1
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == 0 && blank(c):
			if start >= 0 {
				list = append(list, Word{text.String(), start})
				text.Reset()
				start = -1
			}
			continue
		case start < 0:
			start = i
		}
		if n := jsonAfter(line, i, text.String()); quote == 0 && n > 0 {
			text.WriteString(line[i : i+n])
			i += n - 1
			continue
		}
		switch {
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && i+1 < len(line) && escapes(quote, line[i+1]):
			i++
			text.WriteByte(line[i])
		default:
			text.WriteByte(c)
		}
	}
	if start >= 0 {
		list = append(list, Word{text.String(), start})
	}
	return list, quote != 0
}

// jsonAfter returns how long the JSON value is that follows := at i, 0 if there
// is none. Its quotes are its own, and its spaces divide nothing.
func jsonAfter(line string, i int, before string) int {
	if !strings.HasSuffix(before, ":=") || strings.IndexByte(`[{"`, line[i]) < 0 {
		return 0
	}
	d := json.NewDecoder(strings.NewReader(line[i:]))
	var value json.RawMessage
	if d.Decode(&value) != nil {
		return 0
	}
	return int(d.InputOffset())
}

// escapes reports whether a backslash takes the meaning of c.
func escapes(quote, c byte) bool {
	switch quote {
	case '\'':
		return false
	case '"':
		return c == '"' || c == '\\'
	}
	return blank(c) || c == '\'' || c == '"' || c == '\\'
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// escapedEnd reports whether the last character of line, a space, belongs to
// a word because of the backslash before it.
func escapedEnd(line string) bool {
	list, _ := scan(line)
	last := list[len(list)-1]
	return strings.HasSuffix(last.Text, line[len(line)-1:])
}
