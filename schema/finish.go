package schema

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/invopop/jsonschema"
)

// finish does what needs the whole type: the root's form, schema, extra
// checks, headers and the list of fields.
func (c *compiler) finish(p *Plan) {
	c.where = place{typ: p.typ.String()}
	c.checkRoot(p.root)
	c.top = p.root.object
	for i := 0; i < len(c.later); i++ {
		c.later[i]()
	}
	c.where = place{typ: p.typ.String()}
	if p.root.kind == nodeInvalid {
		return
	}
	c.boundHeaders()
	p.constrained = c.seal(p.root, map[any]bool{})
	if len(c.problems) > 0 {
		return
	}
	e := newEmitter(c.opts)
	p.schema = e.root(p.root)
	for _, f := range e.fails {
		c.report("", f, "make it work on the schema of its type")
	}
	p.text = encodeSchema(nil, p.schema)
	if !c.opts.Output && p.schema.Type != "object" {
		c.report("", "the schema of arguments must have type object", "")
	}
	if composed := composition(p.schema); composed != "" && !c.opts.Output {
		c.report("", "the schema of arguments has "+composed+" at the top, which model providers refuse", "put it on a member, or use the rules required_without and excluded_with")
	}
	c.headers(p, p.root, nil, map[any]bool{}, map[string]string{})
	p.fields = listFields(p.root, p.schema)
}

// checkRoot refuses what cannot be the arguments of a call.
func (c *compiler) checkRoot(n *node) {
	if c.opts.Output {
		return
	}
	switch n.kind {
	case nodeObject, nodeMap, nodeOpaque:
	case nodeInvalid:
	case nodeUnion:
		c.report("", "arguments cannot be a union: model providers refuse anyOf at the top", "make the union a field of a struct")
	default:
		c.report("", fmt.Sprintf("arguments are an object, and %s is not one", n.typ), "use a struct, or a map with string keys")
	}
}

// seal prepares nodes for use: it marks those that need their decoded value
// and compiles the schemas that the plan itself does not know. It reports
// whether a value of the Go type can be invalid.
func (c *compiler) seal(n *node, seen map[any]bool) (constrained bool) {
	if n == nil || seen[n] {
		return false
	}
	seen[n] = true
	constrained = len(n.checks) > 0 || n.kind == nodeText && n.own != nil || n.kind == nodeURL
	for _, k := range n.checks {
		n.special = n.special || k.value != nil || k.custom != nil
	}
	if n.kind == nodeString {
		for _, k := range n.checks {
			if k.emit == nil {
				continue
			}
			s := &jsonschema.Schema{}
			k.emit(s)
			n.plain = n.plain && s.Enum == nil && s.Const == nil && s.Format == ""
		}
		n.notEmpty = n.notEmpty && !n.plain
	}
	if n.kind == nodeOpaque {
		constrained = true
		n.verify = c.verifier(newEmitter(c.opts).root(n), n.typ.String())
	} else if n.object == nil {
		if extend := extender(n.typ); extend != nil && n.kind != nodeRef && n.kind != nodeUnion {
			constrained = true
			n.extend = extend
			n.verify = c.verifier(newEmitter(c.opts).root(n), n.typ.String())
		}
	}
	n.special = n.special || n.strict || n.secret || n.verify != nil
	constrained = c.seal(n.elem, seen) || constrained
	constrained = c.seal(n.key, seen) || constrained
	if n.object != nil {
		constrained = c.sealShape(n, seen) || constrained
	}
	if n.union != nil {
		for _, v := range n.union.variants {
			constrained = c.seal(v.node, seen) || true
		}
	}
	return constrained
}

func (c *compiler) sealShape(n *node, seen map[any]bool) (constrained bool) {
	sh := n.object
	if seen[sh] {
		return false
	}
	seen[sh] = true
	constrained = len(sh.conds) > 0 || len(sh.cross) > 0 || len(sh.funcs) > 0
	for i := range sh.fields {
		constrained = c.seal(sh.fields[i].node, seen) || constrained
	}
	if len(sh.extend) > 0 {
		extended := newEmitter(c.opts).root(&node{kind: nodeObject, name: "object", typ: sh.typ, object: sh})
		hooks := sh.extend
		sh.extend = nil
		plain := newEmitter(c.opts).root(&node{kind: nodeObject, name: "object", typ: sh.typ, object: sh})
		sh.extend = hooks
		if string(checking(extended)) != string(checking(plain)) {
			constrained = true
			sh.verify = c.verifier(extended, sh.typ.String())
		}
	}
	return constrained
}

// checking returns the part of a schema that limits values, for comparison.
func checking(s *jsonschema.Schema) []byte {
	s = clone(s)
	describing(s)
	return encodeSchema(nil, s)
}

// describing removes the keywords that only describe, here and in properties.
func describing(s *jsonschema.Schema) {
	s.Title, s.Description, s.Comments, s.Default, s.Examples = "", "", "", nil, nil
	s.Deprecated, s.ReadOnly, s.WriteOnly = false, false, false
	for k := range s.Extras {
		if strings.HasPrefix(k, "x-") || k == "default" {
			delete(s.Extras, k)
		}
	}
	if s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			describing(p.Value)
		}
	}
}

// verifier compiles a schema that is checked on the raw text.
func (c *compiler) verifier(s *jsonschema.Schema, what string) *Raw {
	raw, err := CompileRaw(encodeSchema(nil, s))
	if err != nil {
		c.report("", fmt.Sprintf("the schema of %s is not valid: %v", what, err), "")
	}
	return raw
}

// boundHeaders keeps mirrored integers to what every JSON implementation
// represents exactly, as the specification demands.
func (c *compiler) boundHeaders() {
	for _, sh := range c.order {
		for i := range sh.fields {
			f := &sh.fields[i]
			n := f.node
			if f.header == "" || n.bits != 64 || n.kind != nodeInt && n.kind != nodeUint {
				continue
			}
			limit := fmt.Sprint(maxSafeInteger)
			rules := []rule{{name: "max", param: limit, hasParam: true, written: "max=" + limit}}
			if n.kind == nodeInt {
				rules = append(rules, rule{name: "min", param: "-" + limit, hasParam: true, written: "min=-" + limit})
			}
			for _, r := range rules {
				if ks, p := compileRule(r, n.target(c.opts)); p == nil {
					n.checks = append(n.checks, ks...)
				}
			}
		}
	}
}

// headers collects the mirrored arguments that are reached through structs
// alone, and reports the others.
func (c *compiler) headers(p *Plan, n *node, path []string, open map[any]bool, taken map[string]string) {
	if n.object == nil || open[n.object] {
		return
	}
	open[n.object] = true
	for i := range n.object.fields {
		f := &n.object.fields[i]
		at := append(append([]string(nil), path...), f.name)
		if f.header != "" {
			c.where = place{n.object.typ.String(), f.goName, f.name}
			lower := strings.ToLower(f.header)
			if old, dup := taken[lower]; dup {
				c.report(`mcp:"header=`+f.header+`"`, fmt.Sprintf("the header %q is taken by /%s", f.header, old), "header names differ in more than case")
			}
			taken[lower] = strings.Join(at, "/")
			if f.node.nullable {
				c.report(`mcp:"header=`+f.header+`"`, "only a string, a boolean or an integer can be mirrored into a header, and this may be null", "remove nullable, or the header")
			}
			kind := f.node.name
			p.headers = append(p.headers, HeaderParam{f.header, at, kind})
		}
		c.headers(p, f.node, at, open, taken)
	}
	delete(open, n.object)
	if len(path) == 0 {
		c.unreachableHeaders(p)
	}
}

// composition names a keyword that combines schemas, if there is one on this
// level.
func composition(s *jsonschema.Schema) string {
	switch {
	case s.AnyOf != nil:
		return "anyOf"
	case s.OneOf != nil:
		return "oneOf"
	case s.AllOf != nil:
		return "allOf"
	}
	return ""
}

// unreachableHeaders reports header tags below lists, maps and unions.
func (c *compiler) unreachableHeaders(p *Plan) {
	reached := map[string]bool{}
	for _, h := range p.headers {
		reached[h.Header] = true
	}
	for _, sh := range c.order {
		for i := range sh.fields {
			f := &sh.fields[i]
			if f.header != "" && (!reached[f.header] || sh.recursive) {
				c.where = place{sh.typ.String(), f.goName, f.name}
				c.report(`mcp:"header=`+f.header+`"`, "a mirrored argument must be reached through objects alone, not through lists, maps, unions or recursion", "move it up, or remove the header")
			}
		}
	}
}

// listFields describes the members of the root.
func listFields(n *node, s *jsonschema.Schema) []Field {
	if n.object == nil || s.Properties == nil {
		return nil
	}
	fields := make([]Field, 0, len(n.object.fields))
	for i := range n.object.fields {
		f := &n.object.fields[i]
		ps, ok := s.Properties.Get(f.name)
		if !ok {
			continue
		}
		out := Field{Name: f.name, GoName: f.goName, Description: ps.Description, Title: ps.Title, Required: f.required,
			Type: f.node.name, Format: ps.Format, Header: f.header, Secret: f.node.secret}
		for _, v := range ps.Enum {
			if text, isText := v.(string); isText {
				out.Enum = append(out.Enum, text)
			} else if v != nil {
				out.Enum = append(out.Enum, string(appendAny(nil, v)))
			}
		}
		if raw, ok := f.node.note.def.(json.RawMessage); ok {
			out.Default = plainJSON(raw)
		}
		fields = append(fields, out)
	}
	return fields
}

// plainJSON returns scalar JSON as a Go value, and leaves the rest as it is.
func plainJSON(raw json.RawMessage) any {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return raw
	}
	switch v.(type) {
	case string, bool, json.Number:
		return v
	}
	return raw
}

// textSchema returns the schema of a type with a text form, never nil.
func (n *node) textSchema() *jsonschema.Schema {
	if n.own == nil {
		return &jsonschema.Schema{}
	}
	return n.own()
}
