package schema

import (
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// deferred is a check that waits for the whole document: a comparison with a
// member elsewhere, the rule of a user on one value, or the rules of a struct.
// Of cross, check and sh one is set. It keeps the path and the state of the
// report at its value, which the walk has left by then.
type deferred struct {
	n *node
	// check is a user's rule on one value, and custom its function.
	check  *rules.Check
	custom rules.CustomTest
	// cross is a comparison with a member on a path from the top.
	cross *crossRule
	// sh is a struct with struct rules.
	sh *shape
	// at is where the value lies.
	at slot
	// path and secret are those of the report when the value was read.
	path   []wording.Step
	secret bool
	// key says that the value is a member name.
	key bool
}

// runRule runs a user's rule on one value. The error's text becomes the
// message, except for secrets: a rule may quote what it got.
func (r *deferred) runRule(d *decoder) {
	v := r.at.value(r.n.typ)
	err := r.custom(d.ctx, v)
	if err == nil {
		return
	}
	is := Issue{Path: wording.Pointer(r.path), Rule: r.check.Code, Expected: r.check.Want, Message: err.Error()}
	if r.secret { // a rule may quote what it got
		is.Message = wording.MustBe(is.Expected, "")
	}
	if r.key {
		aboutKey(&is)
	}
	d.add(r.n, is)
}

// runStructRules runs the struct rules on one object. An error that is about a
// field, named as in Go, is told at the member.
func (r *deferred) runStructRules(d *decoder) {
	v := r.at.value(r.sh.typ)
	for _, fn := range r.sh.funcs {
		found, err := fn.run(d.ctx, v)
		if err != nil {
			d.fault = err
			return
		}
		for _, f := range found {
			is := Issue{Path: wording.Pointer(r.path), Rule: f.rule, Expected: fn.describe, Message: f.msg}
			if r.secret || r.sh.holdsSecret { // a rule may quote what it got
				is.Message = "breaks a rule: " + fn.describe
			}
			for i := range r.sh.fields {
				if r.sh.fields[i].goName == f.goName {
					is.Path += wording.Pointer([]wording.Step{wording.Member(r.sh.fields[i].name)})
				}
			}
			d.add(nil, is)
		}
	}
}

// compare enforces a rule whose other side is on a path from the top. A member
// on that path that is absent, or has issues of its own, ends the comparison.
func (r *deferred) compare(d *decoder, dst slot) {
	root := d.plan.root
	at, sh := root.deref(dst), root.object
	for i, index := range r.cross.other {
		marks := d.saved[at]
		if at == (slot{}) || len(marks) <= index || marks[index] < markEmpty {
			return
		}
		f := &sh.fields[index]
		at = f.find(at)
		if i == len(r.cross.other)-1 {
			r.cross.check(d, r.n, r.at, f.node, at, wording.Pointer(r.path))
			return
		}
		at, sh = f.node.deref(at), f.node.object
	}
}
