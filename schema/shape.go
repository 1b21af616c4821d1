package schema

import (
	"reflect"

	"github.com/invopop/jsonschema"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"
	"github.com/talaria-go/mcp/schema/raw"
)

// shape is a struct type: its members and the rules among them. Members are
// found by name and kept in the order of the struct, which is the order of the
// schema and mostly that of documents.
type shape struct {
	typ    reflect.Type
	fields []field
	// byName has the index of each member, names all of them for hints.
	byName map[string]int
	names  []string
	// open says that unknown members are no issue.
	open bool
	// rest is the map for members that no field names, or nil.
	rest *field
	// conds, cross and funcs are the rules among members, in the order in which
	// they are enforced.
	conds []conditional
	cross []crossRule
	funcs []*StructRule
	// tracked says that a rule of another struct looks in here at the end of the
	// document, so what became of the members is kept.
	tracked bool
	// recursive types become definitions of the schema.
	recursive bool
	// extend are methods that change the schema, verify checks what they added.
	extend []func(*jsonschema.Schema)
	verify *raw.Schema
	// skip is the member that tells the variants of a union apart, and variant its
	// value here. It need not be a field.
	skip, variant string
	// ready says that the struct is compiled wholly.
	ready bool
	// noRules is the struct as structonly has it.
	noRules bool
	// holdsSecret says that a member, or something below one, must not be shown.
	holdsSecret bool
}

// field is a member of an object, with its place in the struct.
type field struct {
	name, goName string
	node         *node
	// offset is the field's place behind the last of hops, or in the struct.
	offset uintptr
	// hops are the embedded pointers on the way, outermost first. They are set when
	// the first member below them comes.
	hops []hop
	// required says that absence is an issue, whatever else the document has.
	required bool
	// omitZero is omitempty of the validate tag: a zero that breaks a rule stands
	// for absent.
	omitZero bool
	// def is what an absent member becomes, or nil.
	def *defaultValue
	// header mirrors the member into an HTTP header; "" if none.
	header string
	// when are the sentences of the rules among members, for the description.
	when []string
}

// hop is an embedded pointer: where it lies and what it points to.
type hop struct {
	offset uintptr
	elem   reflect.Type
}

// at returns the field's place in the struct at p, allocating embedded
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

// find is at without allocating; it returns the zero slot when an embedded struct is
// not there.
func (f *field) find(p slot) slot {
	for _, h := range f.hops {
		if p = p.at(h.offset).behind(); p == (slot{}) {
			return p
		}
	}
	return p.at(f.offset)
}

// present is P(f) for what became of the member.
func (f *field) present(mark byte) bool {
	return mark == markSet || mark == markBad || mark == markEmpty && f.node.kind != nodeString
}

// plainPresence reports whether a member that is there is present: it can be
// neither null nor "". Then required says all of it.
func (f *field) plainPresence() bool {
	return !f.node.takesNull() && (f.node.kind != nodeString || !passesText(f.node, ""))
}

// emitPresent writes P(f).
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

// blank returns marks for the members, all absent. They are to be copied.
func (sh *shape) blank() []byte {
	if len(sh.fields) <= len(noMarks) {
		return noMarks[:len(sh.fields)]
	}
	return make([]byte, len(sh.fields))
}

// find returns the index of a member, or -1. Members mostly come in the order
// of the schema, so the next one is tried first.
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
