package jsonx

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// reference is what encoding/json writes for v, which it gets with an address: methods
// with pointer receivers count.
func reference(t *testing.T, v any) string {
	t.Helper()
	v = addressed(v)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatalf("encoding/json: %v", err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// addressed returns a pointer to a copy of v, or v if it is one.
func addressed(v any) any {
	typ := reflect.TypeOf(v)
	if typ.Kind() == reflect.Pointer {
		return v
	}
	p := reflect.New(typ)
	p.Elem().Set(reflect.ValueOf(v))
	return p.Interface()
}

func encode(t *testing.T, o EncodeOptions, v any) string {
	t.Helper()
	e, err := o.NewEncoder(reflect.TypeOf(v))
	if err != nil {
		t.Fatalf("NewEncoder: %v", err)
	}
	b, err := e.Append([]byte("x"), v)
	if err != nil {
		t.Fatalf("Append: %v", err)
	}
	return string(b[1:])
}

func TestEncoderMatchesEncodingJSON(t *testing.T) {
	for name, v := range sampleValues() {
		t.Run(name, func(t *testing.T) {
			if got, want := encode(t, EncodeOptions{NilAsNull: true}, v), reference(t, v); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if got, want := encode(t, EncodeOptions{NilAsNull: true}, []any{v}), reference(t, []any{addressed(v)}); got != want {
				t.Errorf("in an interface: got  %s\nwant %s", got, want)
			}
			p := reflect.New(reflect.TypeOf(v))
			p.Elem().Set(reflect.ValueOf(v))
			e, err := EncodeOptions{NilAsNull: true}.NewEncoder(reflect.TypeOf(v))
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.AppendPointer(nil, p.UnsafePointer())
			if want := reference(t, p.Interface()); err != nil || string(got) != want {
				t.Errorf("by pointer: got  %s, %v\nwant %s", got, err, want)
			}
			any1, err := EncodeOptions{NilAsNull: true}.NewEncoder(reflect.TypeFor[any]())
			if err != nil {
				t.Fatal(err)
			}
			got, err = any1.Append(nil, v)
			if want := reference(t, v); err != nil || string(got) != want {
				t.Errorf("as any: got  %s, %v\nwant %s", got, err, want)
			}
		})
	}
}

type pointerKey int

func (k *pointerKey) MarshalText() ([]byte, error) {
	text := []byte{byte('a' + *k)}
	*k = 25
	return text, nil
}

type stringKey string

func (k stringKey) MarshalText() ([]byte, error) { return []byte("<" + k + ">"), nil }

type changing struct{ N int }

func (c *changing) MarshalJSON() ([]byte, error) {
	c.N++
	return strconv.AppendInt(nil, int64(c.N), 10), nil
}

// table and single are held by an interface without a pointer to them.
type (
	table  map[string]int
	single struct{ p *int }
)

func (m *table) MarshalJSON() ([]byte, error)  { return strconv.AppendInt(nil, int64(len(*m)), 10), nil }
func (s *single) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(*s.p), 10), nil }

type holder[T any] struct {
	V T
	P *T
	*inlaid[T]
}
type inlaid[T any] struct{ E T }

// Values are written by the methods of their type wherever they are, and as the same
// text: with and without an address, in maps and behind interfaces. A method cannot
// change what others have.
func TestEncoderMethodsEverywhere(t *testing.T) {
	for name, tt := range map[string]struct {
		value any
		want  string
	}{
		"text of a pointer":  {pointerText{"a"}, `"*a"`},
		"JSON of a pointer":  {pointerJSON{"a"}, `[1,2,"a"]`},
		"text of a value":    {valueText{"a"}, `"<a>\ufffd"`},
		"big.Int":            {*big.NewInt(1 << 60), `1152921504606846976`},
		"big.Rat":            {*big.NewRat(1, 3), `"1/3"`},
		"big.Float":          {*big.NewFloat(1.5), `"1.5"`},
		"regexp":             {*regexp.MustCompile("^a+$"), `"^a+$"`},
		"time":               {time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), `"2026-01-02T03:04:05.000006Z"`},
		"duration":           {90 * time.Minute, `"1h30m0s"`},
		"address":            {netip.MustParseAddr("::1"), `"::1"`},
		"IP":                 {net.IPv4(192, 0, 2, 1), `"192.0.2.1"`},
		"URL":                {url.URL{Scheme: "https", Host: "example.com", Path: "/a b/ü", RawQuery: "q=1", Fragment: "f"}, `"https://example.com/a%20b/%C3%BC?q=1#f"`},
		"empty URL":          {url.URL{}, `""`},
		"opaque URL":         {url.URL{Scheme: "mailto", Opaque: "a@b"}, `"mailto:a@b"`},
		"changing":           {changing{1}, `2`},
		"map with methods":   {table{"a": 1}, `1`},
		"nil with methods":   {table(nil), `0`},
		"one pointer":        {single{new(7)}, `"7"`},
		"list":               {[]pointerText{{"a"}}, `["*a"]`},
		"array":              {[2]pointerJSON{{"a"}, {"b"}}, `[[1,2,"a"],[1,2,"b"]]`},
		"array in an array":  {[1][1]pointerText{{{"a"}}}, `[["*a"]]`},
		"map":                {map[string]pointerJSON{"m": {"n"}}, `{"m":[1,2,"n"]}`},
		"map of arrays":      {map[string][1]big.Int{"m": {*big.NewInt(7)}}, `{"m":[7]}`},
		"keys of a pointer":  {map[pointerKey]int{1: 2, 0: 3}, `{"a":3,"b":2}`},
		"keys that are text": {map[stringKey]int{"x": 1}, `{"<x>":1}`},
		"keys of a number":   {map[pointerKey]pointerText{2: {"v"}}, `{"c":"*v"}`},
		"struct":             {struct{ A, B any }{pointerText{"a"}, map[string]any{"x": url.URL{Path: "p"}}}, `{"A":"*a","B":{"x":"p"}}`},
		"generic":            {holder[big.Int]{V: *big.NewInt(1), P: big.NewInt(2), inlaid: &inlaid[big.Int]{*big.NewInt(3)}}, `{"V":1,"P":2,"E":3}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := reflect.New(reflect.TypeOf(tt.value))
			p.Elem().Set(reflect.ValueOf(tt.value))
			for _, v := range []struct {
				in   any
				want string
			}{
				{tt.value, tt.want}, {tt.value, tt.want}, {p.Interface(), tt.want},
				{map[string]any{"k": tt.value}, `{"k":` + tt.want + `}`}, {[]any{tt.value}, `[` + tt.want + `]`},
				{struct{ X any }{tt.value}, `{"X":` + tt.want + `}`},
			} {
				for _, typ := range []reflect.Type{reflect.TypeOf(v.in), reflect.TypeFor[any]()} {
					e, err := NewEncoder(typ)
					if err != nil {
						t.Fatal(err)
					}
					if got, err := e.Append(nil, v.in); err != nil || string(got) != v.want {
						t.Errorf("%T as %v: got %s, %v, want %s", v.in, typ, got, err, v.want)
					}
					if tt.want == "2" {
						*p.Interface().(*changing) = changing{1} // it has an address, and may change
					}
				}
			}
		})
	}
}

func TestEncoderNilCollections(t *testing.T) {
	type all struct {
		S []int
		M map[string]int
		A map[string]any
		B []byte
		P *[]int
		R json.RawMessage
		N []any
	}
	v := all{N: []any{[]string(nil), map[int]int(nil), []byte(nil)}}
	want := `{"S":[],"M":{},"A":{},"B":"","P":null,"R":null,"N":[[],{},""]}`
	if got := encode(t, EncodeOptions{}, v); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := encode(t, EncodeOptions{NilAsNull: true}, v), reference(t, v); got != want {
		t.Errorf("NilAsNull: got %s, want %s", got, want)
	}
}

type failing struct{ err error }

func (f failing) MarshalJSON() ([]byte, error) { return nil, f.err }
func (f failing) MarshalText() ([]byte, error) { return nil, f.err }

func TestEncoderErrors(t *testing.T) {
	type inner struct{ F float64 }
	errOwn := errors.New("own failure")
	cycle := map[string]any{}
	cycle["a/b"] = cycle
	self := &tree{}
	self.Next = self
	slice := make([]any, 1)
	slice[0] = slice
	type P *P
	var p P
	p = &p
	tests := []struct {
		name  string
		value any
		want  string
	}{
		{"NaN", map[string][]inner{"x~y": {{1}, {math.NaN()}}}, "cannot encode /x~0y/1/F: NaN"},
		{"infinity", math.Inf(-1), "cannot encode the value: NaN and inf"},
		{"float32 infinity", float32(math.Inf(1)), "NaN and inf"},
		{"marshaler", []any{failing{errOwn}}, "cannot encode /0: MarshalJSON of jsonx.failing: own failure"},
		{"raw not JSON", []json.RawMessage{json.RawMessage("{]")}, "/0: unexpected ']'"},
		{"raw empty", json.RawMessage{}, "unexpected end of JSON"},
		{"raw trailing", json.RawMessage("1 2"), "after the value"},
		{"raw duplicate", json.RawMessage(`{"a":1,"a":2}`), `duplicate member "a" at byte 7`},
		{"raw surrogate", json.RawMessage(`"\ud800"`), "lone surrogate"},
		{"number", json.Number("1e"), `json.Number "1e" is not a number`},
		{"number with space", json.Number(" 1"), "is not a number"},
		{"time", time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC), "year"},
		{"map cycle", cycle, "/a~1b/a~1b"},
		{"pointer cycle", self, "nested too deep"},
		{"slice cycle", slice, "nested too deep"},
		{"pointer to itself", p, "nested too deep"},
		{"unsupported behind any", []any{1, make(chan int)}, "/1: chan int: type chan int has no JSON form"},
		{"map key", map[*failing]int{{errOwn}: 1}, "own failure"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := NewEncoder(reflect.TypeOf(tt.value))
			if err != nil {
				t.Fatal(err)
			}
			out, err := e.Append([]byte("kept"), tt.value)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if string(out) != "kept" {
				t.Errorf("dst became %.80q", out)
			}
			if strings.Contains(tt.want, "own failure") && !errors.Is(err, errOwn) {
				t.Errorf("%v does not wrap the cause", err)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestNewEncoderRefusesTypes(t *testing.T) {
	tests := []struct {
		value any
		want  string
	}{
		{struct{ A []struct{ C chan int } }{}, ".A[].C: type chan int has no JSON form"},
		{struct{ F func() }{}, ".F: type func() has no"},
		{map[string]complex64{}, "{}: type complex64 has no"},
		{map[float64]int{}, "map keys of type float64 have no JSON form"},
		{struct{ P **unsafe.Pointer }{}, ".P: type unsafe.Pointer has no"},
		{nil, "no type to encode"},
	}
	for _, tt := range tests {
		_, err := NewEncoder(reflect.TypeOf(tt.value))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%T: error %v, want one with %q", tt.value, err, tt.want)
		}
	}
}

func TestAppendRefusesOtherTypes(t *testing.T) {
	e, err := NewEncoder(reflect.TypeFor[int]())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{nil, "x", int8(1), pointerTo("x")} {
		if _, err := e.Append(nil, v); err == nil || !strings.Contains(err.Error(), "the encoder is for int") {
			t.Errorf("%T: error %v", v, err)
		}
	}
	if got, err := e.Append(nil, pointerTo(5)); err != nil || string(got) != "5" {
		t.Errorf("pointer: %s, %v", got, err)
	}
	for _, v := range []any{(*int)(nil)} {
		if got, err := e.Append(nil, v); err != nil || string(got) != "null" {
			t.Errorf("nil pointer: %s, %v", got, err)
		}
	}
}

func TestEncoderDepth(t *testing.T) {
	list := &tree{}
	for range 900 {
		list = &tree{Next: list}
	}
	if got, want := encode(t, EncodeOptions{}, list), reference(t, list); got != want {
		t.Errorf("a list of 900 differs from encoding/json")
	}
	e, err := EncodeOptions{MaxDepth: 3}.NewEncoder(reflect.TypeFor[any]())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Append(nil, [][][]int{{{1}}}); err != nil {
		t.Errorf("3 levels of 3: %v", err)
	}
	if _, err := e.Append(nil, [][][][]int{{{{1}}}}); !errors.Is(err, errTooDeep) {
		t.Errorf("4 levels of 3: error %v", err)
	}
}

func TestEncoderConcurrent(t *testing.T) {
	e, err := EncodeOptions{NilAsNull: true}.NewEncoder(reflect.TypeFor[any]())
	if err != nil {
		t.Fatal(err)
	}
	values, done := sampleValues(), make(chan string)
	want := map[string]string{}
	for name, v := range values {
		want[name] = reference(t, v)
	}
	for range 4 {
		go func() {
			var failed string
			for name, v := range values {
				if got, err := e.Append(nil, v); err != nil || string(got) != want[name] {
					failed = name
				}
			}
			done <- failed
		}()
	}
	for range 4 {
		if failed := <-done; failed != "" {
			t.Errorf("%s differs when encoded concurrently", failed)
		}
	}
}
