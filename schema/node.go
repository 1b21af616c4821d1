package schema

import (
	"reflect"
	"slices"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/rules"
)

// nodeKind tells the decoder how a value travels and how it is stored. It is
// derived from the Go type, so a value of one kind always has the memory layout
// that the decoder writes; see slot.
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

// node is one position in a document: the values that it accepts and where a
// value is stored. The schema and the decoder are both made from nodes, which
// is why they agree. Nodes do not change after seal and are then read by many
// goroutines.
type node struct {
	kind nodeKind
	// typ is the Go type without pointers.
	typ reflect.Type
	// ptrs has the type that each pointer in front of typ points to, the
	// outermost pointer first.
	ptrs []reflect.Type
	// name is the type in JSON Schema: "string", "integer" and so on, or "" for
	// any.
	name string

	// checks are in the order in which their issues are reported: those of the
	// type, then of the jsonschema tag, then of the validate tag.
	checks []rules.Check
	// bits is the size of an integer or float.
	bits uint8
	// nullable is set if null is a value here.
	nullable bool
	// strict is set if nothing is coerced, here and below.
	strict bool
	// secret is set if values must not be quoted, here and below.
	secret bool
	// orZero is set if the zero value passes without checks.
	orZero bool
	// quoted is set by json:",string": the number or boolean travels inside a
	// string.
	quoted bool
	// unit is the length of one unit, in nanoseconds, of a Duration that
	// travels as an integer; otherwise 0.
	unit int64
	// iso is set if a Duration travels as text of ISO 8601.
	iso bool
	// length is the number of elements of an array.
	length int
	// elem is the node of the elements, of the values of a map, or of what a
	// Null or a nodeRef stands for.
	elem *node
	// key is the node of the member names of a map.
	key *node
	// object is the struct of a nodeObject.
	object *shape
	// union is the interface of a nodeUnion.
	union *unionShape
	// own returns the schema of a type that is not derived from the Go type;
	// nil for all others.
	own ownSchema
	// extend is the type's JSONSchemaExtend, if it is not a struct. A shape has
	// those of structs.
	extend func(*jsonschema.Schema)
	// verify checks the raw text, for schemas of which the tree knows nothing.
	verify *verifier
	// plain is set for a string without enum, const and format. An integer may
	// be taken for such a string.
	plain bool
	// notEmpty is set if "" cannot be meant here, so that it stands for absent.
	notEmpty bool
	// said is what the values of a nodeText are called in messages.
	said typeName
	// isKey is set if the node is the key of a map.
	isKey bool
	// hookedKey is set for a key whose schema a method returned; verify checks
	// it.
	hookedKey bool
	// inNull is set for the node inside a Null, which handles null itself.
	inNull bool
	// message holds the texts of the mcp tag.
	message []messageRule
	// note holds the keywords that only describe.
	note annotations
	// hint is a format that is in the schema and is not checked, or "".
	hint string
	// special is set if the decoder has to do more than plainValue does: there
	// are checks of the decoded value, an extra schema, or strict or secret.
	special bool
}

// typeName is what the values of a type are called, with an article, and an
// example of one; the example may be "".
type typeName struct{ name, example string }

// ownSchema returns the schema of a type that is not derived from its Go kind.
// Each call returns a new copy.
type ownSchema func() *jsonschema.Schema

// messageRule replaces the text of an issue by one from the mcp tag. In text
// {expected} and {got} stand for those fields of the issue.
type messageRule struct {
	rule string // tag name or issue code; "" for every rule
	text string
}

// annotations are the keywords that describe and do not check. title and
// description replace what the type says, unless they are "".
type annotations struct {
	title, description string
	// examples replace those of the type.
	examples []any
	// hasDefault tells a default of null from no default; def is the
	// json.RawMessage of the default.
	hasDefault bool
	def        any
	// writing is the keyword writeOnly.
	deprecated, readOnly, writing bool
	// extras are keywords outside of every vocabulary, by name.
	extras map[string]any
}

// target describes the position to the package rules: what kind of value a rule
// on it applies to. The options are added by compiler.target.
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
		t.Kind, t.Text = rules.KindOpaque, true
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

// allocate returns where the value goes if the field, element or root is at p.
// It allocates a value for each pointer of the type.
func (n *node) allocate(p slot) slot {
	for _, elem := range n.ptrs {
		p = p.create(elem)
	}
	return p
}

// deref follows the pointers of the type from p to the value. It returns the
// zero slot if one of them is nil.
func (n *node) deref(p slot) slot {
	for range n.ptrs {
		if p == (slot{}) {
			return p
		}
		p = p.behind()
	}
	return p
}

// takesNull reports whether null is a value here rather than a fault.
func (n *node) takesNull() bool {
	return n.nullable || n.kind == nodeAny || n.kind == nodeRaw
}

// acceptsEmpty reports whether "" can be a value here, in which case it does
// not stand for an absent member.
func (n *node) acceptsEmpty() bool {
	return n.kind == nodeString && passesText(n, "") || n.kind == nodeAny || n.kind == nodeRaw || n.kind == nodeOpaque ||
		n.kind == nodeNull && n.elem.acceptsEmpty() || n.kind == nodeBytes
}

// holdsSecret reports whether a value of n, or one inside it, must not be
// shown. A recursive type is entered once; for structs it relies on sealShape.
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
