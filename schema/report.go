package schema

import "strings"

// add records an issue of the value that n describes.
func (d *decoder) add(n *node, is Issue) {
	if len(d.issues) >= maxIssues {
		return
	}
	if n != nil {
		for _, m := range n.message {
			if m.rule == "" || m.rule == is.Rule {
				is.Message = strings.NewReplacer("{expected}", is.Expected, "{got}", is.Got).Replace(m.text)
			}
		}
	}
	d.issues = append(d.issues, is)
}

// fail records that a value breaks a check. Got is how it looked, and why what
// is wrong with it, if the check's words do not say so.
func (d *decoder) fail(n *node, c *check, got, why string) {
	d.failAt(n, c, got, why, pointer(d.path))
}

func (d *decoder) failAt(n *node, c *check, got, why, path string) {
	if d.hides(n) {
		got, why = "", ""
	}
	is := Issue{Path: path, Rule: c.code, Expected: n.wanted(c), Got: got}
	is.Message = mustBe(because(is.Expected, why), got)
	name, _, _ := strings.Cut(c.tag, "=")
	for _, m := range n.message {
		if m.rule != "" && m.rule == name {
			is.Message = strings.NewReplacer("{expected}", is.Expected, "{got}", got).Replace(m.text)
			d.add(nil, is)
			return
		}
	}
	d.add(n, is)
}

// mustBe is the sentence of most issues. Words of a custom rule may start with
// "must" themselves.
func mustBe(expected, got string) string {
	text := expected
	if !strings.HasPrefix(text, "must ") {
		text = "must be " + text
	}
	if got == "" {
		return text
	}
	return text + "; got " + got
}

// because puts what is wrong behind what is expected. A wrong form needs no
// words: what is expected shows the right one.
func because(expected, why string) string {
	if why == "" || strings.HasPrefix(why, wrongForm) {
		return expected
	}
	return expected + "; " + why
}

// mismatch reads over a value that is not of the node's type.
func (d *decoder) mismatch(n *node) bool {
	start := d.s.Pos
	if !d.skip() {
		return false
	}
	d.wrongType(n, d.s.Buf[start:d.s.Pos])
	return true
}

// wrongType records that raw is not of the node's type.
func (d *decoder) wrongType(n *node, raw []byte) {
	d.misfit(n, "type", n.describe(), gotValue(raw, true), "")
}

// misfit records a value that cannot be stored at all; why says what is wrong
// with it.
func (d *decoder) misfit(n *node, rule, expected, got, why string) {
	if d.hides(n) {
		got, why = "", ""
	}
	d.add(n, Issue{Path: pointer(d.path), Rule: rule, Expected: expected, Got: got, Message: mustBe(because(expected, why), got)})
}

// coerce records that the value at the path was not taken as it came.
func (d *decoder) coerce() {
	if d.coerced != nil {
		*d.coerced = append(*d.coerced, pointer(d.path))
	}
}
