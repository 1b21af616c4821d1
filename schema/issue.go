package schema

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Issue is one fault of a document.
type Issue struct {
	Path     string `json:"path"`               // JSON Pointer (RFC 6901); "" is the whole document
	Rule     string `json:"rule"`               // JSON Schema keyword, or the validate tag of a rule that has none
	Expected string `json:"expected,omitempty"` // what would be accepted: "an integer between 1 and 100"
	Got      string `json:"got,omitempty"`      // what was there, cut to 80 characters; "" for secrets
	Message  string `json:"message"`            // a sentence for people and models, without the path
	Hint     string `json:"hint,omitempty"`     // what to write instead, where that can be guessed
}

// The rules that are no JSON Schema keyword.
const (
	ruleSyntax    = "syntax"
	ruleDepth     = "depth"
	ruleSize      = "size"
	ruleDuplicate = "duplicate"
	ruleUnknown   = "unknown"
	ruleRange     = "range"
	ruleUnion     = "union"
	ruleExcluded  = "excluded"
	ruleCross     = "crossField"
	ruleCustom    = "custom"
)

const (
	// maxIssues bounds what one document can make the decoder keep.
	maxIssues = 1000
	// shownIssues is how many of them Text spells out.
	shownIssues = 20
	// gotRunes is how much of a bad value is quoted.
	gotRunes = 80
)

// Error says everything that is wrong with a document. Its issues stand in
// the order of the document; within an object, missing members come last.
type Error struct {
	Issues []Issue
}

// Error returns all issues on one line.
func (e *Error) Error() string {
	var b strings.Builder
	for i, is := range e.Issues {
		if i == shownIssues {
			b.WriteString("; …and " + strconv.Itoa(len(e.Issues)-i) + " more")
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(is.line())
	}
	return b.String()
}

// Text returns the issues one a line, as a model should read them. The subject
// is what the document was for, such as `tool "search"`; the first line is then
//
//	Invalid arguments for tool "search" (3 problems). Fix them and call the tool again.
//
// For a subject that is no tool it ends in "try again".
func (e *Error) Text(subject string) string {
	var b strings.Builder
	b.WriteString("Invalid arguments for " + subject + " (")
	again, fix := "try again.", "Fix them"
	if strings.HasPrefix(subject, "tool") {
		again = "call the tool again."
	}
	if len(e.Issues) == 1 {
		fix = "Fix it"
		b.WriteString("1 problem). ")
	} else {
		b.WriteString(strconv.Itoa(len(e.Issues)) + " problems). ")
	}
	b.WriteString(fix + " and " + again)
	for i, is := range e.Issues {
		if i == shownIssues {
			b.WriteString("\n…and " + strconv.Itoa(len(e.Issues)-i) + " more")
			break
		}
		b.WriteString("\n- " + is.line())
	}
	return b.String()
}

func (is *Issue) line() string {
	path := is.Path
	if path == "" {
		path = "(root)"
	}
	text := path + ": " + is.Message
	if is.Hint != "" {
		text += "; " + is.Hint
	}
	return text
}

// cut shortens text to what an issue may quote.
func cut(s string) string {
	if len(s) <= gotRunes {
		return s
	}
	n := 0
	for i := range s {
		if n++; n > gotRunes {
			return s[:i] + "…"
		}
	}
	return s
}

// quoted returns s as a JSON string, cut.
func quoted(s string) string {
	if utf8.RuneCountInString(s) > gotRunes {
		s = cut(s)
	}
	return string(jsonx.AppendString(nil, s))
}

// gotValue describes raw JSON text in an issue. With a kind, it says what
// kind of value it is too.
func gotValue(raw []byte, withKind bool) string {
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
	text := cut(string(raw))
	if kind == jsonx.String && len(text) < len(raw) {
		text += `"`
	}
	if !withKind {
		return text
	}
	name := kind.String()
	if kind == jsonx.Number && !strings.ContainsAny(text, ".eE") {
		name = "integer"
	}
	return text + " (" + name + ")"
}

// step is one level of a path: a member, or an element where name is "".
type step struct {
	name  string
	index int // -1 for a member
}

// pointer writes steps as a JSON Pointer.
func pointer(steps []step) string {
	var b []byte
	for _, s := range steps {
		b = append(b, '/')
		if s.index >= 0 {
			b = strconv.AppendInt(b, int64(s.index), 10)
			continue
		}
		for i := 0; i < len(s.name); i++ {
			switch c := s.name[i]; c {
			case '~':
				b = append(b, "~0"...)
			case '/':
				b = append(b, "~1"...)
			default:
				b = append(b, c)
			}
		}
	}
	return string(b)
}

// nearest returns the name closest to got: one that differs in case only, or
// by at most two edits and less than half of its length.
func nearest(got string, names []string) string {
	best, bestAt := "", 3
	for _, name := range names {
		if strings.EqualFold(name, got) {
			return name
		}
		if len(got)-len(name) > 2 || len(name)-len(got) > 2 {
			continue
		}
		if d := editDistance(got, name); d < bestAt && 2*d < len(name) {
			best, bestAt = name, d
		}
	}
	return best
}
