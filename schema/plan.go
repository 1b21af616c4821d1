package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"
)

// Plan is a compiled type: its JSON Schema, and a decoder that checks a
// document against that schema while it fills a value of the type. A Plan does
// not change and is safe for concurrent use.
type Plan struct {
	typ  reflect.Type
	opts *Options
	root *node
	// schema is copied for everyone who asks: hooks and callers may change what
	// they get. text is its JSON, which is shared.
	schema   *jsonschema.Schema
	text     json.RawMessage
	fields   []Field
	headers  []facts.Header
	warnings []Problem
	// constrained is set if a value of the Go type can break the schema, so
	// that results have to be checked before they are sent.
	constrained bool
	unsaid      bool // there are rules that no schema has, or none that every host takes
	// maxDepth and maxValues are those of the options, or the defaults.
	maxDepth  int
	maxValues int
}

// For returns the JSON Schema of T. Options may be nil, which means the defaults.
// The error is a *RegistrationError.
func For[T any](opts *Options) (*jsonschema.Schema, error) {
	p, err := Compile(reflect.TypeFor[T](), opts)
	if err != nil {
		return nil, err
	}
	return p.Schema(), nil
}

// Compile prepares a type. Arguments must be a struct or a map with string
// keys, or a pointer to one; results (Options.Output) may be of any JSON type.
// The error is a *RegistrationError that lists everything wrong with the type
// and its tags. Options may be nil; they are copied.
func Compile(t reflect.Type, opts *Options) (*Plan, error) {
	if t == nil {
		return nil, &RegistrationError{Type: "nil", Problems: []Problem{{Type: "nil", Message: "there is no type to compile"}}}
	}
	o := Options{}
	if opts != nil {
		o = *opts
	}
	c := &compiler{
		opts:   &o,
		shapes: map[shapeKey]*shape{},
		open:   map[reflect.Type]*node{},
		unions: map[reflect.Type]*unionShape{},
		where:  place{typ: t.String()},
	}
	c.prepare()
	p := &Plan{typ: t, opts: &o, maxDepth: o.MaxDepth, maxValues: o.MaxValues}
	if p.maxDepth <= 0 {
		p.maxDepth = defaultMaxDepth
	}
	if p.maxValues <= 0 {
		p.maxValues = defaultMaxValues
	}
	p.root = c.typeNode(t, false)
	finish(c, p)
	if len(c.problems) > 0 {
		return nil, &RegistrationError{Type: t.String(), Problems: c.problems}
	}
	p.warnings = c.warnings
	return p, nil
}

// Schema returns the schema. Each call makes a new copy.
func (p *Plan) Schema() *jsonschema.Schema { return schemadoc.Clone(p.schema) }

// JSON returns the schema as JSON, always the same bytes for the same type. It
// must not be modified.
func (p *Plan) JSON() json.RawMessage { return p.text }

// Warnings returns what is legal in the type and yet probably a mistake, such
// as a member name that model providers refuse. The slice is the caller's.
func (p *Plan) Warnings() []Problem { return append([]Problem(nil), p.warnings...) }

// Decode reads a document into dst, which must be a non-nil pointer to the
// plan's type; what dst held before is overwritten. Decode returns nil, or an
// *Error that lists every issue, in which case dst is partly filled. Any other
// error means that dst has the wrong type, or comes from a struct rule that
// could not run.
//
// The context is passed to custom rules. A panic of a rule, or of a method of
// the type, reaches the caller. Empty data stands for {}. Nothing in dst refers
// to data afterwards, so the caller may reuse it.
func (p *Plan) Decode(ctx context.Context, data []byte, dst any) error {
	return p.decodeInto(ctx, data, dst, nil)
}

// decodeInto is Decode with one addition: if coerced is not nil, the JSON
// Pointers of the values that were not taken as they came, such as "5" for an
// integer, are appended to it in the order of the document.
func (p *Plan) decodeInto(ctx context.Context, data []byte, dst any, coerced *[]string) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Type().Elem() != p.typ {
		return fmt.Errorf("schema: Decode needs a *%s, not %T", p.typ, dst)
	}
	v.Elem().SetZero()
	return p.decode(ctx, orEmpty(data), slotOf(v), p.lenient(), coerced)
}

// orEmpty returns data, or {} if there is none: a call without arguments is a
// call with an empty object.
func orEmpty(data []byte) []byte {
	if len(data) == 0 {
		return []byte("{}")
	}
	return data
}

// lenient reports whether values are coerced. Results never are: they are the
// server's own, and clients read them strictly.
func (p *Plan) lenient() bool { return !p.opts.Strict && !p.opts.Output }

// Check is Decode without a destination: it reports whether data is a valid
// document. Custom rules get context.Background().
func (p *Plan) Check(data []byte) error {
	return p.decode(context.Background(), orEmpty(data), slotOf(reflect.New(p.typ)), p.lenient(), nil)
}

// Field is a top-level member of the plan's type.
type Field struct {
	// Name is the member name, and GoName that of the struct field.
	Name   string
	GoName string
	// Description and Title are those of the schema, sentences of rules included.
	Description string
	Title       string
	// Required says that the member must be there in every document. A condition
	// on other members may demand one that is not required.
	Required bool
	// Type is the type of JSON Schema; "" if any.
	Type string
	// Format is the format of JSON Schema; "" if none.
	Format string
	// Enum has the values that the member can have, as text; nil if they are not
	// listed.
	Enum []string
	// Default is what an absent member becomes, as string, bool, json.Number or
	// json.RawMessage; nil if there is none.
	Default any
	// Header is the name of the HTTP header that mirrors the member; "" if none.
	Header string
	// Secret says that the value must not be shown or kept.
	Secret bool
}

// Fields returns the top-level members in the order of the schema, or nil if
// the type is not a struct. The slice is the caller's.
func (p *Plan) Fields() []Field { return append([]Field(nil), p.fields...) }

// Internal returns what the other packages of this module need to know about a
// plan and users do not. Others cannot call it.
func (p *Plan) Internal(facts.Private) facts.Plan {
	known := facts.Plan{Headers: append([]facts.Header(nil), p.headers...), Constrained: p.constrained}
	if !p.opts.Output {
		e := newEmitter(p.opts)
		e.narrow, e.said = true, map[*jsonschema.Schema][]string{}
		known.Narrow = schemadoc.Append(make([]byte, 0, len(p.text)+512), e.root(p.root))
		known.Authored = e.authored
		known.Unsaid = p.unsaid || len(e.said) > 0
		return known
	}
	known.Open = func() json.RawMessage {
		e := newEmitter(p.opts)
		e.open = true
		return schemadoc.Append(make([]byte, 0, len(p.text)), e.root(p.root))
	}
	return known
}

// decode reads data into the value at dst, which must be zero and have the
// plan's type. Depending on lenient it coerces values, and appends the places
// of those to coerced unless that is nil.
func (p *Plan) decode(ctx context.Context, data []byte, dst slot, lenient bool, coerced *[]string) (err error) {
	d := decoders.Get().(*decoder)
	d.s.Reset(data)
	d.s.MaxDepth = p.maxDepth
	d.plan, d.ctx, d.lenient, d.coerced = p, ctx, lenient, coerced
	d.path, d.marks, d.values, d.inText = d.path[:0], d.marks[:0], 0, false
	d.secret, d.inKey, d.more = false, false, false
	if d.value(p.root, dst) {
		if end := d.s.End(); end != nil {
			d.stop(end)
		} else {
			d.runDeferred(dst)
		}
	}
	err = d.result()
	d.release()
	return err
}
