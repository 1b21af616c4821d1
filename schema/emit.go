package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/lexical"
	"github.com/talaria-go/mcp/schema/internal/regex"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"
)

// emitter writes the schema of nodes. It only reads them, and each schema that
// it writes is fresh: parts of it are changed by the positions that use them.
type emitter struct {
	opts *Options
	// defs are the definitions of recursive types.
	defs jsonschema.Definitions
	// names says which shape or type has a name, and named which name a shape or
	// type has: two types of different packages may be named alike.
	names map[string]any
	named map[any]string
	// fails says what extension hooks panicked with.
	fails []string
}

// newEmitter returns an emitter for one document, whose definitions it
// collects.
func newEmitter(opts *Options) *emitter {
	return &emitter{opts: opts, names: map[string]any{}, named: map[any]string{}}
}

// root writes the schema of a whole document. The type at the top is written in
// place even if it is recursive, because clients want properties there and not
// a $ref.
func (e *emitter) root(n *node) *jsonschema.Schema {
	var s *jsonschema.Schema
	if n.kind == nodeObject {
		s = e.finish(n, e.body(n))
	} else {
		s = e.node(n)
	}
	if len(e.defs) > 0 {
		s.Definitions = e.defs
	}
	return s
}

// node writes the schema of one position. Recursive types become references;
// all others are written where they are used, since many readers of schemas do
// not follow references.
func (e *emitter) node(n *node) *jsonschema.Schema {
	switch {
	case n.kind == nodeObject && n.object.recursive:
		return e.finish(n, e.ref(n.object, n.object.typ, func() *jsonschema.Schema { return e.object(n.object) }))
	case n.kind == nodeRef:
		whole := n.elem
		return e.finish(n, e.ref(whole, whole.typ, func() *jsonschema.Schema { return e.node(whole) }))
	}
	return e.finish(n, e.body(n))
}

// ref returns a reference to the definition of a recursive type, writing the
// definition when it is the first. The name is taken before the body is
// written, which meets itself below.
func (e *emitter) ref(key any, t reflect.Type, body func() *jsonschema.Schema) *jsonschema.Schema {
	name, ok := e.named[key]
	if !ok {
		name = e.defName(t)
		e.named[key], e.names[name] = name, key
		if e.defs == nil {
			e.defs = jsonschema.Definitions{}
		}
		e.defs[name] = body()
	}
	return &jsonschema.Schema{Ref: "#/$defs/" + name}
}

// defName makes a name of letters, digits and '_' for a type: Page_of_Address
// for a generic one, with the package in front when the name is taken.
func (e *emitter) defName(t reflect.Type) string {
	name := typeWord(t.Name())
	if _, taken := e.names[name]; !taken {
		return name
	}
	name = typeWord(strings.ReplaceAll(t.PkgPath(), "/", "_")) + "_" + name
	for i := 2; ; i++ {
		if _, taken := e.names[name]; !taken {
			return name
		}
		name = strings.TrimRight(name, "0123456789") + strconv.Itoa(i)
	}
}

// typeWord makes one word of a type's name, which for a generic type has
// brackets and the paths of packages in it.
func typeWord(name string) string {
	var b strings.Builder
	word := 0 // where the current dotted word starts
	for _, r := range name {
		switch {
		case r == '[':
			b.WriteString("_of_")
			word = b.Len()
		case r == ',':
			b.WriteByte('_')
			word = b.Len()
		case r == '.' || r == '/':
			// What came so far is a package: drop it.
			s := b.String()[:word]
			b.Reset()
			b.WriteString(s)
		case r == '_' || r < 128 && (r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z'):
			b.WriteRune(r)
		case r == ']' || r == '*' || r == '·':
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// body writes the type of a node, before its rules and description.
func (e *emitter) body(n *node) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: n.name}
	if n.hookedKey {
		return n.own()
	}
	switch n.kind {
	case nodeInt, nodeUint, nodeFloat, nodeBool:
		if n.quoted {
			s.Pattern = quotedPattern(n)
			if n.bits == 64 && n.kind != nodeFloat {
				s.Format = integerFormat(n)
			}
			return s
		}
		typeBounds(s, n)
	case nodeBytes:
		s.ContentEncoding = "base64"
		s.Pattern = regex.Base64
	case nodeTime:
		s.Format = "date-time"
	case nodeDuration:
		durationSchema(s, n)
	case nodeURL:
		s.Format = "uri-reference"
	case nodeText, nodeOpaque:
		if n.own != nil {
			s = n.own()
		}
	case nodeList:
		s.Items = e.node(n.elem)
	case nodeArray:
		s.Items = e.node(n.elem)
		length := uint64(n.length)
		maximum := length
		s.MinItems, s.MaxItems = &length, &maximum
	case nodeMap:
		if names := e.node(n.key); n.key.kind != nodeString || len(n.key.checks) > 0 || n.key.hookedKey {
			s.PropertyNames = names
		}
		s.AdditionalProperties = e.node(n.elem)
	case nodeObject:
		return e.object(n.object)
	case nodeUnion:
		return e.union(n.union)
	case nodeNull:
		return e.node(n.elem)
	}
	if examples := n.examples(); len(examples) > 0 {
		s.Examples = examples
	}
	return s
}

// integerFormat is the registered name for what 64 bits hold.
func integerFormat(n *node) string {
	if n.kind == nodeUint {
		return "uint64"
	}
	return "int64"
}

// quotedPattern is the text of a number or boolean inside a string. For the full
// 64 bits the exact range would be longer than any reader wants.
func quotedPattern(n *node) string {
	switch {
	case n.kind == nodeInt && n.bits < 64:
		high := uint64(1)<<(n.bits-1) - 1
		return `^(?:0|` + regex.UpTo(high) + `|-(?:` + regex.UpTo(high+1) + `))$`
	case n.kind == nodeUint && n.bits < 64:
		return `^(?:0|` + regex.UpTo(uint64(1)<<n.bits-1) + `)$`
	case n.kind == nodeInt:
		return `^(?:0|-?[1-9][0-9]*)$`
	case n.kind == nodeUint:
		return `^(?:0|[1-9][0-9]*)$`
	case n.kind == nodeBool:
		return `^(?:true|false)$`
	}
	return `^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+\-]?[0-9]+)?$`
}

// typeBounds writes what the size of a number's type allows. Numbers as long as
// the limits of 64 bits say little to a reader, and make those that generate
// text along a schema slow: a format says the same.
func typeBounds(s *jsonschema.Schema, n *node) {
	low, high := n.ownEnds()
	switch {
	case n.kind == nodeInt && n.bits == 64 && (low == nil || high == nil) && !hasCode(n, "enum") && !hasCode(n, "const"):
		s.Format = "int64"
	case n.kind == nodeUint && n.bits == 64 && high == nil && !hasCode(n, "enum") && !hasCode(n, "const"):
		s.Minimum, s.Format = "0", "uint64"
	case n.kind == nodeInt && n.bits < 64:
		s.Minimum = json.Number(strconv.FormatInt(-1<<(n.bits-1), 10))
		s.Maximum = json.Number(strconv.FormatInt(1<<(n.bits-1)-1, 10))
	case n.kind == nodeUint:
		s.Minimum = "0"
		if n.bits < 64 {
			s.Maximum = json.Number(strconv.FormatUint(1<<n.bits-1, 10))
		}
	}
}

// durationSchema writes the form in which a Duration travels. With a unit, what
// an int64 of nanoseconds holds bounds the number.
func durationSchema(s *jsonschema.Schema, n *node) {
	switch {
	case n.unit != 0:
		limit := math.MaxInt64 / n.unit
		if n.unit > 1 {
			s.Minimum = json.Number(strconv.FormatInt(-limit, 10))
			s.Maximum = json.Number(strconv.FormatInt(limit, 10))
		}
	case n.iso:
		s.Format, s.Pattern = "duration", lexical.IsoDurationPattern
	default:
		s.Pattern = lexical.GoDurationPattern
	}
}

// object writes the schema of a struct, its members in their order. Sentences
// about conditions go to the member that they are about.
func (e *emitter) object(sh *shape) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object"}
	if !sh.open {
		s.AdditionalProperties = schemadoc.Clone(jsonschema.FalseSchema)
	}
	if len(sh.fields) > 0 || sh.skip != "" {
		s.Properties = jsonschema.NewProperties()
	}
	if _, isField := sh.byName[sh.skip]; sh.skip != "" && !isField {
		s.Properties.Set(sh.skip, &jsonschema.Schema{Type: "string", Const: sh.variant})
		s.Required = append(s.Required, sh.skip)
	}
	for i := range sh.fields {
		f := &sh.fields[i]
		p := e.node(f.node)
		for _, sentence := range f.when {
			p.Description = joinSentences(p.Description, sentence)
		}
		if f.header != "" {
			schemadoc.SetExtra(p, headerKeyword, f.header)
		}
		s.Properties.Set(f.name, p)
		if f.required {
			s.Required = append(s.Required, f.name)
		}
	}
	emitConditionals(s, sh)
	for _, fn := range sh.funcs {
		s.Description = joinSentences(s.Description, fn.describe)
	}
	for _, extend := range sh.extend {
		e.extend(s, sh.typ, extend)
	}
	return s
}

// extend lets a type change its schema. A method that panics is a fault of the
// type, which the compiler reports.
func (e *emitter) extend(s *jsonschema.Schema, t reflect.Type, extend func(*jsonschema.Schema)) {
	if err := guard(func() { extend(s) }); err != nil {
		e.fails = append(e.fails, fmt.Sprintf("method JSONSchemaExtend of %s panicked: %v", t, err))
	}
}

// finish adds to the schema of a type what its position says: the keywords of
// its checks, null, and the description. What the keywords cannot say becomes a
// sentence, so that no rule is a surprise. Rules of a value inside a string are
// told in words, because keywords for numbers say nothing about strings.
func (e *emitter) finish(n *node, s *jsonschema.Schema) *jsonschema.Schema {
	var notes []string
	if n.kind == nodeDuration && n.unit != 0 {
		notes = append(notes, "In "+lexical.UnitWord(n.unit)+".")
	}
	if n.kind == nodeBigInt {
		notes = append(notes, "At most "+strconv.Itoa(maxBigDigits)+" digits.")
	}
	limits := s
	if n.orZero {
		limits = &jsonschema.Schema{}
	}
	for _, k := range n.checks {
		if k.Emit != nil && !n.quoted {
			k.Emit(limits)
		}
		if k.Note != "" && k.Bound != nil {
			notes = append(notes, "Must be "+n.wanted(&k)+".") // both ends in one sentence
		} else if k.Note != "" {
			notes = append(notes, k.Note)
		} else if n.quoted {
			notes = append(notes, "The value must be "+k.Want+".")
		}
	}
	if n.orZero && !schemadoc.IsEmpty(limits) {
		if zero, ok := zeroJSON(n); ok {
			s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Const: zero}, limits)
		}
	}
	if n.extend != nil {
		e.extend(s, n.typ, n.extend)
	}
	if n.nullable {
		nullable(s)
	}
	e.annotate(n, s, notes)
	return s
}

// zeroJSON is the JSON of the zero value that an element with omitempty may be.
func zeroJSON(n *node) (any, bool) {
	switch n.kind {
	case nodeString:
		return "", true
	case nodeInt, nodeUint, nodeFloat:
		return json.Number("0"), true
	case nodeBool:
		return false, true
	case nodeDuration:
		return json.Number("0"), n.unit != 0
	}
	return nil, false
}

// nullable makes a schema accept null too. Every keyword that would refuse null
// is widened: a type alone is not enough when an enum, a const or a not stands
// beside it.
func nullable(s *jsonschema.Schema) {
	switch {
	case s.Ref != "":
		s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Ref: s.Ref}, &jsonschema.Schema{Type: "null"})
		s.Ref = ""
		return
	case s.Type == "":
		if len(s.AnyOf) > 0 {
			s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Type: "null"})
		}
		return
	}
	schemadoc.SetExtra(s, "type", []any{s.Type, "null"})
	s.Type = ""
	if s.Enum != nil {
		s.Enum = append(s.Enum, nil)
	}
	if s.Const != nil {
		s.Enum, s.Const = []any{s.Const, nil}, nil
	}
	if s.Not != nil {
		s.AllOf, s.Not = append(s.AllOf, &jsonschema.Schema{Not: s.Not}), nil
	}
	for i, branch := range s.AllOf {
		s.AllOf[i] = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{branch, {Type: "null"}}}
	}
	if len(s.AnyOf) > 0 {
		s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Type: "null"})
	}
}

// annotate adds the keywords that only describe. What a tag says replaces what
// the type says, and sentences of rules follow.
func (e *emitter) annotate(n *node, s *jsonschema.Schema, notes []string) {
	a := &n.note
	if a.title != "" {
		s.Title = a.title
	}
	if a.description != "" {
		s.Description = a.description
	}
	for _, note := range notes {
		s.Description = joinSentences(s.Description, note)
	}
	if a.examples != nil {
		s.Examples = schemadoc.CloneAny(a.examples).([]any)
	}
	if a.hasDefault {
		s.Default = a.def
		if a.def == nil {
			schemadoc.SetExtra(s, "default", nil)
		}
	}
	s.Deprecated = s.Deprecated || a.deprecated
	s.ReadOnly = s.ReadOnly || a.readOnly
	s.WriteOnly = s.WriteOnly || a.writing
	for k, v := range a.extras {
		schemadoc.SetExtra(s, k, schemadoc.CloneAny(v))
	}
}

// joinSentences puts a sentence behind a description, unless it is there
// already.
func joinSentences(description, sentence string) string {
	switch {
	case description == "":
		return sentence
	case strings.Contains(description, sentence):
		return description
	case strings.ContainsAny(description[len(description)-1:], ".!?:"):
		return description + " " + sentence
	}
	return description + ". " + sentence
}

// union writes a union as anyOf, one branch a variant. Each branch has a const
// of its own, which says the same as oneOf and is cheaper to check.
func (e *emitter) union(u *unionShape) *jsonschema.Schema {
	s := &jsonschema.Schema{}
	for _, v := range u.variants {
		s.AnyOf = append(s.AnyOf, e.node(v.node))
	}
	return s
}
