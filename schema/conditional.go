package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unsafe"
)

// conditional says when a member must, or must not, be there.
type conditional struct {
	field   int  // the member it is about
	exclude bool // it must not be there
	any     bool // one test is enough; otherwise all must hold
	negate  bool // it applies when the tests do not hold
	tests   []test
	when    string // "when b is absent"
}

// test is one part of a condition.
type test struct {
	field    int
	equals   bool          // compares the value; otherwise asks for presence
	value    reflect.Value // what it is compared with
	fromZero bool          // holds when the member is absent, because its zero or default is the value
}

// conditional compiles one of the tags required_if … excluded_without_all.
func (c *compiler) conditional(sh *shape, i int, r rule) {
	k := conditional{field: i, exclude: strings.HasPrefix(r.name, "excluded")}
	words, _ := splitWords(r.param)
	pairs := conditionalTags[r.name]
	step := 1
	if pairs {
		step = 2
	}
	if len(words) == 0 || len(words)%step != 0 {
		return // the tag parser has reported it
	}
	for w := 0; w < len(words); w += step {
		at, ok := c.sibling(sh, i, r, words[w])
		if !ok {
			return
		}
		t := test{field: at}
		if pairs {
			if t, ok = c.equality(sh, at, r, words[w+1]); !ok {
				return
			}
		}
		k.tests = append(k.tests, t)
	}
	switch strings.TrimPrefix(strings.TrimPrefix(r.name, "required_"), "excluded_") {
	case "unless":
		k.any, k.negate = true, true
	case "with":
		k.any = true
	case "without":
		k.negate = true
	case "without_all":
		k.any, k.negate = true, true
	}
	k.when = k.sentence(sh)
	f := &sh.fields[i]
	if k.exclude {
		f.when = append(f.when, "Not allowed "+k.when+".")
	} else {
		f.when = append(f.when, "Required "+k.when+".")
	}
	sh.conds = append(sh.conds, k)
}

// sibling finds the member that a rule names, by Go name or JSON name.
func (c *compiler) sibling(sh *shape, self int, r rule, name string) (int, bool) {
	found := -1
	for i := range sh.fields {
		if sh.fields[i].goName == name {
			found = i
			break
		}
		if sh.fields[i].name == name {
			found = i
		}
	}
	tag := `validate:"` + r.written + `"`
	switch {
	case strings.Contains(name, ".") && found < 0:
		c.report(tag, "the rule can only look at fields of the same struct", "")
	case found < 0:
		var all []string
		for _, f := range sh.fields {
			all = append(all, f.goName)
		}
		fix := "fields are " + strings.Join(all, ", ")
		if near := nearest(name, append(all, sh.names...)); near != "" {
			fix = "did you mean " + near + "?"
		}
		c.report(tag, fmt.Sprintf("there is no field %q", name), fix)
	case found == self:
		c.report(tag, "the rule refers to its own field", "name another field")
		return 0, false
	}
	return found, found >= 0
}

// equality compiles "the member is this value".
func (c *compiler) equality(sh *shape, at int, r rule, text string) (test, bool) {
	f := &sh.fields[at]
	n := f.node
	t := test{field: at, equals: true}
	tag := `validate:"` + r.written + `"`
	if n.kind == nodeInvalid {
		return t, false
	}
	v := reflect.New(n.typ).Elem()
	switch n.kind {
	case nodeString, nodeInt, nodeUint, nodeFloat, nodeBool:
	default:
		c.report(tag, fmt.Sprintf("%s is %s, which cannot be compared with a text", f.goName, n.typ), "use a string, number or boolean, or required_with")
		return t, false
	}
	if n.quoted || !setText(v, n, text) {
		fix := "write a value of that type"
		if n.kind == nodeBool {
			fix = "write true or false"
		}
		c.report(tag, fmt.Sprintf("%q is no value of %s, which is %s", text, f.goName, n.typ), fix)
		return t, false
	}
	t.value = v
	if len(n.ptrs) == 0 {
		t.fromZero = v.IsZero()
	}
	if n.note.hasDefault && !c.opts.Output {
		raw, _ := n.note.def.(json.RawMessage)
		t.fromZero = string(raw) == string(appendAny(nil, plainValue(v)))
	}
	return t, true
}

// sentence says in English when the rule applies.
func (k *conditional) sentence(sh *shape) string {
	var parts []string
	for _, t := range k.tests {
		f := &sh.fields[t.field]
		switch {
		case t.equals && k.negate:
			parts = append(parts, f.name+" is "+string(appendAny(nil, plainValue(t.value))))
		case t.equals:
			parts = append(parts, f.name+" is "+string(appendAny(nil, plainValue(t.value))))
		case k.negate:
			parts = append(parts, f.name+" is absent")
		default:
			parts = append(parts, f.name+" is given")
		}
	}
	// Not (a and b) is (not a) or (not b).
	or := k.any != k.negate
	word := "when "
	if k.negate && k.tests[0].equals {
		or, word = k.any, "unless "
	}
	if or {
		return word + strings.Join(parts, " or ")
	}
	return word + strings.Join(parts, " and ")
}

// conditionals enforces the conditional rules of an object.
func (d *decoder) conditionals(sh *shape, p unsafe.Pointer, marks []byte) {
	for i := range sh.conds {
		k := &sh.conds[i]
		if marks[k.field] == markBad || !k.applies(sh, p, marks) {
			continue
		}
		f := &sh.fields[k.field]
		there := f.present(marks[k.field])
		if there != k.exclude {
			continue
		}
		d.push(f.name)
		if !k.exclude {
			if marks[k.field] > markDropped {
				d.empty(f.node, marks[k.field], k.when)
			} else {
				d.missing(f.node, k.when)
			}
		} else {
			d.add(f.node, Issue{Path: pointer(d.path), Rule: ruleExcluded, Expected: "absent " + k.when, Message: "must be left out " + k.when})
		}
		d.pop()
	}
}

// empty records a member that is there and yet has no value.
func (d *decoder) empty(n *node, mark byte, when string) {
	got := `""`
	if mark == markNull {
		got = "null"
	}
	d.add(n, Issue{Path: pointer(d.path), Rule: "required", Expected: n.describe(), Got: got,
		Message: "must have a value " + when + "; got " + got})
}

// present is P(f): the member is there, is not null, and is no empty string.
func (f *field) present(mark byte) bool {
	return mark == markSet || mark == markBad || mark == markEmpty && f.node.kind != nodeString
}

// applies tells whether the condition of a rule holds. It does not when a
// member it looks at has issues of its own: those come first.
func (k *conditional) applies(sh *shape, p unsafe.Pointer, marks []byte) bool {
	holds := !k.any
	for _, t := range k.tests {
		mark := marks[t.field]
		if mark == markBad {
			return false
		}
		f := &sh.fields[t.field]
		one := false
		switch {
		case !t.equals:
			one = f.present(mark)
		case mark == markAbsent || mark == markDropped:
			one = t.fromZero
		case mark != markNull:
			at := f.find(p)
			v := reflect.NewAt(f.node.typ, f.node.deref(at)).Elem()
			one = v.Equal(t.value)
		}
		if k.any {
			holds = holds || one
		} else {
			holds = holds && one
		}
	}
	return holds != k.negate
}
