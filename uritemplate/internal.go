package uritemplate

import (
	"strings"

	"github.com/talaria-go/mcp/internal/facts"
)

// Internal returns what servers of this module ask of a template, and users do
// not. Others cannot call it.
func (t *Template) Internal(facts.Private) internals { return internals{t} }

// internals has the functions that Internal gives.
type internals struct{ *Template }

// Literals returns how many characters of the template stand for themselves:
// of two templates that match a URI, the one with more is closer to it.
func (t internals) Literals() int { return t.literals }

// Rooted reports whether a value of a variable can begin with a slash that
// belongs to the form of the URI, as with {+path} in file://{+path} but not in
// file:///{+path}.
func (t internals) Rooted(name string) bool {
	for i, p := range t.parts {
		for _, v := range p.vars {
			if v.name == name {
				return p.op.char == '+' && (i == 0 || !strings.HasSuffix(t.parts[i-1].literal, "/"))
			}
		}
	}
	return false
}
