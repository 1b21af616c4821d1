package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// providerName is what model providers are known to accept as the name of a
// property.
var providerName = regexp.MustCompile(`^[A-Za-z0-9_.\-]{1,64}$`)

// shape compiles a struct type, once for each way of using it.
func (c *compiler) shape(t reflect.Type, noRules bool, skip string) *shape {
	key := shapeKey{t, noRules, skip}
	if sh := c.shapes[key]; sh != nil {
		if !sh.ready {
			sh.recursive = true
		}
		return sh
	}
	sh := &shape{typ: t, byName: map[string]int{}, noRules: noRules}
	c.shapes[key] = sh
	c.order = append(c.order, sh)
	saved := c.where
	c.structTags(sh)
	var tags []*tagRules
	for _, m := range c.members(t) {
		c.where = place{m.owner.String(), m.sf.Name, m.name}
		f, tr := c.field(sh, m)
		if f == nil {
			continue
		}
		sh.byName[f.name] = len(sh.fields)
		sh.names = append(sh.names, f.name)
		sh.fields = append(sh.fields, *f)
		tags = append(tags, tr)
	}
	c.where = place{typ: t.String()}
	if len(sh.fields) == 0 && t.NumField() > 0 && sh.rest == nil && !sh.open && !onlyHidden(t) {
		c.report("", "no field is exported, so only {} would be accepted", "export the fields, or give the type a text form (encoding.TextUnmarshaler)")
	}
	if tag, name, ok := strings.Cut(skip, "="); ok {
		c.discriminate(sh, tag, name)
	}
	c.relations(sh, tags)
	c.structFuncs(sh)
	if extend := extender(t); extend != nil {
		sh.extend = append(sh.extend, extend)
	}
	c.where = saved
	sh.ready = true
	return sh
}

// onlyHidden tells whether every field of t is kept out of JSON on purpose.
func onlyHidden(t reflect.Type) bool {
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Name != "_" && sf.Tag.Get("json") != "-" && sf.Tag.Get("jsonschema") != "-" && !sf.Anonymous {
			return false
		}
	}
	return true
}

// structTags reads what a blank field says about the whole struct.
func (c *compiler) structTags(sh *shape) {
	for i := range sh.typ.NumField() {
		sf := sh.typ.Field(i)
		tag, ok := sf.Tag.Lookup("jsonschema")
		if sf.Name != "_" || !ok {
			continue
		}
		c.where = place{typ: sh.typ.String(), field: "_"}
		switch tag {
		case "additionalProperties=true":
			sh.open = true
		case "additionalProperties=false":
		default:
			c.report(`jsonschema:"`+tag+`"`, "a blank field can only say additionalProperties=true or false", "")
		}
	}
}

// field compiles one member with its tags. It returns nil when the member
// cannot be used; the reason is reported then.
func (c *compiler) field(sh *shape, m member) (*field, *tagRules) {
	c.misspelt(m.sf)
	f := &field{name: m.name, goName: m.sf.Name}
	f.offset, f.hops = locate(sh.typ, m.index)
	omit, inline, quoted := c.jsonOptions(m)
	if !providerName.MatchString(m.name) {
		c.warn("", fmt.Sprintf("the name %q is refused by some model providers", m.name), "use up to 64 letters, digits, _ . and -")
	}
	for _, name := range sh.names {
		if strings.EqualFold(name, m.name) {
			c.warn("", fmt.Sprintf("the names %q and %q differ in case only", name, m.name), "")
		}
	}
	if inline {
		c.inline(sh, f, m)
		return nil, nil
	}
	tr := &tagRules{}
	if tag := m.sf.Tag.Get("validate"); tag != "" && !sh.noRules {
		var ps []problem
		if tr, ps = parseValidate(tag, c.opts.Aliases); len(ps) > 0 || tr == nil {
			c.add(ps...)
			tr = &tagRules{}
		}
	}
	st := c.schemaTag(m.sf)
	n := c.typeNode(m.sf.Type, sh.noRules || tr.skipsFields())
	f.node = n
	if n.kind == nodeInvalid {
		return f, tr
	}
	if quoted {
		c.quote(n)
	}
	c.annotate(n, st)
	c.mcpTag(m.sf, f)
	rules := c.schemaRules(n, st)
	c.ruleSet(n, tr, rules)
	c.presence(f, tr, st, m, omit)
	c.defaults(f, st)
	return f, tr
}

// jsonOptions reads the options of the json tag.
func (c *compiler) jsonOptions(m member) (omit, inline, quoted bool) {
	for _, o := range m.options {
		switch o {
		case "omitempty", "omitzero":
			omit = true
		case "inline", "unknown":
			inline = true
		case "string":
			quoted = true
		case "":
		default:
			fix := ""
			if near := nearest(o, []string{"omitempty", "omitzero", "inline", "string"}); near != "" {
				fix = "did you mean " + near + "?"
			}
			c.report(`json:"`+m.sf.Tag.Get("json")+`"`, fmt.Sprintf("unknown option %q", o), fix)
		}
	}
	return omit, inline, quoted
}

// inline makes a field the place of members that no other field names.
func (c *compiler) inline(sh *shape, f *field, m member) {
	tag := `json:"` + m.sf.Tag.Get("json") + `"`
	if m.sf.Type != reflect.TypeFor[map[string]json.RawMessage]() {
		c.report(tag, "only a map[string]json.RawMessage can take the unknown members", "embed a struct to merge its members")
		return
	}
	if sh.rest != nil {
		c.report(tag, "a second field for the unknown members", "keep one of them")
		return
	}
	f.node = c.typeNode(m.sf.Type, true)
	sh.rest, sh.open = f, true
}

// quote makes a number or boolean travel inside a string, as json:",string"
// asks for.
func (c *compiler) quote(n *node) {
	switch n.kind {
	case nodeInt, nodeUint, nodeFloat, nodeBool:
		n.quoted, n.name = true, "string"
	default:
		c.report(`json:",string"`, fmt.Sprintf("the string option works on numbers and booleans, not on %s", n.typ), "remove it")
	}
}

// presence decides whether a member must be there, and what null and empty
// values mean.
func (c *compiler) presence(f *field, tr *tagRules, st *schemaTag, m member, omit bool) {
	n := f.node
	n.nullable = n.nullable || st.nullable
	required := tr.required || st.required
	conditional := len(tr.conditionals) > 0
	hasDefault := len(st.defaults) > 0
	switch {
	case required && hasDefault:
		c.report(m.tag("jsonschema"), "a required member never takes its default", "remove either the default or required")
	case st.required && conditional:
		c.report(m.tag("jsonschema"), "required leaves nothing for "+tr.conditionals[0].written+" to decide", "remove one of them")
	case tr.required && n.nullable:
		c.report(m.tag("validate"), "required refuses null, but the member is nullable", "use jsonschema:\"required\" for a member that must be present and may be null")
	}
	if c.opts.Output {
		f.required = !omit && !m.byPtr
		if len(n.ptrs) > 0 && !omit && !tr.required {
			n.nullable = true
		}
		n.orZero = tr.omit != "" && !omit && len(n.ptrs) == 0
		return
	}
	f.required = required || !(omit || tr.omit != "" || conditional || tr.isDefault || hasDefault || len(n.ptrs) > 0 || m.byPtr)
	f.omitZero = tr.omit != "" && len(n.ptrs) == 0 && scalarNode(n)
	n.notEmpty = !f.required // seal corrects this for plain text
}

func (m *member) tag(key string) string {
	return key + `:"` + m.sf.Tag.Get(key) + `"`
}

// scalarNode tells whether a node's zero value can stand for "not set".
func scalarNode(n *node) bool {
	switch n.kind {
	case nodeString, nodeInt, nodeUint, nodeFloat, nodeBool, nodeTime, nodeDuration, nodeNumber:
		return true
	}
	return false
}

func hasCode(n *node, code string) bool {
	return slices.ContainsFunc(n.checks, func(k check) bool { return k.code == code })
}

// skipsFields tells whether the structs at a position are taken without the
// rules of their fields.
func (tr *tagRules) skipsFields() bool {
	return tr != nil && (tr.skip || tr.structOnly != "" || tr.elem.skipsFields())
}

// ruleSet compiles validate rules, and the rules that jsonschema keywords
// stand for, onto a node.
func (c *compiler) ruleSet(n *node, tr *tagRules, more []rule) {
	if n.kind == nodeInvalid {
		return
	}
	if n.kind == nodeNull {
		c.ruleSet(n.elem, tr, more)
		return
	}
	t := n.target(c.opts)
	all := append(slices.Clone(more), tr.own...)
	sound := true
	for _, r := range all {
		ks, p := compileRule(r, t)
		if p != nil {
			c.add(*p)
			sound = false
			continue
		}
		for _, k := range ks {
			if k.code == "enum" && c.sameEnum(n, k) {
				continue
			}
			n.checks = append(n.checks, k)
		}
	}
	if sound {
		c.add(checkConsistency(all, t)...)
	}
	if tr.required {
		c.nonEmpty(n)
	}
	if tr.structOnly != "" && n.kind != nodeObject {
		c.report("validate:\""+tr.structOnly+"\"", fmt.Sprintf("%s needs a struct, not %s", tr.structOnly, n.typ), "remove it")
	}
	if tr.isDefault {
		n.checks = append(n.checks, zeroCheck(n))
	}
	if tr.keys != nil {
		if n.kind != nodeMap {
			c.report("validate:\"keys\"", fmt.Sprintf("keys needs a map, not %s", n.typ), "")
		} else {
			c.inner(n.key, tr.keys)
		}
	}
	if tr.elem != nil {
		if n.elem == nil || n.kind == nodeRef {
			c.report("validate:\"dive\"", fmt.Sprintf("dive needs a slice, array or map, not %s", n.typ), "remove dive")
			return
		}
		c.inner(n.elem, tr.elem)
	}
}

// inner compiles the rules below dive, on elements or keys.
func (c *compiler) inner(n *node, tr *tagRules) {
	for _, r := range slices.Concat(tr.conditionals, tr.cross) {
		c.report(`validate:"`+r.written+`"`, "compares with other fields, which an element does not have", "move it before dive, or into the element's type")
	}
	n.orZero = tr.omit != ""
	c.ruleSet(n, tr, nil)
}

// nonEmpty adds what required says about a value that is present.
func (c *compiler) nonEmpty(n *node) {
	if n.kind == nodeString {
		for _, k := range n.checks {
			if k.text != nil && !k.text("") {
				return
			}
		}
		n.checks = append(n.checks, requiredText())
		return
	}
	if c.opts.RequiredNonZero {
		if k, ok := requiredNonZero(n); ok {
			n.checks = append(n.checks, k)
		}
	}
}

// sameEnum reports two enumerations on one position that differ.
func (c *compiler) sameEnum(n *node, k check) bool {
	for _, other := range n.checks {
		if other.code != "enum" {
			continue
		}
		a, b := emittedBytes(other), emittedBytes(k)
		if string(a) != string(b) {
			c.report(k.tag, fmt.Sprintf("allows %s, but %s allows %s", b, other.tag, a), "make both the same, or remove one")
		}
		return true
	}
	return false
}

// relations compiles the rules among the members of a struct.
func (c *compiler) relations(sh *shape, tags []*tagRules) {
	for i, tr := range tags {
		if sh.fields[i].node.kind == nodeInvalid {
			continue
		}
		c.where.field, c.where.json = sh.fields[i].goName, sh.fields[i].name
		for _, r := range tr.conditionals {
			c.conditional(sh, i, r)
		}
		for _, r := range tr.cross {
			c.cross(sh, i, r)
		}
	}
	c.cycles(sh)
	c.where.field, c.where.json = "", ""
}
