package schema

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
)

type sealed struct{ A int }

func (*sealed) UnmarshalJSON([]byte) error { return nil }

type pointed struct {
	X int
}

func (*pointed) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: "^[a-z]+$"}
}
func (p *pointed) UnmarshalText(b []byte) error { p.X = len(b); return nil }

// badTypes must not compile; want is a part of what the error says.
var badTypes = []struct {
	name, want string
	typ        any
}{
	{"41 unique lists", "unique", struct {
		L [][]string `json:"l" validate:"unique"`
	}{}},
	{"43 size of any", "min does not apply", struct {
		A any `json:"a" validate:"min=3"`
	}{}},
	{"44 octal in oneof", "oneof", struct {
		N int `json:"n" validate:"oneof=1 02"`
	}{}},
	{"44 duration in oneof", "oneof", struct {
		D time.Duration `json:"d" validate:"oneof=1s"`
	}{}},
	{"44 commas in oneof", "oneof=a,b", struct {
		S string `json:"s" validate:"oneof=a,b"`
	}{}},
	{"44 oneof on a float", "oneof", struct {
		F float64 `json:"f" validate:"oneof=1"`
	}{}},
	{"45 octal", "octal", struct {
		N int `json:"n" validate:"min=010"`
	}{}},
	{"45 hexadecimal comma", "min", struct {
		N int `json:"n" validate:"min=0x2C"`
	}{}},
	{"45 negative", "min=-1", struct {
		N uint `json:"n" validate:"min=-1"`
	}{}},
	{"45 fraction", "did you mean gt=1 or a float64 field?", struct {
		N int `json:"n" validate:"min=1.5"`
	}{}},
	{"45 extra parameter", "alpha takes no parameter", struct {
		S string `json:"s" validate:"alpha=3"`
	}{}},
	{"45 space", "remove the space", struct {
		N int `json:"n" validate:"min=3, max=5"`
	}{}},
	{"47 contains on bool", "contains does not apply", struct {
		B bool `json:"b" validate:"contains=b"`
	}{}},
	{"47 html on int", "html does not apply", struct {
		N int `json:"n" validate:"html"`
	}{}},
	{"47 port on string", "port does not apply", struct {
		S string `json:"s" validate:"port"`
	}{}},
	{"48 unknown field", `did you mean kind?`, struct {
		Kind string `json:"kind"`
		A    string `json:"a" validate:"required_if=kin x"`
	}{}},
	{"49 boolean", "write true or false", struct {
		B bool   `json:"b"`
		A string `json:"a" validate:"required_if=B 1"`
	}{}},
	{"53 lengths", "gtcsfield", struct {
		A string `json:"a" validate:"gtfield=B"`
		B string `json:"b"`
	}{}},
	{"58 unknown JSON form", "JSONSchema()", struct {
		S sealed `json:"s"`
	}{}},
	{"60 omitempty last", "omitempty", struct {
		N int `json:"n" validate:"min=1,omitempty"`
	}{}},
	{"typo in jsonschema", "did you mean minLength?", struct {
		S string `json:"s" jsonschema:"minLenght=3"`
	}{}},
	{"bad length", "not a length", struct {
		S string `json:"s" jsonschema:"minLength=-1"`
	}{}},
	{"root composition", "required_without", struct {
		S string `json:"s" jsonschema:"oneof_required=g"`
	}{}},
	{"default breaks rules", "own rules", struct {
		N int `json:"n" validate:"max=5" jsonschema:"default=9"`
	}{}},
	{"default of another type", "own rules", struct {
		N int `json:"n" jsonschema:"default=1.5"`
	}{}},
	{"example breaks rules", "own rules", struct {
		S string `json:"s" validate:"len=2" jsonschema:"example=eng"`
	}{}},
	{"required with default", "never takes its default", struct {
		N int `json:"n" validate:"required" jsonschema:"default=9"`
	}{}},
	{"default beside required_if=A x", "leaves nothing for required_if=A x", struct {
		A string `json:"a,omitempty"`
		B string `json:"b" validate:"required_if=A x" jsonschema:"default=x"`
	}{}},
	{"default beside required_unless=A x", "leaves nothing for required_unless=A x", struct {
		A string `json:"a,omitempty"`
		B string `json:"b" validate:"required_unless=A x" jsonschema:"default=x"`
	}{}},
	{"default beside required_with=A", "leaves nothing for required_with=A", struct {
		A string `json:"a,omitempty"`
		B string `json:"b" validate:"required_with=A" jsonschema:"default=x"`
	}{}},
	{"default beside required_without_all=A", "leaves nothing for required_without_all=A", struct {
		A string `json:"a,omitempty"`
		B string `json:"b" validate:"required_without_all=A" jsonschema:"default=x"`
	}{}},
	{"default beside skip_unless=A x", "leaves nothing for skip_unless=A x", struct {
		A string `json:"a,omitempty"`
		B string `json:"b" validate:"skip_unless=A x" jsonschema:"default=x"`
	}{}},
	{"text as jsonschema tag", `the tag is a text and no keyword; write a description as jsonschema_description:"The city, in English"`, struct {
		A string `json:"a" jsonschema:"The city, in English"`
	}{}},
	{"word as jsonschema tag", `jsonschema_description:"City"`, struct {
		A string `json:"a" jsonschema:"City"`
	}{}},
	{"text with an equals sign", `jsonschema_description:"the mode (x=1 is fast)"`, struct {
		A string `json:"a" jsonschema:"the mode (x=1 is fast)"`
	}{}},
	{"text behind a keyword", `jsonschema_description:"…"`, struct {
		A string `json:"a" jsonschema:"required,The city"`
	}{}},
	{"a comma in the description", `a comma in description=… is written \\,`, struct {
		A string `json:"a" jsonschema:"description=The city, in English"`
	}{}},
	{"any JSON as arguments", "mcp.InputSchema", json.RawMessage{}},
	{"no such tag", `jsonschema_desc:"…" - there is no such tag; known are jsonschema, jsonschema_description`, struct {
		A string `json:"a" jsonschema_desc:"The city"`
	}{}},
	{"no such tag below", `jsonschema_title:"…" - there is no such tag`, struct {
		A []struct {
			B string `jsonschema_title:"City" json:"b"`
		} `json:"a"`
	}{}},
	{"enums differ", "make both the same", struct {
		S string `json:"s" validate:"oneof=a b" jsonschema:"enum=a,enum=c"`
	}{}},
	{"channel", "chan", struct {
		C chan int `json:"c"`
	}{}},
	{"interface", "schema.Union", struct {
		F figure `json:"f"`
	}{}},
	{"root list", "use a struct", []int{}},
	{"root scalar", "use a struct", 1},
	{"typo in json", "did you mean omitempty?", reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "N", Type: reflect.TypeFor[int](), Tag: `json:"n,omitemtpy"`},
	})).Elem().Interface()},
	{"header on a list", "mirrored", struct {
		L []string `json:"l" mcp:"header=L"`
	}{}},
	{"header token", "token", struct {
		L string `json:"l" mcp:"header=a b"`
	}{}},
	{"header twice", "is taken", struct {
		A string `json:"a" mcp:"header=X"`
		B string `json:"b" mcp:"header=x"`
	}{}},
	{"header in a list", "through objects alone", struct {
		L []struct {
			A string `json:"a" mcp:"header=A"`
		} `json:"l"`
	}{}},
	{"mcp typo", "did you mean secret?", struct {
		A string `json:"a" mcp:"secrt"`
	}{}},
	{"look-around", "pattern", struct {
		A string `json:"a" jsonschema:"pattern=^(?=a)"`
	}{}},
	{"map key", "map key", struct {
		M map[float64]int `json:"m"`
	}{}},
	{"dive on scalar", "dive", struct {
		N int `json:"n" validate:"dive,min=1"`
	}{}},
	{"self reference", "own field", struct {
		A string `json:"a" validate:"required_with=A"`
	}{}},
	{"hidden fields", "no field is exported", struct {
		T struct{ x int } `json:"t"`
	}{}},
	{"malformed tag", "malformed", reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[string](), Tag: `json:"a" validate:required`},
	})).Elem().Interface()},
}

func TestRegistrationErrors(t *testing.T) {
	for _, c := range badTypes {
		t.Run(c.name, func(t *testing.T) {
			_, err := Compile(reflect.TypeOf(c.typ), nil)
			var reg *RegistrationError
			if !errors.As(err, &reg) {
				t.Fatalf("Compile returned %v, want a RegistrationError", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %q, want %q in it", err, c.want)
			}
		})
	}
}
