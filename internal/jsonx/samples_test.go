package jsonx

// Odd tags, and fields that are never written, are what is tested here.
//lint:file-ignore SA5008 see above
//lint:file-ignore U1000 see above

import (
	"encoding/json"
	"math"
	"net/netip"
	"strings"
	"time"
)

type (
	valueText   struct{ S string }
	pointerText struct{ S string }
	valueJSON   struct{ S string }
	pointerJSON struct{ S string }
	textKey     struct{ A, B int }
	intText     int
	level       int
	myString    string
	myMap       map[string]any
	byteText    byte
)

func (v valueText) MarshalText() ([]byte, error)    { return []byte("<" + v.S + ">\xff"), nil }
func (v *pointerText) MarshalText() ([]byte, error) { return []byte("*" + v.S), nil }
func (v valueJSON) MarshalJSON() ([]byte, error) {
	return []byte("{ \"v\" :\n\"" + v.S + " \\\" \"}"), nil
}
func (v *pointerJSON) MarshalJSON() ([]byte, error) {
	return []byte("[ 1 ,\t2, \"" + v.S + "\" ]"), nil
}
func (k textKey) MarshalText() ([]byte, error)  { return []byte{byte('a' + k.A), byte('a' + k.B)}, nil }
func (i intText) MarshalText() ([]byte, error)  { return []byte{byte('A' + i)}, nil }
func (b byteText) MarshalText() ([]byte, error) { return []byte{byte('0' + b)}, nil }

type (
	zeroer  struct{ N int }
	zeroPtr struct{ N int }
	nilSafe struct{ N int }
)

func (z zeroer) IsZero() bool   { return z.N == 7 }
func (z *zeroPtr) IsZero() bool { return z.N == 7 }
func (n *nilSafe) MarshalJSON() ([]byte, error) {
	if n == nil {
		return []byte(`"nil"`), nil
	}
	return []byte(`1`), nil
}

type numbers struct {
	I   int
	I8  int8
	I16 int16
	I32 int32
	I64 int64
	U   uint
	U8  uint8
	U16 uint16
	U32 uint32
	U64 uint64
	Up  uintptr
	F32 float32
	F64 float64
	B   bool
}

type tags struct {
	Plain   string
	Named   string `json:"name"`
	Skip    string `json:"-"`
	Dash    string `json:"-,"`
	Bad     string `json:"a\"b"`
	Odd     string `json:"a/b <c>&é"`
	hidden  string
	Empty   string                     `json:",omitempty"`
	EmptyI  int16                      `json:",omitempty"`
	EmptyF  float64                    `json:",omitempty"`
	EmptyB  bool                       `json:",omitempty"`
	EmptyP  *int                       `json:",omitempty"`
	EmptyS  []int                      `json:",omitempty"`
	EmptyM  map[string]int             `json:",omitempty"`
	EmptyM2 map[string]int             `json:",omitempty"`
	EmptyA  [0]int                     `json:",omitempty"`
	FullA   [1]int                     `json:",omitempty"`
	EmptyN  any                        `json:",omitempty"`
	Struct  struct{ X int }            `json:",omitempty"`
	ZeroT   time.Time                  `json:",omitzero"`
	ZeroS   struct{ X int }            `json:",omitzero"`
	ZeroV   zeroer                     `json:",omitzero"`
	ZeroV0  zeroer                     `json:",omitzero"`
	ZeroP   zeroPtr                    `json:",omitzero"`
	ZeroPP  *zeroPtr                   `json:",omitzero"`
	ZeroI   interface{ IsZero() bool } `json:",omitzero"`
	ZeroSl  []int                      `json:"zs,omitzero"`
	Both    map[string]string          `json:",omitzero,omitempty"`
	StrI    int                        `json:",string"`
	StrS    string                     `json:",string"`
	StrB    bool                       `json:",string"`
	StrF    float64                    `json:",string"`
	StrP    *int                       `json:",string"`
	StrPN   *int                       `json:",string"`
	StrPP   **int                      `json:",string"`
	StrN    json.Number                `json:",string"`
	StrT    intText                    `json:",string"`
	StrSl   []int                      `json:",string"`
}

type Base struct {
	ID   int
	Name string `json:"name"`
	Deep
}
type Deep struct{ Level, ID int }
type Other struct {
	Name  string `json:"name"`
	Clash int
}
type Third struct{ Clash int }
type lower struct{ Promoted string }
type lowerInt int
type Named struct{ N int }
type Loop struct {
	*Loop
	L int
}
type embeds struct {
	Base
	*Other
	Third
	*lower
	lowerInt
	Named `json:"named"`
	level
	json.Number
}
type twice1 struct{ Deep }
type twice2 struct{ Deep }
type twice struct {
	twice1
	twice2
	A int
}
type withTime struct {
	time.Time
	Other int
}
type tagWins struct {
	A Deep `json:"x"`
	tagInner
}
type tagInner struct {
	X  int `json:"x"`
	Y1 int `json:"y"`
	Y  int
}

type tree struct {
	Name string           `json:"name"`
	Kids []tree           `json:"kids,omitempty"`
	Next *tree            `json:"next,omitempty"`
	By   map[string]*tree `json:"by,omitempty"`
	Any  any              `json:"any,omitempty"`
}

type methods struct {
	VT  valueText
	PT  pointerText
	VJ  valueJSON
	PJ  pointerJSON
	VTp *valueText
	PTp *pointerText
	VJp *valueJSON
	PJp *pointerJSON
	VTS []valueText
	PTS []pointerText
	PJA [2]pointerJSON
	PPM map[string]*pointerJSON
	Any any
	AnP any
	Im  json.Marshaler
	Nil json.Marshaler
	NiP json.Marshaler
	It  interface{ MarshalText() ([]byte, error) }
	Raw json.RawMessage
	RaP *json.RawMessage
	Num json.Number
	T   time.Time
	IP  netip.Addr
	IT  intText
}

func sampleMethods() methods {
	raw := json.RawMessage(" [1, {\"a\": \"x \\\" y\"}\r\n]")
	return methods{
		VT: valueText{"a"}, PT: pointerText{"b"}, VJ: valueJSON{"c"}, PJ: pointerJSON{"d"},
		VTp: &valueText{"e"}, PTp: &pointerText{"f"}, VJp: &valueJSON{"g"}, PJp: &pointerJSON{"h"},
		VTS: []valueText{{"i"}}, PTS: []pointerText{{"j"}}, PJA: [2]pointerJSON{{"k"}, {"l"}},
		PPM: map[string]*pointerJSON{"o": {"p"}, "q": nil},
		Any: valueJSON{"r"}, AnP: &pointerJSON{"s"}, Im: valueJSON{"t"}, NiP: (*nilSafe)(nil), It: valueText{"u"},
		Raw: raw, RaP: &raw, Num: "1.50", T: time.Date(2026, 7, 28, 1, 2, 3, 456, time.FixedZone("", 5400)),
		IP: netip.MustParseAddr("::1"), IT: 3,
	}
}

func pointerTo[T any](v T) *T { return &v }

func sampleValues() map[string]any {
	seven := 7
	pseven := &seven
	return map[string]any{
		"numbers": numbers{-1, math.MinInt8, math.MinInt16, math.MinInt32, math.MinInt64, 1, math.MaxUint8,
			math.MaxUint16, math.MaxUint32, math.MaxUint64, 9, 0.1, 1e21, true},
		"tags": tags{Plain: "<&>\u2028\u2029", Odd: "é\b\f\n\r\t\x01\x7f\"\\/", hidden: "h", ZeroV: zeroer{7}, ZeroP: zeroPtr{7},
			StrI: 5, StrS: "a\"b", StrF: 1.5, StrP: pseven, StrPP: &pseven, StrN: "5", EmptyM2: map[string]int{"": 1},
			ZeroI: &zeroPtr{3}},
		"tags again": &tags{Empty: "x", EmptyI: 1, EmptyF: math.Copysign(0, -1), EmptyB: true, EmptyP: pseven, EmptyS: []int{0}, EmptyN: 0,
			ZeroT: time.Unix(0, 0).UTC(), ZeroS: struct{ X int }{1}, ZeroPP: &zeroPtr{7}, ZeroSl: []int{}, ZeroI: (*zeroPtr)(nil)},
		"embeds nil":         embeds{Base: Base{1, "b", Deep{2, 3}}},
		"embeds":             &embeds{Other: &Other{"o", 1}, lower: &lower{"p"}},
		"twice":              twice{twice1{Deep{1, 2}}, twice2{Deep{3, 4}}, 5},
		"time embedded":      withTime{time.Unix(1, 0).UTC(), 2},
		"tag wins":           tagWins{Deep{1, 2}, tagInner{3, 4, 5}},
		"loop":               Loop{&Loop{nil, 1}, 2},
		"tree":               tree{"a", []tree{{Name: "b"}}, &tree{Name: "c"}, map[string]*tree{"z": {Name: "d"}, "y": nil}, tree{Name: "e"}},
		"methods by value":   sampleMethods(),
		"methods by pointer": pointerTo(sampleMethods()),
		"methods in slice":   []methods{sampleMethods()},
		"methods in any":     []any{pointerTo(sampleMethods())},
		"methods in array":   [1]methods{sampleMethods()},
		"methods in map":     map[string]*methods{"m": pointerTo(sampleMethods())},
		"map string any":     map[string]any{"b": 1, "a": nil, "\"<é": []any{true, "x", 1.5, 1e300, map[string]any{}}},
		"named map":          myMap{"x": myMap{"y": myString("z")}, "s": map[string]string{"k": "v", "j": "<"}},
		"map string string":  map[string]string{"b": "1", "a": "\n"},
		"map int":            map[int8]bool{-1: true, 10: false, 9: true},
		"map uint":           map[uint64]*int{math.MaxUint64: pseven, 2: nil},
		"map text":           map[textKey][]int{{1, 2}: {1}, {0, 3}: {2}},
		"map int text":       map[intText]string{1: "x", 0: "y"},
		"map named":          map[myString]struct{}{"b": {}, "a": {}},
		"map pointer key":    map[*textKey]int{{1, 1}: 1, nil: 2},
		"bytes":              []byte("hello\x00"),
		"byte array":         [3]byte{1, 2, 3},
		"text bytes":         []byteText{1, 2},
		"empty slice":        []int{},
		"array":              [2][]string{{"a"}, {"b", "c"}},
		"pointers":           []**int{&pseven, nil},
		"single pointer":     struct{ P *int }{pseven},
		"array of pointer":   [1]*int{pseven},
		"single map":         struct{ M map[string]int }{map[string]int{"a": 1}},
		"any direct":         []any{pseven, map[string]int{"a": 1}, struct{ P *int }{pseven}, [1]map[string]int{{"b": 2}}, struct{}{}, nil},
		"interface":          []interface{ IsZero() bool }{zeroer{1}, &zeroPtr{2}, nil},
		"string":             "plain \xff\xfe tail",
		"long string":        strings.Repeat("abcdefgh", 40) + "\xe2\x80" + strings.Repeat("é\u2028", 9) + "\x00\u2029",
		"number":             json.Number("-0.5e+10"),
		"zero number":        json.Number(""),
		"raw":                json.RawMessage("{\n}"),
		"nil raw":            json.RawMessage(nil),
		"nil pointer":        (*tree)(nil),
		"floats": []float64{0, math.Copysign(0, -1), 1, -1, 1e15, 1 << 53, 1<<53 + 2, 1e20, 1e21, -1e21, 1e22, 1e-6, 9.9e-7, 1e-7, 1e-10,
			math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 123456.789, -2.5},
		"floats32": []float32{0, 0.1, 16777216, 16777217, 1e21, 1e20, 1e-6, 9.9e-7, math.MaxFloat32, math.SmallestNonzeroFloat32, 3.4e10, 33554433},
	}
}
