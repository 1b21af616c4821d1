package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/internal/lexical"
	"github.com/talaria-go/mcp/schema/internal/regex"
	"github.com/talaria-go/mcp/schema/internal/rules"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// emitter writes the JSON Schema of nodes. It only reads the nodes, and each
// schema that it returns is new, because the positions that use a schema change
// parts of it. An emitter is for one document and one goroutine.
type emitter struct {
	// opts are those of the plan.
	opts *Options
	// narrow is set for the schema of arguments that every host takes; see narrow.go.
	narrow bool
	// open leaves objects open for members that later versions add.
	open bool
	// said holds the sentences of a narrow schema that stand for keywords.
	said map[*jsonschema.Schema][]string
	// one is room for what a check writes, to be narrowed.
	one jsonschema.Schema
	// authored is set when a method of a type has written a part.
	authored bool
	// defs holds the definitions of recursive types, for $defs of the root. It
	// is nil while there is none.
	defs jsonschema.Definitions
	// names holds the shape or node that each name in defs stands for, and
	// named the name of each shape or node. Both are needed because types of
	// different packages can have the same name.
	names map[string]any
	named map[any]string
	// fails holds the panics of JSONSchemaExtend methods; the compiler reports
	// them.
	fails []string
}

// newEmitter returns an emitter for one document.
func newEmitter(opts *Options) *emitter {
	return &emitter{opts: opts, names: map[string]any{}, named: map[any]string{}}
}

// root returns the schema of a whole document, with the definitions it refers
// to. The type of the root is written in place even if it is recursive, because
// clients look for properties there and do not follow a $ref.
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
	if _, has := s.Extras["properties"]; !e.opts.Output && s.Type == "object" && s.Properties == nil && !has {
		s.Properties = jsonschema.NewProperties() // some model providers refuse arguments without it
	}
	return s
}

// node returns the schema of one position. A recursive type becomes a
// reference. Every other type is written out where it is used, because many
// readers of schemas, model providers among them, do not follow references.
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

// ref returns a reference to the definition of a recursive type. On first use
// it writes the definition with body. The name is reserved before that, because
// the body refers to itself. key identifies the type: a *shape, or the *node of
// a named container.
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

// defName returns a free name in $defs made of letters, digits and '_': the
// type's name, with its package path in front if that name is taken, and with a
// number if that one is taken too.
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

// typeWord turns the name of a type into one word. The name of a generic type
// contains brackets and package paths: Page[example.org/x.Address] becomes
// Page_of_Address.
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
			// The text so far is a package: drop it.
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

// body returns the schema of the node's type, before its rules, its nullability
// and its description are added by finish.
func (e *emitter) body(n *node) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: n.name}
	if n.hookedKey {
		e.authored = true
		return n.own()
	}
	switch n.kind {
	case nodeInt, nodeUint, nodeFloat, nodeBool:
		if n.quoted {
			s.Pattern = quotedPattern(n)
			if n.bits == 64 && n.kind != nodeFloat {
				s.Format = e.integerFormat(n)
			}
			return s
		}
		e.typeBounds(s, n)
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
			e.authored = e.authored || n.kind == nodeOpaque
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

// integerFormat returns the registered format of a 64-bit integer. Results do not have
// that of an unsigned one, which validators of clients warn of.
func (e *emitter) integerFormat(n *node) string {
	switch {
	case n.kind == nodeInt:
		return "int64"
	case e.opts.Output:
		return ""
	}
	return "uint64"
}

// quotedPattern returns the pattern of a number or boolean that travels inside
// a string. For types shorter than 64 bits it matches exactly the range of the
// type. For 64 bits such a pattern would be longer than any reader wants, so
// only the form is given and the decoder checks the range.
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

// typeBounds writes what the size of a number's type allows. For 64 bits it
// writes a format and not the 19-digit limits: those say little to a reader,
// and slow down programs that generate text along a schema.
func (e *emitter) typeBounds(s *jsonschema.Schema, n *node) {
	low, high := n.ownEnds()
	switch {
	case n.kind == nodeInt && n.bits == 64 && (low == nil || high == nil) && !hasCode(n, "enum") && !hasCode(n, "const"):
		s.Format = "int64"
	case n.kind == nodeUint && n.bits == 64 && high == nil && !hasCode(n, "enum") && !hasCode(n, "const"):
		s.Minimum, s.Format = "0", e.integerFormat(n)
	case n.kind == nodeFloat && n.bits == 32 && !hasCode(n, "enum") && !hasCode(n, "const"):
		if low == nil {
			s.Minimum = "-" + maxFloat32
		}
		if high == nil {
			s.Maximum = maxFloat32
		}
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

// maxFloat32 is the greatest float32 as encoders write it: the shortest decimal that is
// read as that number. It is a little above math.MaxFloat32, so that a result which has
// the greatest float32 is valid.
const maxFloat32 = "3.4028235e38"

// durationSchema writes the form in which a time.Duration travels. A number of
// units is bounded by what an int64 of nanoseconds can hold.
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

// object returns the schema of a struct, with its members in the order of the
// struct. The methods of the type that extend the schema run last.
func (e *emitter) object(sh *shape) *jsonschema.Schema {
	s := e.members(sh)
	for _, extend := range sh.extend {
		e.extend(s, sh.typ, extend, func(exact *emitter) *jsonschema.Schema { return exact.members(sh) })
	}
	return s
}

// members is object without the methods that extend the schema. The sentences about
// rules among members are added to the members that they are about.
func (e *emitter) members(sh *shape) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object"}
	if !sh.open && (sh.closed || !e.open) {
		none := *jsonschema.FalseSchema
		s.AdditionalProperties = &none
	}
	if len(sh.fields) > 0 || sh.skip != "" {
		s.Properties = jsonschema.NewProperties()
	}
	if _, isField := sh.byName[sh.skip]; sh.skip != "" && !isField {
		tag := &jsonschema.Schema{Type: "string", Const: sh.variant}
		if e.narrow {
			narrower{typ: tag.Type}.narrow(tag)
		}
		s.Properties.Set(sh.skip, tag)
		s.Required = append(s.Required, sh.skip)
	}
	for i := range sh.fields {
		f := &sh.fields[i]
		p := e.node(f.node)
		for _, sentence := range f.when {
			p.Description = joinSentences(p.Description, sentence)
		}
		if e.narrow && len(f.when) > 0 {
			e.said[p] = append(e.said[p], f.when...)
		}
		if f.header != "" {
			schemadoc.SetExtra(p, headerKeyword, f.header)
		}
		s.Properties.Set(f.name, p)
		if f.required {
			s.Required = append(s.Required, f.name)
		}
	}
	if !e.narrow { // the members have sentences of them
		emitConditionals(s, sh)
	}
	for _, fn := range sh.funcs {
		s.Description = joinSentences(s.Description, fn.describe)
	}
	return s
}

// extend calls the JSONSchemaExtend method of t on s, inside the guard. A panic
// is recorded in e.fails. The method always gets an exact schema. To a narrow one it
// is applied as what it changes in the exact one, which write returns.
func (e *emitter) extend(s *jsonschema.Schema, t reflect.Type, extend func(*jsonschema.Schema), write func(exact *emitter) *jsonschema.Schema) {
	e.authored = true
	err := guard(func() {
		if !e.narrow {
			extend(s)
			return
		}
		exact := &emitter{opts: e.opts, names: maps.Clone(e.names), named: maps.Clone(e.named)}
		before := write(exact)
		after := schemadoc.Clone(before)
		extend(after)
		e.keep(s, before, after)
	})
	if err != nil {
		e.fails = append(e.fails, fmt.Sprintf("method JSONSchemaExtend of %s panicked: %v", t, err))
	}
}

// finish adds to the schema of a type what its position demands: the keywords
// of the checks, null, and the description. What no keyword can express becomes
// a sentence of the description, so that no rule comes as a surprise.
func (e *emitter) finish(n *node, s *jsonschema.Schema) *jsonschema.Schema {
	notes := e.limit(n, s)
	if n.extend != nil {
		e.extend(s, n.typ, n.extend, func(exact *emitter) *jsonschema.Schema {
			before := exact.body(n)
			exact.limit(n, before)
			return before
		})
	}
	switch {
	case n.nullable && e.narrow:
		orNull(s)
	case n.nullable:
		nullable(s)
	}
	e.annotate(n, s, notes)
	return s
}

// limit adds the keywords of the checks to the schema of a type and returns the
// sentences of the rules. For a number inside a string the rules are stated in
// words, because numeric keywords do not apply to strings.
//
// If the zero value passes without checks (orZero), the keywords go into one
// branch of an anyOf and the zero value into the other.
func (e *emitter) limit(n *node, s *jsonschema.Schema) (notes []string) {
	if n.kind == nodeDuration && n.unit != 0 {
		notes = append(notes, "In "+lexical.UnitWord(n.unit)+".")
	}
	if n.kind == nodeBigInt {
		notes = append(notes, "At most "+strconv.Itoa(maxBigDigits)+" digits.")
	}
	say := func(sentences ...string) {
		if len(sentences) == 0 {
			return
		}
		notes, e.said[s] = append(notes, sentences...), append(e.said[s], sentences...)
	}
	if e.narrow {
		say(e.narrowType(n, s)...)
	}
	limits := s
	if n.orZero {
		limits = &jsonschema.Schema{}
	}
	for _, k := range n.checks {
		emit, texts := k.Emit, []any(nil)
		if n.quoted {
			texts = quotedTexts(n, &k)
			emit = func(s *jsonschema.Schema) { schemadoc.AddEnum(s, texts) }
		}
		switch {
		case k.Emit == nil || n.quoted && texts == nil:
		case !e.narrow:
			emit(limits)
		case narrowerOf(n).add(&e.one, limits, emit):
			say(sentence(n, &k))
		}
		switch {
		case texts != nil:
		case k.Note != "" && k.Bound != nil:
			notes = append(notes, "Must be "+n.wanted(&k)+".") // both ends in one sentence
		case k.Note != "":
			notes = append(notes, k.Note)
		case n.quoted:
			notes = append(notes, "The value must be "+k.Want+".")
		}
	}
	if n.hint != "" && e.narrow {
		say("In the format " + n.hint + ".")
		s.WriteOnly = s.WriteOnly || n.hint == "password" // clients hide such a value, too
	} else if n.hint != "" {
		addHint(s, n.hint)
	}
	if zero, ok := zeroJSON(n); ok && n.orZero && !schemadoc.IsEmpty(limits) {
		if e.narrow {
			narrowerOf(n).orZero(s, limits, zero)
		} else {
			s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Const: zero}, limits)
		}
	}
	return notes
}

// quotedTexts returns the values that a check lists as the texts of a node that travels
// inside a string, such as the key of a map. It returns nil if the check lists none, or
// if a value has several texts, as a float64 has.
func quotedTexts(n *node, k *rules.Check) (texts []any) {
	if k.Emit == nil || n.kind != nodeInt && n.kind != nodeUint && n.kind != nodeBool {
		return nil
	}
	s := &jsonschema.Schema{}
	k.Emit(s)
	if s.Const != nil {
		s.Enum = append(s.Enum, s.Const)
	}
	for _, v := range s.Enum {
		texts = append(texts, string(wording.AppendJSON(nil, v)))
	}
	return texts
}

// zeroJSON returns the JSON of the zero value that an element with omitempty
// may have; ok is false for kinds where there is none.
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

// nullable changes a schema so that it accepts null too. Every keyword that
// would refuse null is widened: changing only the type is not enough if there
// is an enum, a const or a not.
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

// annotate adds the keywords that only describe. A tag replaces the keywords
// of the type; notes, the sentences of the rules, follow.
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

// joinSentences appends a sentence to a description, unless the description
// contains it.
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

// union returns the schema of a union: anyOf with one branch for each variant.
// The branches exclude each other through the const of their tag member, so
// anyOf means the same as oneOf and is cheaper to check.
func (e *emitter) union(u *unionShape) *jsonschema.Schema {
	s := &jsonschema.Schema{}
	for _, v := range u.variants {
		s.AnyOf = append(s.AnyOf, e.node(v.node))
	}
	return s
}
