package schema

import (
	"fmt"
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/schemadoc"
)

// TypeSchema is the JSON Schema of a Go type that is declared elsewhere. Put it into
// Options.Types.
type TypeSchema struct {
	typ    reflect.Type
	schema *jsonschema.Schema
}

// Declare gives the schema of the type T, which has its own JSON form and comes from
// another module, so that it cannot have a method JSONSchema:
//
//	schema.Declare[decimal.Decimal](&jsonschema.Schema{Type: "string", Pattern: `^-?[0-9]+(\.[0-9]+)?$`})
//
// Values are checked against the schema and then decoded by T's own methods. It takes
// precedence over methods of the type. T is neither a pointer nor an interface;
// the schema also applies to pointers to T, and to keys of maps if it is for strings. The
// schema has no $ref and no $defs. Faults are reported when any type is compiled. Servers
// take declared schemas by mcp.Options.Schema.
func Declare[T any](s *jsonschema.Schema) TypeSchema {
	return TypeSchema{reflect.TypeFor[T](), schemadoc.Clone(s)}
}

// declare reads Options.Types, and reports what is wrong with them.
func declare(c *compiler) {
	const tag = "Options.Types"
	c.declared = make(map[reflect.Type]*jsonschema.Schema, len(c.opts.Types))
	for _, d := range c.opts.Types {
		switch {
		case d.typ == nil:
			c.report(tag, "a TypeSchema is empty", "make it with schema.Declare")
		case d.typ.Kind() == reflect.Pointer:
			c.report(tag, fmt.Sprintf("%s is a pointer", d.typ), fmt.Sprintf("declare %s, which covers pointers to it", d.typ.Elem()))
		case d.typ.Kind() == reflect.Interface:
			c.report(tag, fmt.Sprintf("%s is an interface", d.typ), fmt.Sprintf("list its variants in Options.Unions with schema.Union[%s](…)", d.typ))
		case d.schema == nil:
			c.report(tag, fmt.Sprintf("the schema of %s is nil", d.typ), "give one")
		case c.declared[d.typ] != nil:
			c.report(tag, fmt.Sprintf("%s has two schemas", d.typ), "remove one")
		default:
			c.declared[d.typ] = d.schema
		}
	}
}
