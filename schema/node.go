package schema

import (
	"reflect"
	"slices"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/raw"
)

// nodeKind tells the decoder how a value travels and where it goes. It is fixed
// by the Go type, so a value of a kind always has the memory layout that the
// decoder writes; see slot.
type nodeKind byte

// The kinds. A node of nodeInvalid has been reported and is never decoded.
const (
	nodeInvalid  nodeKind = iota
	nodeString            // string kinds
	nodeInt               // int … int64
	nodeUint              // uint … uint64
	nodeFloat             // float32, float64
	nodeBool              // bool
	nodeBytes             // []byte, base64
	nodeTime              // time.Time
	nodeDuration          // time.Duration, as text or as an integer
	nodeText              // encoding.TextUnmarshaler, as a string
	nodeURL               // url.URL
	nodeNumber            // json.Number
	nodeBigInt            // big.Int
	nodeRaw               // json.RawMessage
	nodeAny               // interface{}
	nodeList              // slices
	nodeArray             // arrays
	nodeMap               // maps
	nodeObject            // structs
	nodeUnion             // interface with known variants
	nodeNull              // Null[T]
	nodeOpaque            // types with a schema of their own; decoded by encoding/json
	nodeRef               // a slice or map type inside itself
)

// node is one position in a document: what may stand there, and where its value
// is stored. Both the schema and the decoder are made from it, which is why
// they cannot say different things. Nodes do not change after the type is
// compiled, and are read by many goroutines.
type node struct {
	kind nodeKind
	// typ is the Go type without pointers.
	typ reflect.Type
	// ptrs says for each pointer above typ what it points to, the outermost first.
	ptrs []reflect.Type
	// name is the type of JSON Schema: "string", "integer", …; "" if any.
	name string

	// checks are in the order in which their issues are told: those of the type,
	// of the jsonschema tag, of the validate tag.
	checks []rules.Check
	// bits is the size of an int, uint or float.
	bits uint8
	// nullable says that null is a value here.
	nullable bool
	// strict says that nothing is coerced, here and below.
	strict bool
	// secret says that values are not quoted, here and below.
	secret bool
	// orZero says that the zero value passes without checks.
	orZero bool
	// quoted is json:",string": a number or boolean inside a string.
	quoted bool
	// unit is the nanoseconds of one unit when a Duration is an integer, or 0.
	unit int64
	// iso says that a Duration is text of ISO 8601.
	iso bool
	// length is the number of elements of an array.
	length int
	// elem is the element, the map value, or what a Null or a nodeRef stands for.
	elem *node
	// key is the name of a map's members.
	key *node
	// object is the struct of a nodeObject.
	object *shape
	// union is the interface of a nodeUnion.
	union *unionShape
	// own makes the schema of a type that brings one along or is known here.
	own ownSchema
	// extend is the type's JSONSchemaExtend, if it is no struct.
	extend func(*jsonschema.Schema)
	// verify is an extra check of the raw value, for schemas the plan does not know.
	verify *raw.Schema
	// plain is a string without enum and format: an integer may become one.
	plain bool
	// notEmpty says that "" cannot be meant here, so it stands for absent.
	notEmpty bool
	// said is what the values of a nodeText are called.
	said typeName
	// isKey is the name of a map's members.
	isKey bool
	// hookedKey is a key whose own is the schema of a method, and verified.
	hookedKey bool
	// inNull is the node inside a Null: null is taken before it comes here.
	inNull bool
	// message has the texts of the mcp tag.
	message []messageRule
	// note has the keywords that only describe.
	note annotations
	// special says that there are checks of the decoded value, or other ways to
	// read it. The decoder takes the short way without.
	special bool
}

// typeName is what the values of a type are called, with an example.
type typeName struct{ name, example string }

// ownSchema makes the schema of a type that is not derived from its Go kind;
// each call returns a fresh copy.
type ownSchema func() *jsonschema.Schema

// messageRule replaces the text of an issue by that of an mcp tag.
type messageRule struct {
	rule string // tag name or issue code; "" for every rule
	text string
}

// annotations are the keywords that describe and do not check.
type annotations struct {
	title, description string
	// examples replace those that the type has.
	examples []any
	// hasDefault tells a default of null from none.
	hasDefault bool
	def        any
	// writing is writeOnly.
	deprecated, readOnly, writing bool
	// extras are keywords of no vocabulary, by name.
	extras map[string]any
}

// target returns what rules on this position are compiled for, without the
// options; compiler.target adds those.
func (n *node) target() rules.Target {
	t := rules.Target{Type: n.typ, IntegerUnit: n.unit, Iso: n.iso}
	switch n.kind {
	case nodeString:
		t.Kind = rules.KindText
	case nodeInt:
		t.Kind = rules.KindInt
	case nodeUint:
		t.Kind = rules.KindUint
	case nodeFloat:
		t.Kind = rules.KindFloat
	case nodeBool:
		t.Kind = rules.KindBool
	case nodeBytes:
		t.Kind = rules.KindBytes
	case nodeTime:
		t.Kind = rules.KindTime
	case nodeDuration:
		t.Kind = rules.KindDuration
	case nodeList, nodeArray:
		t.Kind = rules.KindList
	case nodeMap:
		t.Kind = rules.KindMap
	case nodeObject:
		t.Kind = rules.KindObject
	case nodeAny, nodeUnion, nodeRaw:
		t.Kind = rules.KindAny
	case nodeText:
		t.Kind = rules.KindOpaque
		if n.typ.Kind() == reflect.String {
			t.Kind = rules.KindText
		}
		if dateNames[n.typ].name != "" {
			t.Kind = rules.KindDate
		}
	case nodeRef, nodeNull:
		return n.elem.target()
	default:
		t.Kind = rules.KindOpaque
	}
	return t
}

// allocate returns where the value goes when the node's place is at p: behind
// as many new pointers as its type has.
func (n *node) allocate(p slot) slot {
	for _, elem := range n.ptrs {
		p = p.create(elem)
	}
	return p
}

// deref returns where the value lies, or the zero slot behind a nil pointer.
func (n *node) deref(p slot) slot {
	for range n.ptrs {
		if p == (slot{}) {
			return p
		}
		p = p.behind()
	}
	return p
}

// takesNull reports whether null is a value here.
func (n *node) takesNull() bool {
	return n.nullable || n.kind == nodeAny || n.kind == nodeRaw
}

// acceptsEmpty reports whether "" can be a value here, so that it does not
// stand for an absent member.
func (n *node) acceptsEmpty() bool {
	return n.kind == nodeString && passesText(n, "") || n.kind == nodeAny || n.kind == nodeRaw || n.kind == nodeOpaque ||
		n.kind == nodeNull && n.elem.acceptsEmpty() || n.kind == nodeBytes
}

// holdsSecret reports whether a value of n, or one below it, must not be shown.
// A recursive type is entered once.
func (n *node) holdsSecret() bool {
	switch {
	case n == nil || n.kind == nodeRef:
		return false
	case n.secret || n.object != nil && n.object.holdsSecret:
		return true
	case n.union != nil:
		return slices.ContainsFunc(n.union.variants, func(v variant) bool { return v.node.holdsSecret() })
	}
	return n.elem.holdsSecret()
}

// textSchema returns the schema of a type with a text form, never nil.
func (n *node) textSchema() *jsonschema.Schema {
	if n.own == nil {
		return &jsonschema.Schema{}
	}
	return n.own()
}
