package schema

import (
	"context"
	"database/sql"
	"encoding/json"
	"math"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/raw"
)

func TestDefaults(t *testing.T) {
	type nested struct {
		X int `json:"x" jsonschema:"default=7"`
	}
	type args struct {
		N    int            `json:"n" validate:"max=9" jsonschema:"default=3"`
		S    string         `json:"s" validate:"oneof=a b" jsonschema:"default=b"`
		L    []int          `json:"l" jsonschema:"default=[1,2]"`
		M    map[string]int `json:"m" jsonschema:"default={\"a\":1}"`
		P    *int           `json:"p" jsonschema:"default=4"`
		D    time.Duration  `json:"d" jsonschema:"default=30s"`
		In   nested         `json:"in,omitempty"`
		Full nested         `json:"full" jsonschema:"default={}"`
	}
	p := compile[args](t, nil)
	var a, b args
	for _, at := range []*args{&a, &b} {
		if err := p.Decode(context.Background(), nil, at); err != nil {
			t.Fatal(err)
		}
	}
	four := 4
	want := args{N: 3, S: "b", L: []int{1, 2}, M: map[string]int{"a": 1}, P: &four, D: 30 * time.Second, Full: nested{7}}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("defaults are %+v, want %+v", a, want)
	}
	a.L[0], a.M["a"], *a.P = 9, 9, 9
	if !reflect.DeepEqual(b, want) {
		t.Errorf("two calls share memory: %+v", b)
	}
	if err := p.Decode(context.Background(), []byte(`{"n":null,"in":{}}`), &a); err != nil || a.N != 3 || a.In.X != 7 {
		t.Errorf("null for a default gives %+v, %v", a, err)
	}
}

type vowel string

func (vowel) Enum() []vowel { return []vowel{"a", "e", "i"} }

type extended struct {
	N int `json:"n"`
}

func (*extended) JSONSchemaExtend(s *jsonschema.Schema) {
	if p, ok := s.Properties.Get("n"); ok {
		p.MultipleOf = "3"
	}
	s.Description = "Multiples."
}

func TestHooks(t *testing.T) {
	type args struct {
		V vowel     `json:"v,omitempty"`
		P *pointed  `json:"p"`
		Q pointed   `json:"q,omitempty" jsonschema_description:"one word"`
		E *extended `json:"e"`
	}
	p := compile[args](t, nil)
	for _, part := range []string{`"v":{"type":"string","enum":["a","e","i"]}`, `"p":{"type":"string","pattern":"^[a-z]+$"}`,
		`"q":{"type":"string","description":"one word","pattern":"^[a-z]+$"}`, `"multipleOf":3`, `"description":"Multiples."`} {
		if !strings.Contains(string(p.JSON()), part) {
			t.Errorf("schema lacks %s: %s", part, p.JSON())
		}
	}
	tests := []struct {
		input  string
		issues []string
	}{
		{`{"v":"e","p":"abc","e":{"n":6}}`, nil},
		{`{"v":"x"}`, []string{"/v enum"}},
		{`{"p":"ABC"}`, []string{"/p pattern"}},
		{`{"e":{"n":5}}`, []string{"/e/n multipleOf"}},
	}
	for _, c := range tests {
		if got := listed(t, p.Check([]byte(c.input))); !reflect.DeepEqual(got, c.issues) {
			t.Errorf("%s: issues are %q, want %q", c.input, got, c.issues)
		}
	}
}

func TestNull(t *testing.T) {
	type args struct {
		S Null[string] `json:"s,omitzero" validate:"min=2"`
	}
	p := compile[args](t, nil)
	tests := []struct {
		input string
		want  Null[string]
	}{
		{`{}`, Null[string]{}},
		{`{"s":null}`, Null[string]{Set: true}},
		{`{"s":"xy"}`, NullOf("xy")},
	}
	for _, c := range tests {
		var in args
		if err := p.Decode(context.Background(), []byte(c.input), &in); err != nil || in.S != c.want {
			t.Errorf("%s gives %+v, %v", c.input, in.S, err)
		}
		if back, err := json.Marshal(in); err != nil || string(back) != c.input {
			t.Errorf("%s is written as %s, %v", c.input, back, err)
		}
	}
	if got := listed(t, p.Check([]byte(`{"s":"x"}`))); !reflect.DeepEqual(got, []string{"/s minLength"}) {
		t.Errorf("issues are %q", got)
	}
}

func TestFieldsAndHeaders(t *testing.T) {
	type where struct {
		Region string `json:"region" mcp:"header=Region"`
	}
	type args struct {
		Mode  string `json:"mode" validate:"oneof=fast slow" jsonschema:"default=fast,title=Mode,description=How"`
		Level int    `json:"level" jsonschema:"enum=1,enum=2"`
		Key   string `json:"key,omitempty" mcp:"secret"`
		Where where  `json:"where"`
		N     int    `json:"n,omitempty" mcp:"header=N"`
	}
	p := compile[args](t, nil)
	want := []Field{
		{Name: "mode", GoName: "Mode", Description: "How", Title: "Mode", Type: "string", Enum: []string{"fast", "slow"}, Default: "fast"},
		{Name: "level", GoName: "Level", Required: true, Type: "integer", Enum: []string{"1", "2"}},
		{Name: "key", GoName: "Key", Type: "string", Secret: true},
		{Name: "where", GoName: "Where", Required: true, Type: "object"},
		{Name: "n", GoName: "N", Type: "integer", Header: "N"},
	}
	if got := p.Fields(); !reflect.DeepEqual(got, want) {
		t.Errorf("fields are\n%+v\nwant\n%+v", got, want)
	}
	known := facts.Plan{Headers: []facts.Header{{Name: "Region", Path: []string{"where", "region"}}, {Name: "N", Path: []string{"n"}}}, Constrained: true}
	got := p.Internal(facts.Private{})
	if got.Narrow = nil; !reflect.DeepEqual(got, known) {
		t.Errorf("got %+v, want %+v", got, known)
	}
	if got := listed(t, p.Check([]byte(`{"level":1,"where":{"region":"eu"},"n":9007199254740993}`))); !reflect.DeepEqual(got, []string{"/n maximum"}) {
		t.Errorf("issues are %q", got)
	}
}

func TestOutput(t *testing.T) {
	type result struct {
		N    int           `json:"n"`
		P    *int          `json:"p"`
		Q    *int          `json:"q,omitempty"`
		Mail string        `json:"mail" validate:"omitempty,email"`
		D    time.Duration `json:"d"`
		L    []*int        `json:"l"`
	}
	p := compile[result](t, &Options{Output: true})
	for _, c := range []struct {
		value  result
		issues []string
	}{
		{result{L: []*int{nil}}, nil},
		{result{L: []*int{}, Mail: "x"}, []string{"/mail email"}},
	} {
		text, err := jsonx.Append(nil, c.value)
		if err != nil {
			t.Fatal(err)
		}
		if got := listed(t, p.Check(text)); !reflect.DeepEqual(got, c.issues) {
			t.Errorf("%s: issues are %q, want %q\n%s", text, got, c.issues, p.JSON())
		}
	}
	if !p.constrained {
		t.Error("a result with a rule is not constrained")
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[[]int](), reflect.TypeFor[string](), reflect.TypeFor[base](), reflect.TypeFor[tree]()} {
		if _, err := Compile(typ, &Options{Output: true}); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
	}
	if compile[listRequired](t, &Options{Output: true}).constrained {
		t.Error("a result without rules is constrained")
	}
}

type (
	angled        struct{ s string } // with its methods on the pointer
	places[T any] struct {
		First  T                         `json:"first"`
		Ptr    *T                        `json:"ptr"`
		Opt    *T                        `json:"opt,omitempty"`
		List   []T                       `json:"list"`
		Array  [2]T                      `json:"array"`
		Map    map[string]T              `json:"map"`
		Nested map[string][]map[string]T `json:"nested"`
	}
	spread[T any] struct {
		places[T]
		*Onion
		Any any `json:"any"`
	}
	Onion struct {
		Outer *Onion `json:"outer,omitempty"`
	}
)

func (p *angled) MarshalText() ([]byte, error)    { return []byte("<" + p.s + ">"), nil }
func (p *angled) UnmarshalText(text []byte) error { p.s = string(text); return nil }

// agrees checks that results which hold v are what their schema says, wherever v is, and
// that v has the same text behind an interface.
func agrees[T any](v T) func(t *testing.T) {
	return func(t *testing.T) {
		result := spread[T]{places: places[T]{First: v, Ptr: &v, List: []T{v}, Array: [2]T{v, v}, Map: map[string]T{"k": v},
			Nested: map[string][]map[string]T{"a": {{"b": v}, nil}}}, Any: v}
		for _, in := range []any{v, result, places[T]{First: v, Array: [2]T{v, v}}, map[string]T{"k": v}, []T{v}, [1]T{v}, struct{ X T }{v}, []places[T]{result.places}} {
			if value := reflect.ValueOf(in); !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil() {
				continue
			}
			p, err := Compile(reflect.TypeOf(in), &Options{Output: true})
			if err != nil {
				t.Fatal(err)
			}
			s, err := raw.Compile(p.JSON())
			if err != nil {
				t.Fatal(err)
			}
			text, err := jsonx.Append(nil, in)
			if err != nil || s.Check(text) != nil || p.Check(text) != nil {
				t.Errorf("%T: the result %s does not match %s: %v, %v, %v", in, text, p.JSON(), err, s.Check(text), p.Check(text))
			}
		}
		typed, err1 := jsonx.Append(nil, &v)
		boxed, err2 := jsonx.Append(nil, map[string]any{"k": any(v), "l": []any{v}})
		if want := `{"k":` + string(typed) + `,"l":[` + string(typed) + `]}`; err1 != nil || err2 != nil || string(boxed) != want {
			t.Errorf("%T behind an interface: %s, %v, %v, want %s", v, boxed, err1, err2, want)
		}
	}
}

func TestResultsAgree(t *testing.T) {
	for name, check := range map[string]func(*testing.T){
		"big.Int": agrees(*big.NewInt(5)), "*big.Int": agrees(big.NewInt(-5)), "big.Rat": agrees(*big.NewRat(1, 3)), "big.Float": agrees(*big.NewFloat(0.5)),
		"url.URL": agrees(url.URL{Scheme: "https", Host: "a", Path: "/b c"}), "*url.URL": agrees(&url.URL{Path: "ü"}),
		"time.Time": agrees(time.Now()), "time.Duration": agrees(time.Minute), "time.Month": agrees(time.May), "date": agrees(civil.DateOf(time.Now())),
		"netip.Addr": agrees(netip.MustParseAddr("::1")), "netip.Prefix": agrees(netip.MustParsePrefix("10.0.0.0/8")), "netip.AddrPort": agrees(netip.MustParseAddrPort("[::1]:80")),
		"net.IP": agrees(net.IPv4(1, 2, 3, 4)), "net.IPNet": agrees(net.IPNet{IP: net.IPv4zero, Mask: net.IPMask{255, 0, 0, 0}}), "regexp": agrees(*regexp.MustCompile("a+")),
		"angled": agrees(angled{"a"}), "*angled": agrees(&angled{"b"}), "enum by text": agrees(shared(1)), "enum of text": agrees(tint("h")), "enum of an array": agrees(couple{1, 1}),
		"keys by text": agrees(map[shared]int{1: 2}), "keys of text": agrees(map[tint]int{"h": 2}), "keys of a struct": agrees(map[corner]bool{{}: true}),
		"keys of numbers": agrees(map[int8]float32{-1: 1.5}), "keys of durations": agrees(map[time.Duration]int{time.Hour: 1}), "keys of addresses": agrees(map[netip.Addr]any{netip.IPv4Unspecified(): nil}),
		"keys of times": agrees(map[time.Time]int{time.Now(): 1}), "keys of dates": agrees(map[civil.Date]int{civil.DateOf(time.Now()): 1}),
		"json.Number": agrees(json.Number("1e400")), "json.RawMessage": agrees(json.RawMessage(`{"a":[1]}`)), "bytes": agrees([]byte("a\xff")), "byte array": agrees([2]byte{1, 2}),
		"int64": agrees(int64(math.MinInt64)), "uint64": agrees(uint64(math.MaxUint64)), "float32": agrees(float32(math.MaxFloat32)), "float64": agrees(math.SmallestNonzeroFloat64),
		"text": agrees("\xff\u2028\x00😀"), "empty struct": agrees(struct{}{}), "interface": agrees[any](nil), "list in an interface": agrees[any]([]any{1, "a", nil, 1.5}),
		"nil map": agrees(map[string]int(nil)), "nil list": agrees([][]string(nil)), "nil pointer": agrees((*int)(nil)), "nil text": agrees((*angled)(nil)),
		"Null": agrees(Null[big.Int]{Value: *big.NewInt(1), Valid: true}), "null": agrees(Null[url.URL]{}), "Null in a pointer": agrees(&Null[shared]{Value: 2, Valid: true}),
		"recursive": agrees(Onion{&Onion{&Onion{}}}), "generic": agrees(places[places[int]]{}), "sql.Null": agrees(sql.Null[string]{V: "a", Valid: true}),
	} {
		t.Run(name, check)
	}
}

func TestInline(t *testing.T) {
	type args struct {
		N    int                        `json:"n"`
		Rest map[string]json.RawMessage `json:",inline"`
	}
	p := compile[args](t, nil)
	var in args
	if err := p.Decode(context.Background(), []byte(`{"x": [1] ,"n":1,"y":null}`), &in); err != nil || string(in.Rest["x"]) != "[1]" || string(in.Rest["y"]) != "null" {
		t.Errorf("rest is %q, %v", in.Rest, err)
	}
	if got := listed(t, p.Check([]byte(`{"n":1,"x":1,"x":2}`))); !reflect.DeepEqual(got, []string{"/x duplicate"}) {
		t.Errorf("issues are %q", got)
	}
}

func TestQuotedAndUnits(t *testing.T) {
	type args struct {
		N int           `json:"n,string,omitempty" validate:"min=3"`
		F float64       `json:"f,string,omitempty"`
		B bool          `json:"b,string,omitempty"`
		S time.Duration `json:"s,omitempty" mcp:"unit=s" validate:"max=1m"`
		I time.Duration `json:"i,omitempty" jsonschema:"format=duration"`
	}
	p := compile[args](t, &Options{Strict: true})
	var in args
	if err := p.Decode(context.Background(), []byte(`{"n":"4","f":"1.5","b":"true","s":60,"i":"PT1H"}`), &in); err != nil || in != (args{4, 1.5, true, time.Minute, time.Hour}) {
		t.Errorf("decoded %+v, %v", in, err)
	}
	if got := listed(t, p.Check([]byte(`{"n":4,"f":"x","b":"TRUE","s":61,"i":"1h"}`))); !reflect.DeepEqual(got, []string{"/n type", "/f type", "/b type", "/s maximum", "/i format"}) {
		t.Errorf("issues are %q", got)
	}
}

// TestDecodeKeepsNothing checks that results do not refer to the input, which
// callers use again.
func TestDecodeKeepsNothing(t *testing.T) {
	type args struct {
		S string            `json:"s"`
		A any               `json:"a"`
		M map[string]string `json:"m"`
		R json.RawMessage   `json:"r"`
		N json.Number       `json:"n"`
		B []byte            `json:"b"`
	}
	p := compile[args](t, nil)
	data := []byte(`{"s":"text","a":{"k":["v",12]},"m":{"key":"value"},"r":{"x":1},"n":12.5,"b":"aGVsbG8="}`)
	var in args
	if err := p.Decode(context.Background(), data, &in); err != nil {
		t.Fatal(err)
	}
	before, _ := json.Marshal(in)
	for i := range data {
		data[i] = 'X'
	}
	if after, _ := json.Marshal(in); string(after) != string(before) {
		t.Errorf("the value changed with the input: %s, was %s", after, before)
	}
}

func TestDecodeDestination(t *testing.T) {
	p := compile[intPlain](t, nil)
	for _, dst := range []any{nil, intPlain{}, (*intPlain)(nil), new(string)} {
		if err := p.Decode(context.Background(), []byte(`{"n":1}`), dst); err == nil {
			t.Errorf("Decode into %T gives no error", dst)
		}
	}
	in := intPlain{N: 9}
	if err := compile[limitOptional](t, nil).Decode(context.Background(), nil, &limitOptional{L: 4}); err != nil {
		t.Error(err)
	}
	if err := p.Decode(context.Background(), []byte(`{"n":1}`), &in); err != nil || in.N != 1 {
		t.Errorf("decoded %+v, %v", in, err)
	}
}

func TestConcurrentUse(t *testing.T) {
	p := compile[searchArgs](t, nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				var in searchArgs
				if err := p.Decode(context.Background(), []byte(searchJSON), &in); err != nil || in.Filter.Lang != "en" {
					t.Errorf("decoded %+v, %v", in, err)
					return
				}
				if err := p.Check([]byte(`{"tags":[""]}`)); err == nil || len(err.(*Error).Issues) != 6 {
					t.Errorf("goroutine %d: error is %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestWarnings(t *testing.T) {
	type args struct {
		A string `json:"größe"`
		B any    `json:"b"`
	}
	if got := compile[args](t, nil).Warnings(); len(got) != 2 {
		t.Errorf("warnings are %v", got)
	}
}

// Tags of other packages that mean what one here does are no error, as others may read them.
func TestForeignTags(t *testing.T) {
	type args struct {
		A string `json:"a" description:"what it is"`
		B string `json:"b" desc:"what it is"`
		C string `json:"c" doc:"what it is"`
		D string `json:"d" help:"what it is"`
		E string `json:"e" binding:"required,max=5"`
		F string `json:"f" description:"read by others" jsonschema_description:"what it is"`
		G string `json:"g" doc:"read by others" jsonschema:"description=what it is"`
		H string `json:"h" binding:"required" validate:"required"`
		I string `json:"i" yaml:"i" form:"i" default:"x" example:"y"`
		J string `json:"-" description:"no member"`
	}
	var got []string
	for _, p := range compile[args](t, nil).Warnings() {
		got = append(got, p.JSONName+": "+p.Fix)
	}
	want := []string{`a: write jsonschema_description:"what it is"`, `b: write jsonschema_description:"what it is"`, `c: write jsonschema_description:"what it is"`,
		`d: write jsonschema_description:"what it is"`, `e: write validate:"required,max=5"`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// A type that has the Enum method of what it embeds has no enumeration, and is warned of.
func TestEnumOfEmbedded(t *testing.T) {
	type args struct {
		Level wrapped `json:"level"`
	}
	got := compile[args](t, nil).Warnings()
	if len(got) != 1 || !strings.Contains(got[0].String(), "method Enum of schema.wrapped lists values of schema.bright and is not used") {
		t.Errorf("warnings are %v", got)
	}
	type direct struct {
		Level bright `json:"level"`
	}
	if got := compile[direct](t, nil).Warnings(); len(got) > 0 {
		t.Errorf("warnings are %v", got)
	}
}

// bright is an enumeration, and wrapped has its methods.
type bright string

func (bright) Enum() []bright                 { return []bright{"low", "high"} }
func (b bright) MarshalText() ([]byte, error) { return []byte(b), nil }
func (b *bright) UnmarshalText(text []byte) error {
	*b = bright(text)
	return nil
}

type wrapped struct{ bright }

func TestStrictIsTheLenientDefault(t *testing.T) {
	// What coercion makes of a document must be valid without coercion.
	strictPlan, lenientPlan := compile[searchArgs](t, &Options{Strict: true}), compile[searchArgs](t, nil)
	doc := []byte(`{"query":5,"limit":"25","sort":" asc ","tags":"[\"a\"]","since":"2026-01-31","filter":"{\"lang\":\"en\",\"score\":\"0.5\",\"strict\":\"TRUE\"}"}`)
	var in searchArgs
	if err := lenientPlan.Decode(context.Background(), doc, &in); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := strictPlan.Check(text); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	if err := strictPlan.Check(doc); err == nil || len(err.(*Error).Issues) != 5 {
		t.Errorf("strict mode takes %s: %v", doc, err)
	}
}
