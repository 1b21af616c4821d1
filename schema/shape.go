package schema

import (
	"reflect"

	"github.com/invopop/jsonschema"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"
)

// shape is a compiled struct type: its members and the rules among them.
// Members are kept in the order of the struct, which is the order of the schema
// and mostly that of documents. A shape does not change after sealShape.
type shape struct {
	typ    reflect.Type
	fields []field
	// byName holds the index of each member, and names the names for hints.
	byName map[string]int
	names  []string
	// open is set if unknown members are permitted.
	open bool
	// closed is set if a tag says so.
	closed bool
	// rest is the map that takes members without a field, or nil.
	rest *field
	// conds, cross and funcs are the rules among members, in the order in which
	// they are enforced.
	conds []conditional
	cross []crossRule
	funcs []*structRule
	// tracked is set if a rule on a path from the root looks into this struct
	// at the end of the document; the marks of its members are kept until then.
	tracked bool
	// recursive is set for a type that contains itself. It becomes a definition
	// of the schema.
	recursive bool
	// extend are the methods that change the schema. verify checks objects
	// against the keywords that they added, or is nil.
	extend []func(*jsonschema.Schema)
	verify *verifier
	// skip is the name of the member that tells the variants of a union apart,
	// which need not be a field, and variant its value for this one.
	skip, variant string
	// ready is set when the struct has been compiled completely.
	ready bool
	// noRules is set for the struct without the rules of its fields, as
	// structonly asks.
	noRules bool
	// holdsSecret is set if a member, or a value below one, must not be shown.
	holdsSecret bool
}

// field is a member of an object together with its place in the struct.
type field struct {
	name, goName string
	node         *node
	// offset is the field's place behind the last of hops, or in the struct.
	offset uintptr
	// hops are the embedded pointers on the way, the outermost first. The
	// structs they point to are allocated when the first member in them comes.
	hops []hop
	// required is set if absence is always an issue.
	required bool
	// omitZero is omitempty of the validate tag: a zero value that breaks a
	// rule stands for absent.
	omitZero bool
	// def is what an absent member becomes, or nil.
	def *defaultValue
	// header is the HTTP header that mirrors the member, or "".
	header string
	// when holds the sentences about rules among members, for the description.
	when []string
}

// hop is an embedded pointer: its offset, and the type that it points to.
type hop struct {
	offset uintptr
	elem   reflect.Type
}

// at returns the place of the field in the struct at p. It allocates embedded
// structs on the way.
func (f *field) at(p slot) slot {
	for _, h := range f.hops {
		at := p.at(h.offset)
		if p = at.behind(); p == (slot{}) {
			p = at.create(h.elem)
		}
	}
	return p.at(f.offset)
}

// find is at without allocating. It returns the zero slot if an embedded struct
// is nil.
func (f *field) find(p slot) slot {
	for _, h := range f.hops {
		if p = p.at(h.offset).behind(); p == (slot{}) {
			return p
		}
	}
	return p.at(f.offset)
}

// present is P(f) (see conditional) for what became of the member.
func (f *field) present(mark byte) bool {
	return mark == markSet || mark == markBad || mark == markEmpty && f.node.kind != nodeString
}

// comparable reports whether the member has a value that a rule of another one compares
// with: what was sent, or its default.
func (f *field) comparable(mark byte) bool {
	return mark >= markEmpty || mark <= markDropped && f.def != nil
}

// plainPresence reports whether the member is present whenever it is in the
// document: it can be neither null nor "". The keyword required says all of it
// then.
func (f *field) plainPresence() bool {
	return !f.node.takesNull() && (f.node.kind != nodeString || !passesText(f.node, ""))
}

// emitPresent returns P(f) as a schema for the object.
func (f *field) emitPresent() *jsonschema.Schema {
	s := &jsonschema.Schema{Required: []string{f.name}}
	p := &jsonschema.Schema{}
	if f.node.takesNull() {
		p.Not = &jsonschema.Schema{Type: "null"}
	}
	if f.node.kind == nodeString && passesText(f.node, "") {
		schemadoc.Raise(&p.MinLength, 1)
	}
	if !schemadoc.IsEmpty(p) {
		s.Properties = withProperty(f.name, p).Properties
	}
	return s
}

// blank returns marks for the members, all markAbsent. The result may be shared
// and must only be copied from.
func (sh *shape) blank() []byte {
	if len(sh.fields) <= len(noMarks) {
		return noMarks[:len(sh.fields)]
	}
	return make([]byte, len(sh.fields))
}

// find returns the index of a member, or -1. Members mostly come in the order
// of the schema, so the one at index next is tried first.
func (sh *shape) find(name []byte, next int) int {
	if next < len(sh.fields) && sh.fields[next].name == string(name) {
		return next
	}
	if i, ok := sh.byName[string(name)]; ok {
		return i
	}
	return -1
}

// withProperty returns a schema of one property.
func withProperty(name string, p *jsonschema.Schema) *jsonschema.Schema {
	s := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
	s.Properties.Set(name, p)
	return s
}
