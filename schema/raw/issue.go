package raw

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/schema/internal/wording"
)

// Issue is one fault of a document.
type Issue struct {
	// Path is a JSON Pointer (RFC 6901); "" is the whole document. Long names in
	// it are cut.
	Path string `json:"path"`
	// Rule is the JSON Schema keyword, or the validate tag of a rule that has none.
	// "syntax", "depth", "size", "duplicate" and "unknown" are about the document
	// as such.
	Rule string `json:"rule"`
	// Expected is what would be accepted: "an integer between 1 and 100".
	Expected string `json:"expected,omitempty"`
	// Got is what was there, cut to 80 characters; "" for secrets.
	Got string `json:"got,omitempty"`
	// Message is a sentence for people and models, without the path.
	Message string `json:"message"`
	// Hint is what to write instead, where that can be guessed.
	Hint string `json:"hint,omitempty"`
}

// shownIssues is how many issues a text spells out.
const shownIssues = 20

// Error lists everything that is wrong with a document. Its issues are in the
// order of the document; within an object, missing members come last.
type Error struct {
	Issues []Issue
	// More says that the document has further issues, which are not kept.
	More bool
}

// Error returns the issues on one line. Beyond 20 only their number is given.
func (e *Error) Error() string {
	var b strings.Builder
	for i, is := range e.Issues {
		if i == shownIssues {
			b.WriteString("; …and " + e.count(len(e.Issues)-i) + " more")
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(is.line())
	}
	return b.String()
}

// Text returns the issues one to a line, in the form that a model should read.
// Beyond 20 only their number is given. subject is what the document was for,
// such as `tool "search"`; the first line is then
//
//	Invalid arguments for tool "search" (3 problems). Fix them and call the tool again.
//
// For a subject that is not a tool it ends in "try again".
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
		b.WriteString(e.count(len(e.Issues)) + " problems). ")
	}
	b.WriteString(fix + " and " + again)
	for i, is := range e.Issues {
		if i == shownIssues {
			b.WriteString("\n…and " + e.count(len(e.Issues)-i) + " more")
			break
		}
		b.WriteString("\n- " + is.line())
	}
	return b.String()
}

// count returns a number of issues in words that stay true if not all issues
// were kept.
func (e *Error) count(n int) string {
	if e.More {
		return "at least " + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

// line returns the issue as Error and Text write it: path, message and hint.
// Characters in the path that could disturb a terminal are made visible.
func (is *Issue) line() string {
	path := cmp.Or(wording.Visible(is.Path), "(root)")
	text := path + ": " + is.Message
	if is.Hint != "" {
		text += "; " + is.Hint
	}
	return text
}
