package schema

import (
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/invopop/jsonschema"
)

// emitConditionals writes the conditional rules of an object in the plainest
// keywords that say exactly the same. There is never a composition at the top
// of an object: model providers refuse that.
func emitConditionals(s *jsonschema.Schema, sh *shape) {
	var rules []*jsonschema.Schema
	for i := range sh.conds {
		if k := &sh.conds[i]; !k.emitDependent(s, sh) {
			rules = append(rules, k.emitIf(sh))
		}
	}
	switch len(rules) {
	case 0:
	case 1:
		s.If, s.Then, s.Else = rules[0].If, rules[0].Then, rules[0].Else
	default:
		s.If = clone(jsonschema.TrueSchema)
		s.Then = &jsonschema.Schema{AllOf: rules}
	}
}

// emitDependent writes "if k is there …" as dependentRequired or
// dependentSchemas, where mere presence is what counts.
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

// plainPresence tells whether a member that is there is present: it can be
// neither null nor "".
func (f *field) plainPresence() bool {
	return !f.node.takesNull() && (f.node.kind != nodeString || !passesText(f.node, ""))
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

// emitIf writes the rule as if and then, or as if and else.
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

// emit writes one test.
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

// constant is a value as const wants it: text in a form that stays exact.
func constant(v reflect.Value) any {
	switch x := plainValue(v).(type) {
	case int64:
		return json.Number(strconv.FormatInt(x, 10))
	case uint64:
		return json.Number(strconv.FormatUint(x, 10))
	default:
		return x
	}
}

func withProperty(name string, p *jsonschema.Schema) *jsonschema.Schema {
	s := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
	s.Properties.Set(name, p)
	return s
}

// emitPresent writes P(f).
func (f *field) emitPresent() *jsonschema.Schema {
	s := &jsonschema.Schema{Required: []string{f.name}}
	p := &jsonschema.Schema{}
	if f.node.takesNull() {
		p.Not = &jsonschema.Schema{Type: "null"}
	}
	if f.node.kind == nodeString && passesText(f.node, "") {
		raise(&p.MinLength, 1)
	}
	if !schemaEmpty(p) {
		s.Properties = withProperty(f.name, p).Properties
	}
	return s
}

// consequence writes what a rule demands: P(f), or not P(f).
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
	return withProperty(f.name, clone(jsonschema.FalseSchema))
}
