package jsonx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// generator makes random types and values.
type generator struct{ *rand.Rand }

var leafTypes = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](),
	reflect.TypeFor[uint32](), reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64](),
	reflect.TypeFor[string](), reflect.TypeFor[string](), reflect.TypeFor[any](), reflect.TypeFor[[]byte](),
	reflect.TypeFor[json.Number](), reflect.TypeFor[json.RawMessage](),
	reflect.TypeFor[*pointerText](), reflect.TypeFor[valueJSON](), reflect.TypeFor[zeroer](), reflect.TypeFor[intText](),
}

var keyTypes = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[int16](), reflect.TypeFor[uint](), reflect.TypeFor[textKey](), reflect.TypeFor[myString](),
}

var tagOptions = []string{"", "", ",omitempty", ",omitzero", ",string", ",omitempty,string", ",omitzero,omitempty"}

func (g generator) typ(depth int) reflect.Type {
	if depth == 0 {
		return leafTypes[g.IntN(len(leafTypes))]
	}
	switch g.IntN(6) {
	case 0:
		return reflect.SliceOf(g.typ(depth - 1))
	case 1:
		return reflect.ArrayOf(g.IntN(3), g.typ(depth-1))
	case 2:
		return reflect.PointerTo(g.typ(depth - 1))
	case 3:
		return reflect.MapOf(keyTypes[g.IntN(len(keyTypes))], g.typ(depth-1))
	}
	fields := make([]reflect.StructField, g.IntN(5))
	for i := range fields {
		name := []string{"", "", fmt.Sprint("n", i), "-", "same", "é<&"}[g.IntN(6)]
		fields[i] = reflect.StructField{
			Name: fmt.Sprint("F", i),
			Type: g.typ(g.IntN(depth)),
			Tag:  reflect.StructTag(fmt.Sprintf("json:%q", name+tagOptions[g.IntN(len(tagOptions))])),
		}
	}
	return reflect.StructOf(fields)
}

func (g generator) text() string {
	pieces := []string{"a", "plain text ", "\"", "\\", "\n", "\x00", "\x7f", "<&>", "é", "\u2028", "\U0001f600", "\xff", "\xe2\x80", "\ufffd"}
	var b strings.Builder
	for range g.IntN(12) {
		b.WriteString(pieces[g.IntN(len(pieces))])
	}
	return b.String()
}

func (g generator) fill(v reflect.Value) {
	switch v.Type() {
	case numberType:
		v.SetString([]string{"", "0", "-1.5e+7", "12345678901234567890"}[g.IntN(4)])
		return
	case rawType:
		v.SetBytes([][]byte{nil, []byte(" {\"a\" : [ ]} "), []byte("\"x \\\" y\"")}[g.IntN(3)])
		return
	case reflect.TypeFor[valueJSON]():
		v.Field(0).SetString("x") // other texts would need escaping by the method
		return
	case reflect.TypeFor[textKey]():
		v.Field(0).SetInt(g.Int64N(20))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(g.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int64:
		v.SetInt([]int64{0, 1, -1, g.Int64()}[g.IntN(4)])
		if v.Type() == reflect.TypeFor[intText]() {
			v.SetInt(g.Int64N(20))
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint([]uint64{0, 1, g.Uint64()}[g.IntN(3)])
	case reflect.Float32:
		if f := math.Float32frombits(g.Uint32()); f-f == 0 {
			v.SetFloat(float64(f))
		}
	case reflect.Float64:
		if f := math.Float64frombits(g.Uint64()); f-f == 0 && g.IntN(3) > 0 {
			v.SetFloat(f)
		} else {
			v.SetFloat(float64(g.IntN(2000)-1000) / 8)
		}
	case reflect.String:
		v.SetString(g.text())
	case reflect.Interface:
		if g.IntN(4) > 0 {
			inner := reflect.New(g.typ(g.IntN(2))).Elem()
			g.fill(inner)
			v.Set(inner)
		}
	case reflect.Pointer:
		if g.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			g.fill(v.Elem())
		}
	case reflect.Slice:
		if g.IntN(3) > 0 {
			v.Set(reflect.MakeSlice(v.Type(), g.IntN(3), 3))
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			g.fill(v.Index(i))
		}
	case reflect.Map:
		if g.IntN(3) > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range g.IntN(4) {
				key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				g.fill(key)
				g.fill(elem)
				v.SetMapIndex(key, elem)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				g.fill(v.Field(i))
			}
		}
	}
}

func TestEncoderOnRandomTypes(t *testing.T) {
	for seed := range uint64(1500) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		typ := g.typ(1 + int(seed%4))
		e, err := EncodeOptions{NilAsNull: true}.NewEncoder(typ)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for range 4 {
			p := reflect.New(typ)
			g.fill(p.Elem())
			for _, v := range []any{p.Interface(), p.Elem().Interface()} {
				got, err := e.Append(nil, v)
				if want := reference(t, v); err != nil || string(got) != want {
					t.Fatalf("seed %d, %T: %v\ngot  %s\nwant %s", seed, v, err, got, want)
				}
				if bytes.IndexByte(got, '\n') >= 0 {
					t.Fatalf("seed %d: more than one line: %s", seed, got)
				}
			}
		}
	}
}

// skips reports whether Skip takes the whole text.
func (s Scanner) skips() bool {
	_, err := s.Skip()
	return err == nil && s.End() == nil
}

var escapePattern = regexp.MustCompile(`\\(?:u([0-9a-fA-F]{4})|.)`)

// loneSurrogate finds \u escapes of halves of a pair in valid JSON.
func loneSurrogate(b []byte) bool {
	high, end := false, 0
	for _, m := range escapePattern.FindAllSubmatchIndex(b, -1) {
		isLow := false
		isHigh := false
		if m[2] >= 0 {
			c, d := b[m[2]]|0x20, b[m[2]+1]|0x20
			isHigh = c == 'd' && strings.IndexByte("89ab", d) >= 0
			isLow = c == 'd' && strings.IndexByte("cdef", d) >= 0
		}
		paired := high && m[0] == end
		if high && !(paired && isLow) || isLow && !paired {
			return true
		}
		high, end = isHigh, m[1]
	}
	return high
}

// duplicateOrDeep walks valid JSON with the decoder of encoding/json.
func duplicateOrDeep(b []byte) bool {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	depth := 0
	var value func() bool
	value = func() bool {
		token, _ := d.Token()
		delim, _ := token.(json.Delim)
		if delim == 0 {
			return false
		}
		if depth++; depth > DefaultMaxDepth {
			return true
		}
		names := map[string]bool{}
		for d.More() {
			if delim == '{' {
				token, _ := d.Token()
				name := token.(string)
				if names[name] {
					return true
				}
				names[name] = true
			}
			if value() {
				return true
			}
		}
		d.Token()
		depth--
		return false
	}
	return value()
}

// checkSkip compares Scanner.Skip with what encoding/json finds valid.
func checkSkip(t *testing.T, b []byte) {
	t.Helper()
	want := json.Valid(b) && utf8.Valid(b) && !duplicateOrDeep(b)
	s := Scanner{Buf: b}
	text, err := s.Skip()
	if err == nil {
		err = s.End()
	}
	if (err == nil) != want {
		t.Fatalf("%q: error %v, want accepted: %v", b, err, want)
	}
	out, compactErr := Compact([]byte("x"), b)
	if (compactErr == nil) != want {
		t.Fatalf("%q: Compact says %v", b, compactErr)
	}
	if !want {
		return
	}
	if s.Depth() != 0 || len(s.names) != 0 {
		t.Fatalf("%q: depth %d and names %q are left", b, s.Depth(), s.names)
	}
	if !bytes.Equal(text, bytes.Trim(b, " \t\r\n")) {
		t.Fatalf("%q: text %q", b, text)
	}
	var compact bytes.Buffer
	if strict := (Scanner{Buf: b, Strict: true}).skips(); strict == loneSurrogate(b) {
		t.Fatalf("%q: accepted for writing: %v", b, strict)
	}
	if loneSurrogate(b) { // it means the same to encoding/json, and is not written again
		var got, want any
		if json.Unmarshal(out[1:], &got) != nil || json.Unmarshal(b, &want) != nil || !reflect.DeepEqual(got, want) || loneSurrogate(out[1:]) {
			t.Fatalf("%q: Compact gives %q", b, out[1:])
		}
		return
	}
	if err := json.Compact(&compact, b); err != nil || string(out[1:]) != compact.String() {
		t.Fatalf("%q: Compact gives %q, want %q", b, out[1:], compact.Bytes())
	}
}

var skipSeeds = []string{
	`{"a":{"\u0062":[1,-2.5e+3,true,false,null,{"c":"\ud83d\ude00"}]},"b":"é\n\"\\"}`, ` [ { } , [ ] , "" ] `,
	`{"a":1,"\u0061":2}`, `{"\"":{"\"":1,"\\":{"\"":1}},"\\":2}`, `"\ud800"`, `"\udc00\ud800"`, "\"\xff\"", `01`, `-`, `1.`, `1e`, `.5`,
	`nul`, `[1,]`, `{"a":1,}`, `{"a"}`, "\"\x01\"", `"\x"`, `"\u12g4"`, strings.Repeat("[", 64) + strings.Repeat("]", 64),
	strings.Repeat("[", 65) + strings.Repeat("]", 65), `[1]x`, "\x00", "\ufeff1", `"\`, `"\u`,
}

func TestSkipAcceptsWhatJSONDoes(t *testing.T) {
	for _, seed := range skipSeeds {
		checkSkip(t, []byte(seed))
	}
	g := generator{rand.New(rand.NewPCG(1, 2))}
	alphabet := []string{"{", "}", "[", "]", ",", ":", `"`, `"a"`, `"\u0061"`, `"b":`, "1", "-", "0", ".", "e", "+", "true", "null", " ", "\n",
		`\`, `\u`, "d800", `\ud83d\ude00`, "\xff", "é", "x", "\x00"}
	for range 60000 {
		b := []byte(skipSeeds[g.IntN(len(skipSeeds))])
		for range 1 + g.IntN(3) {
			at := g.IntN(len(b) + 1)
			end := min(at+g.IntN(3), len(b))
			piece := alphabet[g.IntN(len(alphabet))]
			b = append(b[:at:at], append([]byte(piece), b[end:]...)...)
		}
		checkSkip(t, b)
	}
}

func FuzzSkip(f *testing.F) {
	for _, seed := range skipSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(checkSkip)
}

// checkString compares the two ways of strings with encoding/json.
func checkString(t *testing.T, v string) {
	t.Helper()
	text := AppendString(nil, v)
	if want := reference(t, v); string(text) != want {
		t.Fatalf("%q: got %s, want %s", v, text, want)
	}
	if other := AppendStringBytes(nil, []byte(v)); !bytes.Equal(other, text) {
		t.Fatalf("%q: AppendStringBytes gives %s", v, other)
	}
	s := Scanner{Buf: text}
	back, err := s.Str()
	if want := strings.ToValidUTF8(v, "\ufffd"); utf8.ValidString(v) && (err != nil || string(back) != want) {
		t.Fatalf("%q: read back %q, %v", v, back, err)
	}
	if err != nil || s.End() != nil {
		t.Fatalf("%q: reading back: %v", v, err)
	}
}

func TestStringsRandom(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(3, 4))}
	for range 30000 {
		checkString(t, g.text()+g.text())
	}
	for c := range 256 { // each byte at each place of a word
		for at := range 17 {
			b := []byte("abcdefghijklmnopq")
			b[at] = byte(c)
			checkString(t, string(b))
		}
	}
}

func FuzzString(f *testing.F) {
	f.Add("a\u2028\xff\"")
	f.Fuzz(checkString)
}

func FuzzFloat(f *testing.F) {
	f.Add(1e21, float32(0.1))
	f.Fuzz(func(t *testing.T, v float64, w float32) {
		for size, v := range map[int]float64{64: v, 32: float64(w)} {
			got, err := AppendFloat(nil, v, size)
			if v-v != 0 {
				if err == nil {
					t.Fatalf("%v accepted", v)
				}
				continue
			}
			want, _ := json.Marshal(v)
			if size == 32 {
				want, _ = json.Marshal(float32(v))
			}
			if err != nil || string(got) != string(want) {
				t.Fatalf("%v: got %s, %v, want %s", v, got, err, want)
			}
		}
	})
}
