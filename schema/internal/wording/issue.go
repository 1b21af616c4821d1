package wording

import (
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Issue has the same fields as raw.Issue, which is made from it by conversion:
// this package lies below raw and cannot import it.
type Issue struct {
	Path, Rule, Expected, Got, Message, Hint string
}

// HiddenName replaces a member name that comes from the document, inside a
// value that must not be shown.
const HiddenName = "…"

// Syntax returns the issue for an error of the scanner: text that is not JSON,
// is nested too deeply, or has a member twice. With hide, names that come from
// the document are left out.
func Syntax(err error, path []Step, hide bool) Issue {
	if deep, ok := errors.AsType[*jsonx.DepthError](err); ok {
		return Issue{Path: Pointer(path), Rule: RuleDepth, Expected: fmt.Sprintf("at most %d levels of nesting", deep.Max),
			Message: fmt.Sprintf("is nested deeper than %d levels", deep.Max)}
	}
	if twice, ok := errors.AsType[*jsonx.DuplicateError](err); ok {
		if hide {
			twice = &jsonx.DuplicateError{Name: HiddenName}
		}
		at := append(path[:len(path):len(path)], Member(twice.Name))
		return Issue{Path: Pointer(at), Rule: RuleDuplicate, Expected: "each member once", Message: "is there twice"}
	}
	return Issue{Rule: RuleSyntax, Expected: "valid JSON", Message: "is not valid JSON: " + err.Error()}
}

// The values of Issue.Rule that are not keywords of JSON Schema.
const (
	RuleSyntax    = "syntax"
	RuleDepth     = "depth"
	RuleSize      = "size"
	RuleDuplicate = "duplicate"
	RuleUnknown   = "unknown"
	RuleRange     = "range"
	RuleUnion     = "union"
	RuleExcluded  = "excluded"
	RuleCross     = "crossField"
	RuleCustom    = "custom"
)
