package schema

import (
	"context"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
	"github.com/talaria-go/mcp/schema/internal/schemadoc"
)

// holding makes a struct type of fields, each a type and its tags.
func holding(parts ...any) reflect.Type {
	var fields []reflect.StructField
	for i := 0; i < len(parts); i += 2 {
		name := string(rune('A' + i/2))
		fields = append(fields, reflect.StructField{Name: name, Type: reflect.TypeOf(parts[i]), Tag: reflect.StructTag(parts[i+1].(string))})
	}
	return reflect.StructOf(fields)
}

type rootAnyOf struct {
	A string `json:"a,omitempty"`
	B string `json:"b,omitempty"`
}

func (rootAnyOf) JSONSchemaExtend(s *jsonschema.Schema) {
	s.AnyOf = []*jsonschema.Schema{{Required: []string{"a"}}, {Required: []string{"b"}}}
}

// registrationRows are the faults that must be found when a type is compiled,
// and a part of what is said about each.
var registrationRows = []struct {
	name string
	typ  reflect.Type
	opts *Options
	want string
}{
	{"unknown rule", holding("", `json:"a" validate:"emial"`), nil, "did you mean email?"},
	{"rule of JSON Schema", holding(1, `json:"a" validate:"maximum=3"`), nil, "write max, or maximum in the tag jsonschema"},
	{"description in validate", holding(1, `json:"a" validate:"description=x"`), nil, "write description in the tag jsonschema"},
	{"wrong kind", holding(1, `json:"a" validate:"email"`), nil, "email does not apply to int; use it on strings"},
	{"missing parameter", holding(1, `json:"a" validate:"min"`), nil, "min needs a parameter"},
	{"empty parameter", holding(1, `json:"a" validate:"min="`), nil, "needs a number"},
	{"extra parameter", holding("", `json:"a" validate:"alpha=3"`), nil, "alpha takes no parameter"},
	{"unparsable parameter", holding(1, `json:"a" validate:"min=abc"`), nil, "is not an integer"},
	{"NaN", holding(1.5, `json:"a" validate:"gt=NaN"`), nil, "not a finite number"},
	{"Inf", holding(1.5, `json:"a" validate:"lt=Inf"`), nil, "not a finite number"},
	{"octal", holding(1, `json:"a" validate:"min=010"`), nil, "octal"},
	{"min over max", holding(1, `json:"a" validate:"min=5,max=3"`), nil, "no value satisfies both"},
	{"min over max on a length", holding("", `json:"a" validate:"min=5,max=3"`), nil, "no value satisfies both"},
	{"min over max on a duration", holding(time.Second, `json:"a" validate:"min=1h,max=1m"`), nil, "no value satisfies both"},
	{"len outside", holding("", `json:"a" validate:"len=9,max=3"`), nil, "no value satisfies both"},
	{"oneof empty", holding("", `json:"a" validate:"oneof="`), nil, "has no values"},
	{"oneof twice", holding("", `json:"a" validate:"oneof=a a"`), nil, "twice"},
	{"oneof outside", holding("", `json:"a" validate:"oneof=a bbbb,max=3"`), nil, "the value bbbb can never be used"},
	{"eq outside oneof", holding("", `json:"a" validate:"oneof=a b,eq=c"`), nil, "can never be used"},
	{"default breaks rules", holding(1, `json:"a" validate:"max=3" jsonschema:"default=9"`), nil, "the value breaks the field's own rules"},
	{"example breaks rules", holding(1, `json:"a" validate:"max=3" jsonschema:"example=9"`), nil, "the value breaks the field's own rules"},
	{"lt=0", holding("", `json:"a" validate:"lt=0"`), nil, "no length is less than 0"},
	{"two enums", holding("", `json:"a" validate:"oneof=a b" jsonschema:"enum=a,enum=c"`), nil, "make both the same"},
	{"pattern outside the common dialect", holding("", `json:"a" jsonschema:"pattern=^(?i)a"`), nil, "pattern"},
	{"pattern refuses the example", holding("", `json:"a" jsonschema:"pattern=^[a-z]+$,example=X"`), nil, "the value breaks the field's own rules"},
	{"omitempty not first", holding(1, `json:"a" validate:"min=1,omitempty"`), nil, "must come before the rules"},
	{"omitempty before a conditional", holding("", `json:"a" validate:"omitempty,required_with=B"`, "", `json:"b,omitempty"`), nil, "never runs"},
	{"dive on a scalar", holding(1, `json:"a" validate:"dive,min=1"`), nil, "dive needs a slice, array or map"},
	{"keys without a map", holding([]int{}, `json:"a" validate:"dive,keys,min=1,endkeys"`), nil, "keys needs a map"},
	{"structonly on a scalar", holding(1, `json:"a" validate:"structonly"`), nil, "structonly"},
	{"cross-field target missing", holding(1, `json:"a" validate:"gtfield=Bx"`, 1, `json:"b"`), nil, `there is no field "Bx"`},
	{"cross-field target of another kind", holding(1, `json:"a" validate:"gtfield=B"`, "", `json:"b"`), nil, "cannot be compared"},
	{"cross-field target itself", holding(1, `json:"a" validate:"gtfield=A"`), nil, "its own field"},
	{"condition on itself", holding("", `json:"a" validate:"required_with=A"`), nil, "its own field"},
	{"condition target missing", holding("", `json:"a" validate:"required_with=Q"`, 1, `json:"b"`), nil, `there is no field "Q"`},
	{"condition value of another kind", holding("", `json:"a" validate:"required_if=B x"`, 1, `json:"b"`), nil, "is no value of B"},
	{"cyclic order", holding(1, `json:"a" validate:"gtfield=B"`, 1, `json:"b" validate:"gtfield=A"`), nil, "can never both hold"},
	{"odd parameters", holding("", `json:"a" validate:"required_if=B"`, "", `json:"b"`), nil, "pairs of a field and a value"},
	{"duplicate pairs", holding("", `json:"a" validate:"required_if=B x B y"`, "", `json:"b"`), nil, "names B twice"},
	{"multi-rule alias among alternatives", holding("", `json:"a" validate:"short|numeric"`), &Options{Aliases: map[string]string{"short": "max=3,alpha"}}, "stands for several rules"},
	{"unique on what cannot be compared", holding([][]int{}, `json:"a" validate:"unique"`), nil, "cannot compare"},
	{"two fields of one name", holding(1, `json:"x"`, 2, `json:"x"`), nil, `two fields are named "x"`},
	{"invalid name", holding(1, `json:"a\"b"`), nil, "not a member name"},
	{"func", holding(func() {}, `json:"a"`), nil, "func has no JSON form"},
	{"chan", holding(make(chan int), `json:"a"`), nil, "chan has no JSON form"},
	{"complex", holding(complex(1, 1), `json:"a"`), nil, "complex128 has no JSON form"},
	{"uintptr", holding(uintptr(1), `json:"a"`), nil, "uintptr has no JSON form"},
	{"unsupported deep inside", holding([]map[string]struct {
		C chan int `json:"c"`
	}{}, `json:"a"`), nil, "chan has no JSON form"},
	{"json.Unmarshaler without a schema", holding(sealed{}, `json:"a"`), nil, "its schema is unknown"},
	{"root is a list", reflect.TypeFor[[]int](), nil, "is not one"},
	{"root is a scalar", reflect.TypeFor[string](), nil, "is not one"},
	{"server state", holding("", `json:"a" validate:"file"`), nil, "Options.AllowServerState"},
	{"root composition", reflect.TypeFor[rootAnyOf](), nil, "anyOf at the top"},
	{"a faulty rule that no field uses", holding(1, `json:"a"`), &Options{Rules: []Rule{NewRule[string]("x", nil, Describe("x"))}}, `rule "x": it has no function`},
	{"an empty rule", holding(1, `json:"a"`), &Options{Rules: []Rule{{}}}, "empty"},

	{"grammar: hexadecimal comma", holding(1, `json:"a" validate:"min=0x2C"`), nil, "stand for ',' and '|'"},
	{"grammar: space", holding(1, `json:"a" validate:"min=3, max=5"`), nil, "remove the space"},
	{"grammar: negative for unsigned", holding(uint(1), `json:"a" validate:"min=-1"`), nil, "never negative"},
	{"grammar: fraction for integer", holding(1, `json:"a" validate:"min=1.5"`), nil, "did you mean gt=1"},
	{"grammar: behind a pointer", holding(new(string), `json:"a" validate:"nope"`), nil, "unknown rule"},
	{"grammar: omitempty among alternatives", holding("", `json:"a" validate:"omitempty|alpha"`), nil, "cannot be one of several alternatives"},
	{"grammar: dive among alternatives", holding("", `json:"a" validate:"alpha|dive"`), nil, "cannot be one of several alternatives"},
	{"grammar: required among alternatives", holding("", `json:"a" validate:"required|alpha"`), nil, "cannot be one of several alternatives"},
	{"grammar: boolean written as 1", holding("", `json:"a" validate:"required_if=B 1"`, true, `json:"b"`), nil, "write true or false"},
	{"grammar: condition on a list", holding("", `json:"a" validate:"required_if=B x"`, []string{}, `json:"b"`), nil, "cannot be compared with a text"},
	{"grammar: quote inside a value", holding("", `json:"a" validate:"oneof=it's b"`), nil, "dropped by the tag grammar"},
	{"grammar: duration without unit", holding(time.Second, `json:"a" validate:"min=abc"`), nil, "is not a duration"},

	{"header is no token", holding("", `json:"a" mcp:"header=A B"`), nil, "token of RFC 9110"},
	{"header is empty", holding("", `json:"a" mcp:"header="`), nil, "token of RFC 9110"},
	{"header twice, in other case", holding("", `json:"a" mcp:"header=Region"`, "", `json:"b" mcp:"header=REGION"`), nil, "is taken by /a"},
	{"header on a number", holding(1.5, `json:"a" mcp:"header=A"`), nil, "only a string, a boolean or an integer"},
	{"header on a list", holding([]string{}, `json:"a" mcp:"header=A"`), nil, "only a string, a boolean or an integer"},
	{"header on an object", holding(struct{ N int }{}, `json:"a" mcp:"header=A"`), nil, "only a string, a boolean or an integer"},
	{"header on a nullable", holding(new(string), `json:"a" jsonschema:"nullable" mcp:"header=A"`), nil, "only a string, a boolean or an integer"},
	{"header below a list", holding([]struct {
		B string `json:"b" mcp:"header=B"`
	}{}, `json:"a"`), nil, "through objects alone"},
	{"header below a map", holding(map[string]struct {
		B string `json:"b" mcp:"header=B"`
	}{}, `json:"a"`), nil, "through objects alone"},
	{"header below recursion", reflect.TypeFor[headedTree](), nil, "through objects alone"},
}

type headedTree struct {
	Name string      `json:"name" mcp:"header=Name"`
	Next *headedTree `json:"next"`
}

func TestRegistrationChecks(t *testing.T) {
	for _, row := range registrationRows {
		t.Run(row.name, func(t *testing.T) {
			_, err := Compile(row.typ, row.opts)
			if err == nil {
				t.Fatalf("%s compiles", row.typ)
			}
			if !strings.Contains(err.Error(), row.want) {
				t.Errorf("error is\n%v\nwant %q in it", err, row.want)
			}
		})
	}
}

// TestLegalTypes has what looks like a fault and is none.
func TestLegalTypes(t *testing.T) {
	for name, typ := range map[string]reflect.Type{
		"equal fields that exclude each other by order": holding(1, `json:"a" validate:"gtefield=B"`, 1, `json:"b" validate:"ltefield=A"`),
		"names that differ in case":                     holding(1, `json:"a"`, 1, `json:"A"`),
		"a field named -":                               holding(1, `json:"-,"`),
		"a hidden field":                                holding(1, `json:"-"`, make(chan int), `json:"-"`),
		"hexadecimal parameter":                         holding(1, `json:"a" validate:"min=0x10"`),
		"underscores":                                   holding(1, `json:"a" validate:"max=1_000"`),
		"commas in a value":                             holding("", `json:"a" validate:"eq=a0x2Cb"`),
	} {
		if _, err := Compile(typ, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, err := Compile(holding(1, `json:"a"`, 1, `json:"A"`, "", `json:"a b"`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, w := range p.Warnings() {
		said = append(said, w.Message)
	}
	if len(said) != 2 || !strings.Contains(said[0], "case only") || !strings.Contains(said[1], "refused by some model providers") {
		t.Errorf("warnings are %q", said)
	}
	// Names that model providers refuse, wherever the type has them, each with a warning.
	type Inner struct {
		Size int `json:"größe"`
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[struct{ Inner }](), reflect.TypeFor[struct{ *Inner }](), reflect.TypeFor[struct{ A Inner }](), reflect.TypeFor[struct{ A []Inner }](), reflect.TypeFor[struct{ A map[string]Inner }](),
		reflect.TypeFor[struct{ A *[1]Inner }](), reflect.TypeFor[struct{ A Null[Inner] }](), reflect.TypeFor[struct {
			A string `json:"a$"`
		}](), reflect.TypeFor[struct {
			A *int `json:"uids[],omitempty"`
		}](), reflect.TypeFor[struct {
			A bool `json:"a/b,omitzero" jsonschema_description:"x"`
		}](), reflect.TypeFor[struct{ Größe int }](), holding("", "json:\""+strings.Repeat("x", 65)+"\""), holding(1.5, `json:"a:b"`), holding([]byte{}, `json:"@type"`), holding(time.Time{}, `json:"#"`),
	} {
		p, err := Compile(typ, nil)
		if err != nil {
			t.Errorf("%v: %v", typ, err)
			continue
		}
		if w := p.Warnings(); len(w) != 1 || !strings.Contains(w[0].Message, "refused by some model providers") {
			t.Errorf("%v: warnings are %v", typ, w)
		}
	}
	p, err = Compile(holding(1, `json:"-,"`), nil)
	if err != nil || p.Fields()[0].Name != "-" {
		t.Errorf("the field named - is %+v, %v", p.Fields(), err)
	}
}

// fixedText is what google/uuid has: an array with a text form.
type fixedText [2]byte

var _ encoding.TextUnmarshaler = new(fixedText)

func (f *fixedText) UnmarshalText(b []byte) error {
	if len(b) != 2 {
		return fmt.Errorf("want two bytes, not %d", len(b))
	}
	copy(f[:], b)
	return nil
}
func (f fixedText) MarshalText() ([]byte, error) { return f[:], nil }

// TestKnownTextTypes checks the types that are known by name only, since this
// module does not import them.
func TestKnownTextTypes(t *testing.T) {
	for name, form := range textForms() {
		if form.said.name == "" {
			t.Errorf("%s has no name in messages", name)
		}
		for _, e := range form.examples {
			if form.said.example != "" && !slices.ContainsFunc(form.examples, func(v any) bool { return v == form.said.example }) {
				t.Errorf("%s: %q is shown in messages, %q in the schema", name, form.said.example, e)
			}
		}
	}
	p, err := Compile(holding(fixedText{}, `json:"a"`), nil)
	if err != nil || !strings.Contains(string(p.JSON()), `"a":{"type":"string"}`) {
		t.Fatalf("schema is %s, %v", p.JSON(), err)
	}
	const id = "123e4567-e89b-12d3-a456-426614174000"
	c := &compiler{opts: &Options{}}
	n := &node{typ: reflect.TypeFor[textOnly]()}
	c.textType(n, textForms()["github.com/google/uuid.UUID"])
	uuids := &Plan{opts: &Options{}, root: n, typ: n.typ, maxDepth: 3, maxValues: 3}
	if s := newEmitter(c.opts).node(n); s.Format != "uuid" || s.Type != "string" {
		t.Errorf("the schema of a UUID is %s", schemadoc.Append(nil, s))
	}
	var got textOnly
	if err := uuids.Decode(context.Background(), []byte(`"`+id+`"`), &got); err != nil || got.s != id {
		t.Errorf("decoded %q, %v", got.s, err)
	}
	if err := uuids.Check([]byte(`"123"`)); err == nil || err.Error() != `(root): must be a UUID; got "123"` {
		t.Errorf("error is %v", err)
	}
}

type textOnly struct{ s string }

func (t *textOnly) UnmarshalText(b []byte) error { t.s = string(b); return nil }
