package schema

import (
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// deferred is a check that has to wait for the end of the document: a
// comparison with a member elsewhere, a user's rule on one value, or the struct
// rules of one object. Exactly one of cross, check and sh is set. The walk has
// left the value when the check runs, so path, secret and key keep what the
// report needs.
type deferred struct {
	// n describes the value.
	n *node
	// check is a user's rule on one value, and custom is its function.
	check  *rules.Check
	custom rules.CustomTest
	// cross is a comparison with a member on a path from the root.
	cross *crossRule
	// sh is an object that has struct rules.
	sh *shape
	// at is where the value lies. The destination of the document is kept alive
	// by the caller of Decode.
	at slot
	// path and secret are those of the report when the value was read.
	path   []wording.Step
	secret bool
	// key is set if the value is the name of a member.
	key bool
}

// runRule runs a user's rule on one value. The text of its error becomes the
// message. For a secret it does not, because a rule may quote the value that it
// got.
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

// runStructRules runs the struct rules on one object. An error about a field,
// which FieldError names as in Go, is reported at that member. An error that is
// not about the document ends the decoding; Decode returns it.
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

// compare enforces a rule whose other side lies on a path from the root, dst
// being where the document is stored. If a member on that path is absent, null
// or has issues, there is nothing to compare and the rule holds.
func (r *deferred) compare(d *decoder, dst slot) {
	root := d.plan.root
	at, sh := root.deref(dst), root.object
	for i, index := range r.cross.other {
		marks := d.saved[at]
		if at == (slot{}) || len(marks) <= index || !sh.fields[index].comparable(marks[index]) {
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
