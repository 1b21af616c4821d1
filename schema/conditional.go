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

// conditional is one of the tags required_if … excluded_without_all: it says
// when a member must, or must not, be there. The check, the keywords of the
// schema and the sentence of the description are all made from it. The sentence
// is needed because if/then/else is hard to read for people and for models.
//
// In the comments of this file P(f) means "f is present": the member is in the
// document, is not null, and is not the empty string. These are the terms of
// go-playground's grammar, read on the document instead of on zero values.
//
// The tags map to the fields below like this; n is negate:
//
//	required_if      all tests hold          required_unless       not any test holds
//	required_with    any member is present   required_with_all     all members are present
//	required_without not all are present     required_without_all  not any is present
type conditional struct {
	// field is the index of the member that the rule is about.
	field int
	// exclude is set for excluded_…: the member must not be present when the
	// rule applies.
	exclude bool
	// any is set if one test that holds is enough; otherwise all must hold.
	any bool
	// negate is set if the rule applies when the tests do not hold.
	negate bool
	tests  []test
	// when is the condition in words, such as "when b is absent".
	when string
}

// test is one part of a condition: that a member is present, or that it has a
// certain value.
type test struct {
	// field is the index of the member that the test looks at.
	field int
	// equals selects the comparison with value. Without it the test asks for
	// presence.
	equals bool
	value  reflect.Value
	// text is the JSON text of value if listed is set: its type has a text form.
	text   string
	listed bool
	// fromZero is set if the test also holds when the member is absent, because
	// its default, or its zero value, is the value.
	fromZero bool
}

// compileConditional compiles one of the tags required_if …
// excluded_without_all on field i of sh. Faults are reported, and the rule is
// left out then. All fields of sh must have been compiled, because a rule may
// name a field that is declared below its own.
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

// findSibling returns the index of the member that a rule names, by Go name or
// by JSON name. The Go name wins, as in go-playground's grammar. self is the
// index of the member that has the rule, which it must not name, or -1 if any
// may be named. ok is false after a problem has been reported.
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

// compileEquality compiles the test "member at equals text". An absent member
// counts as its default, or as its zero value if it has no pointer, because
// that is what the function will see. Only strings, numbers and booleans can be
// compared with the text in a tag.
func compileEquality(c *compiler, sh *shape, at int, r tags.Rule, text string) (test, bool) {
	f := &sh.fields[at]
	n := f.node
	t := test{field: at, equals: true}
	tag := `validate:"` + r.Written + `"`
	if n.kind == nodeInvalid {
		return t, false
	}
	listed := n.kind == nodeText && hasCode(n, "enum") && basic(n.typ) // each value has one text
	v := reflect.New(n.typ).Elem()
	switch n.kind {
	case nodeString, nodeInt, nodeUint, nodeFloat, nodeBool:
	default:
		if listed {
			break
		}
		c.report(tag, fmt.Sprintf("%s is %s, which cannot be compared with a text", f.goName, n.typ), "use a string, number or boolean, or required_with")
		return t, false
	}
	ok := !n.quoted && setText(v, n, text)
	if listed {
		v, _ = unmarshalText(n, text)
		t.text, t.listed, ok = text, true, passesText(n, text)
	}
	if !ok {
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
		t.fromZero = string(raw) == string(wording.AppendJSON(nil, t.constant()))
	}
	return t, true
}

// sentence returns the condition in English, such as `when kind is "mail"`. It
// applies De Morgan's rule for the negated forms, so that no sentence says "not
// (a and b)".
func (k *conditional) sentence(sh *shape) string {
	var parts []string
	for _, t := range k.tests {
		f := &sh.fields[t.field]
		switch {
		case t.equals && k.negate:
			parts = append(parts, f.name+" is "+string(wording.AppendJSON(nil, t.constant())))
		case t.equals:
			parts = append(parts, f.name+" is "+string(wording.AppendJSON(nil, t.constant())))
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

// checkConditions enforces the conditional rules of an object that has been
// read. marks says what became of each member, and p is where the struct lies.
// A member with other issues is skipped: whether it should be there is known
// only when it has been fixed.
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

// applies reports whether the condition of the rule holds for the object at p.
// It returns false if a member that the condition looks at has issues, because
// those come first.
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

// emitConditionals writes the conditional rules of an object with the simplest
// keywords that mean exactly the same.
//
// There is never an allOf or anyOf at the top of an object, because model
// providers refuse arguments with such a schema. Several rules therefore are
// in an allOf inside "then", below an "if" that is always true.
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

// emitDependent writes the rule as dependentRequired or dependentSchemas, which
// is possible if the mere presence of one member decides. It reports false, and
// changes nothing, if those keywords would mean something else.
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

// merge adds the properties and the required names of more to at.
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

// emitIf writes the rule as if and then. A rule that applies when its tests do
// not hold becomes if and else, which is shorter than a "not" around the
// condition.
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

// emit writes one test as a schema for the object. A member that may be absent,
// because its absence counts as the value, is not required by the test.
func (t *test) emit(sh *shape) *jsonschema.Schema {
	f := &sh.fields[t.field]
	if !t.equals {
		return f.emitPresent()
	}
	s := withProperty(f.name, &jsonschema.Schema{Const: t.constant()})
	if !t.fromZero {
		s.Required = []string{f.name}
	}
	return s
}

// constant returns the value in the form that const needs. Integers become
// json.Number, so that no encoder turns them into floats.
func (t *test) constant() any {
	if t.listed {
		return t.text
	}
	switch x := rules.PlainValue(t.value).(type) {
	case int64:
		return json.Number(strconv.FormatInt(x, 10))
	case uint64:
		return json.Number(strconv.FormatUint(x, 10))
	default:
		return x
	}
}

// basic reports whether values of t are numbers, booleans or strings in Go, which can be
// compared whatever they hold.
func basic(t reflect.Type) bool { return t.Kind() <= reflect.Float64 || t.Kind() == reflect.String }

// consequence writes what the rule demands: P(f), or its negation. The negation
// of P(f) still permits null and "" where the member accepts them.
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
