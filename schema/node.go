package schema

import (
	"reflect"
	"unsafe"

	"github.com/invopop/jsonschema"
)

// nodeKind tells the decoder how a value travels and where it goes.
type nodeKind byte

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

// node is one position in a document: what may stand there, and where its
// value is stored. Both the schema and the decoder are made from it.
type node struct {
	kind nodeKind
	typ  reflect.Type   // Go type without pointers
	ptrs []reflect.Type // for each pointer above typ, what it points to
	name string         // JSON Schema type: "string", "integer", …; "" if any

	checks   []check
	bits     uint8       // size of an int, uint or float
	nullable bool        // null is a value here
	strict   bool        // no coercion
	secret   bool        // values are not quoted
	orZero   bool        // the zero value passes without checks
	quoted   bool        // json:",string": a number or boolean inside a string
	unit     int64       // nanoseconds of one unit when a Duration is an integer
	iso      bool        // Duration in ISO 8601 form
	length   int         // of an array
	elem     *node       // element, map value, or what Null or nodeRef stands for
	key      *node       // map key
	object   *shape      // struct
	union    *unionShape // interface
	own      ownSchema   // of nodeOpaque, nodeText and the like
	extend   func(*jsonschema.Schema)
	verify   *Raw          // extra check of the raw value, for schemas the plan does not know
	plain    bool          // string without enum and format: an integer may become one
	notEmpty bool          // "" cannot be meant here, so it stands for absent
	said     typeName      // of nodeText: what its values are called
	inNull   bool          // the node of a Null: null is taken before it comes here
	message  []messageRule // texts of the mcp tag
	note     annotations
	special  bool // has checks of the decoded value, or other ways to read it
}

// typeName is what the values of a type are called, with an example.
type typeName struct{ name, example string }

// ownSchema makes the schema of a type that is not derived from its Go kind;
// each call returns a fresh copy.
type ownSchema func() *jsonschema.Schema

// messageRule replaces the text of an issue.
type messageRule struct {
	rule string // tag name or issue code; "" for every rule
	text string
}

// annotations are the keywords that describe and do not check.
type annotations struct {
	title, description            string
	examples                      []any
	hasDefault                    bool
	def                           any
	deprecated, readOnly, writing bool
	extras                        map[string]any
}

// shape is a struct type: its members and the rules among them.
type shape struct {
	typ       reflect.Type
	fields    []field
	byName    map[string]int
	names     []string
	open      bool // unknown members are ignored
	rest      *field
	conds     []conditional
	cross     []crossRule
	funcs     []*StructRule
	tracked   bool // presence of its members is kept until the end
	recursive bool
	extend    []func(*jsonschema.Schema)
	verify    *Raw
	skip      string // member that tells the variants of a union apart
	variant   string // its value here
	ready     bool   // compiled wholly
	noRules   bool
}

// field is a member of an object.
type field struct {
	name, goName string
	node         *node
	offset       uintptr
	hops         []hop // embedded pointers on the way, outermost first
	required     bool
	omitZero     bool // validate omitempty: a zero that breaks a rule stands for absent
	def          *defaultValue
	header       string
	when         []string // sentences of the conditional rules
}

// hop is an embedded pointer: where it lies and what it points to.
type hop struct {
	offset uintptr
	elem   reflect.Type
}

// at returns the field's place in the struct at p, allocating embedded
// structs on the way.
func (f *field) at(p unsafe.Pointer) unsafe.Pointer {
	for _, h := range f.hops {
		slot := (*unsafe.Pointer)(unsafe.Add(p, h.offset))
		if *slot == nil {
			*slot = reflect.New(h.elem).UnsafePointer()
		}
		p = *slot
	}
	return unsafe.Add(p, f.offset)
}

// find is at without allocating; it returns nil when an embedded struct is
// not there.
func (f *field) find(p unsafe.Pointer) unsafe.Pointer {
	for _, h := range f.hops {
		if p = *(*unsafe.Pointer)(unsafe.Add(p, h.offset)); p == nil {
			return nil
		}
	}
	return unsafe.Add(p, f.offset)
}

// target returns what rules on this position are compiled for.
func (n *node) target(opts *Options) target {
	t := target{typ: n.typ, opts: opts, integerUnit: n.unit, iso: n.iso}
	switch n.kind {
	case nodeString:
		t.kind = kindText
	case nodeInt:
		t.kind = kindInt
	case nodeUint:
		t.kind = kindUint
	case nodeFloat:
		t.kind = kindFloat
	case nodeBool:
		t.kind = kindBool
	case nodeBytes:
		t.kind = kindBytes
	case nodeTime:
		t.kind = kindTime
	case nodeDuration:
		t.kind = kindDuration
	case nodeList, nodeArray:
		t.kind = kindList
	case nodeMap:
		t.kind = kindMap
	case nodeObject:
		t.kind = kindObject
	case nodeAny, nodeUnion, nodeRaw:
		t.kind = kindAny
	case nodeText:
		t.kind = kindOpaque
		if n.typ.Kind() == reflect.String {
			t.kind = kindText
		}
		if dateNames[n.typ].name != "" {
			t.kind = kindDate
		}
	case nodeRef, nodeNull:
		return n.elem.target(opts)
	default:
		t.kind = kindOpaque
	}
	return t
}
