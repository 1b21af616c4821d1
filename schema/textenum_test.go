package schema

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/schema/raw"
)

// texts are the text forms of the types below, by their values.
var texts = []string{"low", "mid", "high"}

func textOf[T comparable](v T, values []T) ([]byte, error) {
	for i, one := range values {
		if one == v {
			return []byte(texts[i]), nil
		}
	}
	return nil, errors.New("no such value")
}

func valueOf[T any](text []byte, values []T, into *T) error {
	for i, one := range texts {
		if one == string(text) {
			*into = values[i]
			return nil
		}
	}
	return errors.New("is not one of mine")
}

// Types of every kind with a text form.
type (
	depth  int
	extent uint8
	ratio  float32
	toggle bool
	tint   string
	corner struct{ x, y int }
	couple [2]int
	shared int // with methods on the pointer
)

func (depth) Enum() []depth    { return []depth{-1, 0, 1} }
func (extent) Enum() []extent  { return []extent{1, 2, 3} }
func (ratio) Enum() []ratio    { return []ratio{0.1, 0.5, 0.9} }
func (toggle) Enum() []toggle  { return []toggle{false, true} }
func (tint) Enum() []tint      { return []tint{"l", "m", "h"} }
func (corner) Enum() []corner  { return []corner{{0, 0}, {0, 1}, {1, 1}} }
func (couple) Enum() []couple  { return []couple{{0, 0}, {0, 1}, {1, 1}} }
func (*shared) Enum() []shared { return []shared{1, 2, 3} }

func (v depth) MarshalText() ([]byte, error)  { return textOf(v, v.Enum()) }
func (v extent) MarshalText() ([]byte, error) { return textOf(v, v.Enum()) }
func (v ratio) MarshalText() ([]byte, error)  { return textOf(v, v.Enum()) }
func (v toggle) MarshalText() ([]byte, error) {
	return map[toggle][]byte{false: []byte("low"), true: []byte("high")}[v], nil
}
func (v tint) MarshalText() ([]byte, error)    { return textOf(v, v.Enum()) }
func (v corner) MarshalText() ([]byte, error)  { return textOf(v, v.Enum()) }
func (v couple) MarshalText() ([]byte, error)  { return textOf(v, v.Enum()) }
func (v *shared) MarshalText() ([]byte, error) { return textOf(*v, v.Enum()) }

func (v *depth) UnmarshalText(text []byte) error  { return valueOf(text, v.Enum(), v) }
func (v *extent) UnmarshalText(text []byte) error { return valueOf(text, v.Enum(), v) }
func (v *ratio) UnmarshalText(text []byte) error  { return valueOf(text, v.Enum(), v) }
func (v *toggle) UnmarshalText(text []byte) error {
	if *v = string(text) == "high"; !*v && string(text) != "low" {
		return errors.New("is not one of mine")
	}
	return nil
}
func (v *tint) UnmarshalText(text []byte) error   { return valueOf(text, v.Enum(), v) }
func (v *corner) UnmarshalText(text []byte) error { return valueOf(text, v.Enum(), v) }
func (v *couple) UnmarshalText(text []byte) error { return valueOf(text, v.Enum(), v) }
func (v *shared) UnmarshalText(text []byte) error { return valueOf(text, v.Enum(), v) }

// everywhere uses a type wherever a value can be.
type everywhere[T comparable] struct {
	One   T            `json:"one"`
	Ptr   *T           `json:"ptr"`
	List  []T          `json:"list,omitempty"`
	Ptrs  []*T         `json:"ptrs,omitempty"`
	Lists [][]T        `json:"lists,omitempty"`
	Map   map[string]T `json:"map,omitempty"`
	Keys  map[T]bool   `json:"keys,omitempty"`
	Null  Null[T]      `json:"null,omitzero"`
	Def   T            `json:"def" jsonschema:"default=low"`
}

// checkTexts checks that the values of T are listed by their texts, and no others taken.
func checkTexts[T comparable](t *testing.T, listed string, value T) {
	t.Helper()
	p, err := Compile(reflect.TypeFor[everywhere[T]](), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(strings.ReplaceAll(string(p.JSON()), listed+",null]", listed+"]"), listed+"]"); n != 9 {
		t.Errorf("%T: %d of 9 places list %s: %s", value, n, listed, p.JSON())
	}
	if got := p.Fields()[0].Enum; fmt.Sprintf("%q", got) != strings.ReplaceAll(listed, ",", " ")+"]" {
		t.Errorf("%T: fields list %q", value, got)
	}
	again, err := raw.Compile(p.JSON())
	if err != nil {
		t.Fatal(err)
	}
	for doc, good := range map[string]bool{
		`{"one":"high"}`: true,
		`{"one":"high","ptr":"low","list":["high"],"ptrs":["high"],"lists":[["high"]],"map":{"a":"high"},"keys":{"high":true},"null":"high"}`: true,
		`{"one":"other"}`: false, `{"one":"HIGH"}`: false, `{"one":1}`: false, `{"one":true}`: false, `{"one":""}`: false, `{"one":null}`: false,
		`{"one":"low","list":["x"]}`: false, `{"one":"low","ptrs":["x"]}`: false, `{"one":"low","lists":[["x"]]}`: false, `{"one":"low","map":{"a":"x"}}`: false,
		`{"one":"low","keys":{"x":true}}`: false, `{"one":"low","null":"x"}`: false, `{"one":"low","keys":{"1":true}}`: false,
	} {
		var in everywhere[T]
		err := p.Decode(t.Context(), []byte(doc), &in)
		if (err == nil) != good || (again.Check([]byte(doc)) == nil) != good {
			t.Errorf("%T: %s: the type says %v, the schema %v", value, doc, err, again.Check([]byte(doc)))
		}
		if good && in.One != value {
			t.Errorf("%T: %s: decoded %v", value, doc, in.One)
		}
	}
	var in everywhere[T]
	if err := p.Decode(t.Context(), []byte(`{"one":" high\n"}`), &in); err != nil || in.One != value {
		t.Errorf("%T: space around a text: %v", value, err)
	}
	// Results are written as arguments are read.
	out, err := Compile(reflect.TypeFor[struct {
		One *T  `json:"one"`
		All []T `json:"all"`
	}](), &Options{Output: true})
	if err != nil {
		t.Fatal(err)
	}
	text, err := jsonx.Append(nil, &struct {
		One *T  `json:"one"`
		All []T `json:"all"`
	}{&value, []T{value}})
	if err != nil || string(text) != `{"one":"high","all":["high"]}` || out.Check(text) != nil {
		t.Errorf("%T: a result is %s, %v, %v: %s", value, text, err, out.Check(text), out.JSON())
	}
}

func TestEnumsByText(t *testing.T) {
	const all = `["low","mid","high"`
	checkTexts[depth](t, all, 1)
	checkTexts[extent](t, all, 3)
	checkTexts[ratio](t, all, 0.9)
	checkTexts[toggle](t, `["low","high"`, true)
	checkTexts[tint](t, all, "h")
	checkTexts[corner](t, all, corner{1, 1})
	checkTexts[couple](t, all, couple{1, 1})
	checkTexts[shared](t, all, 3)
}

// Rules of a type with a text form list its texts.
func TestRulesByText(t *testing.T) {
	type args struct {
		One  bare         `json:"one,omitempty" validate:"oneof=low high"`
		Not  depth        `json:"not,omitempty" validate:"noneof=low"`
		Fold bare         `json:"fold,omitempty" validate:"oneofci=low mid"`
		List []bare       `json:"list,omitempty" validate:"dive,oneof=low mid"`
		Keys map[bare]int `json:"keys,omitempty" validate:"dive,keys,oneof=low mid,endkeys"`
		Tags bare         `json:"tags,omitempty" jsonschema:"enum=low,enum=high"`
		Only bare         `json:"only,omitempty" jsonschema:"const=mid"`
		Same depth        `json:"same,omitempty" validate:"oneof=low mid high"`
		When string       `json:"when,omitempty" validate:"required_if=One high"`
		Zero string       `json:"zero,omitempty" validate:"excluded_if=Same low"`
	}
	p, err := Compile(reflect.TypeFor[args](), nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := raw.Compile(p.JSON())
	if err != nil {
		t.Fatal(err)
	}
	for doc, good := range map[string]bool{
		`{"one":"low"}`: true, `{"one":"mid"}`: false, `{"one":"-1"}`: false, `{"one":-1}`: false,
		`{"not":"mid"}`: true, `{"not":"low"}`: false, `{"fold":"mid"}`: true, `{"fold":"high"}`: false,
		`{"list":["mid","low"]}`: true, `{"list":["high"]}`: false, `{"keys":{"low":1}}`: true, `{"keys":{"high":1}}`: false,
		`{"tags":"high"}`: true, `{"tags":"mid"}`: false, `{"only":"mid"}`: true, `{"only":"low"}`: false,
		`{"one":"high"}`: false, `{"one":"high","when":"x"}`: true, `{"one":"low","when":"x"}`: true,
		`{"same":"low","zero":"x"}`: false, `{"same":"high","zero":"x"}`: true,
	} {
		if err, of := p.Check([]byte(doc)), again.Check([]byte(doc)); (err == nil) != good || (of == nil) != good {
			t.Errorf("%s: the type says %v, the schema %v", doc, err, of)
		}
	}
}

// bare has a text form and no list of its own.
type bare int

func (v bare) MarshalText() ([]byte, error)     { return textOf(v, []bare{0, 1, 2}) }
func (v *bare) UnmarshalText(text []byte) error { return valueOf(text, []bare{0, 1, 2}, v) }

// Types whose list is of no use.
type (
	mute    int // no MarshalText
	silent  int // whose MarshalText fails
	unread  int // whose texts UnmarshalText refuses
	changed int // whose texts UnmarshalText reads as another value
	nervous int // whose MarshalText panics
	twice   int // with one text for two values
)

func (mute) Enum() []mute       { return []mute{1} }
func (silent) Enum() []silent   { return []silent{1} }
func (unread) Enum() []unread   { return []unread{1} }
func (changed) Enum() []changed { return []changed{1} }
func (nervous) Enum() []nervous { return []nervous{1} }
func (twice) Enum() []twice     { return []twice{1, 1} }

func (silent) MarshalText() ([]byte, error)  { return nil, errors.New("no text") }
func (unread) MarshalText() ([]byte, error)  { return []byte("a"), nil }
func (changed) MarshalText() ([]byte, error) { return []byte("a"), nil }
func (nervous) MarshalText() ([]byte, error) { panic("nervous") }
func (twice) MarshalText() ([]byte, error)   { return []byte("a"), nil }

func (*mute) UnmarshalText([]byte) error      { return nil }
func (*silent) UnmarshalText([]byte) error    { return nil }
func (*unread) UnmarshalText([]byte) error    { return errors.New("unreadable") }
func (v *changed) UnmarshalText([]byte) error { *v = 2; return nil }
func (*nervous) UnmarshalText([]byte) error   { return nil }
func (v *twice) UnmarshalText([]byte) error   { *v = 1; return nil }

func TestEnumsByTextProblems(t *testing.T) {
	for want, v := range map[string]any{
		"method Enum of schema.mute lists a value whose text is unknown; give schema.mute a method MarshalText": struct{ A mute }{},
		"lists a value without a text: no text":                                    struct{ A silent }{},
		`lists a value with the text "a", which UnmarshalText refuses: unreadable`: struct{ A map[unread]int }{},
		`with the text "a", which UnmarshalText reads as another value`:            struct{ A []changed }{},
		"lists a value without a text: nervous":                                    struct{ A *nervous }{},
		"must list different values":                                               struct{ A twice }{},
		`oneof=low top - "top" is not a value of schema.bare: is not one of mine; write the text of a value`: struct {
			A bare `validate:"oneof=low top"`
		}{},
		`"1" is not a value of schema.depth`: struct {
			A depth `validate:"oneof=1 2"`
		}{},
		`enum=low,top - "top" is not a value`: struct {
			A bare `jsonschema:"enum=low,enum=top"`
		}{},
		`"top" is no value of A, which is schema.depth`: struct {
			A depth
			B string `validate:"required_if=A top"`
		}{},
		"cannot be compared with a text": struct {
			A bare
			B string `validate:"required_if=A low"`
		}{},
		"make both the same": struct {
			A tint `validate:"oneof=low" jsonschema:"enum=high"`
		}{},
	} {
		_, err := Compile(reflect.TypeOf(v), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%T: error is %v, want %q in it", v, err, want)
		}
	}
}

// A tag may keep some of the values that Enum lists.
func TestEnumsNarrowed(t *testing.T) {
	type args struct {
		A depth          `json:"a,omitempty" validate:"oneof=low high"`
		B []corner       `json:"b,omitempty" validate:"dive,oneof=mid"`
		C map[tint]int   `json:"c,omitempty" validate:"dive,keys,oneof=high,endkeys"`
		D *shared        `json:"d" jsonschema:"enum=low,enum=mid"`
		E Null[toggle]   `json:"e,omitzero" validate:"oneof=high"`
		F number         `json:"f,omitempty" validate:"oneof=2"`
		G map[number]int `json:"g,omitempty" validate:"dive,keys,oneof=2,endkeys"`
		H depth          `json:"h,omitempty"`
	}
	p, err := Compile(reflect.TypeFor[args](), nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := raw.Compile(p.JSON())
	if err != nil {
		t.Fatal(err)
	}
	for doc, good := range map[string]bool{
		`{"a":"low","b":["mid"],"c":{"high":1},"d":"mid","e":"high","f":2,"g":{"2":1},"h":"mid"}`: true,
		`{"a":"mid"}`: false, `{"b":["low"]}`: false, `{"c":{"low":1}}`: false, `{"d":"high"}`: false,
		`{"e":"low"}`: false, `{"f":1}`: false, `{"g":{"1":1}}`: false, `{"h":"other"}`: false,
	} {
		if err := p.Check([]byte(doc)); (err == nil) != good || (again.Check([]byte(doc)) == nil) != good {
			t.Errorf("%s: the type says %v, the schema %v", doc, err, again.Check([]byte(doc)))
		}
	}
	if got := p.Fields()[0].Enum; fmt.Sprint(got) != "[low high]" {
		t.Errorf("fields list %q", got)
	}
}

// Integers that travel inside a string are listed as such, and only text methods make a
// text form.
func TestEnumsInsideStrings(t *testing.T) {
	type args struct {
		N    int            `json:"n,omitempty,string" validate:"oneof=1 2"`
		Keys map[number]int `json:"keys,omitempty"`
		One  number         `json:"one,omitempty"`
	}
	p, err := Compile(reflect.TypeFor[args](), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(p.JSON()); strings.Count(got, `"enum":["1","2"]`) != 2 || !strings.Contains(got, `"one":{"type":"integer","enum":[1,2]}`) {
		t.Errorf("got %s", got)
	}
	for doc, good := range map[string]bool{
		`{"n":"1","keys":{"2":1},"one":1}`: true, `{"n":"3"}`: false, `{"keys":{"3":1}}`: false, `{"keys":{"one":1}}`: false, `{"one":3}`: false, `{"one":"one"}`: false,
	} {
		if err := p.Check([]byte(doc)); (err == nil) != good {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

// number has the method String, which is for people.
type number int

func (number) Enum() []number { return []number{1, 2} }
func (number) String() string { return "one" }
