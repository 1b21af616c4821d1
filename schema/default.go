package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// defaultValue is what an absent member becomes. Scalars are stored ready;
// others are read from JSON each time, so that no two calls share memory.
type defaultValue struct {
	raw    []byte
	scalar reflect.Value
}

// defaults compiles the default and the examples of a field. Both must pass
// the field's own rules; that is checked when the whole type is known.
func (c *compiler) defaults(f *field, st *schemaTag) {
	n, where := f.node, c.where
	for _, text := range st.examples {
		raw := textJSON(n, []string{text})
		n.note.examples = append(n.note.examples, json.RawMessage(raw))
		c.later = append(c.later, func() { c.checkValue(where, n, `jsonschema:"example=`+text+`"`, raw) })
	}
	if len(st.defaults) == 0 {
		return
	}
	raw := textJSON(n, st.defaults)
	tag := `jsonschema:"default=` + strings.Join(st.defaults, ",default=") + `"`
	if len(st.defaults) > 1 && n.kind != nodeList && n.kind != nodeArray {
		c.report(tag, "only a list has several defaults", "keep one")
		return
	}
	n.note.hasDefault, n.note.def = true, json.RawMessage(raw)
	if c.opts.Output {
		return
	}
	f.def = &defaultValue{raw: raw}
	c.later = append(c.later, func() {
		v := c.checkValue(where, n, tag, raw)
		if v.IsValid() && len(n.ptrs) == 0 && scalarNode(n) {
			f.def.scalar = v
		}
	})
}

// textJSON turns the text of a tag into JSON for a node: text is quoted where
// the value travels as a string, all else is JSON already.
func textJSON(n *node, texts []string) []byte {
	first := texts[0]
	switch {
	case n.kind == nodeNull || n.kind == nodeRef:
		if first == "null" {
			return []byte(first)
		}
		return textJSON(n.elem, texts)
	case n.name == "string":
		if n.nullable && first == "null" {
			return []byte(first)
		}
		return jsonx.AppendString(nil, first)
	case (n.kind == nodeList || n.kind == nodeArray) && (len(texts) > 1 || !strings.HasPrefix(strings.TrimSpace(first), "[")):
		out := []byte{'['}
		for i, text := range texts {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, textJSON(n.elem, []string{text})...)
		}
		return append(out, ']')
	}
	return []byte(strings.TrimSpace(first))
}

// checkValue reads a default or an example with the rules of its node, and
// reports what is wrong with it. It returns the zero Value then.
func (c *compiler) checkValue(where place, n *node, tag string, raw []byte) reflect.Value {
	c.where = where
	if n.kind == nodeInvalid {
		return reflect.Value{}
	}
	typ := n.typ
	if len(n.ptrs) > 0 {
		typ = reflect.PointerTo(n.ptrs[0])
	}
	p := &Plan{opts: &Options{}, root: n, typ: typ, maxDepth: defaultMaxDepth, maxNodes: defaultMaxNodes}
	v := reflect.New(typ)
	if err := p.decode(context.Background(), raw, v.UnsafePointer(), false, nil); err != nil {
		msg := err.Error()
		c.report(tag, "the value breaks the field's own rules: "+strings.ReplaceAll(msg, "(root): ", ""), fmt.Sprintf("write a value of type %s that they allow", n.typ))
		return reflect.Value{}
	}
	return v.Elem()
}

// setDefault stores the default of an absent field.
func (d *decoder) setDefault(f *field, p unsafe.Pointer) {
	at := f.at(p)
	if f.def.scalar.IsValid() {
		reflect.NewAt(f.node.typ, at).Elem().Set(f.def.scalar)
		return
	}
	outer, lenient := d.s, d.lenient
	d.s, d.lenient = jsonx.Scanner{Buf: f.def.raw}, false
	d.push(f.name)
	d.value(f.node, at)
	d.pop()
	d.s, d.lenient = outer, lenient
}
