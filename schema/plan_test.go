package schema

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
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
