package schema

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/invopop/jsonschema"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"
	"github.com/talaria-go/mcp/schema/internal/tags"

	"github.com/talaria-go/mcp/schema/internal/rules"
)

// compiler builds the tree of nodes for one Go type and collects what is wrong
// with the type and its tags. It lives for one call of Compile and is used by
// one goroutine.
//
// It continues after a fault, so that the author of a type sees all of them at
// once: a type that cannot be used leaves a node of kind nodeInvalid, which
// later steps skip. Questions about the whole type, such as whether a default
// passes the rules of a struct that is not compiled yet, are put into later and
// run by finish.
type compiler struct {
	opts *Options
	// problems keep the type from being used; Compile returns them as one
	// RegistrationError. warnings do not.
	problems []Problem
	warnings []Problem
	// shapes holds the structs compiled so far. order lists the same shapes in
	// the order in which they were found, so that problems are reported in a
	// stable order.
	shapes map[shapeKey]*shape
	order  []*shape
	unsaid bool // some rule is in no schema, or in none that every host takes
	// open holds the named slice, array and map types whose element is being
	// compiled; see container.
	open map[reflect.Type]*node
	// unions holds the interface types of Options.Unions. Their variants are
	// compiled when the first member uses them.
	unions map[reflect.Type]*unionShape
	// own holds the rules of Options.Rules by tag name.
	own map[string]rules.CompileFunc
	// declared holds the schemas of Options.Types.
	declared map[reflect.Type]*jsonschema.Schema
	// where is the declaration that is being compiled. Problems and warnings are
	// reported for it, so the code that changes it restores it.
	where place
	// top is the shape of the root, or nil if the root is not a struct. It is set by
	// finish; until then rules that name a path from the top have to wait.
	top *shape
	// one is room for what a check writes.
	one jsonschema.Schema
	// later holds functions that run once every type is compiled. They may
	// append to it. values holds those that decode a value, and run after seal.
	later, values []func()
}

// target describes n to the package rules: what kind of value it is and what
// the options permit.
func (c *compiler) target(n *node) rules.Target {
	t := n.target()
	t.Own, t.ServerState, t.Validator = c.own, c.opts.AllowServerState, c.opts.Validator
	return t
}

// shapeKey identifies one way of using a struct type; each way has a shape of
// its own. noRules is the struct without the rules of its fields, as
// validate:"structonly" asks. skip is "tag=name" for the struct as a variant of
// a union, where one member has one value, and "" otherwise.
type shapeKey struct {
	typ     reflect.Type
	noRules bool
	skip    string
}

// place is the declaration that problems are reported for: the type, the Go
// name of the field and its name in JSON. Fields of embedded structs are
// reported for the struct that declares them, since that is where to fix them.
type place struct {
	typ, field, json string
}

// report adds a problem at the current place. tag is "" for a fault of the type
// itself, and fix is "" if there is nothing to suggest.
func (c *compiler) report(tag, msg, fix string) {
	c.problems = append(c.problems, c.problem(tag, msg, fix))
}

// warn adds a warning at the current place: what is legal and yet probably a
// mistake. Warnings do not keep a type from being used; Plan.Warnings returns
// them.
func (c *compiler) warn(tag, msg, fix string) {
	c.warnings = append(c.warnings, c.problem(tag, msg, fix))
}

// problem makes a Problem of the current place.
func (c *compiler) problem(tag, msg, fix string) Problem {
	return Problem{Type: c.where.typ, Field: c.where.field, JSONName: c.where.json, Tag: tag, Message: msg, Fix: fix}
}

// add reports problems found by the packages tags and rules, which know the tag
// but not the type and field.
func (c *compiler) add(ps ...tags.Problem) {
	for _, p := range ps {
		c.report(p.Tag, p.Msg, p.Fix)
	}
}

// The types that are known by identity, and the interfaces that say how a type
// travels.
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

// implements reports whether t or *t has the methods of iface. Values of a type
// are addressable wherever they are decoded, so methods with pointer receivers
// count.
func implements(t, iface reflect.Type) bool {
	return t.Implements(iface) || reflect.PointerTo(t).Implements(iface)
}

// maxPointers limits the pointers in front of a type. It ends the loop for a
// type such as "type P *P".
const maxPointers = 8

// typeNode returns the node of a Go type without the tags of the field that
// uses it. With noRules the validate tags of structs in it are ignored. The
// node is never nil; for a type that cannot be used its kind is nodeInvalid and
// a problem has been reported.
//
// The order of the checks decides how a type travels. A method that returns a
// schema comes first, because its author knows best. Then come types whose form
// this package knows, then types with MarshalJSON or UnmarshalJSON, which are
// rejected because the accepted values are unknown, then types with a text
// form. Everything else travels as its kind.
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
			fmt.Sprintf("give it a method JSONSchema() *jsonschema.Schema, or MCPSchema with the same result, on %s or *%s; for a type of another module put schema.Declare[%s](…) into schema.Options.Types, which a server takes by mcp.Options.Schema", t, t, t))
		return n
	}
	if t.Kind() != reflect.Interface && c.hasText(t) {
		n.kind, n.name = nodeText, "string"
		c.enumMethod(n)
		return n
	}
	c.plainType(n, noRules)
	c.enumMethod(n)
	return n
}

// hasText reports whether values of t travel as text by methods of their own. What
// counts is the method for the direction: a result with only UnmarshalText is written
// by its Go kind, and arguments with only MarshalText are read so.
func (c *compiler) hasText(t reflect.Type) bool {
	if c.opts.Output {
		return implements(t, typeTextMarshaler)
	}
	return implements(t, typeTextUnmarshaler)
}

// plainType fills the node of a type that travels as its Go kind says. It
// follows encoding/json. A slice whose byte-sized element decodes itself is an
// array and not base64, also as in encoding/json. Kinds without a JSON form,
// such as channels and functions, are reported.
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

// elemNode is typeNode for the element of a slice, array or map. In a result a
// nil pointer is written as null, so such an element is nullable; in arguments
// null is not an element.
func (c *compiler) elemNode(t reflect.Type, noRules bool) *node {
	n := c.typeNode(t, noRules)
	n.nullable = n.nullable || c.opts.Output && len(n.ptrs) > 0
	return n
}

// container compiles a slice, array or map type and detects that it contains
// itself, as in "type Tree []Tree". Only a named type can. The inner use
// becomes a nodeRef to the outer one, which the schema writes as $ref.
//
// The outer node is copied to whole without its pointers, because the reference
// starts behind them. compile fills n, and may reach container for the same
// type again.
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

// interfaceType fills the node of an interface type: a union if Options.Unions
// lists its variants, any value if it has no methods. An interface with methods
// and without variants is reported, because nothing could be stored in it.
func (c *compiler) interfaceType(n *node) {
	if u := c.unions[n.typ]; u != nil {
		n.kind, n.name, n.union, n.nullable = nodeUnion, "object", u, c.opts.Output
		compileVariants(c, u)
		return
	}
	if n.typ.NumMethod() > 0 {
		c.report("", fmt.Sprintf("interface type %s has no known variants", n.typ),
			fmt.Sprintf("list them in schema.Options.Unions with schema.Union[%s](…); a server takes those by mcp.Options.Schema", n.typ))
		return
	}
	n.kind = nodeAny
}

// keyNode returns the node of a map key. The name of a member is text, so
// numbers are read from their decimal form as if they were quoted. A type with
// a text form has the same form as a key and as a value. A schema that a method
// returns applies to keys only if it is for strings.
func (c *compiler) keyNode(t reflect.Type) *node {
	n := &node{typ: t}
	if c.hooked(n) && n.name != "string" {
		n.own = nil // it describes values other than text
	}
	hook := n.own
	switch k := t.Kind(); {
	case c.hasText(t):
		if hook != nil || !c.builtin(n) || n.kind != nodeTime && n.kind != nodeText {
			*n = node{typ: t, kind: nodeText}
		}
	case k == reflect.String:
		n.kind = nodeString
	case t == typeDuration:
		n.kind = nodeDuration
	case k >= reflect.Int && k <= reflect.Int64:
		n.kind, n.bits, n.quoted = nodeInt, uint8(t.Bits()), true
	case k >= reflect.Uint && k <= reflect.Uint64:
		n.kind, n.bits, n.quoted = nodeUint, uint8(t.Bits()), true
	default:
		c.report("", fmt.Sprintf("map key type %s has no text form", t), "use strings, integers or an encoding.TextUnmarshaler as keys")
	}
	n.name, n.isKey = "string", true
	if hook == nil {
		c.enumMethod(n)
	} else {
		n.own, n.hookedKey = hook, true
	}
	return n
}

// builtin fills the node of a type whose JSON form this package knows and
// reports whether it is one. Types of other modules are recognized by import
// path and name, so that those modules need not be imported.
func (c *compiler) builtin(n *node) bool {
	switch t := n.typ; {
	case t == rules.TimeType:
		n.kind, n.name = nodeTime, "string"
	case t == typeDuration:
		n.kind, n.name = nodeDuration, "string"
	case t == typeNumber:
		n.kind, n.name = nodeNumber, "number"
	case t == typeRaw:
		n.kind = nodeRaw
	case t == typeBigInt:
		n.kind, n.name = nodeBigInt, "integer"
	case t == typeURL:
		n.kind, n.name = nodeURL, "string"
	case dateNames[t].name != "":
		n.kind, n.name, n.said = nodeText, "string", dateNames[t]
		n.own = func() *jsonschema.Schema { return dateSchema(t) }
	default:
		if elem, ok := nullElem(t); ok {
			c.null(n, elem)
			return true
		}
		form, ok := textForms()[t.PkgPath()+"."+t.Name()]
		if !ok {
			return false
		}
		c.textType(n, form)
	}
	return true
}

// textForm is what is known about a type with a text form: how issues call its
// values, and the keywords of its schema. pattern, if not "", is checked before
// UnmarshalText is called.
type textForm struct {
	said                         typeName
	format, pattern, description string
	examples                     []any
}

// uuidPattern is the canonical form of a UUID. The parsers of the UUID packages
// also take braces, "urn:uuid:" and no hyphens; the format of JSON Schema does
// not.
const uuidPattern = `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`

// textForms returns the known types with a text form, by import path and name.
// It is built on first use, so that programs which never
// compile such a type do not pay for it when they start.
var textForms = sync.OnceValue(func() map[string]textForm {
	return map[string]textForm{
		"github.com/google/uuid.UUID":   {said: typeName{"a UUID", ""}, format: "uuid", pattern: uuidPattern},
		"github.com/gofrs/uuid.UUID":    {said: typeName{"a UUID", ""}, format: "uuid", pattern: uuidPattern},
		"github.com/gofrs/uuid/v5.UUID": {said: typeName{"a UUID", ""}, format: "uuid", pattern: uuidPattern},
		"net/netip.Addr":                {said: typeName{"an IP address", "192.0.2.1"}, description: "An IP address.", examples: []any{"192.0.2.1", "2001:db8::1"}},
		"net/netip.Prefix":              {said: typeName{"a network in CIDR form", "192.0.2.0/24"}, description: "A network in CIDR form.", examples: []any{"192.0.2.0/24"}},
		"net/netip.AddrPort":            {said: typeName{"an IP address with a port", "192.0.2.1:80"}, description: "An IP address with a port.", examples: []any{"192.0.2.1:80"}},
		"net.IP":                        {said: typeName{"an IP address", "192.0.2.1"}, description: "An IP address.", examples: []any{"192.0.2.1", "2001:db8::1"}},
		"regexp.Regexp":                 {said: typeName{"a regular expression in RE2 syntax", ""}, description: "A regular expression in RE2 syntax."},
		"math/big.Float":                {said: typeName{"a decimal number inside a string", ""}, description: "A decimal number as text."},
		"math/big.Rat":                  {said: typeName{"a fraction inside a string", "1/3"}, description: "A fraction such as 1/3 as text."},
	}
})

// dateNames are what values of the package's own types are called.
var dateNames = map[reflect.Type]typeName{
	reflect.TypeFor[civil.Date]():          {"a date", "2026-01-31"},
	reflect.TypeFor[civil.TimeOfDay]():     {"a time of day", "09:30"},
	reflect.TypeFor[civil.NaiveDateTime](): {"a date and time without an offset", "2026-01-31T09:30:00"},
}

// textType fills the node of a type that is known to have a text form. Its
// pattern is enforced before UnmarshalText is called, because the parsers of
// these types accept more forms than the schema shows, such as a UUID in
// braces.
func (c *compiler) textType(n *node, form textForm) {
	n.kind, n.name, n.said = nodeText, "string", form.said
	n.own = func() *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Format: form.format, Pattern: form.pattern,
			Description: form.description, Examples: append([]any(nil), form.examples...)}
	}
	if form.pattern != "" {
		re := regexp.MustCompile(form.pattern)
		n.checks = append(n.checks, rules.Check{Tag: form.format, Code: "format", Want: "a " + strings.ToUpper(form.format), Test: rules.TextTest(re.MatchString)})
	}
}

// timeOfDayPattern matches the text form of civil.TimeOfDay: hours and minutes,
// then optionally seconds with up to nine digits of a fraction.
const timeOfDayPattern = `^(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?$`

// datePattern matches exactly the days that exist, with the lengths of the
// months and leap years. NaiveDateTime has no format in JSON Schema, so the
// pattern has to express all of it.
const datePattern = `(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))` +
	`|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`

// naivePattern matches the text form of civil.NaiveDateTime.
const naivePattern = `^` + datePattern + `T(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?$`

// dateSchema returns the schema of Date, TimeOfDay or NaiveDateTime. Only Date
// has a format in JSON Schema: its time and date-time demand an offset.
func dateSchema(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	switch t {
	case reflect.TypeFor[civil.Date]():
		s.Format = "date"
	case reflect.TypeFor[civil.TimeOfDay]():
		s.Pattern = timeOfDayPattern
	default:
		s.Pattern = naivePattern
	}
	return s
}

// The methods by which a type describes itself. MCPSchema takes precedence over
// JSONSchema, which a type may have for another use of invopop's package.
// JSONSchemaExtend changes the schema that was derived from the type.
type (
	mcpSchemer   interface{ MCPSchema() *jsonschema.Schema }
	jsonSchemer  interface{ JSONSchema() *jsonschema.Schema }
	jsonExtender interface{ JSONSchemaExtend(*jsonschema.Schema) }
)

// hooked fills the node of a type with a schema in Options.Types, or else one that
// has MCPSchema or JSONSchema, with a value or a pointer receiver. The method is called once, on the zero value,
// inside the guard. hooked reports whether there is such a method; a method
// that panics or returns nil is a problem.
//
// The schema is copied, because a method may return the same value each time.
// References are refused: "#/$defs/…" would point into the schema of the whole
// document.
func (c *compiler) hooked(n *node) bool {
	if n.typ.Kind() == reflect.Interface {
		return false
	}
	var call func() *jsonschema.Schema
	var name string
	if s := c.declared[n.typ]; s != nil {
		call = func() *jsonschema.Schema { return s }
	} else {
		switch h := reflect.New(n.typ).Interface().(type) {
		case mcpSchemer:
			call, name = h.MCPSchema, "MCPSchema"
		case jsonSchemer:
			call, name = h.JSONSchema, "JSONSchema"
		default:
			return false
		}
	}
	var s *jsonschema.Schema
	if err := guard(func() { s = schemadoc.Clone(call()) }); err != nil {
		c.report("", fmt.Sprintf("method %s of %s panicked: %v", name, n.typ, err), "make it work on the zero value")
		return true
	}
	if s == nil {
		c.report("", fmt.Sprintf("method %s of %s returned nil", name, n.typ), "return a schema")
		return true
	}
	s.Version, s.ID = "", ""
	if schemadoc.Refers(s) {
		c.report("", fmt.Sprintf("the schema of %s has $ref or $defs, which mean something else inside another schema", n.typ), "write the parts inline")
	}
	n.kind, n.name = nodeOpaque, s.Type
	n.own = func() *jsonschema.Schema { return schemadoc.Clone(s) }
	return true
}

// enumMethod limits a type that has a method Enum() []T to the values it
// returns. Only types that travel as text, a number or a boolean can have one. The
// values of a type with a text form are listed by their text. The method is called
// once, on the zero value; an empty list and equal values are problems.
func (c *compiler) enumMethod(n *node) {
	switch n.kind {
	case nodeString, nodeInt, nodeUint, nodeFloat, nodeBool, nodeText:
	default:
		return
	}
	m := reflect.New(n.typ).MethodByName("Enum")
	if !m.IsValid() || m.Type().NumIn() != 0 || m.Type().NumOut() != 1 || m.Type().Out(0).Kind() != reflect.Slice {
		return
	}
	if of := m.Type().Out(0).Elem(); of != n.typ { // as a struct has it from what it embeds
		c.warn("", fmt.Sprintf("method Enum of %s lists values of %s and is not used", n.typ, of), fmt.Sprintf("write a method Enum() []%s", n.typ))
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
		if n.kind == nodeText {
			text, ok := enumText(c, n, values[i])
			if !ok {
				return
			}
			values[i] = reflect.ValueOf(text)
		}
		seen[rules.PlainValue(values[i])] = true
	}
	if len(values) == 0 || len(seen) != len(values) {
		c.report("", fmt.Sprintf("method Enum of %s must list different values, and at least one", n.typ), "")
		return
	}
	n.checks = append(n.checks, rules.SetCheck("Enum", "enum", values))
}

// enumText returns the text of a value that Enum lists: what MarshalText writes, or the
// value itself for a string without that method. In arguments, that text must be read as
// the same value again, or a client that keeps to the schema would be refused, or the
// handler would see another value. ok is false after a problem has been reported.
func enumText(c *compiler, n *node, v reflect.Value) (text string, ok bool) {
	wrong := func(msg, fix string) (string, bool) {
		c.report("", fmt.Sprintf("method Enum of %s lists a value %s", n.typ, msg), fix)
		return "", false
	}
	m, has := v.Addr().Interface().(encoding.TextMarshaler)
	switch {
	case v.Kind() == reflect.String && !has:
		text = v.String()
	case !has:
		return wrong("whose text is unknown", fmt.Sprintf("give %s a method MarshalText", n.typ))
	default:
		var b []byte
		var err error
		fault := guard(func() { b, err = m.MarshalText() })
		if err = cmp.Or(fault, err); err != nil {
			return wrong(fmt.Sprintf("without a text: %v", err), "")
		}
		text = string(b)
	}
	if c.opts.Output {
		return text, true
	}
	switch back, err := unmarshalText(n, text); {
	case err != nil:
		return wrong(fmt.Sprintf("with the text %q, which UnmarshalText refuses: %v", text, err), "")
	case !reflect.DeepEqual(back.Interface(), v.Interface()):
		return wrong(fmt.Sprintf("with the text %q, which UnmarshalText reads as another value", text), "")
	}
	return text, true
}

// unmarshalText returns the value of n's type that has a text, inside the guard.
func unmarshalText(n *node, text string) (v reflect.Value, err error) {
	v = reflect.New(n.typ)
	u, ok := v.Interface().(encoding.TextUnmarshaler)
	if !ok {
		return v.Elem(), nil // a result type that can only be written
	}
	if fault := guard(func() { err = u.UnmarshalText([]byte(text)) }); fault != nil {
		err = fault
	}
	return v.Elem(), err
}

// extender returns the JSONSchemaExtend method of a type, bound to its zero
// value, or nil if it has none.
func extender(t reflect.Type) func(*jsonschema.Schema) {
	if t.Kind() == reflect.Interface {
		return nil
	}
	if h, ok := reflect.New(t).Interface().(jsonExtender); ok {
		return h.JSONSchemaExtend
	}
	return nil
}

// guard runs a method of the type that is being compiled and returns its panic
// as an error. The author of the method reads that error, so it carries the
// value of the panic.
func guard(f func()) error {
	if failure, ok := errors.AsType[*safely.Failure](safely.Call(f)); ok {
		return errors.New(failure.Value)
	}
	return nil
}

// null fills the node of a Null[T], whose element is T. A pointer or another
// Null as T is refused, because null could then mean two things.
func (c *compiler) null(n *node, elem reflect.Type) {
	n.kind, n.nullable = nodeNull, true
	n.elem = c.typeNode(elem, false)
	n.name, n.elem.inNull = n.elem.name, true
	if len(n.elem.ptrs) > 0 || n.elem.kind == nodeNull {
		c.report("", "Null of a pointer or of another Null has two ways to be null", "use the plain type")
	}
}

// prepare reads the options: rules, formats, types and unions. Faults in them
// are reported even when the type makes no use of them, because the author of
// the options would not notice otherwise.
func (c *compiler) prepare() {
	c.add(checkRules(c.opts.Rules)...)
	checkFormats(c)
	declare(c)
	c.own = ownRules(c.opts.Rules)
	for _, u := range c.opts.Unions {
		c.unions[u.typ] = &unionShape{decl: u}
	}
}
