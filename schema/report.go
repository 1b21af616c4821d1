package schema

import (
	"slices"
	"strings"

	"github.com/talaria-go/mcp/schema/internal/lexical"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// report collects the issues of one document, each at the path that the walk
// has reached. Below a secret it leaves out values, and names that come from
// the document: both may be what must not be shown.
type report struct {
	// path leads from the root to the current value. issues has at most
	// maxIssues elements.
	path    []wording.Step
	issues  []Issue
	more    bool      // issues were dropped: there are maxIssues already
	secret  bool      // inside a value that must not be shown
	coerced *[]string // where to record what was coerced; nil for nowhere
}

// add records an issue of the value that n describes, with the text of the
// field's mcp tag if it has one for the rule; n is nil for issues that no
// field's text is about. Past maxIssues it only notes that there are more.
func (r *report) add(n *node, is Issue) {
	if len(r.issues) >= maxIssues {
		r.more = true
		return
	}
	if is.Hint == "" {
		is.Hint = wording.OddHint(is.Got)
	}
	if n != nil {
		for _, m := range n.message {
			if m.rule == "" || m.rule == is.Rule {
				is.Message = strings.NewReplacer("{expected}", is.Expected, "{got}", is.Got).Replace(m.text)
			}
		}
	}
	r.issues = append(r.issues, is)
}

// fail records that a value breaks a check. Got is how it looked, and why what
// is wrong with it, if the check's words do not say so.
func (r *report) fail(n *node, c *rules.Check, got, why string) {
	r.failAt(n, c, got, why, wording.Pointer(r.path))
}

// failAt is fail for a value at another path, which rules that waited have
// kept. Words of the mcp tag for the rule's name come before words for the
// keyword: msg.min is about min, whatever the keyword for it is.
func (r *report) failAt(n *node, c *rules.Check, got, why, path string) {
	if r.hides(n) {
		got, why = "", ""
	}
	is := Issue{Path: path, Rule: c.Code, Expected: n.wanted(c), Got: got}
	is.Message = wording.MustBe(because(is.Expected, why), got)
	name, _, _ := strings.Cut(c.Tag, "=")
	for _, m := range n.message {
		if m.rule != "" && m.rule == name {
			is.Message = strings.NewReplacer("{expected}", is.Expected, "{got}", got).Replace(m.text)
			r.add(nil, is)
			return
		}
	}
	r.add(n, is)
}

// because appends what is wrong to what is expected. A wrong form needs no
// words, since what is expected shows the right one.
func because(expected, why string) string {
	if why == "" || why == lexical.WrongForm {
		return expected
	}
	return expected + "; " + why
}

// wrongType records that raw is not of the node's type.
func (r *report) wrongType(n *node, raw []byte) {
	r.misfit(n, "type", n.describe(), wording.Got(raw, !n.isKey), "")
}

// misfit records a value that cannot be stored at all. why says what is wrong
// with it, or is "".
func (r *report) misfit(n *node, rule, expected, got, why string) {
	if r.hides(n) {
		got, why = "", ""
	}
	r.add(n, Issue{Path: wording.Pointer(r.path), Rule: rule, Expected: expected, Got: got, Message: wording.MustBe(because(expected, why), got)})
}

// coerce records that the value at the path was not taken as it came, if the
// caller asked for that.
func (r *report) coerce() {
	if r.coerced != nil {
		*r.coerced = append(*r.coerced, wording.Pointer(r.path))
	}
}

// duplicate records that the member at the path occurs twice. JSON parsers
// differ in which of the two they use, so neither may be used.
func (r *report) duplicate() {
	r.add(nil, Issue{Path: wording.Pointer(r.path), Rule: wording.RuleDuplicate, Expected: "each member once", Message: "is there twice", Hint: "keep one of them"})
}

// missing records that the member at the path is absent. when says in which
// case it must be there, or is "" if always.
func (r *report) missing(n *node, when string) {
	brief := n.brief()
	text := "is required"
	if when != "" {
		text += " " + when
	}
	r.add(n, Issue{Path: wording.Pointer(r.path), Rule: "required", Expected: n.describe(), Message: text + " (" + brief + ")"})
}

// empty records a member that is there and yet has no value: null, or the empty
// string.
func (r *report) empty(n *node, mark byte, when string) {
	got := `""`
	if mark == markNull {
		got = "null"
	}
	r.add(n, Issue{Path: wording.Pointer(r.path), Rule: "required", Expected: n.describe(), Got: got,
		Message: "must have a value " + when + "; got " + got})
}

// pushName is push for a name that comes from the document, such as the key of
// a map. Inside a secret such a name may be secret itself, so the path gets a
// placeholder.
func (r *report) pushName(name string) {
	if r.secret {
		name = wording.HiddenName
	}
	r.push(name)
}

// push appends a member that the type declares to the path.
func (r *report) push(name string) { r.path = append(r.path, wording.Member(name)) }

// pushIndex appends an item to the path.
func (r *report) pushIndex(i int) { r.path = append(r.path, wording.Item(i)) }

// pop undoes the last push. It is not called when the walk ends early; the path
// is reset with the decoder.
func (r *report) pop() { r.path = r.path[:len(r.path)-1] }

// hides reports whether values of n must not be shown, because of n itself or
// of a value around it.
func (r *report) hides(n *node) bool { return r.secret || n.secret }

// unknown records a member that the object does not have. The hint names the
// most similar member and lists all of them, because models correct a name that
// they can see. Inside a secret nothing is reported about the name, not even
// what it resembles.
func (r *report) unknown(n *node, sh *shape, name string) {
	names := sh.names
	if sh.skip != "" && !slices.Contains(names, sh.skip) {
		names = append([]string{sh.skip}, names...)
	}
	is := Issue{Path: wording.Pointer(r.path), Rule: wording.RuleUnknown, Message: "unknown property", Expected: "no properties"}
	if len(names) > 0 {
		is.Expected = "one of " + strings.Join(names, ", ")
	}
	hinted := name
	if r.secret {
		hinted = ""
	}
	is.Hint = wording.UnknownHint(r.path[:len(r.path)-1], hinted, names, false)
	r.add(nil, is)
}
