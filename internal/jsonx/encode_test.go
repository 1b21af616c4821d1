package jsonx

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// reference is what encoding/json writes for v.
func reference(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatalf("encoding/json: %v", err)
	}
	return strings.TrimSuffix(b.String(), "\n")
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
			boxed := []any{v}
			if got, want := encode(t, EncodeOptions{NilAsNull: true}, boxed), reference(t, boxed); got != want {
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
