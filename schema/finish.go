package schema

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"
	"github.com/talaria-go/mcp/schema/internal/wording"
	"github.com/talaria-go/mcp/schema/raw"
)

// finish does what needs the whole type: the checks that waited, the extra
// checks, the schema, the headers and the list of fields. Nothing is emitted
// from a type with problems.
func finish(c *compiler, p *Plan) {
	c.where = place{typ: p.typ.String()}
	checkRoot(c, p.root)
	c.top = p.root.object
	for i := 0; i < len(c.later); i++ {
		c.later[i]()
	}
	c.where = place{typ: p.typ.String()}
	if p.root.kind == nodeInvalid {
		return
	}
	boundHeaders(c)
	p.constrained = seal(c, p.root, map[any]bool{})
	if len(c.problems) > 0 {
		return
	}
	e := newEmitter(c.opts)
	p.schema = e.root(p.root)
	for _, f := range e.fails {
		c.report("", f, "make it work on the schema of its type")
	}
	p.text = schemadoc.Append(nil, p.schema)
	if !c.opts.Output && p.schema.Type != "object" {
		c.report("", "the schema of arguments must have type object", "")
	}
	if composed := schemadoc.Composition(p.schema); composed != "" && !c.opts.Output {
		c.report("", "the schema of arguments has "+composed+" at the top, which model providers refuse", "put it on a member, or use the rules required_without and excluded_with")
	}
	findHeaders(c, p, p.root, nil, map[any]bool{}, map[string]string{})
	p.fields = listFields(p.root, p.schema)
}

// checkRoot refuses what cannot be the arguments of a call: they are an object,
// and a union at the top is refused by model providers. Results may be
// anything.
func checkRoot(c *compiler, n *node) {
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

// seal prepares nodes for use: it marks those that need their decoded value and
// compiles the schemas that the plan itself does not know. It reports whether a
// value of the Go type can be invalid, in which case results have to be
// checked.
//
// seen has the nodes and shapes that are done, so that recursive types end.
func seal(c *compiler, n *node, seen map[any]bool) (constrained bool) {
	if n == nil || seen[n] {
		return false
	}
	seen[n] = true
	constrained = len(n.checks) > 0 || n.kind == nodeText && n.own != nil || n.kind == nodeURL
	for _, k := range n.checks {
		switch k.Test.(type) {
		case rules.ValueTest, *rules.UniqueRule, rules.CustomTest:
			n.special = true
		}
	}
	if n.kind == nodeString {
		for _, k := range n.checks {
			if k.Emit == nil {
				continue
			}
			s := &jsonschema.Schema{}
			k.Emit(s)
			n.plain = n.plain && s.Enum == nil && s.Const == nil && s.Format == ""
		}
		n.notEmpty = n.notEmpty && !n.plain
	}
	if n.kind == nodeOpaque {
		constrained = true
		n.verify = newVerifier(c, newEmitter(c.opts).root(n), n.typ.String())
	} else if n.object == nil {
		if extend := extender(n.typ); extend != nil && n.kind != nodeRef && n.kind != nodeUnion {
			constrained = true
			n.extend = extend
			n.verify = newVerifier(c, newEmitter(c.opts).root(n), n.typ.String())
		}
	}
	if n.hookedKey {
		constrained = true
		n.verify = newVerifier(c, n.own(), n.typ.String())
	}
	n.special = n.special || n.strict || n.secret || n.verify != nil
	constrained = seal(c, n.elem, seen) || constrained
	constrained = seal(c, n.key, seen) || constrained
	if n.object != nil {
		constrained = sealShape(c, n, seen) || constrained
	}
	if n.union != nil {
		for _, v := range n.union.variants {
			constrained = seal(c, v.node, seen) || true
		}
	}
	return constrained
}

// sealShape is seal for the members of a struct. If a method extends the schema
// by keywords that check, the object is verified against the whole schema too:
// the plan knows nothing of what the method did.
func sealShape(c *compiler, n *node, seen map[any]bool) (constrained bool) {
	sh := n.object
	if seen[sh] {
		return false
	}
	seen[sh] = true
	constrained = len(sh.conds) > 0 || len(sh.cross) > 0 || len(sh.funcs) > 0
	for i := range sh.fields {
		constrained = seal(c, sh.fields[i].node, seen) || constrained
		sh.holdsSecret = sh.holdsSecret || sh.fields[i].node.holdsSecret()
	}
	if len(sh.extend) > 0 {
		extended := newEmitter(c.opts).root(&node{kind: nodeObject, name: "object", typ: sh.typ, object: sh})
		hooks := sh.extend
		sh.extend = nil
		plain := newEmitter(c.opts).root(&node{kind: nodeObject, name: "object", typ: sh.typ, object: sh})
		sh.extend = hooks
		if string(schemadoc.Checking(extended)) != string(schemadoc.Checking(plain)) {
			constrained = true
			sh.verify = newVerifier(c, extended, sh.typ.String())
		}
	}
	return constrained
}

// newVerifier compiles a schema that is checked on the raw text, of the type
// what.
func newVerifier(c *compiler, s *jsonschema.Schema, what string) *raw.Schema {
	compiled, err := raw.Compile(schemadoc.Append(nil, s))
	if err != nil {
		c.report("", fmt.Sprintf("the schema of %s is not valid: %v", what, err), "")
	}
	return compiled
}

// listFields describes the members of the root from their schemas, for forms
// and completions that do not read JSON Schema.
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
				out.Enum = append(out.Enum, string(wording.AppendJSON(nil, v)))
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
