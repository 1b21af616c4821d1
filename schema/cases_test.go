package schema

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/schema/civil"
)

// mode says under which options a case runs.
type mode byte

const (
	anyMode mode = iota
	strictMode
	lenientMode
	nonZero // Options.RequiredNonZero
)

func (m mode) options() []*Options {
	switch m {
	case strictMode:
		return []*Options{{Strict: true}}
	case lenientMode:
		return []*Options{{}}
	case nonZero:
		return []*Options{{RequiredNonZero: true}}
	}
	return []*Options{{Strict: true}, {}}
}

// documentCase is one document for one type: the issues it has, each as path
// and rule, in order, and what the value is when there are none.
type documentCase struct {
	name   string
	typ    any
	mode   mode
	input  string
	issues []string
	check  func(t *testing.T, v reflect.Value)
}

type intRequired struct {
	N int `json:"n" validate:"required"`
}
type boolRequired struct {
	B bool `json:"b" validate:"required"`
}
type textRequired struct {
	S string `json:"s" validate:"required"`
}
type textPlain struct {
	S string `json:"s"`
}
type limitOptional struct {
	L int `json:"limit,omitempty" validate:"min=1"`
}
type limitOmit struct {
	L int `json:"limit" validate:"omitempty,min=5"`
}
type pointerText struct {
	P *string `json:"p" validate:"min=2"`
}
type nullableText struct {
	P *string `json:"p" jsonschema:"nullable"`
}
type listRequired struct {
	L []string `json:"l"`
}
type pair struct {
	A [2]int `json:"a"`
}
type intPlain struct {
	N int `json:"n"`
}
type int8Plain struct {
	N int8 `json:"n"`
}
type anyPlain struct {
	A any `json:"a"`
}
type boolPlain struct {
	B bool `json:"b"`
}
type mapPlain struct {
	M map[string]int `json:"m"`
}
type threeChars struct {
	S string `json:"s" validate:"max=3"`
}
type itemList struct {
	L []struct {
		X int `json:"x" validate:"min=1"`
	} `json:"l"`
}
type dictRules struct {
	M map[string]string `json:"m" validate:"dive,keys,alpha,min=2,endkeys,min=3"`
}
type requiredIf struct {
	Kind string `json:"kind"`
	Mail string `json:"mail" validate:"required_if=kind email"`
}
type requiredWithout struct {
	A string `json:"a,omitempty" validate:"required_without=B"`
	B string `json:"b,omitempty"`
}
type naive struct {
	T civil.NaiveDateTime `json:"t"`
}
type builtins struct {
	IP   netip.Addr      `json:"ip"`
	Net  netip.Prefix    `json:"net"`
	Big  big.Int         `json:"big"`
	Blob []byte          `json:"blob"`
	Raw  json.RawMessage `json:"raw"`
	Num  json.Number     `json:"num"`
	When time.Time       `json:"when"`
	Day  civil.Date      `json:"day"`
	Wait time.Duration   `json:"wait"`
}
type figure interface{ area() float64 }
type circle struct {
	R float64 `json:"r" validate:"gt=0"`
}

func (c circle) area() float64 { return c.R * c.R }

type rectangle struct {
	W float64 `json:"w" validate:"gt=0"`
	H float64 `json:"h" validate:"gt=0"`
}

func (r *rectangle) area() float64 { return r.W * r.H }

type drawing struct {
	Shape figure `json:"shape"`
}
type eitherRule struct {
	S string `json:"s" validate:"email|oneof=none"`
}
type notOne struct {
	S string `json:"s" validate:"noneof=a b"`
}

func field0(f func(v reflect.Value) bool) func(*testing.T, reflect.Value) {
	return func(t *testing.T, v reflect.Value) {
		t.Helper()
		if !f(v.Field(0)) {
			t.Errorf("field is %#v", v.Field(0).Interface())
		}
	}
}

func isInt(n int64) func(*testing.T, reflect.Value) {
	return field0(func(v reflect.Value) bool { return v.Int() == n })
}

func isText(s string) func(*testing.T, reflect.Value) {
	return field0(func(v reflect.Value) bool { return v.String() == s })
}

// documentCases are numbered as in the design's list of cases that separate a
// toy from an implementation.
var documentCases = []documentCase{
	{"1 zero is present", intRequired{}, anyMode, `{"n":0}`, nil, isInt(0)},
	{"2 zero refused on request", intRequired{}, nonZero, `{"n":0}`, []string{"/n not"}, nil},
	{"3 false is present", boolRequired{}, anyMode, `{"b":false}`, nil, nil},
	{"4 required text is not empty", textRequired{}, anyMode, `{"s":""}`, []string{"/s minLength"}, nil},
	{"5 required text is missing", textRequired{}, anyMode, `{}`, []string{"/s required"}, nil},
	{"6 null for a required text", textPlain{}, anyMode, `{"s":null}`, []string{"/s type"}, nil},
	{"7 no rule on an absent member", limitOptional{}, anyMode, `{}`, nil, isInt(0)},
	{"8 rule on a present member", limitOptional{}, anyMode, `{"limit":0}`, []string{"/limit minimum"}, nil},
	{"9 explicit zero, strict", limitOmit{}, strictMode, `{"limit":0}`, []string{"/limit minimum"}, nil},
	{"9 explicit zero, lenient", limitOmit{}, lenientMode, `{"limit":0}`, nil, isInt(0)},
	{"9 other values are checked", limitOmit{}, anyMode, `{"limit":3}`, []string{"/limit minimum"}, nil},
	{"9 a bad type is no zero", limitOmit{}, anyMode, `{"limit":"x"}`, []string{"/limit type"}, nil},
	{"10 pointer absent", pointerText{}, anyMode, `{}`, nil, field0(func(v reflect.Value) bool { return v.IsNil() })},
	{"10 pointer checked", pointerText{}, anyMode, `{"p":"x"}`, []string{"/p minLength"}, nil},
	{"11 pointer set", pointerText{}, anyMode, `{"p":"xy"}`, nil, field0(func(v reflect.Value) bool { return v.Elem().String() == "xy" })},
	{"11 pointer null, strict", pointerText{}, strictMode, `{"p":null}`, []string{"/p type"}, nil},
	{"11 pointer null, lenient", pointerText{}, lenientMode, `{"p":null}`, nil, field0(func(v reflect.Value) bool { return v.IsNil() })},
	{"12 nullable", nullableText{}, anyMode, `{"p":null}`, nil, field0(func(v reflect.Value) bool { return v.IsNil() })},
	{"13 null for a list", listRequired{}, anyMode, `{"l":null}`, []string{"/l type"}, nil},
	{"14 empty list is present", listRequired{}, anyMode, `{"l":[]}`, nil, field0(func(v reflect.Value) bool { return !v.IsNil() })},
	{"15 array too short", pair{}, anyMode, `{"a":[1]}`, []string{"/a minItems"}, nil},
	{"15 array too long", pair{}, anyMode, `{"a":[1,2,3]}`, []string{"/a maxItems"}, nil},
	{"16 1.0 is an integer", intPlain{}, anyMode, `{"n":1.0}`, nil, isInt(1)},
	{"16 1e2 is an integer", intPlain{}, anyMode, `{"n":1e2}`, nil, isInt(100)},
	{"16 0.5e1 is an integer", intPlain{}, anyMode, `{"n":0.5e1}`, nil, isInt(5)},
	{"16 -0.0 is an integer", intPlain{}, anyMode, `{"n":-0.0}`, nil, isInt(0)},
	{"17 1.5 is none", intPlain{}, anyMode, `{"n":1.5}`, []string{"/n type"}, nil},
	{"18 int8 range", int8Plain{}, anyMode, `{"n":128}`, []string{"/n maximum"}, nil},
	{"19 int64 range", intPlain{}, anyMode, `{"n":1e30}`, []string{"/n range"}, nil},
	{"19 int64 edge", intPlain{}, anyMode, `{"n":-9223372036854775808}`, nil, isInt(-1 << 63)},
	{"19 beyond the edge", intPlain{}, anyMode, `{"n":9223372036854775808}`, []string{"/n range"}, nil},
	{"20 every digit kept", anyPlain{}, anyMode, `{"a":9007199254740993}`, nil, field0(func(v reflect.Value) bool { return v.Interface() == json.Number("9007199254740993") })},
	{"21 number as text, strict", intPlain{}, strictMode, `{"n":"5"}`, []string{"/n type"}, nil},
	{"21 number as text, lenient", intPlain{}, lenientMode, `{"n":" 5 "}`, nil, isInt(5)},
	{"22 not quite a number", intPlain{}, anyMode, `{"n":"5px"}`, []string{"/n type"}, nil},
	{"22 hexadecimal", intPlain{}, anyMode, `{"n":"0x5"}`, []string{"/n type"}, nil},
	{"22 empty for a required number", intPlain{}, anyMode, `{"n":""}`, []string{"/n type"}, nil},
	{"23 true as text", boolPlain{}, lenientMode, `{"b":"True"}`, nil, field0(reflect.Value.Bool)},
	{"23 yes", boolPlain{}, lenientMode, `{"b":"yes"}`, []string{"/b type"}, nil},
	{"23 one", boolPlain{}, lenientMode, `{"b":1}`, []string{"/b type"}, nil},
	{"23 true as text, strict", boolPlain{}, strictMode, `{"b":"true"}`, []string{"/b type"}, nil},
	{"24 integer for text", textPlain{}, lenientMode, `{"s":1}`, nil, isText("1")},
	{"24 fraction for text", textPlain{}, lenientMode, `{"s":1.50}`, []string{"/s type"}, nil},
	{"25 object as text", struct {
		F textPlain `json:"f"`
	}{}, lenientMode, `{"f":"{\"s\":\"x\"}"}`, nil, field0(func(v reflect.Value) bool { return v.Field(0).String() == "x" })},
	{"25 list as text", listRequired{}, lenientMode, `{"l":"[\"a\",\"b\"]"}`, nil, field0(func(v reflect.Value) bool { return v.Len() == 2 })},
	{"25 not quite a list", listRequired{}, lenientMode, `{"l":"[1,"}`, []string{"/l type"}, nil},
	{"25 faults inside", listRequired{}, lenientMode, `{"l":"[1.5]"}`, []string{"/l/0 type"}, nil},
	{"26 scalar for a list", struct {
		T []string `json:"t"`
	}{}, strictMode, `{"t":"a"}`, []string{"/t type"}, nil},
	{"26 scalar of another type for a list", struct {
		T []string `json:"t"`
	}{}, anyMode, `{"t":true}`, []string{"/t type"}, nil},
	{"27 duplicate", intPlain{}, anyMode, `{"n":1,"n":2}`, []string{"/n duplicate"}, nil},
	{"27 duplicate in a map", mapPlain{}, anyMode, `{"m":{"a":1,"a":2}}`, []string{"/m/a duplicate"}, nil},
	{"27 duplicate in any", anyPlain{}, anyMode, `{"a":{"x":[{"y":1,"y":2}]}}`, []string{"/a/x/0/y duplicate"}, nil},
	{"27 duplicate through an escape", intPlain{}, anyMode, `{"n":1,"\u006e":2}`, []string{"/n duplicate"}, nil},
	{"27 duplicate in an unknown member", intPlain{}, anyMode, `{"n":1,"z":{"y":1,"y":2}}`, []string{"/z unknown", "/z/y duplicate"}, nil},
	{"28 wrong case", intPlain{}, anyMode, `{"N":1}`, []string{"/N unknown", "/n required"}, nil},
	{"29 long s", textPlain{}, anyMode, `{"ſ":"1"}`, []string{"/ſ unknown", "/s required"}, nil},
	{"30 eight faults at once", searchArgs{}, anyMode, `{"query":"","limit":0,"sort":"up","tags":["a",""],"since":"2026-02-30","filter":{"lang":"eng","score":2,"strict":3}}`,
		[]string{"/query minLength", "/limit minimum", "/sort enum", "/tags/1 minLength", "/since format", "/filter/lang maxLength", "/filter/score maximum", "/filter/strict type"}, nil},
	{"32 three emoji", threeChars{}, anyMode, `{"s":"👍👍👍"}`, nil, nil},
	{"32 three accents", threeChars{}, anyMode, `{"s":"éàü"}`, nil, nil},
	{"32 three escapes", threeChars{}, anyMode, `{"s":"\ud83d\udc4d\ud83d\udc4d\ud83d\udc4d"}`, nil, nil},
	{"32 four emoji", threeChars{}, anyMode, `{"s":"👍👍👍👍"}`, []string{"/s maxLength"}, nil},
	{"33 lone surrogate", textPlain{}, anyMode, `{"s":"\ud800"}`, nil, nil},
	{"33 broken UTF-8", textPlain{}, anyMode, "{\"s\":\"\xff\"}", []string{" syntax"}, nil},
	{"34 trailing text", intPlain{}, anyMode, `{"n":1} x`, []string{" syntax"}, nil},
	{"34 second document", intPlain{}, anyMode, `{"n":1}{}`, []string{" syntax"}, nil},
	{"35 deep nesting", anyPlain{}, anyMode, `{"a":` + strings.Repeat("[", 20000), []string{"/a" + strings.Repeat("/0", 31) + " depth"}, nil},
	{"36 structs in lists are checked", itemList{}, anyMode, `{"l":[{"x":0}]}`, []string{"/l/0/x minimum"}, nil},
	{"37 too many values", anyPlain{}, anyMode, `{"a":[` + strings.Repeat("0,", 100_000) + `0]}`, []string{"/a/99998 size"}, nil},
	{"39 keys and values", dictRules{}, anyMode, `{"m":{"x1":"a"}}`, []string{"/m/x1 propertyNames", "/m/x1 minLength"}, nil},
	{"48 JSON name in a condition", requiredIf{}, anyMode, `{"kind":"email"}`, []string{"/mail required"}, nil},
	{"48 condition does not hold", requiredIf{}, anyMode, `{"kind":"post"}`, nil, nil},
	{"51 required without", requiredWithout{}, anyMode, `{}`, []string{"/a required"}, nil},
	{"51 the other one is there", requiredWithout{}, anyMode, `{"b":"x"}`, nil, nil},
	{"55 naive time with offset", naive{}, anyMode, `{"t":"2026-01-31T10:00:00Z"}`, []string{"/t pattern"}, nil},
	{"55 naive time", naive{}, anyMode, `{"t":"2026-01-31T10:00:00"}`, nil, nil},
	{"58 built-in types", builtins{}, anyMode, `{"ip":"192.0.2.1","net":"192.0.2.0/24","big":123456789012345678901234567890,"blob":"aGk=","raw":{"x":[1]},"num":1.5,"when":"2026-01-31t10:00:00z","day":"2026-01-31","wait":"1h30m"}`, nil,
		func(t *testing.T, v reflect.Value) {
			b := v.Interface().(builtins)
			if b.IP != netip.MustParseAddr("192.0.2.1") || b.Big.String() != "123456789012345678901234567890" || string(b.Blob) != "hi" ||
				string(b.Raw) != `{"x":[1]}` || b.Num != "1.5" || b.Day.String() != "2026-01-31" || b.Wait != 90*time.Minute || b.When.Hour() != 10 {
				t.Errorf("decoded %+v", b)
			}
		}},
	{"58 built-in types, bad", builtins{}, anyMode, `{"ip":"x","net":"1","big":1.5,"blob":"a\nGk=","raw":null,"num":"x","when":"2026-01-31 10:00","day":"2026-02-30","wait":"90"}`,
		[]string{"/ip custom", "/net custom", "/big type", "/blob pattern", "/num type", "/when format", "/day format", "/wait pattern"}, nil},
	{"60 alternatives, first", eitherRule{}, anyMode, `{"s":"a@example.com"}`, nil, nil},
	{"60 alternatives, second", eitherRule{}, anyMode, `{"s":"none"}`, nil, nil},
	{"60 alternatives, neither", eitherRule{}, anyMode, `{"s":"nobody"}`, []string{"/s email|oneof=none"}, nil},
	{"60 noneof", notOne{}, anyMode, `{"s":"b"}`, []string{"/s not"}, nil},
	{"60 only the chosen variant's issues", drawing{}, anyMode, `{"shape":{"kind":"circle","r":-1}}`, []string{"/shape/r exclusiveMinimum"}, nil},
	{"60 unknown variant", drawing{}, anyMode, `{"shape":{"kind":"cube"}}`, []string{"/shape/kind union"}, nil},
	{"60 no variant", drawing{}, anyMode, `{"shape":{"r":1}}`, []string{"/shape/kind required"}, nil},
	{"60 pointer variant", drawing{}, anyMode, `{"shape":{"w":2,"h":3,"kind":"rectangle"}}`, nil, field0(func(v reflect.Value) bool { return v.Interface().(figure).area() == 6 })},
}

// figures is the union that the cases use.
var figures = Union[figure]("kind", Variant("circle", circle{}), Variant("rectangle", &rectangle{}))

func TestDocuments(t *testing.T) {
	for _, c := range documentCases {
		for _, o := range c.mode.options() {
			name := c.name
			if c.mode == anyMode && o.Strict {
				name += " (strict)"
			}
			t.Run(name, func(t *testing.T) {
				o.Unions = []UnionType{figures}
				p, err := Compile(reflect.TypeOf(c.typ), o)
				if err != nil {
					t.Fatal(err)
				}
				v := reflect.New(p.typ)
				err = p.Decode(context.Background(), []byte(c.input), v.Interface())
				if got := listed(t, err); !reflect.DeepEqual(got, c.issues) {
					t.Fatalf("issues are %q, want %q\n%v", got, c.issues, err)
				}
				if c.check != nil {
					c.check(t, v.Elem())
				}
			})
		}
	}
}

// listed returns the issues of an error as "path rule".
func listed(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("Decode returned %T: %v", err, err)
	}
	var out []string
	for _, is := range e.Issues {
		out = append(out, is.Path+" "+is.Rule)
		if is.Message == "" {
			t.Errorf("issue at %s has no message", is.Path)
		}
	}
	return out
}

func TestSchemas(t *testing.T) {
	tests := []struct {
		name     string
		typ      any
		opts     Options
		has, not []string
	}{
		{"1", intRequired{}, Options{}, []string{`"required":["n"]`, `"n":{"type":"integer","format":"int64"}`}, []string{"const"}},
		{"2", intRequired{}, Options{RequiredNonZero: true}, []string{`"not":{"const":0}`}, nil},
		{"4", textRequired{}, Options{}, []string{`"minLength":1`}, nil},
		{"10", pointerText{}, Options{}, []string{`"minLength":2`}, []string{"required"}},
		{"12", nullableText{}, Options{}, []string{`"type":["string","null"]`}, []string{"required"}},
		{"15", pair{}, Options{}, []string{`"minItems":2`, `"maxItems":2`}, nil},
		{"18", int8Plain{}, Options{}, []string{`"minimum":-128`, `"maximum":127`}, nil},
		{"20", anyPlain{}, Options{}, []string{`"a":{}`}, nil},
		{"51", requiredWithout{}, Options{}, []string{`"else":{`, `Required when b is absent.`}, []string{`"allOf"`, `"anyOf"`, `"oneOf"`}},
		{"55", naive{}, Options{}, []string{`"pattern"`}, []string{"date-time"}},
		{"58", builtins{}, Options{}, []string{`"big":{"type":"integer","description":"At most 1000 digits."}`, `"contentEncoding":"base64"`, `"raw":{}`, `"num":{"type":"number"}`}, nil},
		{"60", drawing{}, Options{Unions: []UnionType{figures}}, []string{`"anyOf":[{"type":"object"`, `"kind":{"type":"string","const":"circle"}`}, nil},
		{"empty", struct{}{}, Options{}, []string{`{"type":"object","properties":{},"additionalProperties":false}`}, nil},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			p, err := Compile(reflect.TypeOf(c.typ), &c.opts)
			if err != nil {
				t.Fatal(err)
			}
			text := string(p.JSON())
			for _, s := range c.has {
				if !strings.Contains(text, s) {
					t.Errorf("schema lacks %s:\n%s", s, text)
				}
			}
			for _, s := range c.not {
				if strings.Contains(text, s) {
					t.Errorf("schema has %s:\n%s", s, text)
				}
			}
		})
	}
}

// TestEveryCase checks that each number of the design's list is tested, by a
// document, a schema or a type that must not compile.
func TestEveryCase(t *testing.T) {
	var names []string
	for _, c := range documentCases {
		names = append(names, c.name)
	}
	for _, c := range badTypes {
		names = append(names, c.name)
	}
	for _, number := range []int{1, 2, 3, 4, 5, 6, 7, 9, 10, 12, 13, 15, 16, 17, 18, 20, 21, 23, 24, 26, 27, 28, 30, 32, 34, 35, 36, 39,
		41, 43, 44, 45, 47, 48, 49, 51, 53, 55, 58, 60} {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, strconv.Itoa(number)+" ") }) {
			t.Errorf("case %d is not tested", number)
		}
	}
}
