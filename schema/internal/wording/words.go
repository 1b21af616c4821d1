// Package wording has the words of issues: what a value must be, what was there, and
// where. It quotes what a peer sent in a form that shows every character.
package wording

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// GotRunes is how much of a bad value is Quote.
const GotRunes = 80

// Cut shortens text to what an issue may quote.
func Cut(s string) string {
	if len(s) <= GotRunes {
		return s
	}
	n := 0
	for i := range s {
		if n++; n > GotRunes {
			return s[:i] + "…"
		}
	}
	return s
}

// Quote returns s as a JSON string, cut.
func Quote(s string) string {
	return Visible(string(jsonx.AppendString(nil, Cut(s))))
}

// Got describes raw JSON text in an issue. With a kind, it says what
// kind of value it is too.
func Got(raw []byte, withKind bool) string {
	kind := jsonx.Invalid
	if len(raw) > 0 {
		kind = jsonx.KindOf(raw[0])
	}
	switch kind {
	case jsonx.Null:
		return "null"
	case jsonx.Array:
		return "an array"
	case jsonx.Object:
		return "an object"
	}
	text := Cut(string(raw))
	if kind == jsonx.String && len(text) < len(raw) {
		text += `"`
	}
	text = Visible(text)
	if !withKind {
		return text
	}
	name := kind.String()
	if kind == jsonx.Number && !strings.ContainsAny(text, ".eE") {
		name = "integer"
	}
	return text + " (" + name + ")"
}

// maxName is how many bytes of a member name a path has at most. A longer name
// is cut: it is none that anybody has declared, and one path could otherwise be
// as long as the document, a thousand times.
const maxName = 200

func ShortName(name string) string {
	if len(name) <= maxName {
		return name
	}
	return Cut(name)
}

// Nearest returns the name closest to got: one that differs in case only, or
// by at most two edits and less than half of its length.
func Nearest(got string, names []string) string {
	best, bestAt := "", 3
	for _, name := range names {
		if strings.EqualFold(name, got) {
			return name
		}
		if len(got)-len(name) > 2 || len(name)-len(got) > 2 {
			continue
		}
		if d := EditDistance(got, name); d < bestAt && 2*d < len(name) {
			best, bestAt = name, d
		}
	}
	return best
}

// EditDistance is the number of bytes to insert, remove or replace to make b
// of a.
func EditDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// MustBe is the sentence of most issues. Words of a custom rule may start with
// "must" themselves.
func MustBe(expected, got string) string {
	text := expected
	if !strings.HasPrefix(text, "must ") {
		text = "must be " + text
	}
	if got == "" {
		return text
	}
	return text + "; got " + got
}

// OneOf lists values as JSON: `one of "a", "b"`.
func OneOf(values []any) string {
	if len(values) == 1 {
		return string(AppendJSON(nil, values[0]))
	}
	return "one of " + List(values)
}

func List(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(AppendJSON(nil, v))
	}
	return strings.Join(words, ", ")
}

// AppendJSON appends a plain value. What cannot be JSON becomes null.
func AppendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return jsonx.AppendString(dst, v)
	case json.RawMessage:
		return append(dst, v...)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return append(dst, "null"...)
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// TypeNouns are the nouns for the types of JSON Schema.
var TypeNouns = map[string]string{"string": "a string", "integer": "an integer", "number": "a number",
	"boolean": "true or false", "array": "an array", "object": "an object"}
