package jsonx

import (
	"encoding"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"time"
	"unsafe"
)

// op is how a node is written. opBool is 0 and also stands for "no special
// form" where methodOp is asked.
type op uint8

const (
	opBool op = iota
	opInt
	opInt8
	opInt16
	opInt32
	opInt64
	opUint
	opUint8
	opUint16
	opUint32
	opUint64
	opUintptr
	opFloat32
	opFloat64
	opString
	opQuoted       // elem inside a string
	opQuotedString // a string inside a string
	opNumber       // json.Number
	opRaw          // json.RawMessage
	opTime         // time.Time
	opBytes
	opStruct
	opSlice
	opArray
	opPointer
	opAny       // interface without methods
	opInterface // interface with methods
	opMap
	opMapStringAny
	opMapStringString
	opMarshaler
	opTextMarshaler
	opDuration // time.Duration
	opURL      // url.URL
	opNull     // schema.Null
)

// node is a compiled type. It does not change once compile has returned, and
// may refer to itself.
type node struct {
	op     op
	direct bool // an interface holds the value itself, not a pointer to it
	copied bool // the method is that of a pointer, and the value has no address
	keys   bool // the keys of the map have a MarshalText
	typ    reflect.Type
	elem   *node
	size   uintptr // of an element; of a Null's value, with what pads it
	length int     // of an array
	fields []fieldNode
	form   durationForm
}

// nodeKey identifies a way of writing a type. The same type is compiled several
// times if it occurs with and without an address, with the option "string", or
// with different forms of durations.
type nodeKey struct {
	typ         reflect.Type
	addressable bool
	quoted      bool
	form        durationForm
}

var (
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
	numberType        = reflect.TypeFor[json.Number]()
	rawType           = reflect.TypeFor[json.RawMessage]()
	timeType          = reflect.TypeFor[time.Time]()
	urlType           = reflect.TypeFor[url.URL]()
)

// simpleOps are the kinds for which the op says everything.
var simpleOps = map[reflect.Kind]op{
	reflect.Bool: opBool, reflect.String: opString,
	reflect.Int: opInt, reflect.Int8: opInt8, reflect.Int16: opInt16, reflect.Int32: opInt32, reflect.Int64: opInt64,
	reflect.Uint: opUint, reflect.Uint8: opUint8, reflect.Uint16: opUint16, reflect.Uint32: opUint32,
	reflect.Uint64: opUint64, reflect.Uintptr: opUintptr,
	reflect.Float32: opFloat32, reflect.Float64: opFloat64,
}

// compiler makes nodes. A type that occurs inside itself gets the node that is
// still being filled. added lists the new nodes, so that compile can remove
// them after an error.
type compiler struct {
	nodes map[nodeKey]*node
	added []nodeKey
}

// node returns the node for a key, compiling it if it is new. path names the
// place in errors, such as "Order.Items[]".
func (c *compiler) node(key nodeKey, path string) (*node, error) {
	if n := c.nodes[key]; n != nil {
		return n, nil
	}
	n := &node{typ: key.typ, direct: isDirect(key.typ)}
	c.nodes[key] = n
	c.added = append(c.added, key)
	if special := methodOp(key); special != opBool {
		n.op, n.form = special, key.form
		n.copied = !key.addressable && !(special == opMarshaler && key.typ.Implements(marshalerType) || special == opTextMarshaler && key.typ.Implements(textMarshalerType))
		if special == opNull {
			return n, c.null(n, key, path)
		}
		return n, nil
	}
	if key.quoted && key.typ.Kind() != reflect.Pointer {
		return n, c.quoted(n, key, path)
	}
	if op, ok := simpleOps[key.typ.Kind()]; ok {
		n.op = op
		return n, nil
	}
	return n, c.composite(n, key, path)
}

// methodOp returns the op of a type that has a form of its own, by identity or
// by its methods, and opBool for any other.
func methodOp(key nodeKey) op {
	t := key.typ
	switch t {
	case timeType:
		return opTime
	case rawType:
		return opRaw
	case numberType:
		if !key.quoted {
			return opNumber
		}
	case durationType:
		if !key.quoted {
			return opDuration
		}
	case urlType:
		return opURL
	}
	if isNull(t) {
		return opNull
	}
	switch {
	case has(t, marshalerType):
		return opMarshaler
	case has(t, textMarshalerType):
		return opTextMarshaler
	}
	return opBool
}

// has reports whether t has the method of an interface, or a pointer to it has.
func has(t, method reflect.Type) bool {
	return t.Implements(method) || t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(method)
}

// null fills the node of a schema.Null, whose first field is the value and
// whose second says whether there is one.
func (c *compiler) null(n *node, key nodeKey, path string) (err error) {
	value, valid := key.typ.Field(0), key.typ.Field(1)
	n.size = valid.Offset
	key.typ, key.quoted = value.Type, false
	n.elem, err = c.node(key, path)
	return err
}

// quoted fills the node of a field with the json option "string".
func (c *compiler) quoted(n *node, key nodeKey, path string) (err error) {
	plainKey := key
	plainKey.quoted = false
	if key.typ == durationType { // as encoding/json has it
		plainKey.typ = reflect.TypeFor[int64]()
	}
	if n.elem, err = c.node(plainKey, path); err != nil {
		return err
	}
	n.op = opQuoted
	if n.elem.op == opString {
		n.op = opQuotedString
	}
	return nil
}

// composite fills the node of a type that has elements or fields.
func (c *compiler) composite(n *node, key nodeKey, path string) (err error) {
	t := key.typ
	inner := nodeKey{addressable: key.addressable, quoted: key.quoted}
	switch t.Kind() {
	case reflect.Struct:
		n.op = opStruct
		n.fields, err = c.fields(key, path)
		return err
	case reflect.Interface:
		n.op = opInterface
		if t.NumMethod() == 0 {
			n.op = opAny
		}
		return nil
	case reflect.Array:
		n.op, n.length, n.size = opArray, t.Len(), t.Elem().Size()
		inner.form = key.form.inside()
		path += "[]"
	case reflect.Slice:
		n.op, n.size = opSlice, t.Elem().Size()
		if isBytes(t) {
			n.op = opBytes
			return nil
		}
		inner.addressable, inner.form = true, key.form.inside()
		path += "[]"
	case reflect.Pointer:
		n.op, inner.form = opPointer, key.form
		inner.addressable = true
	case reflect.Map:
		n.op, n.size, n.keys = opMap, t.Elem().Size(), has(t.Key(), textMarshalerType)
		if !isMapKey(t.Key()) && !n.keys {
			return fmt.Errorf("%s: map keys of type %s have no JSON form; use a string, an integer or an encoding.TextMarshaler", path, t.Key())
		}
		inner.addressable = true // in the copy that is sorted
		path += "{}"
	default:
		return fmt.Errorf("%s: type %s has no JSON form; leave the field out with `json:\"-\"` or give the type a MarshalJSON method", path, t)
	}
	inner.typ = t.Elem()
	if n.elem, err = c.node(inner, path); err != nil {
		return err
	}
	if n.op == opMap && t.Key().Kind() == reflect.String && t.Key() == reflect.TypeFor[string]() {
		switch t.Elem() {
		case reflect.TypeFor[any]():
			n.op = opMapStringAny
		case reflect.TypeFor[string]():
			n.op = opMapStringString
		}
	}
	return nil
}

// isBytes reports whether the slice type t is written as base64.
func isBytes(t reflect.Type) bool {
	p := reflect.PointerTo(t.Elem())
	return t.Elem().Kind() == reflect.Uint8 && !p.Implements(marshalerType) && !p.Implements(textMarshalerType)
}

// isMapKey reports whether keys of type t have a JSON form without a method.
func isMapKey(t reflect.Type) bool {
	op := simpleOps[t.Kind()]
	return t.Kind() == reflect.String || opInt <= op && op <= opUintptr
}

// isDirect reports whether an interface holds a value of t in its data word,
// and not a pointer to it. It looks at the zero value, whose data word is nil
// exactly in that case.
func isDirect(t reflect.Type) bool {
	if t.Kind() == reflect.Interface {
		return false
	}
	zero := reflect.Zero(t).Interface()
	return (*eface)(unsafe.Pointer(&zero)).data == nil
}
