package wording

import (
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Issue has the fields of raw.Issue, which is made of it by conversion.
type Issue struct {
	Path, Rule, Expected, Got, Message, Hint string
}

// HiddenName stands for a member name that the document made up, inside a value
// that must not be shown.
const HiddenName = "…"

// Syntax says why text that is read at a path is not JSON, or past a limit.
// Names that the document made up are left out where they must not be shown.
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

// The rules that are no JSON Schema keyword.
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
