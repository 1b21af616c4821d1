package jsonx_test

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// foreign has each type whose values peers write in more than one form.
type foreign struct {
	Int    int               `json:"int"`
	Small  int8              `json:"small"`
	Word   uint32            `json:"word"`
	Ptr    *int64            `json:"ptr"`
	List   []int             `json:"list"`
	Map    map[string]int    `json:"map"`
	Nested []struct{ N int } `json:"nested"`
	Any    any               `json:"any"`
	Raw    json.RawMessage   `json:"raw"`
	Float  float64           `json:"float"`
	At     time.Time         `json:"at"`
	Times  []*time.Time      `json:"times"`
	Wait   time.Duration     `json:"wait" mcp:"unit=ms"`
	Text   string            `json:"text"`
}

// withoutDuration is foreign as most types are: encoding/json is tried first.
type withoutDuration struct {
	Int    int               `json:"int"`
	Small  int8              `json:"small"`
	Word   uint32            `json:"word"`
	Ptr    *int64            `json:"ptr"`
	List   []int             `json:"list"`
	Map    map[string]int    `json:"map"`
	Nested []struct{ N int } `json:"nested"`
	At     time.Time         `json:"at"`
	Times  []*time.Time      `json:"times"`
	Text   string            `json:"text"`
}

func TestForeignForms(t *testing.T) {
	at := time.Date(2026, 11, 27, 2, 0, 0, 123456000, time.UTC)
	for _, tt := range []struct {
		text string
		want foreign
	}{
		{"\ufeff{\"int\":1}", foreign{Int: 1}},
		{"\ufeff {\"int\":1.0,\"text\":\"\ufeff\"}", foreign{Int: 1, Text: "\ufeff"}},
		{`{"int":-1.0,"small":1e2,"word":4294967295.0}`, foreign{Int: -1, Small: 100, Word: 4294967295}},
		{`{"INT":0.0,"ptr":9223372036854775807.0}`, foreign{Ptr: ptr[int64](1<<63 - 1)}},
		{`{"int":12E+1,"list":[1,20e-1,3.00],"map":{"a":1.0},"nested":[{"N":1},{"n":2.0}]}`,
			foreign{Int: 120, List: []int{1, 2, 3}, Map: map[string]int{"a": 1}, Nested: []struct{ N int }{{1}, {2}}}},
		{`{"at":"2026-11-27T02:00:00.123456"}`, foreign{At: at}},
		{`{"at":"2026-11-27t02:00:00.123456z","int":2.0}`, foreign{Int: 2, At: at}},
		{`{"times":["2026-11-27T02:00:00.123456",null,"2026-11-27T02:00:00.123456Z"]}`, foreign{Times: []*time.Time{&at, nil, &at}}},
		{`{"int":null,"small":null,"word":null,"ptr":null,"list":null,"map":null,"nested":null,"at":null,"times":null,"text":null}`, foreign{}},
		{`{"int":3.0,"text":"\ud83d"}`, foreign{Int: 3, Text: "\ufffd"}},
	} {
		var got foreign
		if err := jsonx.Unmarshal([]byte(tt.text), &got); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v", tt.text, got, err)
		}
		var other withoutDuration
		want := withoutDuration{tt.want.Int, tt.want.Small, tt.want.Word, tt.want.Ptr, tt.want.List, tt.want.Map, tt.want.Nested, tt.want.At, tt.want.Times, tt.want.Text}
		if err := jsonx.Unmarshal([]byte(tt.text), &other); err != nil || !reflect.DeepEqual(other, want) {
			t.Errorf("%s: %+v, %v", tt.text, other, err)
		}
	}
	var got foreign
	if err := jsonx.Unmarshal([]byte(`{"any":1.0,"raw":1.0,"float":1.0,"wait":2e3}`), &got); err != nil ||
		got.Any != 1.0 || string(got.Raw) != "1.0" || got.Float != 1 || got.Wait != 2*time.Second {
		t.Errorf("%+v, %v", got, err)
	}
}

// What is neither an integer nor a time is an error.
func TestForeignFormsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"int":1.5}`:                     "number 1.5",
		`{"int":1e-1}`:                    "number 1e-1",
		`{"int":1e999999999}`:             "number 1e999999999",
		`{"int":1e99999999999999999999}`:  "number 1e99999999999999999999",
		`{"int":1e-99999999999999999999}`: "number 1e-99999999999999999999",
		`{"small":128.0}`:                 "number 128",
		`{"word":-1.0}`:                   "number -1",
		`{"int":"1.0"}`:                   "string",
		`{"int":true,"small":1.0}`:        "bool",
		"\ufeff\ufeff{}":                  "invalid character",
		" \ufeff{}":                       "invalid character",
		"\ufeff":                          "unexpected end",
		`{"at":"2026-13-27T02:00:00"}`:    "month out of range",
		`{"at":1}`:                        "not a JSON string",
		`{"list":[1.0,"` + strings.Repeat("x", 30) + `"]}`: "string",
	} {
		var a foreign
		var b withoutDuration
		for _, err := range []error{jsonx.Unmarshal([]byte(text), &a), jsonx.Unmarshal([]byte(text), &b)} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", text, err, want)
			}
		}
	}
}

// URLs are read as an Encoder writes them.
func TestURLs(t *testing.T) {
	type urls struct {
		One  url.URL
		Ptr  *url.URL
		List []url.URL
		Map  map[string]*url.URL
		N    int
	}
	for _, text := range []string{"", "a", "/a/b", "https://example.com", "https://example.com:8080/a%20b/%2F?q=%20&r#f%20", "mailto:a@b", "//host/x", "?", "#f", "x:?", "https://[::1]/", "note://%C3%BC/%C3%A9"} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		want := urls{*u, u, []url.URL{*u}, map[string]*url.URL{"a": u, "b": nil}, 1}
		doc, err := jsonx.Append(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		var got urls
		if err := jsonx.Unmarshal(doc, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", doc, got, err)
		}
	}
	for text, want := range map[string]string{
		`{"One":"https://a:b@c"}`: "cannot decode /One: a URL with credentials", `{"List":["/%ff"]}`: "/List/0: a URL with credentials, or with bytes", `{"Ptr":"//%ff/"}`: "/Ptr: a URL with credentials, or with bytes",
		`{"Map":{"a":":"}}`: "/Map/a: parse", `{"One":1}`: "number",
	} {
		if err := jsonx.Unmarshal([]byte(text), new(urls)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	var old urls // as other programs in Go write it
	if err := jsonx.Unmarshal([]byte(`{"One":{"Scheme":"https","Host":"a"},"Ptr":null}`), &old); err != nil || old.One.String() != "https://a" || old.Ptr != nil {
		t.Errorf("%+v, %v", old, err)
	}
}

// The text of an optional member is nil for null, that of others is null.
func TestOptionalTexts(t *testing.T) {
	type texts struct {
		Has  json.RawMessage            `json:"has"`
		May  json.RawMessage            `json:"may,omitempty"`
		Map  map[string]json.RawMessage `json:"map,omitempty"`
		List []json.RawMessage          `json:"list,omitempty"`
		N    int                        `json:"n"`
		In   []texts                    `json:"in"`
	}
	for text, want := range map[string]texts{
		`{"may":null}`:                     {},
		`{"has":null}`:                     {Has: json.RawMessage("null")},
		`{"may":null,"n":1.0}`:             {N: 1},
		`{"n":1,"MAY" : null }`:            {N: 1},
		`{"n":1, "may":"null","may":null}`: {N: 1, May: json.RawMessage(`"null"`)},
		`{"may":[null,1.0],"n":2}`:         {N: 2, May: json.RawMessage("[null,1.0]")},
		`{"map":{"may":null},"list":[null]}`: {Map: map[string]json.RawMessage{"may": json.RawMessage("null")},
			List: []json.RawMessage{json.RawMessage("null")}},
		`{"in":[{"may":null,"has":1},null,{"may":2}]}`: {In: []texts{{Has: json.RawMessage("1")}, {}, {May: json.RawMessage("2")}}},
	} {
		var got texts
		if err := jsonx.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	if err := jsonx.Unmarshal([]byte(`{"may":null,`), new(texts)); err == nil {
		t.Error("half an object is read")
	}
}

func TestCanonicalNumbers(t *testing.T) {
	long := "1" + strings.Repeat("0", 59)
	for _, same := range [][]string{
		{"1", "1.0", "1e0", "1.000E+00", "10e-1", "0.1e1", "0.01e+2", "100e-002"},
		{"0", "-0", "0.0", "-0.0e9", "0e999999999999999999999", "0e-999999999999999999999"},
		{"-120", "-1.2e2", "-12E1", "-1200e-1"},
		{long, "1e59", "10e58", "0.1e60", long + ".0"},
		{"1e999999999", "10e999999998", "0.1e1000000000"},
		{"-1e999999999", "-10.0e999999998"},
		{"1e99999999999999999999"},
		{"1e-99999999999999999999"},
		{"1.5", "15e-1"},
		{"12345678901234567890123456789012345678901234567890", "1234567890123456789012345678901234567890123456789e1", "12345678901234567890123456789012345678901234567890.0"},
	} {
		want := string(jsonx.Canonical([]byte(same[0])))
		for _, text := range same {
			if got := string(jsonx.Canonical([]byte(text))); got != want || len(got) > len(text)+40 {
				t.Errorf("%s: %s, want %s", text, got, want)
			}
		}
		for _, other := range []string{"2", "1e60", "1e999999998", "1e99999999999999999998"} {
			if string(jsonx.Canonical([]byte(other))) == want {
				t.Errorf("%s is taken for %s", other, same[0])
			}
		}
	}
	for text, form := range map[string]jsonx.NumberForm{
		"1e2": jsonx.Whole, "1e20": jsonx.Huge, "1e1000000000000": jsonx.Huge, "1e-1": jsonx.Fraction, "5e-1000000000000": jsonx.Fraction,
		"12345678901234567890.0": jsonx.Whole, "0.1": jsonx.Fraction, "0.0": jsonx.Whole,
	} {
		if plain, got := jsonx.Integer([]byte(text), 20); got != form || len(plain) > 21 {
			t.Errorf("%s: %s, %d", text, plain, got)
		}
	}
}

// Text that encoding/json reads costs no more memory than encoding/json does.
func TestUnmarshalAllocations(t *testing.T) {
	text := []byte(`{"int":1,"list":[1,2,3],"at":"2026-11-27T02:00:00Z","text":"a"}`)
	var a, b withoutDuration
	want := testing.AllocsPerRun(100, func() { _ = json.Unmarshal(text, &a) })
	if got := testing.AllocsPerRun(100, func() { _ = jsonx.Unmarshal(text, &b) }); got > want {
		t.Errorf("%v allocations, encoding/json has %v", got, want)
	}
}
