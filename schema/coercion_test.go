package schema

import (
	"context"
	"encoding/json"
	"math/big"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/raw"
)

// everyCoercion has a member for each row of the list of coercions.
type everyCoercion struct {
	Int      int               `json:"int,omitempty"`
	Uint     uint8             `json:"uint,omitempty"`
	Float    float64           `json:"float,omitempty"`
	Number   json.Number       `json:"number,omitempty"`
	Wait     time.Duration     `json:"seconds,omitempty" mcp:"unit=s"`
	Bool     bool              `json:"bool,omitempty"`
	Text     string            `json:"text,omitempty"`
	Enum     string            `json:"enum,omitempty" validate:"oneof=asc desc"`
	Fold     string            `json:"fold,omitempty" validate:"oneofci=asc desc"`
	Format   string            `json:"format,omitempty" jsonschema:"format=email"`
	List     []string          `json:"list,omitempty"`
	Map      map[string]int    `json:"map,omitempty"`
	Object   textPlain         `json:"object,omitzero"`
	Optional *int              `json:"optional"`
	Day      civil.Date        `json:"day,omitzero"`
	Limit    int               `json:"limit" validate:"omitempty,min=5"`
	Nullable *string           `json:"nullable" jsonschema:"nullable"`
	Deep     map[string][]bool `json:"deep,omitempty"`
	Objects  []textPlain       `json:"objects,omitempty"`
	Ptrs     []*textPlain      `json:"ptrs,omitempty"`
	Maps     []map[string]int  `json:"maps,omitempty"`
	Any      []any             `json:"any,omitempty"`
	Raw      []json.RawMessage `json:"raw,omitempty"`
	Own      []ownJSON         `json:"own,omitempty"`
	Nulls    []Null[textPlain] `json:"nulls,omitempty"`
	Enums    []string          `json:"enums,omitempty" validate:"dive,oneof=asc desc"`
	Lists    [][]textPlain     `json:"lists,omitempty"`
	Ints     []int             `json:"ints,omitempty"`
	Bools    []bool            `json:"bools,omitempty"`
	Waits    []time.Duration   `json:"waits,omitempty"`
	Days     []civil.Date      `json:"days,omitempty"`
	Blobs    [][]byte          `json:"blobs,omitempty"`
	Addrs    []netip.Addr      `json:"addrs,omitempty"`
	Floats   []float32         `json:"floats,omitempty"`
	Bigs     []*big.Int        `json:"bigs,omitempty"`
	Numbers  []json.Number     `json:"numbers,omitempty"`
	Fixed    [1]int            `json:"fixed,omitzero"`
	OptList  *[]string         `json:"optlist"`
	NullList Null[[]string]    `json:"nulllist,omitzero"`
	NullInts []Null[int]       `json:"nullints,omitempty"`
	Two      []string          `json:"two,omitempty" validate:"min=2"`
	OfMaps   map[string][]int  `json:"ofmaps,omitempty"`
	Folds    []string          `json:"folds,omitempty" validate:"dive,oneofci=asc desc"`
	Mails    []string          `json:"mails,omitempty" validate:"dive,email"`
}

// ownJSON has its own JSON form.
type ownJSON string

func (*ownJSON) JSONSchema() *jsonschema.Schema    { return &jsonschema.Schema{Type: "string"} }
func (o *ownJSON) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, (*string)(o)) }

// coercionRows are the rows: what lenient mode makes of a value, as JSON ("" if
// it is refused), and where it had to coerce. Strict mode refuses every value
// that lenient mode coerces.
var coercionRows = []struct {
	name, member, value, want string
	coerced                   string // pointer, or "" for none
}{
	{"1 string to integer", "int", `"5"`, `5`, "/int"},
	{"1 trimmed", "int", `" 5\t"`, `5`, "/int"},
	{"1 exponent", "int", `"1e2"`, `100`, "/int"},
	{"1 unsigned", "uint", `"7"`, `7`, "/uint"},
	{"1 out of range", "uint", `"256"`, "", ""},
	{"1 string to number", "float", `"1.5"`, `1.5`, "/float"},
	{"1 json.Number", "number", `"1.5"`, `1.5`, "/number"},
	{"1 units", "seconds", `"90"`, `90000000000`, "/seconds"},
	{"1 no unit", "int", `"5px"`, "", ""},
	{"1 no hexadecimal", "int", `"0x5"`, "", ""},
	{"1 no NaN", "float", `"NaN"`, "", ""},
	{"1 no plus", "int", `"+5"`, "", ""},
	{"1 no leading zero", "int", `"05"`, "", ""},
	{"1 no other space", "int", `"\u00a05"`, "", ""},
	{"1 no fraction", "int", `"1.5"`, "", ""},
	{"1 no digits of Unicode", "int", `"٣"`, "", ""},
	{"2 true", "bool", `"TRUE"`, `true`, "/bool"},
	{"2 not yes", "bool", `"yes"`, "", ""},
	{"2 not 1", "bool", `1`, "", ""},
	{"2 not the text 1", "bool", `"1"`, "", ""},
	{"2 not t", "bool", `"t"`, "", ""},
	{"3 integer to string", "text", `5`, `"5"`, "/text"},
	{"3 negative", "text", `-5`, `"-5"`, "/text"},
	{"3 all digits", "text", `9007199254740993`, `"9007199254740993"`, "/text"},
	{"3 no fraction", "text", `1.50`, "", ""},
	{"3 no exponent", "text", `1e3`, "", ""},
	{"3 no negative zero", "text", `-0`, "", ""},
	{"3 not for an enum", "enum", `5`, "", ""},
	{"3 not for a format", "format", `5`, "", ""},
	{"3 no boolean", "text", `true`, "", ""},
	{"4 list inside a string", "list", `"[\"a\"]"`, `["a"]`, "/list"},
	{"4 space before it", "list", `" [\"a\"]"`, `["a"]`, "/list"},
	{"4 map inside a string", "map", `"{\"a\":1}"`, `{"a":1}`, "/map"},
	{"4 object inside a string", "object", `"{\"s\":\"x\"}"`, `{"s":"x"}`, "/object"},
	{"4 once only", "deep", `"{\"a\":\"[true]\"}"`, "", ""},
	{"4 the wrong one", "list", `"{}"`, "", ""},
	{"4 broken", "list", `"[1"`, "", ""},
	{"5 null for an optional member", "int", `null`, "absent", "/int"},
	{"5 null for a pointer", "optional", `null`, "absent", "/optional"},
	{"5 empty string for a number", "int", `""`, "absent", "/int"},
	{"5 empty string for a boolean", "bool", `""`, "absent", "/bool"},
	{"5 empty string for an enum", "enum", `""`, "absent", "/enum"},
	{"5 empty string for a format", "format", `""`, "absent", "/format"},
	{"5 empty string for a date", "day", `""`, "absent", "/day"},
	{"5 empty string for a list", "list", `""`, "absent", "/list"},
	{"5 empty string is text", "text", `""`, `""`, ""},
	{"5 zero of omitempty", "limit", `0`, "absent", "/limit"},
	{"5 other values of omitempty", "limit", `3`, "", ""},
	{"5 null where it is a value", "nullable", `null`, `null`, ""},
	{"6 space around an enum", "enum", `" asc "`, `"asc"`, "/enum"},
	{"6 no folding", "enum", `"ASC"`, "", ""},
	{"6 folding by its rule", "fold", `"ASC"`, `"ASC"`, ""},
	{"7 a text for a list", "list", `"a"`, `["a"]`, "/list"},
	{"7 not of another type", "list", `true`, "", ""},
	{"7 a list in a map", "deep", `{"a":true}`, `{"a":[true]}`, "/deep/a"},
	{"7 an integer for a list of texts", "list", `5`, `["5"]`, "/list /list/0"},
	{"7 no fraction for a list of texts", "list", `1.5`, "", ""},
	{"7 an integer for a list of enums", "enums", `5`, "", ""},
	{"7 an object for a list", "objects", `{"s":"x"}`, `[{"s":"x"}]`, "/objects"},
	{"7 an object inside a string for a list", "objects", `" {\"s\":\"x\"}"`, `[{"s":"x"}]`, "/objects"},
	{"7 the same for pointers", "ptrs", `"{\"s\":\"x\"}"`, `[{"s":"x"}]`, "/ptrs"},
	{"7 the same for maps", "maps", `"{\"a\":1}"`, `[{"a":1}]`, "/maps"},
	{"7 the same for Null", "nulls", `"{\"s\":\"x\"}"`, `[{"s":"x"}]`, "/nulls"},
	{"7 an object for Null", "nulls", `{"s":"x"}`, `[{"s":"x"}]`, "/nulls"},
	{"7 an object with an issue", "objects", `"{\"z\":1}"`, "", ""},
	{"7 an object twice inside a string", "objects", `"\"{}\""`, "", ""},
	{"7 a broken object", "objects", `"{\"s\":"`, "", ""},
	{"7 any text", "any", `"x"`, `["x"]`, "/any"},
	{"7 any number", "any", `1`, `[1]`, "/any"},
	{"7 any object", "any", `{"a":1}`, `[{"a":1}]`, "/any"},
	{"7 any text that has an object", "any", `"{\"a\":1}"`, "", ""},
	{"7 null is no item", "any", `null`, "absent", "/any"},
	{"7 raw", "raw", `true`, `[true]`, "/raw"},
	{"7 a type with its own form", "own", `"x"`, `["x"]`, "/own"},
	{"7 not in a list", "lists", `[{"s":"x"}]`, "", ""},
	{"7 not from text in a list", "lists", `["{\"s\":\"x\"}"]`, "", ""},
	{"7 an integer for integers", "ints", `5`, `[5]`, "/ints"},
	{"7 an integer in quotes for integers", "ints", `"5"`, `[5]`, "/ints /ints/0"},
	{"7 integers inside a string", "ints", `"[5,6]"`, `[5,6]`, "/ints"},
	{"7 integers in quotes", "ints", `["5",6]`, `[5,6]`, "/ints/0"},
	{"7 no commas", "ints", `"1,2"`, "", ""},
	{"7 no fraction for integers", "ints", `1.5`, "", ""},
	{"7 no object for integers", "ints", `{}`, "", ""},
	{"7 a boolean for booleans", "bools", `true`, `[true]`, "/bools"},
	{"7 a boolean in quotes for booleans", "bools", `"True"`, `[true]`, "/bools /bools/0"},
	{"7 no integer for booleans", "bools", `1`, "", ""},
	{"7 a duration", "waits", `"1s"`, `[1000000000]`, "/waits"},
	{"7 a date", "days", `"2026-01-31"`, `["2026-01-31"]`, "/days"},
	{"7 not a date", "days", `"tomorrow"`, "", ""},
	{"7 bytes", "blobs", `"YQ=="`, `["YQ=="]`, "/blobs"},
	{"7 an address", "addrs", `"::1"`, `["::1"]`, "/addrs"},
	{"7 a number", "floats", `1.5`, `[1.5]`, "/floats"},
	{"7 a number out of range", "floats", `1e39`, "", ""},
	{"7 a large integer", "bigs", `123456789012345678901234567890`, `[123456789012345678901234567890]`, "/bigs"},
	{"7 a json.Number", "numbers", `1.50`, `[1.50]`, "/numbers"},
	{"7 a pointer to a list", "optlist", `"a"`, `["a"]`, "/optlist"},
	{"7 a list that may be null", "nulllist", `"a"`, `["a"]`, "/nulllist"},
	{"7 items that may be null", "nullints", `5`, `[5]`, "/nullints"},
	{"7 too few", "two", `"a"`, "", ""},
	{"7 lists in a map", "ofmaps", `{"a":1,"b":[2]}`, `{"a":[1],"b":[2]}`, "/ofmaps/a"},
	{"7 folded", "folds", `"DESC"`, `["DESC"]`, "/folds"},
	{"7 a text with a rule", "mails", `"a@b.example"`, `["a@b.example"]`, "/mails"},
	{"7 a text that breaks its rule", "mails", `"a"`, "", ""},
	{"7 Unicode", "list", `"日本 😀"`, `["日本 😀"]`, "/list"},
	{"7 a text in quotes", "list", `"\"a\""`, `["\"a\""]`, "/list"},
	{"7 an empty text is no item", "list", `""`, "absent", "/list"},
	{"7 no blank text", "list", `" "`, "", ""},
	{"7 one item of an array", "fixed", `5`, `[5]`, "/fixed"},
	{"never rounding", "int", `2.5`, "", ""},
	{"never near values", "enum", `"ascending"`, "", ""},
	{"never other dates", "day", `"31/01/2026"`, "", ""},
}

// report decodes a document and returns what was coerced.
func (p *Plan) report(doc []byte, dst any) (coerced []string, err error) {
	err = p.decodeInto(context.Background(), doc, dst, &coerced)
	return coerced, err
}

func TestCoercions(t *testing.T) {
	lenientPlan, strictPlan := compile[everyCoercion](t, nil), compile[everyCoercion](t, &Options{Strict: true})
	for _, row := range coercionRows {
		t.Run(row.name, func(t *testing.T) {
			doc := []byte(`{"` + row.member + `":` + row.value + `}`)
			var in everyCoercion
			coerced, err := lenientPlan.report(doc, &in)
			if (err == nil) != (row.want != "") {
				t.Fatalf("lenient: error is %v, want %q", err, row.want)
			}
			if err == nil && (strings.Join(coerced, " ") != row.coerced) {
				t.Errorf("coerced %q, want %q", coerced, row.coerced)
			}
			if row.want == "absent" && !reflect.ValueOf(in).IsZero() {
				t.Errorf("decoded %+v, want nothing", in)
			}
			if row.want != "" && row.want != "absent" {
				i := slices.IndexFunc(lenientPlan.root.object.fields, func(f field) bool { return f.name == row.member })
				if text, err := json.Marshal(reflect.ValueOf(in).Field(i).Interface()); err != nil || string(text) != row.want {
					t.Errorf("decoded %s, %v, want %s", text, err, row.want)
				}
			}
			var strict everyCoercion
			coerced, err = strictPlan.report(doc, &strict)
			if takes := row.want != "" && row.coerced == ""; (err == nil) != takes || len(coerced) != 0 {
				t.Errorf("strict: error is %v, coerced %q", err, coerced)
			}
		})
	}
}

// TestCoercionsOfSchemas checks that a schema as text forgives what the type forgives.
func TestCoercionsOfSchemas(t *testing.T) {
	strictPlan := compile[everyCoercion](t, &Options{Strict: true})
	s, err := raw.Compile(strictPlan.JSON())
	if err != nil {
		t.Fatal(err)
	}
	fitter, bad := raw.NewFitter(s)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	for _, row := range coercionRows {
		if row.member == "limit" {
			continue // validate:"omitempty", which no schema says
		}
		t.Run(row.name, func(t *testing.T) {
			doc, err := fitter.Fit([]byte(`{"` + row.member + `":` + row.value + `}`))
			if (err == nil) != (row.want != "") {
				t.Fatalf("error is %v, want %q", err, row.want)
			}
			if row.want == "" {
				return
			}
			var in everyCoercion
			if err := strictPlan.Decode(t.Context(), doc, &in); err != nil {
				t.Fatalf("the type refuses %s: %v", doc, err)
			}
			if row.want == "absent" {
				if !reflect.ValueOf(in).IsZero() {
					t.Errorf("decoded %+v, want nothing", in)
				}
				return
			}
			i := slices.IndexFunc(strictPlan.root.object.fields, func(f field) bool { return f.name == row.member })
			if text, err := json.Marshal(reflect.ValueOf(in).Field(i).Interface()); err != nil || string(text) != row.want {
				t.Errorf("decoded %s, %v, want %s", text, err, row.want)
			}
		})
	}
}

func TestCoercedInOrder(t *testing.T) {
	doc := []byte(`{"text":1,"list":"[2]","object":{"s":3},"int":"4","enum":" asc","optional":null}`)
	var in everyCoercion
	got, err := compile[everyCoercion](t, nil).report(doc, &in)
	if want := []string{"/text", "/list", "/list/0", "/object/s", "/int", "/enum", "/optional"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("coerced %q, %v, want %q", got, err, want)
	}
}

// TestStrictBelow checks that mcp:"strict" covers what is below a field, and
// nothing beside it.
func TestStrictBelow(t *testing.T) {
	type inner struct {
		N int   `json:"n,omitempty"`
		L []int `json:"l,omitempty"`
	}
	type args struct {
		Strict inner            `json:"strict,omitzero" mcp:"strict"`
		Loose  inner            `json:"loose,omitzero"`
		List   []inner          `json:"list,omitempty" mcp:"strict"`
		Map    map[string]inner `json:"map,omitempty" mcp:"strict"`
		Ptr    **inner          `json:"ptr,omitempty" mcp:"strict"`
		Null   Null[inner]      `json:"null,omitzero" mcp:"strict"`
	}
	p := compile[args](t, nil)
	tests := []struct {
		input  string
		issues []string
	}{
		{`{"loose":{"n":"1","l":["1"]}}`, nil},
		{`{"strict":{"n":"1","l":["1"]},"loose":{"n":"1"}}`, []string{"/strict/n type", "/strict/l/0 type"}},
		{`{"list":[{"n":"1"}],"map":{"a":{"l":["1"]}},"loose":{"n":"1"}}`, []string{"/list/0/n type", "/map/a/l/0 type"}},
		{`{"ptr":{"n":"1"},"null":{"n":"1"}}`, []string{"/ptr/n type", "/null/n type"}},
		{`{"strict":"{}","list":"[]"}`, []string{"/strict type", "/list type"}},
		{`{"strict":null}`, []string{"/strict type"}},
	}
	for _, c := range tests {
		if got := listed(t, p.Check([]byte(c.input))); !reflect.DeepEqual(got, c.issues) {
			t.Errorf("%s: issues are %q, want %q", c.input, got, c.issues)
		}
	}
}
