package schema

import (
	"slices"

	jsonschemav6 "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/message"
)

// flattenMeant makes issues of the alternative that a value was meant for, if
// that is plain: the only one that neither the value's type nor a constant in it
// rules out. Where constants rule out all of them, it says which there are, and
// where none is ruled out, what all of them miss.
func flattenMeant(e *jsonschemav6.ValidationError, p *message.Printer, issues *[]Issue) bool {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
	case *kind.OneOf:
		if len(k.Subschemas) > 0 { // several fit
			return false
		}
	default:
		return false
	}
	var left, tags []*jsonschemav6.ValidationError
	for _, branch := range e.Causes {
		switch tag, wrongType := ruledOut(branch, len(e.InstanceLocation)); {
		case tag != nil:
			tags = append(tags, tag)
		case !wrongType:
			left = append(left, branch)
		}
	}
	switch {
	case len(left) == 1 && len(e.Causes) > 1:
		flatten(left[0], p, issues)
		return true
	case len(left) > 1 && len(left) == len(e.Causes):
		return flattenMissing(left, e.InstanceLocation, issues)
	case len(left) > 0 || len(tags) < 2:
		return false
	}
	return flattenTags(tags, issues)
}

// flattenMissing makes issues of the members that every alternative misses in
// the object itself.
func flattenMissing(branches []*jsonschemav6.ValidationError, at []string, issues *[]Issue) bool {
	var common []string
	for i, branch := range branches {
		names := missing(branch, len(at))
		if i == 0 {
			common = slices.Clone(names)
		}
		common = slices.DeleteFunc(common, func(name string) bool { return !slices.Contains(names, name) })
	}
	for _, name := range common {
		*issues = append(*issues, Issue{Path: pointer(append(steps(at), step{name, -1})), Rule: "required", Message: "is required"})
	}
	return len(common) > 0
}

// missing returns what an alternative misses in the object depth steps below the
// document.
func missing(e *jsonschemav6.ValidationError, depth int) []string {
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		if len(e.InstanceLocation) == depth {
			return k.Missing
		}
		return nil
	case *kind.AnyOf, *kind.OneOf, *kind.Not:
		return nil
	}
	var names []string
	for _, cause := range e.Causes {
		names = append(names, missing(cause, depth)...)
	}
	return names
}

// steps returns a location as a path.
func steps(at []string) []step {
	path := make([]step, len(at), len(at)+1)
	for i, name := range at {
		path[i] = step{name, -1}
	}
	return path
}

// ruledOut looks at why an alternative refuses a value that is depth steps
// below the document: for a constant of it or of a member, or for its type.
func ruledOut(e *jsonschemav6.ValidationError, depth int) (tag *jsonschemav6.ValidationError, wrongType bool) {
	at := len(e.InstanceLocation)
	switch e.ErrorKind.(type) {
	case *kind.Const:
		if at <= depth+1 {
			return e, false
		}
	case *kind.Type:
		return nil, at == depth
	case *kind.AnyOf, *kind.OneOf, *kind.Not:
		return nil, false // what is within them decides nothing here
	}
	for _, cause := range e.Causes {
		below, wrong := ruledOut(cause, depth)
		if below != nil {
			return below, false
		}
		wrongType = wrongType || wrong
	}
	return nil, wrongType
}

// flattenTags makes one issue of the constants that a value is none of, if they
// are all of the same member.
func flattenTags(tags []*jsonschemav6.ValidationError, issues *[]Issue) bool {
	at := tags[0].InstanceLocation
	var want []any
	for _, tag := range tags {
		if !slices.Equal(tag.InstanceLocation, at) {
			return false
		}
		want = append(want, tag.ErrorKind.(*kind.Const).Want)
	}
	expected, got := oneOf(want), rawValue(tags[0].ErrorKind.(*kind.Const).Got)
	*issues = append(*issues, Issue{Path: pointer(steps(at)), Rule: "const", Expected: expected, Got: got, Message: mustBe(expected, got)})
	return true
}
