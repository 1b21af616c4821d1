// Package wording makes the texts of issues: what a value must be, what was
// there, and where. Packages schema, raw and rules share it, so that the same
// fault reads the same wherever it is found.
//
// Texts are for people and for models, which correct their next call by them.
// They are in plain English, lower case, without a full stop, and short: a
// quoted value is cut to 80 characters. Text of a peer is quoted by
// [Visible], which shows characters that cannot be seen or that look like
// others, because a model cannot correct characters that look alike.
//
// A limit is not made as text at once but as a [Bound], because the limits of
// one field are stated together: "between 1 and 100".
package wording

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// GotRunes is the number of characters of a bad value that an issue quotes.
const GotRunes = 80

// Cut shortens text to GotRunes characters, ending in "…" if something was
// removed.
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

// Quote returns s as a JSON string, cut and made visible.
func Quote(s string) string {
	return Visible(string(jsonx.AppendString(nil, Cut(s))))
}

// Got describes raw JSON text as an issue does. Arrays and objects are only
// named. With withKind it adds what kind of value it is.
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

// maxName is the number of bytes that a path has of a member name at most. A
// longer name is never a declared one, and without a limit each of a thousand
// paths could be as long as the document.
const maxName = 200

// ShortName returns a member name as a path has it.
func ShortName(name string) string {
	if len(name) <= maxName {
		return name
	}
	return Cut(name)
}

// Nearest returns the name most similar to got: one that differs in case only,
// or by at most two edits and less than half of its length. It returns "" if
// there is none.
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

// UnknownHint returns what to write instead of a member of the object at parent that is
// unknown: the most similar one of those that are allowed, and all of them, because models
// correct a name that they can see. more says that others are allowed, too.
func UnknownHint(parent []Step, name string, allowed []string, more bool) string {
	var parts []string
	if odd := OddHint(Visible(ShortName(name))); odd != "" {
		parts = append(parts, odd)
	}
	list := strings.Join(allowed, ", ")
	near := Nearest(name, allowed)
	switch {
	case near != "" && more:
		parts = append(parts, "did you mean "+Pointer(append(slices.Clone(parent), Member(near)))+"?")
	case near != "":
		parts = append(parts, "did you mean "+Pointer(append(slices.Clone(parent), Member(near)))+"? Allowed: "+list)
	case more:
	case len(allowed) == 0:
		parts = append(parts, "the object has no properties")
	default:
		parts = append(parts, "allowed: "+list)
	}
	return strings.Join(parts, "; ")
}

// EditDistance returns the number of bytes to insert, remove or replace to turn
// a into b (the Levenshtein distance).
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

// MustBe returns the message of most issues. got may be "". The words of a
// custom rule may begin with "must" already.
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

// OneOf returns a phrase that lists values as JSON: `one of "a", "b"`, or the
// value itself if there is one.
func OneOf(values []any) string {
	if len(values) == 1 {
		return string(AppendJSON(nil, values[0]))
	}
	return "one of " + List(values)
}

// List returns values as JSON, separated by commas.
func List(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(AppendJSON(nil, v))
	}
	return strings.Join(words, ", ")
}

// AppendJSON appends a plain value as JSON, without escapes for HTML. A value
// that has no JSON form becomes null.
func AppendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return jsonx.AppendString(dst, v)
	case json.RawMessage:
		return append(dst, v...)
	case bool:
		return strconv.AppendBool(dst, v)
	case *uint64:
		if v != nil {
			return strconv.AppendUint(dst, *v, 10)
		}
	case []string:
		return appendList(dst, v)
	case []any:
		return appendList(dst, v)
	case json.Number:
		n, _ := strconv.ParseInt(string(v), 10, 64)
		if with := strconv.AppendInt(dst, n, 10); string(with[len(dst):]) == string(v) {
			return with
		}
	}
	text, err := jsonx.Plain(v)
	if err != nil {
		return append(dst, "null"...)
	}
	return append(dst, text...)
}

// appendList appends a list as JSON.
func appendList[T any](dst []byte, list []T) []byte {
	if list == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendJSON(dst, v)
	}
	return append(dst, ']')
}

// TypeNouns are the types of JSON Schema with an article. null has none.
var TypeNouns = map[string]string{"string": "a string", "integer": "an integer", "number": "a number",
	"boolean": "true or false", "array": "an array", "object": "an object"}
