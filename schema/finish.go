package schema

import (
	"encoding/json"
	"fmt"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"
	"github.com/talaria-go/mcp/schema/internal/wording"
	"github.com/talaria-go/mcp/schema/raw"
)

// finish does what needs the whole type: it runs the checks that were put off,
// prepares the nodes for decoding, and makes the schema, the list of headers
// and the list of fields. It stores them in p. If the type has problems it
// returns early, since nothing is emitted from such a type.
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
	p.unsaid = c.unsaid
	for _, check := range c.values {
		check()
	}
	c.where = place{typ: p.typ.String()}
	if len(c.problems) > 0 {
		return
	}
	e := newEmitter(c.opts)
	p.schema = e.root(p.root)
	for _, f := range e.fails {
		c.report("", f, "make it work on the schema of its type")
	}
	p.text = schemadoc.Append(make([]byte, 0, 1024), p.schema)
	if !c.opts.Output && p.schema.Type != "object" {
		c.report("", "the schema of arguments must have type object", "")
	}
	if composed := schemadoc.Composition(p.schema); composed != "" && !c.opts.Output {
		c.report("", "the schema of arguments has "+composed+" at the top, which model providers refuse", "put it on a member, or use the rules required_without and excluded_with")
	}
	findHeaders(c, p, p.root, nil, map[any]bool{}, map[string]string{})
	p.fields = listFields(p.root, p.schema)
}

// checkRoot refuses types that cannot be the arguments of a call. The
// specification demands an object there, and model providers refuse a union at
// the top. Results may be anything.
func checkRoot(c *compiler, n *node) {
	if c.opts.Output {
		return
	}
	switch n.kind {
	case nodeObject, nodeMap, nodeOpaque:
	case nodeInvalid:
	case nodeAny, nodeRaw:
		c.report("", fmt.Sprintf("arguments are an object, and %s does not say which there are", n.typ), "use a struct, or a map with string keys; a tool can have its schema from mcp.InputSchema")
	case nodeUnion:
		c.report("", "arguments cannot be a union: model providers refuse anyOf at the top", "make the union a field of a struct")
	default:
		c.report("", fmt.Sprintf("arguments are an object, and %s is not one", n.typ), "use a struct, or a map with string keys")
	}
}

// seal prepares a node, and everything below it, for decoding: it sets the
// fields that select the decoder's fast path and compiles the schemas that only
// package raw can check. It reports whether some value of the Go type is not
// valid by the schema; results of such a type have to be checked before they
// are sent.
//
// seen holds the nodes and shapes that are done, so that recursive types end. A
// node changes no more after seal.
func seal(c *compiler, n *node, seen map[any]bool) (constrained bool) {
	if n == nil || seen[n] {
		return false
	}
	seen[n] = true
	constrained = len(n.checks) > 0 || n.kind == nodeText && n.own != nil || n.kind == nodeURL
	for _, k := range n.checks {
		c.unsaid = c.unsaid || k.Emit == nil || n.quoted
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
			c.one = jsonschema.Schema{}
			k.Emit(&c.one)
			n.plain = n.plain && c.one.Enum == nil && c.one.Const == nil && c.one.Format == ""
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

// sealShape is seal for the members of a struct. If JSONSchemaExtend has added
// keywords that check, objects are verified against the extended schema too,
// because the tree does not have those keywords. The test compares the schema
// with and without the method.
func sealShape(c *compiler, n *node, seen map[any]bool) (constrained bool) {
	sh := n.object
	if seen[sh] {
		return false
	}
	seen[sh] = true
	constrained = len(sh.conds) > 0 || len(sh.cross) > 0 || len(sh.funcs) > 0
	c.unsaid = c.unsaid || constrained
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

// newVerifier compiles a schema for checking raw text. what names the type in a
// problem. It returns nil after reporting that the schema is not valid.
func newVerifier(c *compiler, s *jsonschema.Schema, what string) *verifier {
	compiled, err := raw.Compile(schemadoc.Append(nil, s))
	if err != nil {
		c.report("", fmt.Sprintf("the schema of %s is not valid: %v", what, err), "")
		return nil
	}
	v := &verifier{schema: compiled}
	if !c.opts.Strict && !c.opts.Output {
		v.fitter, _ = raw.NewFitter(compiled) // a default that is not valid is not filled in
	}
	return v
}

// verifier checks texts against a schema that the tree does not have.
type verifier struct {
	schema *raw.Schema
	fitter *raw.Fitter // nil in plans that coerce nothing
}

// read checks a text. With coerce it returns the text as the schema means it.
func (v *verifier) read(text []byte, coerce bool) ([]byte, error) {
	if coerce {
		return v.fitter.Fit(text)
	}
	return text, v.schema.Check(text)
}

// listFields returns the members of the root for Plan.Fields, with the
// descriptions that the schema gives them. It returns nil if the root is not a
// struct.
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

// plainJSON returns a JSON string, boolean or number as a Go value, and any
// other JSON unchanged.
func plainJSON(raw json.RawMessage) any {
	switch raw[0] {
	case '{', '[', 'n':
		return raw
	case '"':
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return raw
		}
		return text
	case 't', 'f':
		return raw[0] == 't'
	}
	return json.Number(raw)
}
