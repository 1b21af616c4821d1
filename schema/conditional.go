package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"

	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/tags"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// conditional says when a member must, or must not, be there: one of the tags
// required_if … excluded_without_all. Its schema and its check are made from
// it, and so is the sentence for the description, because if and then are hard
// to read for people and models.
//
// In what follows P(f) is "f is present": it is there, is not null, and is no
// empty string.
type conditional struct {
	// field is the member that it is about, by index.
	field int
	// exclude says that the member must not be there.
	exclude bool
	// any says that one test is enough; otherwise all must hold.
	any bool
	// negate says that the rule applies when the tests do not hold.
	negate bool
	tests  []test
	// when is the condition in words: "when b is absent".
	when string
}

// test is one part of a condition: that a member is present, or that it is a
// value.
type test struct {
	field int
	// equals compares the member with value; otherwise presence is asked for.
	equals bool
	value  reflect.Value
	// fromZero says that the test holds when the member is absent, because its
	// zero or its default is the value.
	fromZero bool
}

// compileConditional compiles one of the tags required_if …
// excluded_without_all. Their names differ in what is demanded, in whether one
// test is enough, and in whether it is demanded when the tests hold or when
// they do not.
func compileConditional(c *compiler, sh *shape, i int, r tags.Rule) {
	k := conditional{field: i, exclude: strings.HasPrefix(r.Name, "excluded")}
	words, _ := tags.Words(r.Param)
	pairs := tags.ConditionalTags[r.Name]
	step := 1
	if pairs {
		step = 2
	}
	if len(words) == 0 || len(words)%step != 0 {
		return // the tag parser has reported it
	}
	for w := 0; w < len(words); w += step {
		at, ok := findSibling(c, sh, i, r, words[w])
		if !ok {
			return
		}
		t := test{field: at}
		if pairs {
			if t, ok = compileEquality(c, sh, at, r, words[w+1]); !ok {
				return
			}
		}
		k.tests = append(k.tests, t)
	}
	switch strings.TrimPrefix(strings.TrimPrefix(r.Name, "required_"), "excluded_") {
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

// findSibling finds the member that a rule names, by Go name or JSON name; the
// Go name wins, as in go-playground's grammar. self is the member with the
// rule, or -1 if it may name any.
func findSibling(c *compiler, sh *shape, self int, r tags.Rule, name string) (int, bool) {
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
	tag := `validate:"` + r.Written + `"`
	switch {
	case strings.Contains(name, ".") && found < 0:
		c.report(tag, "the rule can only look at fields of the same struct", "")
	case found < 0:
		var all []string
		for _, f := range sh.fields {
			all = append(all, f.goName)
		}
		fix := "fields are " + strings.Join(all, ", ")
		if near := wording.Nearest(name, append(all, sh.names...)); near != "" {
			fix = "did you mean " + near + "?"
		}
		c.report(tag, fmt.Sprintf("there is no field %q", name), fix)
	case found == self:
		c.report(tag, "the rule refers to its own field", "name another field")
		return 0, false
	}
	return found, found >= 0
}

// compileEquality compiles "the member is this value". An absent member counts
// as its default, or as its zero value if it has no pointer, since that is what
// the function will see.
func compileEquality(c *compiler, sh *shape, at int, r tags.Rule, text string) (test, bool) {
	f := &sh.fields[at]
	n := f.node
	t := test{field: at, equals: true}
	tag := `validate:"` + r.Written + `"`
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
		t.fromZero = string(raw) == string(wording.AppendJSON(nil, rules.PlainValue(v)))
	}
	return t, true
}

// sentence says in English when the rule applies, such as "when kind is
// \"mail\"".
func (k *conditional) sentence(sh *shape) string {
	var parts []string
	for _, t := range k.tests {
		f := &sh.fields[t.field]
		switch {
		case t.equals && k.negate:
			parts = append(parts, f.name+" is "+string(wording.AppendJSON(nil, rules.PlainValue(t.value))))
		case t.equals:
			parts = append(parts, f.name+" is "+string(wording.AppendJSON(nil, rules.PlainValue(t.value))))
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

// checkConditions enforces the conditional rules of an object. A member with
// issues of its own is left alone: whether it is meant to be there will be
// known when it is mended.
func checkConditions(d *decoder, sh *shape, p slot, marks []byte) {
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
			d.add(f.node, Issue{Path: wording.Pointer(d.path), Rule: wording.RuleExcluded, Expected: "absent " + k.when, Message: "must be left out " + k.when})
		}
		d.pop()
	}
}

// applies reports whether the condition of a rule holds. It does not when a
// member that it looks at has issues: those come first.
func (k *conditional) applies(sh *shape, p slot, marks []byte) bool {
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
			v := f.node.deref(at).value(f.node.typ)
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

// emitConditionals writes the conditional rules of an object in the plainest
// keywords that say exactly the same. There is never a composition at the top
// of an object, because model providers refuse that: several rules stand in
// allOf below a then whose if is always true.
func emitConditionals(s *jsonschema.Schema, sh *shape) {
	var branches []*jsonschema.Schema
	for i := range sh.conds {
		if k := &sh.conds[i]; !k.emitDependent(s, sh) {
			branches = append(branches, k.emitIf(sh))
		}
	}
	switch len(branches) {
	case 0:
	case 1:
		s.If, s.Then, s.Else = branches[0].If, branches[0].Then, branches[0].Else
	default:
		s.If = &jsonschema.Schema{}
		s.Then = &jsonschema.Schema{AllOf: branches}
	}
}

// emitDependent writes "if k is there …" as dependentRequired or
// dependentSchemas, where mere presence is what counts. It reports false where
// that would say something else.
func (k *conditional) emitDependent(s *jsonschema.Schema, sh *shape) bool {
	if k.negate || !k.any && len(k.tests) > 1 {
		return false
	}
	for _, t := range k.tests {
		if t.equals || !sh.fields[t.field].plainPresence() {
			return false
		}
	}
	f := &sh.fields[k.field]
	for _, t := range k.tests {
		name := sh.fields[t.field].name
		if !k.exclude && f.plainPresence() {
			if s.DependentRequired == nil {
				s.DependentRequired = map[string][]string{}
			}
			s.DependentRequired[name] = append(s.DependentRequired[name], f.name)
			continue
		}
		if s.DependentSchemas == nil {
			s.DependentSchemas = map[string]*jsonschema.Schema{}
		}
		at := s.DependentSchemas[name]
		if at == nil {
			at = &jsonschema.Schema{}
			s.DependentSchemas[name] = at
		}
		merge(at, k.consequence(sh))
	}
	return true
}

// merge adds the properties and required names of one schema to another.
func merge(at, more *jsonschema.Schema) {
	at.Required = append(at.Required, more.Required...)
	if more.Properties == nil {
		return
	}
	if at.Properties == nil {
		at.Properties = jsonschema.NewProperties()
	}
	for p := more.Properties.Oldest(); p != nil; p = p.Next() {
		at.Properties.Set(p.Key, p.Value)
	}
}

// emitIf writes the rule as if and then, or as if and else where it applies
// when the tests do not hold: a not around the condition would say the same and
// be longer.
func (k *conditional) emitIf(sh *shape) *jsonschema.Schema {
	var cond *jsonschema.Schema
	if len(k.tests) == 1 {
		cond = k.tests[0].emit(sh)
	} else {
		var parts []*jsonschema.Schema
		for _, t := range k.tests {
			parts = append(parts, t.emit(sh))
		}
		if k.any {
			cond = &jsonschema.Schema{AnyOf: parts}
		} else {
			cond = &jsonschema.Schema{AllOf: parts}
		}
	}
	if k.negate {
		return &jsonschema.Schema{If: cond, Else: k.consequence(sh)}
	}
	return &jsonschema.Schema{If: cond, Then: k.consequence(sh)}
}

// emit writes one test. A member whose absence counts as the value is not
// required by it.
func (t *test) emit(sh *shape) *jsonschema.Schema {
	f := &sh.fields[t.field]
	if !t.equals {
		return f.emitPresent()
	}
	s := withProperty(f.name, &jsonschema.Schema{Const: constant(t.value)})
	if !t.fromZero {
		s.Required = []string{f.name}
	}
	return s
}

// constant is a value as const wants it: integers in a form that stays exact.
func constant(v reflect.Value) any {
	switch x := rules.PlainValue(v).(type) {
	case int64:
		return json.Number(strconv.FormatInt(x, 10))
	case uint64:
		return json.Number(strconv.FormatUint(x, 10))
	default:
		return x
	}
}

// consequence writes what a rule demands: P(f), or not P(f), which leaves null
// and "" where those are no presence.
func (k *conditional) consequence(sh *shape) *jsonschema.Schema {
	f := &sh.fields[k.field]
	if !k.exclude {
		return f.emitPresent()
	}
	empty := f.node.kind == nodeString && passesText(f.node, "")
	switch {
	case f.node.takesNull() && empty:
		return withProperty(f.name, &jsonschema.Schema{Enum: []any{"", nil}})
	case f.node.takesNull():
		return withProperty(f.name, &jsonschema.Schema{Type: "null"})
	case empty:
		return withProperty(f.name, &jsonschema.Schema{Const: ""})
	}
	return withProperty(f.name, schemadoc.Clone(jsonschema.FalseSchema))
}
