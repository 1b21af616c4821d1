package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/invopop/jsonschema"
)

// Plan is a compiled type: its JSON Schema, and a decoder that checks a
// document against that schema while it fills a value of the type. A Plan does
// not change and is safe for concurrent use.
type Plan struct {
	typ         reflect.Type
	opts        *Options
	root        *node
	schema      *jsonschema.Schema
	text        json.RawMessage
	fields      []Field
	headers     []HeaderParam
	warnings    []Problem
	constrained bool
	maxDepth    int
	maxNodes    int
}

// For returns the JSON Schema of T. At most one Options is used; none means
// the defaults. The error is a *RegistrationError.
func For[T any](opts ...*Options) (*jsonschema.Schema, error) {
	var o *Options
	if len(opts) > 0 {
		o = opts[0]
	}
	p, err := Compile(reflect.TypeFor[T](), o)
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
	p := &Plan{typ: t, opts: &o, maxDepth: o.MaxDepth, maxNodes: o.MaxNodes}
	if p.maxDepth <= 0 {
		p.maxDepth = defaultMaxDepth
	}
	if p.maxNodes <= 0 {
		p.maxNodes = defaultMaxNodes
	}
	p.root = c.typeNode(t, false)
	c.finish(p)
	if len(c.problems) > 0 {
		return nil, &RegistrationError{Type: t.String(), Problems: c.problems}
	}
	p.warnings = c.warnings
	return p, nil
}

// Type returns the type that the plan decodes into.
func (p *Plan) Type() reflect.Type { return p.typ }

// Schema returns the schema. Each call makes a new copy.
func (p *Plan) Schema() *jsonschema.Schema { return clone(p.schema) }

// JSON returns the schema as JSON, always the same bytes for the same type. It
// must not be modified.
func (p *Plan) JSON() json.RawMessage { return p.text }

// Warnings returns what is legal in the type and yet likely to be a mistake,
// such as a member name that model providers refuse.
func (p *Plan) Warnings() []Problem { return append([]Problem(nil), p.warnings...) }

// Constrained reports whether a value of the Go type can break the schema. If
// not, checking results against it is a waste.
func (p *Plan) Constrained() bool { return p.constrained }

// Decode reads a document into dst, a pointer to the plan's type. It returns
// nil, or an *Error with every issue; dst is then partly filled. Any other
// error means that a rule or a method of the type panicked, or that dst has
// the wrong type.
//
// No data at all stands for {}. Nothing in dst refers to data afterwards. What
// dst held before is lost.
func (p *Plan) Decode(data []byte, dst any) error {
	return p.DecodeContext(context.Background(), data, dst)
}

// DecodeContext is Decode with a context for custom rules.
func (p *Plan) DecodeContext(ctx context.Context, data []byte, dst any) error {
	return p.decodeInto(ctx, data, dst, nil)
}

// DecodeReport is DecodeContext that also returns the JSON Pointers of the
// values that were not taken as they came, such as "5" for an integer, in the
// order of the document. There are none with Options.Strict.
func (p *Plan) DecodeReport(ctx context.Context, data []byte, dst any) (coerced []string, err error) {
	err = p.decodeInto(ctx, data, dst, &coerced)
	return coerced, err
}

func (p *Plan) decodeInto(ctx context.Context, data []byte, dst any, coerced *[]string) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Type().Elem() != p.typ {
		return fmt.Errorf("schema: Decode needs a *%s, not %T", p.typ, dst)
	}
	v.Elem().SetZero()
	return p.decode(ctx, orEmpty(data), v.UnsafePointer(), p.lenient(), coerced)
}

// orEmpty returns {} for no data at all.
func orEmpty(data []byte) []byte {
	if len(data) == 0 {
		return []byte("{}")
	}
	return data
}

func (p *Plan) lenient() bool { return !p.opts.Strict && !p.opts.Output }

// Check is Decode without a destination.
func (p *Plan) Check(data []byte) error {
	return p.decode(context.Background(), orEmpty(data), reflect.New(p.typ).UnsafePointer(), p.lenient(), nil)
}

// Field is a top-level member of the plan's type.
type Field struct {
	Name        string   // member name
	GoName      string   // name of the struct field
	Description string   // as in the schema
	Title       string   // as in the schema
	Required    bool     // it must be there
	Type        string   // JSON Schema type; "" if any
	Format      string   // JSON Schema format; "" if none
	Enum        []string // the values it can have, as text; nil if they are not listed
	Default     any      // its default as string, bool, json.Number or json.RawMessage; nil if none
	Header      string   // HTTP header name of x-mcp-header; "" if none
	Secret      bool     // its value must not be shown
}

// Fields returns the top-level members in the order of the schema.
func (p *Plan) Fields() []Field { return append([]Field(nil), p.fields...) }

// HeaderParam is an argument that clients mirror into an HTTP header.
type HeaderParam struct {
	Header string   // name after "Mcp-Param-"
	Path   []string // member names from the root
	Kind   string   // "string", "integer" or "boolean"
}

// Headers returns the mirrored arguments, nested ones too.
func (p *Plan) Headers() []HeaderParam { return append([]HeaderParam(nil), p.headers...) }
