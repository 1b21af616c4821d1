package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"reflect"
	"time"
)

// compiler turns a Go type into nodes and collects what is wrong with it.
type compiler struct {
	opts     *Options
	problems []Problem
	warnings []Problem
	shapes   map[shapeKey]*shape
	order    []*shape               // shapes in the order found
	open     map[reflect.Type]*node // slice, array and map types being compiled
	unions   map[reflect.Type]*unionShape
	where    place
	top      *shape   // of the root, nil if that is no struct
	later    []func() // what must wait until every type is compiled
}

type shapeKey struct {
	typ     reflect.Type
	noRules bool
	skip    string
}

// place is the declaration that problems are reported for.
type place struct {
	typ, field, json string
}

// report adds a problem at the current place.
func (c *compiler) report(tag, msg, fix string) {
	c.problems = append(c.problems, c.problem(tag, msg, fix))
}

// warn adds what is legal and yet likely a mistake.
func (c *compiler) warn(tag, msg, fix string) {
	c.warnings = append(c.warnings, c.problem(tag, msg, fix))
}

func (c *compiler) problem(tag, msg, fix string) Problem {
	return Problem{Type: c.where.typ, Field: c.where.field, JSONName: c.where.json, Tag: tag, Message: msg, Fix: fix}
}

func (c *compiler) add(ps ...problem) {
	for _, p := range ps {
		c.report(p.tag, p.msg, p.fix)
	}
}

var (
	typeDuration        = reflect.TypeFor[time.Duration]()
	typeNumber          = reflect.TypeFor[json.Number]()
	typeRaw             = reflect.TypeFor[json.RawMessage]()
	typeBigInt          = reflect.TypeFor[big.Int]()
	typeURL             = reflect.TypeFor[url.URL]()
	typeTextUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	typeTextMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	typeJSONUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	typeJSONMarshaler   = reflect.TypeFor[json.Marshaler]()
)

// implements tells whether t or *t has the methods of iface.
func implements(t, iface reflect.Type) bool {
	return t.Implements(iface) || reflect.PointerTo(t).Implements(iface)
}

// maxPointers is how many pointers may precede a type; it stops at type P *P.
const maxPointers = 8

// typeNode returns the node of a Go type as it is without tags. With noRules,
// the tags of structs in it are ignored.
func (c *compiler) typeNode(t reflect.Type, noRules bool) *node {
	n := &node{}
	for t.Kind() == reflect.Pointer {
		if len(n.ptrs) == maxPointers {
			c.report("", fmt.Sprintf("type %s has more than %d levels of pointers", t, maxPointers), "use a struct")
			return &node{kind: nodeInvalid, typ: t}
		}
		t = t.Elem()
		n.ptrs = append(n.ptrs, t)
	}
	n.typ = t
	if c.hooked(n) || c.builtin(n) {
		return n
	}
	if c.opts.Output && implements(t, typeJSONMarshaler) || !c.opts.Output && implements(t, typeJSONUnmarshaler) {
		c.report("", fmt.Sprintf("type %s has its own JSON form, so its schema is unknown", t),
			fmt.Sprintf("give it a method JSONSchema() *jsonschema.Schema, or MCPSchema with the same result, on %s or *%s", t, t))
		return n
	}
	if t.Kind() != reflect.Interface && (implements(t, typeTextUnmarshaler) || c.opts.Output && implements(t, typeTextMarshaler)) {
		n.kind, n.name = nodeText, "string"
		c.enumMethod(n)
		return n
	}
	c.plainType(n, noRules)
	c.enumMethod(n)
	return n
}

// plainType fills the node of a type that travels as its Go kind says.
func (c *compiler) plainType(n *node, noRules bool) {
	t := n.typ
	switch k := t.Kind(); k {
	case reflect.Bool:
		n.kind, n.name = nodeBool, "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n.kind, n.name, n.bits = nodeInt, "integer", uint8(t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n.kind, n.name, n.bits = nodeUint, "integer", uint8(t.Bits())
	case reflect.Float32, reflect.Float64:
		n.kind, n.name, n.bits = nodeFloat, "number", uint8(t.Bits())
	case reflect.String:
		n.kind, n.name, n.plain = nodeString, "string", true
	case reflect.Interface:
		c.interfaceType(n)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && !implements(t.Elem(), typeJSONUnmarshaler) && !implements(t.Elem(), typeTextUnmarshaler) {
			n.kind, n.name = nodeBytes, "string"
			return
		}
		c.container(n, func() {
			n.kind, n.name = nodeList, "array"
			n.elem = c.elemNode(t.Elem(), noRules)
		})
	case reflect.Array:
		c.container(n, func() {
			n.kind, n.name, n.length = nodeArray, "array", t.Len()
			n.elem = c.elemNode(t.Elem(), noRules)
		})
	case reflect.Map:
		c.container(n, func() {
			n.kind, n.name = nodeMap, "object"
			n.key = c.keyNode(t.Key())
			n.elem = c.elemNode(t.Elem(), noRules)
		})
	case reflect.Struct:
		n.kind, n.name = nodeObject, "object"
		n.object = c.shape(t, noRules, "")
	default:
		c.report("", fmt.Sprintf("type %s cannot travel as JSON: %s has no JSON form", t, k), `leave the field out with json:"-"`)
	}
}

// elemNode is typeNode for an element. In a result a nil pointer is null.
func (c *compiler) elemNode(t reflect.Type, noRules bool) *node {
	n := c.typeNode(t, noRules)
	n.nullable = n.nullable || c.opts.Output && len(n.ptrs) > 0
	return n
}

// container compiles a slice, array or map type, and notices when it contains itself.
func (c *compiler) container(n *node, compile func()) {
	if n.typ.Name() == "" {
		compile()
		return
	}
	if whole := c.open[n.typ]; whole != nil {
		n.kind, n.elem, n.name = nodeRef, whole, whole.name
		return
	}
	whole := &node{typ: n.typ}
	c.open[n.typ] = whole
	compile()
	delete(c.open, n.typ)
	ptrs := n.ptrs
	n.ptrs = nil
	*whole = *n
	n.ptrs = ptrs
}

func (c *compiler) interfaceType(n *node) {
	if u := c.unions[n.typ]; u != nil {
		n.kind, n.name, n.union, n.nullable = nodeUnion, "object", u, c.opts.Output
		c.variants(u)
		return
	}
	if n.typ.NumMethod() > 0 {
		c.report("", fmt.Sprintf("interface type %s has no known variants", n.typ),
			fmt.Sprintf("list them in schema.Options.Unions with schema.Union[%s](…); a server takes those by mcp.Options.Schema", n.typ))
		return
	}
	n.kind = nodeAny
}

// keyNode returns the node of a map key, which travels as a string.
func (c *compiler) keyNode(t reflect.Type) *node {
	n := &node{typ: t, name: "string"}
	switch k := t.Kind(); {
	case k == reflect.String && !implements(t, typeTextUnmarshaler):
		n.kind = nodeString
	case implements(t, typeTextUnmarshaler) || c.opts.Output && implements(t, typeTextMarshaler):
		n.kind, n.said = nodeText, textName(t)
	case k >= reflect.Int && k <= reflect.Int64:
		n.kind, n.bits, n.quoted = nodeInt, uint8(t.Bits()), true
	case k >= reflect.Uint && k <= reflect.Uint64:
		n.kind, n.bits, n.quoted = nodeUint, uint8(t.Bits()), true
	default:
		c.report("", fmt.Sprintf("map key type %s has no text form", t), "use strings, integers or an encoding.TextUnmarshaler as keys")
	}
	return n
}
