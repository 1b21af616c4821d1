package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"

	"github.com/talaria-go/mcp/schema/internal/regex"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/tags"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// providerName matches the property names that model providers are known to
// accept.
var providerName = regex.Lazy(`^[A-Za-z0-9_.\-]{1,64}$`)

// shape compiles a struct type, once for each way of using it (see shapeKey). A
// shape that is asked for while it is being compiled is recursive: it is
// returned incomplete, is complete by the time it is used, and becomes a
// definition of the schema.
//
// Rules among members are compiled after all members, because they refer to
// each other in both directions.
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
	var fieldTags []*tags.Rules
	for _, m := range findMembers(c, t) {
		c.where = place{m.owner.String(), m.sf.Name, m.name}
		f, tr := c.field(sh, m)
		if f == nil {
			continue
		}
		sh.byName[f.name] = len(sh.fields)
		sh.names = append(sh.names, f.name)
		sh.fields = append(sh.fields, *f)
		fieldTags = append(fieldTags, tr)
	}
	c.where = place{typ: t.String()}
	if len(sh.fields) == 0 && t.NumField() > 0 && sh.rest == nil && !sh.open && !onlyHidden(t) {
		c.report("", "no field is exported, so only {} would be accepted", "export the fields, or give the type a text form (encoding.TextUnmarshaler)")
	}
	if tag, name, ok := strings.Cut(skip, "="); ok {
		discriminate(c, sh, tag, name)
	}
	c.relations(sh, fieldTags)
	c.structFuncs(sh)
	if extend := extender(t); extend != nil {
		sh.extend = append(sh.extend, extend)
	}
	c.where = saved
	sh.ready = true
	return sh
}

// onlyHidden reports whether every field of t is kept out of JSON on purpose. A
// struct that has fields and no members is otherwise reported as one whose
// fields should have been exported.
func onlyHidden(t reflect.Type) bool {
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Name != "_" && sf.Tag.Get("json") != "-" && sf.Tag.Get("jsonschema") != "-" && !sf.Anonymous {
			return false
		}
	}
	return true
}

// structTags reads the jsonschema tag of a blank field, which is about the
// whole struct.
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
			sh.closed = true
		default:
			c.report(`jsonschema:"`+tag+`"`, "a blank field can only say additionalProperties=true or false", "")
		}
	}
}

// field compiles one member with its tags. It returns nil if the member has no
// place of its own in the object; a fault has been reported then.
//
// The steps depend on each other: structonly decides how the type is compiled,
// nullable and unit decide what the rules apply to, and the rules decide
// whether the default is a valid value.
func (c *compiler) field(sh *shape, m *member) (*field, *tags.Rules) {
	misspelt(c, m.sf)
	neglected(c, m.sf)
	f := &field{name: m.name, goName: m.sf.Name}
	f.offset, f.hops = locate(sh.typ, m.index)
	omit, inline, quoted := c.jsonOptions(m)
	if !providerName().MatchString(m.name) {
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
	tr := &tags.Rules{}
	if tag := m.sf.Tag.Get("validate"); tag != "" && !sh.noRules {
		var ps []tags.Problem
		if tr, ps = tags.Parse(tag, c.opts.Aliases, rules.IsKnownTag); len(ps) > 0 || tr == nil {
			c.add(ps...)
			tr = &tags.Rules{}
		}
	}
	st := readSchemaTag(c, m.sf)
	n := c.typeNode(m.sf.Type, sh.noRules || tr.SkipsFields())
	f.node = n
	if n.kind == nodeInvalid {
		return f, tr
	}
	if quoted {
		c.quote(n)
	}
	c.annotate(n, st)
	readMCPTag(c, m.sf, f)
	more := keywordRules(c, n, st)
	c.ruleSet(n, tr, more)
	c.presence(f, tr, st, m, omit)
	compileDefault(c, f, st)
	return f, tr
}

// jsonOptions reads the options of the json tag. It reports unknown ones,
// because encoding/json would silently ignore a misspelt omitempty.
func (c *compiler) jsonOptions(m *member) (omit, inline, quoted bool) {
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
			if near := wording.Nearest(o, []string{"omitempty", "omitzero", "inline", "string"}); near != "" {
				fix = "did you mean " + near + "?"
			}
			c.report(`json:"`+m.sf.Tag.Get("json")+`"`, fmt.Sprintf("unknown option %q", o), fix)
		}
	}
	return omit, inline, quoted
}

// inline makes a field the place for members that no other field names. Only a
// map of raw messages can be that: any other type would require checks of
// members with unknown names.
func (c *compiler) inline(sh *shape, f *field, m *member) {
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
// asks.
func (c *compiler) quote(n *node) {
	switch n.kind {
	case nodeInt, nodeUint, nodeFloat, nodeBool:
		n.quoted, n.name = true, "string"
	default:
		c.report(`json:",string"`, fmt.Sprintf("the string option works on numbers and booleans, not on %s", n.typ), "remove it")
	}
}

// presence decides whether a member must be there and what null and empty
// values mean. In arguments a member is optional if anything about it says so:
// a pointer, omitempty, a default, a condition. In results it is decided by
// what encoding/json writes: a member without omitempty is always there, and a
// nil pointer is null.
func (c *compiler) presence(f *field, tr *tags.Rules, st *schemaTag, m *member, omit bool) {
	n := f.node
	n.nullable = n.nullable || st.nullable
	required := tr.Required || st.required
	conditional := len(tr.Conditionals) > 0
	hasDefault := len(st.defaults) > 0
	switch {
	case required && hasDefault:
		c.report(m.tag("jsonschema"), "a required member never takes its default", "remove either the default or required")
	case st.required && conditional:
		c.report(m.tag("jsonschema"), "required leaves nothing for "+tr.Conditionals[0].Written+" to decide", "remove one of them")
	case tr.Required && n.nullable:
		c.report(m.tag("validate"), "required refuses null, but the member is nullable", "use jsonschema:\"required\" for a member that must be present and may be null")
	}
	for _, r := range tr.Conditionals {
		if hasDefault && !c.opts.Output && (strings.HasPrefix(r.Name, "required_") || r.Name == "skip_unless") {
			c.report(m.tag("validate"), "the default leaves nothing for "+r.Written+" to demand", "remove one of them")
		}
	}
	if c.opts.Output {
		f.required = !omit && !m.byPtr
		if len(n.ptrs) > 0 && !omit && !tr.Required {
			n.nullable = true
		}
		n.orZero = tr.Omit != "" && !omit && len(n.ptrs) == 0
		return
	}
	f.required = required || !(omit || tr.Omit != "" || conditional || tr.IsDefault || hasDefault || len(n.ptrs) > 0 || m.byPtr)
	f.omitZero = tr.Omit != "" && len(n.ptrs) == 0 && scalarNode(n)
	n.notEmpty = !f.required // seal corrects this for plain text
}

// tag returns one tag of the field with its key, as problems quote it.
func (m *member) tag(key string) string {
	return key + `:"` + m.sf.Tag.Get(key) + `"`
}

// scalarNode reports whether a node's zero value can stand for "not set".
func scalarNode(n *node) bool {
	switch n.kind {
	case nodeString, nodeInt, nodeUint, nodeFloat, nodeBool, nodeTime, nodeDuration, nodeNumber:
		return true
	}
	return false
}

// hasCode reports whether a check of the node is for the given keyword.
func hasCode(n *node, code string) bool {
	return slices.ContainsFunc(n.checks, func(k rules.Check) bool { return k.Code == code })
}

// ruleSet compiles validate rules, and the rules that jsonschema keywords stand
// for, onto a node, and those below dive onto its elements. Rules of a Null
// apply to its value. Whether the rules contradict each other is examined only
// if each is sound by itself, or a fault would be reported twice.
func (c *compiler) ruleSet(n *node, tr *tags.Rules, more []tags.Rule) {
	if n.kind == nodeInvalid {
		return
	}
	if n.kind == nodeNull {
		c.ruleSet(n.elem, tr, more)
		return
	}
	t := c.target(n)
	all := append(slices.Clone(more), tr.Own...)
	sound := true
	for _, r := range all {
		ks, p := rules.Compile(r, t)
		if p != nil {
			c.add(*p)
			sound = false
			continue
		}
		for _, k := range ks {
			if k.Code == "enum" && (!listsTexts(c, n, k) || c.sameEnum(n, k)) {
				continue
			}
			n.checks = append(n.checks, k)
		}
	}
	if sound {
		c.add(rules.Consistency(all, t)...)
	}
	if tr.Required {
		c.nonEmpty(n)
	}
	if tr.StructOnly != "" && n.kind != nodeObject {
		c.report("validate:\""+tr.StructOnly+"\"", fmt.Sprintf("%s needs a struct, not %s", tr.StructOnly, n.typ), "remove it")
	}
	if tr.IsDefault {
		n.checks = append(n.checks, zeroCheck(n))
	}
	if tr.Keys != nil {
		if n.kind != nodeMap {
			c.report("validate:\"keys\"", fmt.Sprintf("keys needs a map, not %s", n.typ), "")
		} else {
			c.inner(n.key, tr.Keys)
		}
	}
	if tr.Elem != nil {
		if n.elem == nil || n.kind == nodeRef {
			c.report("validate:\"dive\"", fmt.Sprintf("dive needs a slice, array or map, not %s", n.typ), "remove dive")
			return
		}
		c.inner(n.elem, tr.Elem)
	}
}

// inner compiles the rules below dive, on elements or keys. Elements have no
// siblings, so what compares fields is a fault there.
func (c *compiler) inner(n *node, tr *tags.Rules) {
	for _, r := range slices.Concat(tr.Conditionals, tr.Cross) {
		c.report(`validate:"`+r.Written+`"`, "compares with other fields, which an element does not have", "move it before dive, or into the element's type")
	}
	n.orZero = tr.Omit != ""
	c.ruleSet(n, tr, nil)
}

// nonEmpty adds what required means for a value that is there: text is not
// empty, unless a rule excludes that already, and with Options.RequiredNonZero
// a number is not 0 and a boolean is true.
func (c *compiler) nonEmpty(n *node) {
	if n.kind == nodeString {
		for _, k := range n.checks {
			if test, ok := k.Test.(rules.TextTest); ok && !test("") {
				return
			}
		}
		n.checks = append(n.checks, rules.RequiredText())
		return
	}
	if c.opts.RequiredNonZero {
		if k, ok := requiredNonZero(n); ok {
			n.checks = append(n.checks, k)
		}
	}
}

// sameEnum reports whether the node has an enumeration already, and reports a
// problem if the new one differs. A type with an Enum method often has the same
// values in a tag, and JSON Schema has room for one list. A tag may also keep some of
// the values of the method: its list is then the one.
func (c *compiler) sameEnum(n *node, k rules.Check) bool {
	for i, other := range n.checks {
		if other.Code != "enum" {
			continue
		}
		a, b := rules.EmittedBytes(other), rules.EmittedBytes(k)
		switch {
		case string(a) == string(b):
		case other.Tag == "Enum" && rules.Within(k, other):
			n.checks[i] = k
		default:
			c.report(k.Tag, fmt.Sprintf("allows %s, but %s allows %s", b, other.Tag, a), "make both the same, or remove one")
		}
		return true
	}
	return false
}

// listsTexts reports whether the type of n reads every text that a check lists. A text
// that it refuses is a problem, which has been reported then.
func listsTexts(c *compiler, n *node, k rules.Check) bool {
	if n.kind != nodeText {
		return true
	}
	s := &jsonschema.Schema{}
	k.Emit(s)
	for _, v := range append(s.Enum, s.Const) {
		text, ok := v.(string)
		if !ok {
			continue
		}
		if _, err := unmarshalText(n, text); err != nil {
			c.report(k.Tag, fmt.Sprintf("%q is not a value of %s: %v", text, n.typ, err), "write the text of a value")
			return false
		}
	}
	return true
}

// relations compiles the rules among the members of a struct. fieldTags has the
// parsed validate tag of each field, by index.
func (c *compiler) relations(sh *shape, fieldTags []*tags.Rules) {
	for i, tr := range fieldTags {
		if sh.fields[i].node.kind == nodeInvalid {
			continue
		}
		c.where.field, c.where.json = sh.fields[i].goName, sh.fields[i].name
		for _, r := range tr.Conditionals {
			compileConditional(c, sh, i, r)
		}
		for _, r := range tr.Cross {
			compileCross(c, sh, i, r)
		}
	}
	findCycles(c, sh)
	c.where.field, c.where.json = "", ""
}

// annotate puts the describing keywords on a node. writeOnly makes a value
// secret. A member that takes any value without a description is worth a warning, since
// a model would not know what to send.
func (c *compiler) annotate(n *node, st *schemaTag) {
	n.note = st.note
	if st.note.writing {
		n.secret = true
	}
	if (n.kind == nodeAny || n.kind == nodeRaw) && n.note.description == "" {
		c.warn("", "any value is accepted and nothing describes it", `add jsonschema_description:"…"`)
	}
}

// structFuncs attaches the struct rules of a type. A rule without a description
// is a fault, because callers could not know what it checks.
func (c *compiler) structFuncs(sh *shape) {
	if sh.noRules {
		return
	}
	for _, rule := range c.opts.Rules {
		r := rule.whole
		if r == nil || r.typ != sh.typ {
			continue
		}
		if r.describe == "" {
			c.report("", "a struct rule needs a description: callers cannot see what it checks", `write schema.NewStructRule("end must be after start", …)`)
		}
		sh.funcs = append(sh.funcs, r)
	}
}

// requiredNonZero returns the check that required adds with
// Options.RequiredNonZero. ok is false for kinds whose zero value is always
// accepted.
func requiredNonZero(n *node) (rules.Check, bool) {
	k := rules.Check{Tag: "required", Code: "not", Want: rules.OtherThan(n.target().Kind, json.Number("0")),
		Emit: func(s *jsonschema.Schema) { schemadoc.AddNot(s, &jsonschema.Schema{Const: json.Number("0")}) }}
	switch n.kind {
	case nodeInt, nodeUint, nodeFloat:
		k.Test = rules.NumberTest(func(v rules.Number) bool { return !v.IsZero() })
	case nodeBool:
		k.Code, k.Want = "const", "true"
		k.Emit = func(s *jsonschema.Schema) { schemadoc.AddConst(s, true) }
		k.Test = rules.BoolTest(func(v bool) bool { return v })
	default:
		return k, false
	}
	return k, true
}

// zeroCheck returns the check of validate:"isdefault": the value may be there,
// but only as the zero value. It depends on the node and not only on its kind:
// a type with a text form is zero if its decoded value is, whatever its text.
func zeroCheck(n *node) rules.Check {
	k := rules.Check{Tag: "isdefault", Code: wording.RuleExcluded, Want: "left out or 0"}
	constant := func(v any) { k.Emit = func(s *jsonschema.Schema) { schemadoc.AddConst(s, v) } }
	switch n.kind {
	case nodeString:
		k.Want = "left out or empty"
		constant("")
		k.Test = rules.TextTest(func(s string) bool { return s == "" })
	case nodeInt, nodeUint, nodeFloat:
		constant(json.Number("0"))
		k.Test = rules.NumberTest(rules.Number.IsZero)
	case nodeBool:
		k.Want = "left out or false"
		constant(false)
		k.Test = rules.BoolTest(func(v bool) bool { return !v })
	case nodeList, nodeMap, nodeBytes:
		k.Want = "left out or empty"
		k.Emit = func(s *jsonschema.Schema) {
			switch n.kind {
			case nodeList:
				schemadoc.Lower(&s.MaxItems, 0)
			case nodeMap:
				schemadoc.Lower(&s.MaxProperties, 0)
			default:
				schemadoc.Lower(&s.MaxLength, 0)
			}
		}
		k.Test = rules.CountTest(func(c int) bool { return c == 0 })
	default:
		k.Want, k.Note = "left out or empty", "Must be left out or empty."
		k.Test = rules.ValueTest(reflect.Value.IsZero)
	}
	return k
}
