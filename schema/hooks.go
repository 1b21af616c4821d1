package schema

import (
	"fmt"
	"reflect"

	"github.com/invopop/jsonschema"
)

type (
	mcpSchemer   interface{ MCPSchema() *jsonschema.Schema }
	jsonSchemer  interface{ JSONSchema() *jsonschema.Schema }
	jsonExtender interface{ JSONSchemaExtend(*jsonschema.Schema) }
)

// hooked fills the node of a type that brings its schema along, with value or
// pointer receivers.
func (c *compiler) hooked(n *node) bool {
	if n.typ.Kind() == reflect.Interface {
		return false
	}
	v := reflect.New(n.typ).Interface()
	var call func() *jsonschema.Schema
	var name string
	switch h := v.(type) {
	case mcpSchemer:
		call, name = h.MCPSchema, "MCPSchema"
	case jsonSchemer:
		call, name = h.JSONSchema, "JSONSchema"
	default:
		return false
	}
	var s *jsonschema.Schema
	if err := guard(func() { s = clone(call()) }); err != nil {
		c.report("", fmt.Sprintf("method %s of %s panicked: %v", name, n.typ, err), "make it work on the zero value")
		return true
	}
	if s == nil {
		c.report("", fmt.Sprintf("method %s of %s returned nil", name, n.typ), "return a schema")
		return true
	}
	s.Version, s.ID = "", ""
	if refers(s) {
		c.report("", fmt.Sprintf("the schema of %s has $ref or $defs, which mean something else inside another schema", n.typ), "write the parts inline")
	}
	n.kind, n.name = nodeOpaque, s.Type
	n.own = func() *jsonschema.Schema { return clone(s) }
	return true
}

// enumMethod limits a type with a method Enum() []T to the values that it
// lists.
func (c *compiler) enumMethod(n *node) {
	switch {
	case n.kind == nodeString, n.kind == nodeInt, n.kind == nodeUint, n.kind == nodeFloat, n.kind == nodeBool:
	case n.kind == nodeText && n.typ.Kind() == reflect.String:
	default:
		return
	}
	m := reflect.New(n.typ).MethodByName("Enum")
	if !m.IsValid() || m.Type().NumIn() != 0 || m.Type().NumOut() != 1 || m.Type().Out(0) != reflect.SliceOf(n.typ) {
		return
	}
	var list reflect.Value
	if err := guard(func() { list = m.Call(nil)[0] }); err != nil {
		c.report("", fmt.Sprintf("method Enum of %s panicked: %v", n.typ, err), "make it work on the zero value")
		return
	}
	values := make([]reflect.Value, list.Len())
	seen := map[any]bool{}
	for i := range values {
		values[i] = list.Index(i)
		seen[plainValue(values[i])] = true
	}
	if len(values) == 0 || len(seen) != len(values) {
		c.report("", fmt.Sprintf("method Enum of %s must list different values, and at least one", n.typ), "")
		return
	}
	n.checks = append(n.checks, setCheck("Enum", "enum", values))
}

// extender returns the JSONSchemaExtend method of a type, if it has one.
func extender(t reflect.Type) func(*jsonschema.Schema) {
	if t.Kind() == reflect.Interface {
		return nil
	}
	if h, ok := reflect.New(t).Interface().(jsonExtender); ok {
		return h.JSONSchemaExtend
	}
	return nil
}

// guard runs f and returns what it panicked with as an error.
func guard(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	f()
	return nil
}
