package schema

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
)

type brokenHook struct{}

func (brokenHook) JSONSchema() *jsonschema.Schema { panic("boom") }

type nilHook struct{}

func (nilHook) MCPSchema() *jsonschema.Schema { return nil }

type refHook struct{}

func (refHook) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Items: &jsonschema.Schema{Ref: "#/$defs/X"}}
}

type brokenExtend struct{ N int }

func (brokenExtend) JSONSchemaExtend(*jsonschema.Schema) { panic("boom") }

type emptyEnum int

func (emptyEnum) Enum() []emptyEnum { return nil }

type badEnum string

func (badEnum) Enum() []badEnum { panic("boom") }

// fieldOf makes a struct type with one field, so that tags which vet would
// refuse can be tested.
func fieldOf(t reflect.Type, tag string) any {
	return reflect.New(reflect.StructOf([]reflect.StructField{{Name: "A", Type: t, Tag: reflect.StructTag(tag)}})).Elem().Interface()
}

// moreBadTypes must not compile; want is a part of what the error says.
var moreBadTypes = []struct {
	want string
	typ  any
}{
	{"panicked: boom", struct{ H brokenHook }{}},
	{"returned nil", struct{ H nilHook }{}},
	{"write the parts inline", struct{ H refHook }{}},
	{"JSONSchemaExtend of schema.brokenExtend panicked", struct{ H brokenExtend }{}},
	{"must list different values", struct{ E emptyEnum }{}},
	{"Enum of schema.badEnum panicked", struct{ E badEnum }{}},
	{"is not a member name", fieldOf(reflect.TypeFor[int](), `json:"a\"b"`)},
	{"format does not apply", fieldOf(reflect.TypeFor[int](), `jsonschema:"format=email"`)},
	{"did you mean email?", fieldOf(reflect.TypeFor[string](), `jsonschema:"format=emial"`)},
	{"known are date", fieldOf(reflect.TypeFor[string](), `jsonschema:"format=zzzzzz"`)},
	{"minLength does not apply", fieldOf(reflect.TypeFor[int](), `jsonschema:"minLength=3"`)},
	{"minItems does not apply", fieldOf(reflect.TypeFor[int](), `jsonschema:"minItems=3"`)},
	{"minProperties does not apply", fieldOf(reflect.TypeFor[int](), `jsonschema:"minProperties=3"`)},
	{"minimum does not apply", fieldOf(reflect.TypeFor[string](), `jsonschema:"minimum=3"`)},
	{"pattern does not apply", fieldOf(reflect.TypeFor[int](), `jsonschema:"pattern=a"`)},
	{"multipleOf does not apply", fieldOf(reflect.TypeFor[string](), `jsonschema:"multipleOf=3"`)},
	{"greater than 0", fieldOf(reflect.TypeFor[int](), `jsonschema:"multipleOf=0"`)},
	{"is not a value of int", fieldOf(reflect.TypeFor[int](), `jsonschema:"enum=2.5"`)},
	{"there twice", fieldOf(reflect.TypeFor[int](), `jsonschema:"enum=2,enum=2"`)},
	{"two values", fieldOf(reflect.TypeFor[int](), `jsonschema:"const=2,const=3"`)},
	{"needs a value", fieldOf(reflect.TypeFor[int](), `jsonschema:"minimum"`)},
	{"true or false", fieldOf(reflect.TypeFor[int](), `jsonschema:"deprecated=maybe"`)},
	{"description already", fieldOf(reflect.TypeFor[int](), `jsonschema_description:"a" jsonschema:"description=b"`)},
	{"extras are not checked", fieldOf(reflect.TypeFor[int](), `jsonschema_extras:"minimum=3"`)},
	{"mcp:\"header=A\"", fieldOf(reflect.TypeFor[int](), `jsonschema_extras:"x-mcp-header=A"`)},
	{"needs a value", fieldOf(reflect.TypeFor[int](), `jsonschema_extras:"x-a"`)},
	{"only a list has several defaults", fieldOf(reflect.TypeFor[int](), `jsonschema:"default=1,default=2"`)},
	{"unit is for a time.Duration", fieldOf(reflect.TypeFor[int](), `mcp:"unit=s"`)},
	{"unit is for a time.Duration", fieldOf(reflect.TypeFor[time.Duration](), `mcp:"unit=w"`)},
	{"the string option", fieldOf(reflect.TypeFor[string](), `json:",string"`)},
	{"only a map[string]json.RawMessage", fieldOf(reflect.TypeFor[map[string]int](), `json:",inline"`)},
	{"refuses null", fieldOf(reflect.TypeFor[*int](), `validate:"required" jsonschema:"nullable"`)},
	{"keys needs a map", fieldOf(reflect.TypeFor[[]int](), `validate:"dive,keys,min=1,endkeys,min=1"`)},
	{"an element does not have", fieldOf(reflect.TypeFor[[]int](), `validate:"dive,gtfield=B"`)},
	{"two ways to be null", struct{ N Null[*int] }{}},
	{"cannot be compared", struct {
		A int `json:"a" validate:"gtfield=B"`
		B string
	}{}},
	{"booleans have no order", struct {
		A bool `json:"a" validate:"gtfield=B"`
		B bool
	}{}},
	{"compares strings", struct {
		A int `json:"a" validate:"fieldcontains=B"`
		B int
	}{}},
	{"beyond a field that is no struct", struct {
		A string `json:"a" validate:"eqcsfield=B.C"`
		B string
	}{}},
	{"same struct", struct {
		A string `json:"a" validate:"eqfield=B.C"`
		B string
	}{}},
	{"cannot be compared with a text", struct {
		A string `json:"a" validate:"required_if=B 1"`
		B []int
	}{}},
	{"no value of B", struct {
		A string `json:"a" validate:"required_if=B x"`
		B int
	}{}},
	{"blank field", struct {
		_ struct{} `jsonschema:"title=x"`
		A int
	}{}},
}

func TestMoreRegistrationErrors(t *testing.T) {
	for _, c := range moreBadTypes {
		_, err := Compile(reflect.TypeOf(c.typ), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: error is %v, want %q in it", c.typ, err, c.want)
		}
	}
	if _, err := Compile(nil, nil); err == nil {
		t.Error("nil compiles")
	}
}

func TestUnionErrors(t *testing.T) {
	type other struct{ A int }
	type numbered struct {
		circle
		Kind int `json:"kind"`
	}
	for want, u := range map[string]UnionType{
		"is no struct":        Union[figure]("kind", Variant("a", 1)),
		"does not implement":  Union[figure]("kind", Variant("a", other{})),
		"are named":           Union[figure]("kind", Variant("a", circle{}), Variant("a", &rectangle{})),
		"and variants":        Union[figure]("kind"),
		"must be a string":    Union[figure]("kind", Variant("a", numbered{})),
		"the name of a membe": Union[figure]("", Variant("a", circle{})),
	} {
		_, err := Compile(reflect.TypeFor[drawing](), &Options{Unions: []UnionType{u}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
	_, err := Compile(reflect.TypeFor[figure](), &Options{Unions: []UnionType{figures}})
	if err == nil || !strings.Contains(err.Error(), "cannot be a union") {
		t.Errorf("a union as arguments gives %v", err)
	}
	_, err = Compile(reflect.TypeFor[drawing](), &Options{Output: true, Unions: []UnionType{figures}})
	if err == nil || !strings.Contains(err.Error(), "needs a field for") {
		t.Errorf("a variant that cannot say its kind gives %v", err)
	}
}
