package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
)

// emitter writes the schema of nodes.
type emitter struct {
	opts  *Options
	defs  jsonschema.Definitions
	names map[string]any // def name → shape or type that has it
	named map[any]string
	fails []string // what extension hooks panicked with
}

func newEmitter(opts *Options) *emitter {
	return &emitter{opts: opts, names: map[string]any{}, named: map[any]string{}}
}

// root writes the schema of a whole document.
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

// node writes the schema of one position.
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
// definition when it is the first.
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
	switch n.kind {
	case nodeInt, nodeUint, nodeFloat, nodeBool:
		if n.quoted {
			s.Pattern = quotedPattern(n)
			return s
		}
		typeBounds(s, n)
	case nodeBytes:
		s.ContentEncoding = "base64"
		s.Pattern = base64Pattern
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
		if names := e.node(n.key); n.key.kind != nodeString || len(n.key.checks) > 0 {
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

const base64Pattern = `^(?:[A-Za-z0-9+\/]{4})*(?:[A-Za-z0-9+\/]{2}==|[A-Za-z0-9+\/]{3}=)?$`

// quotedPattern is the text of a number or boolean inside a string.
func quotedPattern(n *node) string {
	switch n.kind {
	case nodeInt:
		return `^(?:0|-?[1-9][0-9]*)$`
	case nodeUint:
		return `^(?:0|[1-9][0-9]*)$`
	case nodeBool:
		return `^(?:true|false)$`
	}
	return `^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+\-]?[0-9]+)?$`
}

// typeBounds writes what the size of an integer type allows. The full 64 bits
// are left out: they say nothing to a reader.
func typeBounds(s *jsonschema.Schema, n *node) {
	switch {
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

func durationSchema(s *jsonschema.Schema, n *node) {
	switch {
	case n.unit != 0:
		limit := math.MaxInt64 / n.unit
		if n.unit > 1 {
			s.Minimum = json.Number(strconv.FormatInt(-limit, 10))
			s.Maximum = json.Number(strconv.FormatInt(limit, 10))
		}
	case n.iso:
		s.Format, s.Pattern = "duration", isoDurationPattern
	default:
		s.Pattern = goDurationPattern
	}
}

// object writes the schema of a struct.
func (e *emitter) object(sh *shape) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object"}
	if !sh.open {
		s.AdditionalProperties = clone(jsonschema.FalseSchema)
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
			setExtra(p, headerKeyword, f.header)
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

// extend lets a type change its schema.
func (e *emitter) extend(s *jsonschema.Schema, t reflect.Type, extend func(*jsonschema.Schema)) {
	if err := guard(func() { extend(s) }); err != nil {
		e.fails = append(e.fails, fmt.Sprintf("method JSONSchemaExtend of %s panicked: %v", t, err))
	}
}

// finish adds to the schema of a type what its position says.
func (e *emitter) finish(n *node, s *jsonschema.Schema) *jsonschema.Schema {
	var notes []string
	if n.kind == nodeDuration && n.unit != 0 {
		notes = append(notes, "In "+unitWord(n.unit)+".")
	}
	rules := s
	if n.orZero {
		rules = &jsonschema.Schema{}
	}
	for _, k := range n.checks {
		if k.emit != nil && !n.quoted {
			k.emit(rules)
		}
		if k.note != "" && k.bound != nil {
			notes = append(notes, "Must be "+n.wanted(&k)+".") // both ends in one sentence
		} else if k.note != "" {
			notes = append(notes, k.note)
		} else if n.quoted {
			notes = append(notes, "The value must be "+k.want+".")
		}
	}
	if n.orZero && !schemaEmpty(rules) {
		if zero, ok := zeroJSON(n); ok {
			s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Const: zero}, rules)
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

func schemaEmpty(s *jsonschema.Schema) bool { return reflect.ValueOf(s).Elem().IsZero() }

// zeroJSON is the JSON of the zero value that an element with omitempty may be.
func zeroJSON(n *node) (any, bool) {
	switch n.kind {
	case nodeString:
		return "", true
	case nodeInt, nodeUint, nodeFloat:
		return json.Number("0"), true
	case nodeBool:
		return false, true
	}
	return nil, false
}

// nullable makes a schema accept null too.
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
	setExtra(s, "type", []any{s.Type, "null"})
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

func setExtra(s *jsonschema.Schema, name string, v any) {
	if s.Extras == nil {
		s.Extras = map[string]any{}
	}
	s.Extras[name] = v
}

// annotate adds the keywords that only describe.
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
		s.Examples = cloneAny(a.examples).([]any)
	}
	if a.hasDefault {
		s.Default = a.def
		if a.def == nil {
			setExtra(s, "default", nil)
		}
	}
	s.Deprecated = s.Deprecated || a.deprecated
	s.ReadOnly = s.ReadOnly || a.readOnly
	s.WriteOnly = s.WriteOnly || a.writing
	for k, v := range a.extras {
		setExtra(s, k, cloneAny(v))
	}
}

// joinSentences puts a sentence behind a description.
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
