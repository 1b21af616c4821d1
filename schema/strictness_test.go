package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/schema/raw"
)

type half float32

// The decoder takes a value if and only if the schema does, or the schema says
// in words what it does not take.
func TestNoStricterThanTheSchema(t *testing.T) {
	tests := []struct {
		typ  reflect.Type
		tag  string
		docs []string
		says string // in the description, of what the keywords do not tell
	}{
		{reflect.TypeFor[time.Time](), "", []string{`"2016-12-31T23:59:60Z"`, `"2017-01-01T01:29:60+01:30"`, `"2016-12-31T18:59:60.5-05:00"`, `"2016-12-31T22:59:60Z"`, `"2016-12-31T23:59:60+01:00"`, `"2016-12-31T23:59:61Z"`}, ""},
		{reflect.TypeFor[int](), "", []string{"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "9.223372036854775807e18", "9.223372036854775808e18", "1e18", "1e19", "1.0"}, ""},
		{reflect.TypeFor[int64](), `validate:"min=1"`, []string{"9223372036854775807", "9223372036854775808", "0"}, ""},
		{reflect.TypeFor[int64](), `validate:"min=-5,max=5"`, []string{"5", "6", "-5", "-6"}, ""},
		{reflect.TypeFor[uint64](), "", []string{"18446744073709551615", "18446744073709551616", "-1", "-0", "1e19", "2e19"}, ""},
		{reflect.TypeFor[[]uint](), "", []string{"[18446744073709551615]", "[18446744073709551616]"}, ""},
		{reflect.TypeFor[*int](), "", []string{"9223372036854775808"}, ""},
		{reflect.TypeFor[big.Int](), "", []string{"1e30", "-12.5e999", "1.5e1", "1.5", "0e5", "123456789012345678901234567890e3", strings.Repeat("9", 999), "1e400"}, "At most 1000 digits."},
		{reflect.TypeFor[url.URL](), "", []string{`""`, `"a"`, `"a b"`, `"https://a b/"`, `"https://a/x y"`, `"/é"`, `"https://é.example/"`, `"%zz"`, `":"`, `"1:a"`, `"http://[::1"`, `"http://[::1]:x/"`,
			`"https://a/%20"`, `"a\\b"`, `"a<b>"`, `"\n"`, `"//h?q#f"`, `"a#b#c"`, `"mailto:a b"`, `"urn:a:b"`, `"http://a:99999/"`, `"{x}"`}, ""},
		{reflect.TypeFor[*url.URL](), "", []string{`"a b"`, `"https://a"`, `null`, `1`}, ""},
		{reflect.TypeFor[map[string]url.URL](), "", []string{`{"a":"a b"}`, `{"a":"a"}`, `{"a":""}`}, ""},
		{reflect.TypeFor[netip.Prefix](), "", []string{`"10.0.0.0/8"`}, ""},
		{reflect.TypeFor[[]byte](), "", []string{`""`, `"YQ=="`, `"YQ"`, `"YQ=\n="`, `"YR=="`, `"Y Q=="`, `"_-8="`, `"YWI="`, `"AAAA\r\n"`}, ""},
		{reflect.TypeFor[[3]byte](), "", []string{`[1,2,3]`, `[1,2]`, `[1,2,256]`, `"AQID"`}, ""},
		{reflect.TypeFor[json.Number](), "", []string{`1`, `1e400`, `-0`, `"1"`, `""`}, ""},
		{reflect.TypeFor[Null[float32]](), "", []string{`1e39`, `null`, `3.4028235e38`, `3.4028236e38`}, ""},
		{reflect.TypeFor[[2]float32](), "", []string{`[1e39,0]`, `[1,2]`}, ""},
		{reflect.TypeFor[[]*float32](), "", []string{`[1e39]`, `[1.5]`}, ""},
		{reflect.TypeFor[half](), `validate:"gt=0,lt=1"`, []string{`0`, `1e-50`, `0.99999999999`, `1`}, ""},
		{reflect.TypeFor[float32](), `validate:"max=0.1"`, []string{`0.1`, `0.10000000001`, `0.1000000015`}, ""},
		{reflect.TypeFor[float32](), `validate:"min=0.1"`, []string{`0.1`, `0.09999999999`}, ""},
		{reflect.TypeFor[float32](), `validate:"eq=0.1"`, []string{`0.1`, `0.10000000149011612`, `0.10`, `1e-1`}, ""},
		{reflect.TypeFor[float32](), `validate:"ne=0.1"`, []string{`0.1`, `0.10000000149011612`}, ""},
		{reflect.TypeFor[float32](), `jsonschema:"multipleOf=0.1"`, []string{`0.3`, `0.35`, `1e38`, `0.30000001`}, ""},
		{reflect.TypeFor[float32](), `jsonschema:"exclusiveMinimum=3e38"`, []string{`3e38`, `3.1e38`, `3.5e38`}, ""},
		{reflect.TypeFor[map[int8]float32](), "", []string{`{"1":1e39}`, `{"128":1}`, `{"1":1}`, `{"01":1}`, `{"-0":1}`, `{"1.0":1}`}, ""},
		{reflect.TypeFor[[]float64](), `validate:"unique"`, []string{"[1,1.5]", "[1,1.0]"}, "Items are compared as numbers of 64 bits."},
		{reflect.TypeFor[[]float32](), `validate:"unique"`, []string{"[1,1.5]"}, "Items are compared as numbers of 32 bits."},
	}
	for _, tt := range tests {
		typ := reflect.TypeOf(fieldOf(tt.typ, tt.tag))
		p, err := Compile(typ, &Options{Strict: true})
		if err != nil {
			t.Error(err)
			continue
		}
		raw, err := raw.Compile(p.JSON())
		if err != nil {
			t.Errorf("%s: %v", p.JSON(), err)
			continue
		}
		if !strings.Contains(string(p.JSON()), tt.says) {
			t.Errorf("%s %s: the schema does not say %q: %s", tt.typ, tt.tag, tt.says, p.JSON())
		}
		name := p.Fields()[0].Name
		for _, doc := range tt.docs {
			doc = fmt.Sprintf("{%q:%s}", name, doc)
			ours, theirs := p.Check([]byte(doc)), raw.Check([]byte(doc))
			if (ours == nil) != (theirs == nil) {
				t.Errorf("%s %s: %.80s: the decoder says %v, the schema %v", tt.typ, tt.tag, doc, ours, theirs)
			}
		}
	}
}

// What big.Int refuses, it refuses with words that are true.
func TestBigIntWords(t *testing.T) {
	p, err := Compile(reflect.TypeOf(fieldOf(reflect.TypeFor[big.Int](), "")), nil)
	if err != nil {
		t.Fatal(err)
	}
	name := p.Fields()[0].Name
	for _, text := range []string{"1e1000", "1" + strings.Repeat("0", 1000)} {
		err := p.Check([]byte(`{"` + name + `":` + text + `}`))
		if err == nil || !strings.Contains(err.Error(), "must be an integer of at most 1000 digits; got 1") {
			t.Errorf("%.20s: %v", text, err)
		}
	}
	for _, text := range []string{"1e999", "-" + strings.Repeat("9", 1000)} {
		if err := p.Check([]byte(`{"` + name + `":` + text + `}`)); err != nil {
			t.Errorf("%.20s: %v", text, err)
		}
	}
	dst := reflect.New(p.typ)
	if err := p.Decode(context.Background(), []byte(`{"`+name+`":-125e28}`), dst.Interface()); err != nil {
		t.Fatal(err)
	}
	if got := dst.Elem().Field(0).Addr().Interface().(*big.Int).String(); got != "-125"+strings.Repeat("0", 28) {
		t.Errorf("read as %s", got)
	}
}

// A bound that lies outside of the type is a mistake, wherever it is written.
func TestBoundsOutsideTheType(t *testing.T) {
	tests := []struct {
		typ  reflect.Type
		tag  string
		want string
	}{
		{reflect.TypeFor[int8](), `validate:"max=300"`, "every int8 satisfies max=300"},
		{reflect.TypeFor[int8](), `validate:"lt=128"`, "every int8 satisfies lt=128"},
		{reflect.TypeFor[int8](), `validate:"min=-129"`, "every int8 satisfies min=-129"},
		{reflect.TypeFor[int8](), `validate:"ne=200"`, "every int8 satisfies ne=200"},
		{reflect.TypeFor[uint8](), `validate:"max=256"`, "every uint8 satisfies max=256"},
		{reflect.TypeFor[uint16](), `validate:"ne=70000"`, "every uint16 satisfies ne=70000"},
		{reflect.TypeFor[float32](), `validate:"max=1e39"`, "every float32 satisfies max=1e39"},
		{reflect.TypeFor[float32](), `validate:"min=1e39"`, "no float32 can satisfy min=1e39"},
		{reflect.TypeFor[int8](), `jsonschema:"maximum=300"`, "every int8 satisfies maximum=300"},
		{reflect.TypeFor[[]int8](), `validate:"dive,max=300"`, "every int8 satisfies max=300"},
		{reflect.TypeFor[map[int8]bool](), `validate:"dive,keys,max=300,endkeys"`, "every int8 satisfies max=300"},
		{reflect.TypeFor[*uint8](), `validate:"max=300"`, "every uint8 satisfies max=300"},
		{reflect.TypeFor[int8](), `validate:"max=127,min=-128"`, ""},
		{reflect.TypeFor[uint8](), `validate:"min=0,max=255"`, ""},
	}
	for _, tt := range tests {
		_, err := Compile(reflect.TypeOf(fieldOf(tt.typ, tt.tag)), nil)
		if got := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: got %v, want %q", tt.typ, tt.tag, err, tt.want)
		}
	}
}

// A float32 has the bounds that its schema names: the decoder and the schema take the
// same numbers, and a result of any float32 is valid.
func TestBoundsOfFloat32(t *testing.T) {
	type args struct {
		F    float32            `json:"f,omitempty"`
		List []float32          `json:"list,omitempty"`
		Map  map[string]float32 `json:"map,omitempty"`
		Ptr  *float32           `json:"ptr"`
		Low  float32            `json:"low,omitempty" validate:"gt=0"`
		High float32            `json:"high,omitempty" validate:"max=1"`
		Enum float32            `json:"enum,omitempty" jsonschema:"enum=0.1"`
	}
	p := compile[args](t, nil)
	s, err := raw.Compile(p.JSON())
	if err != nil {
		t.Fatal(err)
	}
	const bounds = `{"type":"number","maximum":3.4028235e38,"minimum":-3.4028235e38}`
	if got := string(p.JSON()); strings.Count(got, bounds) != 4 || !strings.Contains(got, `"enum":{"type":"number","enum":[0.1]}`) {
		t.Errorf("the schema is %s", got)
	}
	for _, text := range []string{
		"0", "1", "-1.5", "1e-60", "3.4028234e38", "3.4028235e38", "3.40282350e+38", "3.4028235000000000001e38", "3.4028235677973366e38",
		"3.40282356e38", "3.4028236e38", "340282350000000000000000000000000000000", "340282350000000000000000000000000000001", "1e39", "1e308", "1e309", "1e399",
	} {
		for _, member := range []string{`"f":%s`, `"list":[%s]`, `"map":{"a":%s}`, `"ptr":%s`, `"low":%s`, `"high":%s`, `"enum":%s`} {
			for _, sign := range []string{"", "-"} {
				doc := []byte(`{` + strings.ReplaceAll(member, "%s", sign+text) + `}`)
				if byType, bySchema := p.Check(doc), s.Check(doc); (byType == nil) != (bySchema == nil) {
					t.Errorf("%s: the type says %v, the schema %v", doc, byType, bySchema)
				}
			}
		}
	}
	out := compile[[]float32](t, &Options{Output: true})
	text, err := jsonx.Append(nil, []float32{math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32})
	if err != nil || out.Check(text) != nil {
		t.Errorf("the result %s is not valid: %v, %v", text, err, out.Check(text))
	}
	if got := listed(t, p.Check([]byte(`{"f":1e39,"low":1e39,"high":-1e39}`))); !reflect.DeepEqual(got, []string{"/f maximum", "/low maximum", "/high minimum"}) {
		t.Errorf("got %q", got)
	}
}

// URLs as models write them are read as what they mean, and refused in strict mode.
func TestURLsOfModels(t *testing.T) {
	type args struct {
		U *url.URL `json:"u"`
	}
	lenientPlan, strictPlan := compile[args](t, nil), compile[args](t, &Options{Strict: true})
	for text, want := range map[string]string{
		"https://a/b c": "https://a/b%20c", "https://a/Köln?q=ü": "https://a/K%C3%B6ln?q=ü", "mailto:a@b": "mailto:a@b", "https://a/b%20c": "https://a/b%20c",
		"/a b": "/a%20b", "a<b>": "a%3Cb%3E", ":": "", "http://[::1": "", "https://a b/": "", "%zz": "",
	} {
		doc := []byte(fmt.Sprintf(`{"u":%q}`, text))
		var in args
		coerced, err := lenientPlan.report(doc, &in)
		if (err == nil) != (want != "") || err == nil && (in.U.String() != want || (len(coerced) > 0) != (strictPlan.Check(doc) != nil)) {
			t.Errorf("%s: %v, %v, coerced %q, strict %v", text, in.U, err, coerced, strictPlan.Check(doc))
		}
	}
}
