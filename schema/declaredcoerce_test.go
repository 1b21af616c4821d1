package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
)

// opaque is a type with its own JSON form, which keeps the text that it is given.
type opaque[T any] struct{ text string }

func (o *opaque[T]) UnmarshalJSON(text []byte) error { o.text = string(text); return nil }

// mark has keywords that its Go type does not say.
type mark int

func (mark) JSONSchemaExtend(s *jsonschema.Schema) { s.Maximum = "6" }

// grades is the same as a list, and report as a struct.
type grades []int

func (grades) JSONSchemaExtend(s *jsonschema.Schema) { n := uint64(2); s.MaxItems = &n }

type graded struct {
	Pages int  `json:"pages"`
	Final bool `json:"final,omitempty"`
}

func (graded) JSONSchemaExtend(s *jsonschema.Schema) {
	s.Not = &jsonschema.Schema{Required: []string{"never"}}
}

// Types whose schema a program declares, or adds to, forgive what others forgive, and
// nothing in strict plans and fields.
func TestDeclaredTypesCoerce(t *testing.T) {
	three := uint64(3)
	object := &jsonschema.Schema{Type: "object", Required: []string{"n"}, Properties: jsonschema.NewProperties()}
	object.Properties.Set("n", &jsonschema.Schema{Type: "integer", Maximum: json.Number("9")})
	object.Properties.Set("unit", &jsonschema.Schema{Type: "string", Default: "kg"})
	opts := Options{Types: []TypeSchema{
		Declare[opaque[int]](&jsonschema.Schema{Type: "integer", Maximum: "9"}),
		Declare[opaque[float64]](&jsonschema.Schema{Type: "number"}),
		Declare[opaque[bool]](&jsonschema.Schema{Type: "boolean"}),
		Declare[opaque[string]](&jsonschema.Schema{Type: "string", MaxLength: &three}),
		Declare[opaque[[]int]](&jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "integer"}}),
		Declare[opaque[map[string]int]](object),
		Declare[opaque[any]](&jsonschema.Schema{}),
	}}
	type fields struct {
		Int    opaque[int]            `json:"int,omitzero"`
		Number opaque[float64]        `json:"number,omitzero"`
		Bool   opaque[bool]           `json:"bool,omitzero"`
		Text   opaque[string]         `json:"text,omitzero"`
		List   opaque[[]int]          `json:"list,omitzero"`
		Object opaque[map[string]int] `json:"object,omitzero"`
		Any    opaque[any]            `json:"any,omitzero"`
		Big    *big.Int               `json:"big,omitempty"`
		Ints   []opaque[int]          `json:"ints,omitempty"`
		Map    map[string]opaque[int] `json:"map,omitempty"`
		Ptr    *opaque[bool]          `json:"ptr,omitempty"`
		Secret opaque[int]            `json:"secret,omitzero" mcp:"secret"`
		Strict opaque[int]            `json:"strict,omitzero" mcp:"strict"`
		Grade  mark                   `json:"grade,omitempty"`
		Grades grades                 `json:"grades,omitempty"`
		Graded graded                 `json:"graded,omitzero"`
	}
	lenient, err := Compile(reflect.TypeFor[fields](), &opts)
	if err != nil {
		t.Fatal(err)
	}
	opts.Strict = true
	strict, err := Compile(reflect.TypeFor[fields](), &opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ doc, want, coerced string }{ // want is the value, or begins with a path
		{`{"int":"7"}`, "7", "/int"}, {`{"int":7.0}`, "7", "/int"}, {`{"int":" 7 "}`, "7", "/int"},
		{`{"int":"10"}`, "/int: must be at most 9", ""}, {`{"int":"x"}`, "/int: must be an integer", ""}, {`{"int":"7.5"}`, "/int: must be an integer", ""},
		{`{"number":"7.5"}`, "7.5", "/number"}, {`{"bool":"true"}`, "true", "/bool"}, {`{"bool":"TRUE"}`, "true", "/bool"}, {`{"bool":"yes"}`, "/bool: must be", ""},
		{`{"text":12}`, `"12"`, "/text"}, {`{"text":1234}`, "/text: must be at most 3", ""}, {`{"text":1.5}`, "/text: must be", ""},
		{`{"list":5}`, "[5]", "/list"}, {`{"list":"[5,6]"}`, "[5,6]", "/list"}, {`{"list":["5"]}`, "[5]", "/list"}, {`{"list":["x"]}`, "/list/0: must be", ""},
		{`{"object":"{\"n\":\"3\"}"}`, `{"n":3,"unit":"kg"}`, "/object"}, {`{"object":{"n":3}}`, `{"n":3,"unit":"kg"}`, "/object"}, {`{"object":{"n":"x"}}`, "/object/n: must be", ""},
		{`{"any":"5"}`, `"5"`, "none"}, {`{"big":"12345678901234567890"}`, "12345678901234567890", "/big"},
		{`{"ints":["5"]}`, "5", "/ints/0"}, {`{"ints":"5"}`, "5", "/ints"}, {`{"map":{"a":"5"}}`, "5", "/map/a"}, {`{"ptr":"false"}`, "false", "/ptr"},
		{`{"secret":"5"}`, "5", "/secret"}, {`{"secret":"77"}`, "/secret: must be at most 9", ""}, {`{"strict":"5"}`, "/strict: must be an integer", ""}, {`{"strict":5}`, "5", "none"},
		{`{"grade":"5"}`, "5", "/grade"}, {`{"grade":5.0}`, "5", "none"}, {`{"grade":"7"}`, "/grade: must be at most 6", ""}, {`{"grade":"x"}`, "/grade: must be an integer", ""},
		{`{"grades":5}`, "[5]", "/grades"}, {`{"grades":["5","6"]}`, "[5 6]", "/grades/0"}, {`{"grades":[1,"2",3]}`, "/grades: must be an array of at most 2", ""},
		{`{"graded":{"pages":"5","final":"true"}}`, "{Pages:5 Final:true}", "/graded/pages"}, {`{"graded":"{\"pages\":5}"}`, "{Pages:5 Final:false}", "/graded"}, {`{"graded":{"pages":"x"}}`, "/graded/pages: must be", ""},
	} {
		var got fields
		var coerced []string
		err := lenient.decodeInto(t.Context(), []byte(tt.doc), &got, &coerced)
		switch {
		case strings.HasPrefix(tt.want, "/"):
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%s: %+v, %v; want %s", tt.doc, got, err, tt.want)
			}
		case err != nil || !strings.Contains(fmt.Sprintf("%+v %v %v", got, got.Ptr, got.Big), tt.want):
			t.Errorf("%s: %+v, %v; want %s", tt.doc, got, err, tt.want)
		case tt.coerced != "none" && !slices.Contains(coerced, tt.coerced):
			t.Errorf("%s: coerced %q, want %s", tt.doc, coerced, tt.coerced)
		}
		if tt.coerced != "none" && !strings.HasSuffix(tt.doc, ".0}") && tt.doc != `{"object":{"n":3}}` {
			if err := strict.Decode(t.Context(), []byte(tt.doc), new(fields)); err == nil {
				t.Errorf("%s: is valid in a strict plan", tt.doc)
			}
		}
	}
}

// A check of the program that panics on a default or an example is a problem of the type.
func TestDefaultPanics(t *testing.T) {
	type fits struct{ B string }
	boom := func(string) bool { panic("boom") }
	panics := func(context.Context, string, string) error { panic("boom") }
	opts := &Options{Formats: map[string]func(string) bool{"mine": boom}, Rules: []Rule{
		NewRule("panics", panics, Describe("what nobody can be")),
		NewRule("refuses", func(context.Context, string, string) error { return errors.New("boom") }, Describe("what nobody can be")),
		NewStructRule("nothing fits", func(context.Context, *fits) error { panic("boom") }),
	}}
	for _, of := range []any{
		struct {
			A string `json:"a" validate:"panics" jsonschema:"default=x"`
		}{},
		struct {
			A string `json:"a" validate:"panics" jsonschema:"example=x"`
		}{},
		struct {
			A *string `json:"a" validate:"refuses" jsonschema:"default=x"`
		}{},
		struct {
			A []string `json:"a" validate:"dive,panics" jsonschema:"default=x"`
		}{},
		struct {
			A map[string]int `json:"a" validate:"dive,keys,panics,endkeys" jsonschema:"default={\"boom=x\":1}"`
		}{},
		struct {
			A fits `json:"a" jsonschema:"default={\"B\":\"boom=x\"}"`
		}{},
		struct {
			A string `json:"a" jsonschema:"format=mine,default=x"`
		}{},
		struct {
			A string `json:"a" jsonschema:"format=mine,example=x"`
		}{},
	} {
		if _, err := Compile(reflect.TypeOf(of), opts); err == nil || !strings.Contains(err.Error(), "boom") || !strings.Contains(err.Error(), "=x") {
			t.Errorf("%T: %v", of, err)
		}
	}
}

// Every rule of a field holds for its default: callers who leave the field out get no value
// that would be refused.
func TestDefaultsKeepRules(t *testing.T) {
	for _, of := range []any{
		struct {
			A []string `json:"a" validate:"unique" jsonschema:"default=x,default=x"`
		}{},
		struct {
			A []int `json:"a" validate:"unique" jsonschema:"example=[1\\,1]"`
		}{},
		struct {
			A []time.Time `json:"a" validate:"unique" jsonschema:"default=2026-01-01T00:00:00Z,default=2026-01-01T01:00:00+01:00"`
		}{},
	} {
		if _, err := Compile(reflect.TypeOf(of), nil); err == nil || !strings.Contains(err.Error(), "breaks the field's own rules") {
			t.Errorf("%T: %v", of, err)
		}
	}
	emits := NewRule("emits", func(context.Context, string, string) error { return nil }, Emit(func(string, *jsonschema.Schema) { panic("boom") }))
	_, err := Compile(reflect.TypeFor[struct {
		A string `json:"a" validate:"emits"`
	}](), &Options{Rules: []Rule{emits}})
	if err == nil || !strings.Contains(err.Error(), `the Emit of the custom rule "emits" panicked: boom`) {
		t.Errorf("Emit: %v", err)
	}
}
