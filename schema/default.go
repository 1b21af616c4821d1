package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// defaultValue is what an absent member becomes. raw is its JSON. scalar holds
// the decoded value of a string, number or boolean without a pointer, ready to
// be copied; it is invalid for everything else, which is decoded from raw for
// each document so that no two calls share memory.
type defaultValue struct {
	raw    []byte
	scalar reflect.Value
}

// compileDefault compiles the default and the examples of a field. Each must
// pass the field's own rules, or the schema would offer what the server
// refuses; that is checked once the whole type is sealed. In results
// (Options.Output) a default is advertised and never applied.
func compileDefault(c *compiler, f *field, st *schemaTag) {
	n, where := f.node, c.where
	for _, text := range st.examples {
		raw := textJSON(n, []string{text})
		n.note.examples = append(n.note.examples, json.RawMessage(raw))
		c.values = append(c.values, func() { checkValue(c, where, n, `jsonschema:"example=`+text+`"`, raw) })
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
	c.values = append(c.values, func() {
		v := checkValue(c, where, n, tag, raw)
		if v.IsValid() && len(n.ptrs) == 0 && scalarNode(n) {
			f.def.scalar = v
		}
	})
}

// textJSON turns the text of a tag into JSON for a value of n. Text is quoted
// where the value travels as a string. Several texts, or one without brackets,
// become the items of a list. Everything else is taken as JSON already.
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

// checkValue decodes a default or an example with the rules of its node,
// without coercion, and returns the value. If it breaks a rule, the problem is
// reported for where and the result is the zero Value.
func checkValue(c *compiler, where place, n *node, tag string, raw []byte) reflect.Value {
	c.where = where
	if n.kind == nodeInvalid {
		return reflect.Value{}
	}
	typ := n.typ
	if len(n.ptrs) > 0 {
		typ = reflect.PointerTo(n.ptrs[0])
	}
	p := &Plan{opts: &Options{}, root: n, typ: typ, maxDepth: defaultMaxDepth, maxValues: defaultMaxValues}
	v := reflect.New(typ)
	var err error
	if failure := guard(func() { err = p.decode(context.Background(), raw, slotOf(v), false, nil) }); failure != nil {
		c.report(tag, fmt.Sprintf("a check of the value panicked: %v", failure), "mend the function, which also gets the values of callers")
		return reflect.Value{}
	}
	if err != nil {
		msg := err.Error()
		c.report(tag, "the value breaks the field's own rules: "+strings.ReplaceAll(msg, "(root): ", ""), fmt.Sprintf("write a value of type %s that they allow", n.typ))
		return reflect.Value{}
	}
	return v.Elem()
}
