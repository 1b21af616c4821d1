package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/internal/lexical"
	"github.com/talaria-go/mcp/schema/internal/wording"
	"github.com/talaria-go/mcp/schema/raw"
)

// everyKind has every kind of value that the decoder reads on its own and
// encoding/json reads in the same form, without a rule: the two must agree.
type everyKind struct {
	S     string                    `json:"s,omitempty"`
	I     int                       `json:"i,omitempty"`
	I8    int8                      `json:"i8,omitempty"`
	I64   int64                     `json:"i64,omitempty"`
	U     uint                      `json:"u,omitempty"`
	U16   uint16                    `json:"u16,omitempty"`
	U64   uint64                    `json:"u64,omitempty"`
	F     float64                   `json:"f,omitempty"`
	F32   float32                   `json:"f32,omitempty"`
	B     bool                      `json:"b,omitempty"`
	P     *int                      `json:"p,omitempty"`
	PP    **string                  `json:"pp,omitempty"`
	L     []int32                   `json:"l,omitempty"`
	LS    []string                  `json:"ls,omitempty"`
	LL    [][]bool                  `json:"ll,omitempty"`
	A     [2]uint8                  `json:"a,omitzero"`
	M     map[string]int            `json:"m,omitempty"`
	MI    map[int8]string           `json:"mi,omitempty"`
	MU    map[uint16]string         `json:"mu,omitempty"`
	MT    map[time.Time]int         `json:"mt,omitempty"`
	MA    map[netip.Addr]int        `json:"ma,omitempty"`
	MD    map[civil.Date]int        `json:"md,omitempty"`
	Bytes []byte                    `json:"bytes,omitempty"`
	T     time.Time                 `json:"t,omitzero"`
	N     json.Number               `json:"n,omitempty"`
	Big   *big.Int                  `json:"big,omitempty"`
	Raw   json.RawMessage           `json:"raw,omitempty"`
	Any   any                       `json:"any,omitempty"`
	Addr  netip.Addr                `json:"addr,omitzero"`
	D     civil.Date                `json:"d,omitzero"`
	QI    int                       `json:"qi,omitempty,string"`
	QU    uint8                     `json:"qu,omitempty,string"`
	QF    float64                   `json:"qf,omitempty,string"`
	QB    bool                      `json:"qb,omitempty,string"`
	In    inner                     `json:"in,omitzero"`
	PIn   *inner                    `json:"pin,omitempty"`
	LIn   []inner                   `json:"lin,omitempty"`
	MIn   map[string]inner          `json:"min,omitempty"`
	MM    map[string]map[string]any `json:"mm,omitempty"`
	EmbeddedKind
}

type inner struct {
	X int    `json:"x"`
	Y string `json:"y,omitempty"`
}

type EmbeddedKind struct {
	E string `json:"e,omitempty"`
}

// FuzzAgainstJSON: what the decoder takes, it reads as encoding/json does; what
// it refuses, encoding/json refuses too, or the schema does, or it is what this
// package refuses on purpose: a member twice, or with its name in other case.
func FuzzAgainstJSON(f *testing.F) {
	p, err := Compile(reflect.TypeFor[everyKind](), &Options{Strict: true})
	if err != nil {
		f.Fatal(err)
	}
	raw, err := raw.Compile(p.JSON())
	if err != nil {
		f.Fatal(err)
	}
	for i := range uint64(40) {
		f.Add([]byte(nil), i)
	}
	f.Add([]byte(`{"in":{"x":1},"e":"y","mt":{"2026-01-02T03:04:05Z":1},"ma":{"::1":2},"bytes":"AA==","qi":"5"}`), uint64(0))
	f.Add([]byte(`{"mt":{"2026-01-02T3:04:05,5Z":1},"mi":{"-0":"a","01":"b"},"big":1e3,"t":"2016-12-31T23:59:60Z"}`), uint64(0))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		if len(data) == 0 {
			data = randomDocument(rand.New(rand.NewPCG(seed, 1)))
		}
		if len(data) == 0 {
			return
		}
		var ours, theirs everyKind
		bad := p.Decode(context.Background(), data, &ours)
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		decoder.DisallowUnknownFields()
		broken := decoder.Decode(&theirs)
		if bad == nil {
			if broken != nil && (wholeNumber(broken) || lawfulTime(broken)) {
				return
			}
			if broken != nil {
				t.Fatalf("accepts %s, which encoding/json refuses: %v", data, broken)
			}
			if !sameJSON(reflect.ValueOf(ours), reflect.ValueOf(theirs)) {
				t.Fatalf("reads %s\nas            %+v\nencoding/json %+v", data, ours, theirs)
			}
			return
		}
		var e *Error
		if !errors.As(bad, &e) {
			t.Fatalf("%s: %v", data, bad)
		}
		if broken != nil || !json.Valid(data) || !utf8.Valid(data) || raw.Check(data) != nil {
			return
		}
		for _, is := range e.Issues {
			if is.Rule != wording.RuleDuplicate && is.Rule != wording.RuleSize && is.Rule != wording.RuleDepth && is.Rule != wording.RuleSyntax {
				t.Fatalf("refuses %s, which its schema and encoding/json accept: %v", data, bad)
			}
		}
	})
}

// lawfulTime tells whether encoding/json took offence at what RFC 3339 allows:
// a leap second, and t and z in lower case.
func lawfulTime(err error) bool {
	bad, ok := errors.AsType[*time.ParseError](err)
	if !ok {
		return strings.Contains(err.Error(), "second out of range")
	}
	upper := strings.Replace(strings.ToUpper(bad.Value), ":60", ":59", 1)
	_, fine := time.Parse(time.RFC3339, strings.Trim(upper, `"`))
	return fine == nil
}

// wholeNumber tells whether encoding/json took offence at an integer that is
// written with a point, an exponent or the sign of -0: to JSON Schema it is one.
func wholeNumber(err error) bool {
	text := ""
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		text, _ = strings.CutPrefix(bad.Value, "number ")
	} else if rest, ok := strings.CutPrefix(err.Error(), "math/big: cannot unmarshal \""); ok {
		text, _, _ = strings.Cut(rest, "\"")
	}
	if !strings.ContainsAny(text, ".eE") && text != "-0" {
		return false
	}
	n, ok := lexical.Decimal(text)
	return !ok || n.IsInt() // an exponent beyond what is compared exactly is one of zero
}

// sameJSON compares decoded values: times by instant and offset, an empty list
// as one that is not there.
func sameJSON(a, b reflect.Value) bool {
	if a.IsValid() != b.IsValid() || !a.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	if a.Type() != b.Type() {
		return false
	}
	switch v := a.Interface().(type) {
	case time.Time:
		_, x := v.Zone()
		_, y := b.Interface().(time.Time).Zone()
		return v.Equal(b.Interface().(time.Time)) && x == y
	case big.Int:
		w := b.Interface().(big.Int)
		return v.Cmp(&w) == 0
	case netip.Addr, civil.Date:
		return a.Interface() == b.Interface()
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return sameJSON(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !sameJSON(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !sameJSON(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() {
			return false
		}
		for _, key := range a.MapKeys() {
			other := b.MapIndex(key)
			if at, ok := key.Interface().(time.Time); ok { // equal, and yet another key
				for _, k := range b.MapKeys() {
					if k.Interface().(time.Time).Equal(at) {
						other = b.MapIndex(k)
					}
				}
			}
			if !other.IsValid() || !sameJSON(a.MapIndex(key), other) {
				return false
			}
		}
		return true
	}
	return a.Interface() == b.Interface()
}

// randomDocument makes a document for everyKind. Most of its values fit, and
// many are at the edge of what does.
func randomDocument(r *rand.Rand) []byte {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	numbers := []string{"0", "-0", "1", "-1", "127", "128", "-128", "-129", "255", "256", "65535", "65536", "1.0", "1e2", "1E+2", "12e-1", "120e-1",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615", "18446744073709551616", "1e19", "1e20", "1e400",
		"0.1", "1e-400", "3.4028235e38", "3.5e38", "16777217", "9007199254740993", "1e30", "123456789012345678901234567890", "0e99999999999", "01", "+1", ".5", "1."}
	texts := []string{`""`, `"a"`, `"é"`, `"\u00e9"`, `"\ud83d\udc4d"`, `"\ud83d"`, `"5"`, `"-0"`, `"01"`, `"true"`, `"null"`, `"1.50"`, `"1e3"`, `"\n"`, `"` + "\u202e" + `"`}
	times := []string{"2026-01-02T03:04:05Z", "2026-01-02t03:04:05z", "2026-01-02T3:04:05Z", "2026-01-02T03:04:05,5Z", "2026-01-02T03:04:05.123456789123Z",
		"2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05-23:59", "2016-12-31T23:59:60Z", "2026-02-30T00:00:00Z", "2026-01-02T24:00:00Z", "0000-01-01T00:00:00Z", "2026-01-02 03:04:05Z", "2026-01-02T03:04:05"}
	other := []string{"null", "true", "false", "[]", "{}", "[1]", "[null]", `{"x":1}`}
	addresses := []string{"192.0.2.1", "::1", "::ffff:192.0.2.1", "fe80::1%eth0", "01.2.3.4", "1.2.3", ""}
	dates := []string{"2026-01-31", "2026-02-29", "2024-02-29", "0000-01-01", "26-1-1", "2026-1-31", ""}
	quote := strconv.Quote
	var value func(depth int) string
	value = func(depth int) string {
		switch n := r.IntN(10); {
		case n < 4:
			return pick(numbers...)
		case n < 6:
			return pick(texts...)
		case n < 8 || depth > 3:
			return pick(other...)
		case n < 9:
			return "[" + value(depth+1) + "," + value(depth+1) + "]"
		}
		return `{"a":` + value(depth+1) + `,"b":` + value(depth+1) + "}"
	}
	fitting := func(name string) string {
		switch {
		case r.IntN(8) == 0:
			return value(0)
		case strings.HasPrefix(name, "q"):
			return quote(strings.Trim(pick(append(numbers, "true", "false")...), `"`))
		}
		switch name {
		case "s", "e", "pp":
			return pick(texts...)
		case "i", "i8", "i64", "u", "u16", "u64", "f", "f32", "p", "n", "big":
			return pick(numbers...)
		case "b":
			return pick("true", "false", "null")
		case "l", "a":
			return "[" + pick(numbers...) + "," + pick(numbers...) + "]"
		case "ls":
			return "[" + pick(texts...) + "]"
		case "ll":
			return pick("[[true],[]]", "[[]]", "[null]", "[[null]]", "[]")
		case "m":
			return `{"` + pick("a", "b", "") + `":` + pick(numbers...) + `,"b":1}`
		case "mi", "mu":
			return "{" + quote(pick(numbers...)) + ":" + pick(texts...) + `,"1":"b"}`
		case "mt":
			return "{" + quote(pick(times...)) + `:1,` + quote(pick(times...)) + ":2}"
		case "ma":
			return "{" + quote(pick(addresses...)) + `:1,` + quote(pick(addresses...)) + ":2}"
		case "md":
			return "{" + quote(pick(dates...)) + `:1,` + quote(pick(dates...)) + ":2}"
		case "bytes":
			return quote(pick("", "AA==", "AAA=", "AAAA", "AA", "AB==", "A-_=", "AA==\n", "AAAA\r\nAAAA"))
		case "t":
			return quote(pick(times...))
		case "addr":
			return quote(pick(addresses...))
		case "d":
			return quote(pick(dates...))
		case "in", "pin":
			return pick(`{"x":1}`, `{"x":`+pick(numbers...)+`,"y":"a"}`, `{"y":"a"}`, `{"X":1}`, `{"x":1,"x":2}`, `{"x":1,"z":1}`, "null")
		case "lin":
			return pick(`[{"x":1},{"x":2,"y":"b"}]`, `[{}]`, "[null]", "[]")
		case "min":
			return pick(`{"a":{"x":1},"b":{"x":2,"y":"b"}}`, `{"a":null}`, "{}")
		case "mm":
			return `{"a":{"b":` + value(1) + `}}`
		}
		return value(0)
	}
	names := strings.Fields("s i i8 i64 u u16 u64 f f32 b p pp l ls ll a m mi mu mt ma md bytes t n big raw any addr d qi qu qf qb in pin lin min mm e")
	var b strings.Builder
	b.WriteString("{")
	for i := range 1 + r.IntN(4) {
		if i > 0 {
			b.WriteString(",")
		}
		name := names[r.IntN(len(names))]
		text := fitting(name)
		if r.IntN(60) == 0 {
			name = strings.ToUpper(name)
		}
		b.WriteString(`"` + name + `":` + text)
	}
	b.WriteString("}")
	return []byte(b.String())
}
