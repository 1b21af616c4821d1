package schema

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/schema/raw"
)

// The types write with their own methods every keyword that the narrow schema changes.
type (
	givenText   string
	givenNumber float64
	givenList   []int
	givenMap    map[string]int
	givenObject struct {
		A string `json:"a,omitempty" validate:"startswith=x"`
		B *int   `json:"b" jsonschema:"nullable" validate:"ne=3"`
		C string `json:"c,omitempty" validate:"required_with=A"`
	}
	givenKey   string
	givenWhole struct{ S string }
	givenNull  struct{ S string }
)

func (givenText) JSONSchemaExtend(s *jsonschema.Schema) {
	long := uint64(5000)
	s.Pattern, s.MaxLength, s.Not, s.Enum = `\d+`, &long, &jsonschema.Schema{Const: "13"}, []any{"", "1", "13", "22"}
}

func (givenNumber) JSONSchemaExtend(s *jsonschema.Schema) {
	s.ExclusiveMinimum, s.Enum, s.Format, s.MultipleOf = "0", []any{0, 1, 5}, "uint64", "1"
}

func (givenList) JSONSchemaExtend(s *jsonschema.Schema) {
	most := uint64(2000)
	s.UniqueItems, s.MaxItems, s.AllOf = true, &most, []*jsonschema.Schema{{Contains: &jsonschema.Schema{Const: 1}}}
}

func (givenMap) JSONSchemaExtend(s *jsonschema.Schema) {
	s.PropertyNames = &jsonschema.Schema{Pattern: "^a"}
}

// JSONSchemaExtend looks at what the exact schema has, as methods of users may.
func (givenObject) JSONSchemaExtend(s *jsonschema.Schema) {
	a, _ := s.Properties.Get("a")
	a.Description, a.Pattern = "Begins with x.", a.Pattern+"[0-9]"
	b, _ := s.Properties.Get("b")
	b.Title = "B"
	s.DependentSchemas["a"].Description = "of the author"
	s.Not = &jsonschema.Schema{Required: []string{"d"}}
}

func (givenKey) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: `\d`}
}

func (*givenWhole) UnmarshalJSON(b []byte) error { return nil }

func (givenWhole) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: `\d`, Not: &jsonschema.Schema{Const: "7"}, Format: "uri-reference", Const: "5"}
}

func (*givenNull) UnmarshalJSON(b []byte) error { return nil }

func (givenNull) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Enum: []any{1, 3}, AllOf: []*jsonschema.Schema{{Not: &jsonschema.Schema{Const: 2}}}}
}

type givenArgs struct {
	Text   givenText        `json:"text,omitempty"`
	Number givenNumber      `json:"number,omitempty" validate:"lt=7"`
	List   givenList        `json:"list,omitempty"`
	Map    givenMap         `json:"map,omitempty" validate:"dive,keys,alphaunicode,endkeys"`
	Object givenObject      `json:"object,omitzero"`
	Keys   map[givenKey]int `json:"keys,omitempty"`
	Whole  givenWhole       `json:"whole,omitzero"`
	Null   *givenNull       `json:"null" jsonschema:"nullable"`
	Own    string           `json:"own,omitempty" validate:"ne=x"`
}

// TestNarrowLeavesTheAuthors checks that what a type's own methods write is sent as
// given, with the rest narrow, and that wrong values are refused as before.
func TestNarrowLeavesTheAuthors(t *testing.T) {
	p := compile[givenArgs](t, nil)
	sent := p.Internal(facts.Private{}).Narrow
	var s struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal(sent, &s); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"text":   `{"type":"string","not":{"const":"13"},"enum":["","1","13","22"],"maxLength":5000,"pattern":"\\d+"}`,
		"number": `{"type":"number","description":"Must be less than 7.","enum":[0,1,5],"multipleOf":1,"maximum":7,"exclusiveMinimum":0,"format":"uint64"}`,
		"list":   `{"type":"array","allOf":[{"contains":{"const":1}}],"items":{"type":"integer"},"maxItems":2000,"uniqueItems":true}`,
		"map":    `{"type":"object","description":"Each name must be text made of letters only.","additionalProperties":{"type":"integer"},"propertyNames":{"pattern":"^a"}}`,
		"object": `{"type":"object","not":{"required":["d"]},"properties":{"a":{"type":"string","description":"Begins with x. Must be text that starts with \"x\".","pattern":"^x[0-9]"},` +
			`"b":{"title":"B","description":"Must be an integer other than 3.","anyOf":[{"type":"integer"},{"type":"null"}]},"c":{"type":"string","description":"Required when a is given."}},"additionalProperties":false,` +
			`"dependentSchemas":{"a":{"description":"of the author","properties":{"c":{"minLength":1}},"required":["c"]}}}`,
		"keys":  `{"type":"object","additionalProperties":{"type":"integer"},"propertyNames":{"type":"string","pattern":"\\d"}}`,
		"whole": `{"type":"string","not":{"const":"7"},"const":"5","pattern":"\\d","format":"uri-reference"}`,
		"null":  `{"anyOf":[{"type":"integer","allOf":[{"not":{"const":2}}],"enum":[1,3]},{"type":"null"}]}`,
		"own":   `{"type":"string","description":"Must be a string other than \"x\"."}`,
	} {
		if got := string(s.Properties[name]); got != want {
			t.Errorf("%s is sent as\n%s\nwant\n%s", name, got, want)
		}
	}
	for _, tt := range []struct {
		document string
		want     []string
	}{
		{`{"text":"abc"}`, []string{"/text enum", "/text pattern"}},
		{`{"text":"13"}`, []string{"/text not"}},
		{`{"number":0}`, []string{"/number exclusiveMinimum"}},
		{`{"number":1.5}`, []string{"/number enum", "/number multipleOf"}},
		{`{"number":2}`, []string{"/number enum"}},
		{`{"number":7}`, []string{"/number exclusiveMaximum"}},
		{`{"list":[1,1]}`, []string{"/list uniqueItems"}},
		{`{"list":[2]}`, []string{"/list contains"}},
		{`{"map":{"b":1}}`, []string{"/map/b propertyNames"}},
		{`{"map":{"a1":1}}`, []string{"/map/a1 propertyNames"}},
		{`{"object":{"a":"xy"}}`, []string{"/object/c required"}},
		{`{"object":{"a":"xy","c":"d"}}`, []string{"/object/a pattern"}},
		{`{"object":{"b":3}}`, []string{"/object/b not"}},
		{`{"keys":{"a":1}}`, []string{"/keys/a propertyNames"}},
		{`{"whole":"a"}`, []string{"/whole const", "/whole pattern"}},
		{`{"null":2}`, []string{"/null enum", "/null not"}},
		{`{"own":"x"}`, []string{"/own not"}},
		{`{"null":null,"text":"22"}`, nil},
	} {
		got := listed(t, p.Check([]byte(tt.document)))
		if !sameSet(got, tt.want) {
			t.Errorf("%s: issues are %q, want %q", tt.document, got, tt.want)
		}
	}
}

// sameSet compares two lists without regard to order and repetition.
func sameSet(a, b []string) bool {
	set := func(list []string) map[string]bool {
		m := map[string]bool{}
		for _, s := range list {
			m[s] = true
		}
		return m
	}
	return reflect.DeepEqual(set(a), set(b))
}

// narrowed has rules whose narrow form is not obvious.
type narrowed struct {
	Dash   string           `json:"dash,omitempty" jsonschema:"pattern=^[\\--a]+$"`
	Caret  string           `json:"caret,omitempty" jsonschema:"pattern=^[\\^\\-x]*$"`
	Named  string           `json:"named,omitempty" jsonschema:"pattern=^(?<y>[0-9]{2})+?$"`
	Two    string           `json:"two,omitempty" validate:"alpha,lowercase,min=2,max=3000"`
	Blank  string           `json:"blank,omitempty" jsonschema:"enum=,enum=a,nullable"`
	Either *string          `json:"either" jsonschema:"nullable" validate:"url|email|oneof=x y"`
	Ints   *int             `json:"ints" jsonschema:"nullable,enum=1,enum=2,enum=3"`
	Gaps   int8             `json:"gaps,omitempty" validate:"oneof=-5 0 60"`
	Above  int              `json:"above,omitempty" validate:"gt=-1,lt=9223372036854775807"`
	Ratio  float64          `json:"ratio,omitempty" validate:"gt=0.5,lt=1"`
	Wait   time.Duration    `json:"wait,omitempty" mcp:"unit=s" validate:"gt=1500ms"`
	Items  []string         `json:"items,omitempty" validate:"unique,dive,omitempty,len=3,ne=abc"`
	Zeros  []float64        `json:"zeros,omitempty" validate:"dive,omitempty,gt=2"`
	Names  map[string]int   `json:"names,omitempty" validate:"ne=2,dive,keys,startswith=a,endkeys,oneof=1 2"`
	ByDay  map[uint8]string `json:"byDay,omitempty" validate:"dive,keys,max=6,endkeys"`
	On     bool             `json:"on,omitempty" validate:"eq=true"`
	Tree   *tree            `json:"tree" jsonschema:"nullable"`
	Shape  figure           `json:"shape,omitempty"`
	Maybe  Null[tree]       `json:"maybe,omitzero"`
}

// FuzzNarrow checks that the narrow schema accepts whatever the exact one accepts.
func FuzzNarrow(f *testing.F) {
	for _, c := range documentCases {
		if len(c.input) < 2000 {
			f.Add([]byte(c.input))
		}
	}
	for _, seed := range []string{
		`{"dash":"-./09AZ^a"}`, `{"dash":"b"}`, `{"caret":"^-x"}`, `{"named":"1234"}`, `{"two":"ab"}`, `{"blank":""}`, `{"blank":null}`, `{"either":"a@b.cc"}`,
		`{"either":null}`, `{"ints":2}`, `{"ints":null}`, `{"gaps":-5}`, `{"above":0}`, `{"above":9223372036854775806}`, `{"ratio":0.6}`, `{"wait":2}`,
		`{"items":["","aaa"]}`, `{"zeros":[0,2.5]}`, `{"names":{"a":1}}`, `{"byDay":{"6":"x"}}`, `{"on":true}`, `{"tree":null}`, `{"maybe":{"name":"a"}}`,
		`{"shape":{"kind":"circle","r":1}}`, `{"k":"x","a":"y","n":1,"c":2}`,
	} {
		f.Add([]byte(seed))
	}
	var exact, sent []*raw.Schema
	for _, v := range []any{narrowed{}, sink{}, corners{}, tree{}, searchArgs{}, conditions{}, builtins{}, drawing{}, givenArgs{}} {
		p, err := Compile(reflect.TypeOf(v), &Options{Unions: []UnionType{figures}})
		if err != nil {
			f.Fatal(err)
		}
		for list, text := range map[*[]*raw.Schema]json.RawMessage{&exact: p.JSON(), &sent: p.Internal(facts.Private{}).Narrow} {
			s, err := raw.Compile(text)
			if err != nil {
				f.Fatal(err)
			}
			*list = append(*list, s)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for i, s := range exact {
			if s.Check(data) != nil {
				continue
			}
			if err := sent[i].Check(data); err != nil {
				t.Fatalf("%s is valid by the exact schema, and not by the narrow one: %v\n%s\n%s", data, err, s.JSON(), sent[i].JSON())
			}
		}
	})
}

// TestNarrowOfRules checks what rules of a program's own write.
func TestNarrowOfRules(t *testing.T) {
	rules := []Rule{
		NewRule("even", func(_ context.Context, v int, _ string) error { return nil }, Describe("must be even"), Emit(func(_ string, s *jsonschema.Schema) {
			s.OneOf = []*jsonschema.Schema{{MultipleOf: "2"}}
		})),
		NewRule("short", func(_ context.Context, v string, _ string) error { return nil }, Emit(func(_ string, s *jsonschema.Schema) { s.Pattern = "^.{1,3}" })),
		NewRule("slug", func(_ context.Context, v string, _ string) error { return nil }, Describe("a slug"), Emit(func(_ string, s *jsonschema.Schema) { s.Pattern = `^[a-z\-]+$` })),
	}
	type args struct {
		N int    `json:"n" validate:"even"`
		S string `json:"s" validate:"short"`
		L string `json:"l" validate:"slug"`
	}
	p := compile[args](t, &Options{Rules: rules})
	got := string(p.Internal(facts.Private{}).Narrow)
	for _, want := range []string{
		`"n":{"type":"integer","description":"Must be even."}`,
		`"s":{"type":"string","description":"Must be valid for short."}`,
		`"l":{"type":"string","description":"Must be a slug.","pattern":"^[a-z-]+$"}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
}
