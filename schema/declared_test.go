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

// foreign stands for a type of another module with its own JSON and text form, as
// decimal types have.
type foreign struct{ text string }

func (f foreign) MarshalJSON() ([]byte, error) { return json.Marshal(f.text) }

func (f *foreign) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] != '"' {
		f.text = string(text)
		return nil
	}
	return json.Unmarshal(text, &f.text)
}

func (f foreign) MarshalText() ([]byte, error) { return []byte(f.text), nil }

func (f *foreign) UnmarshalText(text []byte) error {
	if string(text) == "9.99" {
		return errors.New("is reserved")
	}
	f.text = string(text)
	return nil
}

var decimalSchema = &jsonschema.Schema{Type: "string", Pattern: `^[0-9]+\.[0-9]+$`, Description: "A decimal."}

func TestDeclaredTypes(t *testing.T) {
	type prices struct {
		Price foreign             `json:"price"`
		Maybe *foreign            `json:"maybe"`
		List  []foreign           `json:"list,omitempty"`
		Map   map[string]*foreign `json:"map,omitempty"`
		Keys  map[foreign]int     `json:"keys,omitempty"`
		Null  Null[foreign]       `json:"null,omitzero"`
		Array [1]foreign          `json:"array,omitzero"`
	}
	opts := &Options{Types: []TypeSchema{Declare[foreign](decimalSchema)}}
	p, err := Compile(reflect.TypeFor[prices](), opts)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(p.JSON()), `"pattern":"^[0-9]+\\.[0-9]+$"`); n != 7 {
		t.Errorf("the schema is in %d of 7 places: %s", n, p.JSON())
	}
	for doc, want := range map[string]string{
		`{"price":"1.50","maybe":"2.0","list":["3.0"],"map":{"a":"4.0"},"keys":{"5.0":1},"null":null,"array":["6.0"]}`: "",
		`{"price":1.5}`:                            "/price type",
		`{"price":"x"}`:                            "/price pattern",
		`{"price":"1.0","maybe":"x"}`:              "/maybe pattern",
		`{"price":"1.0","list":["1.0","x"]}`:       "/list/1 pattern",
		`{"price":"1.0","map":{"a":"x"}}`:          "/map/a pattern",
		`{"price":"1.0","keys":{"x":1}}`:           "/keys/x propertyNames",
		`{"price":"1.0","null":"x"}`:               "/null pattern",
		`{"price":"1.0","keys":{"9.99":1}}`:        "/keys/9.99 propertyNames",
		`{"price":"1.0","array":["x"]}`:            "/array/0 pattern",
		`{"maybe":"1.0","price":null,"list":null}`: "/price type",
	} {
		var got prices
		err := p.Decode(t.Context(), []byte(doc), &got)
		issues, _ := errors.AsType[*Error](err)
		switch {
		case want == "" && (err != nil || got.Price.text != "1.50" || got.Maybe.text != "2.0" || got.Keys[foreign{"5.0"}] != 1):
			t.Errorf("%s: got %+v, %v", doc, got, err)
		case want != "" && (issues == nil || issues.Issues[0].Path+" "+issues.Issues[0].Rule != want):
			t.Errorf("%s: got %v, want %s", doc, err, want)
		}
	}
	decimalSchema.Pattern = "changed later"
	defer func() { decimalSchema.Pattern = `^[0-9]+\.[0-9]+$` }()
	if again, err := Compile(reflect.TypeFor[prices](), opts); err != nil || string(again.JSON()) != string(p.JSON()) {
		t.Errorf("a schema that changes after Declare changes the type: %v", err)
	}
}

func TestDeclaredTypesOfResults(t *testing.T) {
	opts := &Options{Output: true, Types: []TypeSchema{Declare[foreign](decimalSchema)}}
	for _, typ := range []reflect.Type{reflect.TypeFor[foreign](), reflect.TypeFor[struct{ A foreign }](), reflect.TypeFor[map[string]*foreign]()} {
		p, err := Compile(typ, opts)
		if err != nil || !strings.Contains(string(p.JSON()), `"description":"A decimal."`) {
			t.Errorf("%v: %v", typ, err)
		}
	}
	p, err := Compile(reflect.TypeFor[foreign](), opts)
	if err != nil {
		t.Fatal(err)
	}
	if p.Check([]byte(`"1.5"`)) != nil || p.Check([]byte(`"x"`)) == nil {
		t.Error("a result is not checked against the declared schema")
	}
}

// selfMade has a schema already, which the options replace.
type selfMade struct{ A int }

func (selfMade) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "integer"} }

func TestDeclaredTypesReplace(t *testing.T) {
	for _, d := range []TypeSchema{
		Declare[selfMade](decimalSchema), Declare[struct{ B chan int }](decimalSchema), Declare[[3]func()](decimalSchema),
	} {
		typ := reflect.StructOf([]reflect.StructField{{Name: "F", Type: d.typ, Tag: `json:"f"`}})
		p, err := Compile(typ, &Options{Types: []TypeSchema{d}})
		if err != nil || !strings.Contains(string(p.JSON()), "A decimal.") {
			t.Errorf("%v: %v", d.typ, err)
		}
	}
}

// sized has a schema of its own and no UnmarshalJSON.
type sized struct {
	Size int       `json:"size"`
	At   time.Time `json:"at"`
}

func (sized) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object"}
}

// What a type's own schema lets pass is decoded in every form that peers write.
func TestFormsOfOwnSchemas(t *testing.T) {
	type holder struct {
		S sized `json:"s"`
	}
	p, err := Compile(reflect.TypeFor[holder](), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{"size":10,"at":"2026-07-28T12:00:00Z"}`, `{"size":10.0,"at":"2026-07-28T12:00:00"}`, `{"size":1e1,"at":"2026-07-28 12:00:00Z"}`} {
		var got holder
		if err := p.Decode(t.Context(), []byte(`{"s":`+text+`}`), &got); err != nil || got.S.Size != 10 || got.S.At.Hour() != 12 {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestDeclaredTypesProblems(t *testing.T) {
	good := Declare[foreign](decimalSchema)
	for want, list := range map[string][]TypeSchema{
		"Options.Types - a TypeSchema is empty; make it with schema.Declare":          {{}},
		"*schema.foreign is a pointer; declare schema.foreign":                        {Declare[*foreign](decimalSchema)},
		"schema.figure is an interface; list its variants":                            {Declare[figure](decimalSchema)},
		"interface {} is an interface":                                                {Declare[any](decimalSchema)},
		"the schema of schema.foreign is nil":                                         {Declare[foreign](nil)},
		"schema.foreign has two schemas":                                              {good, good},
		"the schema of schema.foreign has $ref":                                       {Declare[foreign](&jsonschema.Schema{Ref: "#/$defs/x"})},
		"the schema of schema.foreign is not valid":                                   {Declare[foreign](&jsonschema.Schema{Pattern: "("})},
		"put schema.Declare[schema.foreign](…) into schema.Options.Types, which a se": nil,
	} {
		_, err := Compile(reflect.TypeFor[struct{ A foreign }](), &Options{Types: list})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
}

func isPhone(text string) bool { return strings.HasPrefix(text, "+") }

func TestDeclaredFormats(t *testing.T) {
	type contact struct {
		Phone  string          `json:"phone,omitempty" jsonschema:"format=phone"`
		Phones []string        `json:"phones,omitempty" jsonschema:"format=phone"`
		Code   string          `json:"code,omitempty" jsonschema:"format=postal-code"`
		Codes  []string        `json:"codes,omitempty" jsonschema:"format=postal-code"`
		When   int64           `json:"when,omitempty" jsonschema:"format=unix-time"`
		Price  float64         `json:"price,omitempty" jsonschema:"format=money"`
		Size   uint64          `json:"size,omitempty" jsonschema:"format=bytes"`
		Flag   *bool           `json:"flag" jsonschema:"format=toggle"`
		Mail   string          `json:"mail,omitempty" validate:"email" jsonschema:"format=contact"`
		Maybe  *string         `json:"maybe" jsonschema:"nullable,format=postal-code"`
		Null   Null[string]    `json:"null,omitzero" jsonschema:"format=phone"`
		Form   json.RawMessage `json:"form,omitempty" jsonschema:"format=form"`
		Map    map[string]int  `json:"map,omitempty" jsonschema:"format=table"`
		Quoted int             `json:"quoted,omitempty,string" jsonschema:"format=unix-time"`
		Secret string          `json:"secret,omitempty" jsonschema:"format=password"`
	}
	formats := map[string]func(string) bool{"phone": isPhone}
	for _, hint := range []string{"postal-code", "unix-time", "money", "bytes", "toggle", "contact", "form", "table"} {
		formats[hint] = nil
	}
	p, err := Compile(reflect.TypeFor[contact](), &Options{Formats: formats})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"phone":{"type":"string","format":"phone"}`, `"phones":{"type":"array","items":{"type":"string","format":"phone"}`,
		`"code":{"type":"string","format":"postal-code"}`, `"codes":{"type":"array","items":{"type":"string","format":"postal-code"}`,
		`"when":{"type":"integer","format":"unix-time"}`, `"price":{"type":"number","format":"money"}`,
		`"format":"bytes"`, `"format":"toggle"`, `"format":"email"`, `"allOf":[{"format":"contact"}]`, `"format":"form"`, `"format":"table"`,
		`"secret":{"type":"string","format":"password"}`,
	} {
		if !strings.Contains(string(p.JSON()), want) {
			t.Errorf("the schema lacks %s: %s", want, p.JSON())
		}
	}
	for doc, want := range map[string]string{
		`{"phone":"+1","phones":["+2"],"code":"anything","codes":[""],"when":5,"price":1.5,"size":2,"flag":true}`: "",
		`{"mail":"a@b.example","maybe":null,"null":null,"form":{},"map":{"a":1},"quoted":"5","secret":"s"}`:       "",
		`{"phone":"1"}`:           "/phone format",
		`{"phones":["+1","1"]}`:   "/phones/1 format",
		`{"null":"1"}`:            "/null format",
		`{"mail":"no address"}`:   "/mail email",
		`{"when":"soon"}`:         "/when type",
		`{"maybe":true}`:          "/maybe type",
		`{"code":5,"phone":"+1"}`: "",
		`{"phone":5}`:             "/phone type",
		`{"quoted":"five"}`:       "/quoted type",
	} {
		err := p.Check([]byte(doc))
		issues, _ := errors.AsType[*Error](err)
		if want == "" && err != nil || want != "" && (issues == nil || issues.Issues[0].Path+" "+issues.Issues[0].Rule != want) {
			t.Errorf("%s: got %v, want %q", doc, err, want)
		}
	}
}

func TestFormatProblems(t *testing.T) {
	type contact struct {
		Phone string `jsonschema:"format=phone"`
		Count int    `jsonschema:"format=phone"`
	}
	for want, formats := range map[string]map[string]func(string) bool{
		`unknown format "phone"`: nil,
		`declare it in schema.Options.Formats, which a server takes by mcp.Options.Schema: "phone": nil is a hint`: {"fone": nil, "x": isPhone},
		`did you mean phones?`:                     {"phones": nil},
		`invalid name ""`:                          {"": nil},
		`invalid name " phone"`:                    {" phone": nil},
		`the format "email" is one of JSON Schema`: {"email": isPhone, "phone": nil},
		`format does not apply to int`:             {"phone": isPhone},
	} {
		_, err := Compile(reflect.TypeFor[contact](), &Options{Formats: formats})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
	// The names that the error lists are in a stable order.
	_, err := Compile(reflect.TypeFor[contact](), &Options{Formats: map[string]func(string) bool{"zzzzzz": nil, "aaaaaa": nil, "mmmmmm": nil}})
	if !strings.Contains(err.Error(), "regex, aaaaaa, mmmmmm, zzzzzz; or declare it") {
		t.Errorf("got %v", err)
	}
}
