package jsonx_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/schema"
)

type Waits struct {
	Plain  time.Duration              `json:"plain"`
	Ptr    *time.Duration             `json:"ptr"`
	Deep   **time.Duration            `json:"deep,omitempty" mcp:"unit=ms"`
	Unit   time.Duration              `json:"unit" mcp:"msg=a\\,unit=h,unit=s"`
	ISO    time.Duration              `json:"iso" jsonschema:"description=a, b,format=duration"`
	List   []time.Duration            `json:"list"`
	ISOs   []*time.Duration           `json:"isos" jsonschema:"format=duration"`
	Pair   [2]time.Duration           `json:"pair"`
	ByKey  map[time.Duration]string   `json:"byKey"`
	Values map[string]time.Duration   `json:"values"`
	Both   map[time.Duration]Inner    `json:"both"`
	Opt    schema.Null[time.Duration] `json:"opt" jsonschema:"format=duration"`
	OptIn  schema.Null[Inner]         `json:"optIn"`
	None   schema.Null[time.Duration] `json:"none"`
	Skip   time.Duration              `json:"skip,omitempty"`
	Text   time.Duration              `json:"text,string"`
	Named  timeout                    `json:"named"`
	Self   ownForm                    `json:"self"`
	Next   *Waits                     `json:"next,omitempty"`
	Inner
	*Embedded
}

type Inner struct {
	In time.Duration `json:"in" mcp:"unit=s"`
}

type Embedded struct {
	time.Duration
	Other string
}

type timeout time.Duration

// ownForm has a JSON form of its own, which wins.
type ownForm struct{ D time.Duration }

func (o ownForm) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "[%d]", o.D), nil }

func (o *ownForm) UnmarshalJSON(b []byte) error {
	_, err := fmt.Sscanf(string(b), "[%d]", &o.D)
	return err
}

func ptr[T any](v T) *T { return &v }

// What an Encoder writes of durations, Unmarshal reads as the same value.
func TestDurations(t *testing.T) {
	v := Waits{
		Plain: 90 * time.Second, Ptr: ptr(1500 * time.Microsecond), Deep: ptr(ptr(2 * time.Second)), Unit: -time.Minute,
		ISO: 90 * time.Minute, List: []time.Duration{0, -1}, ISOs: []*time.Duration{ptr(time.Hour), nil}, Pair: [2]time.Duration{1, time.Hour},
		ByKey:  map[time.Duration]string{time.Second: "a", 90 * time.Second: "b"},
		Values: map[string]time.Duration{"x": time.Millisecond}, Both: map[time.Duration]Inner{time.Hour: {3 * time.Second}},
		Opt: schema.NullOf(time.Minute), OptIn: schema.NullOf(Inner{time.Second}), None: schema.Null[time.Duration]{Set: true},
		Text: 5, Named: 6, Self: ownForm{7}, Inner: Inner{8 * time.Second}, Embedded: &Embedded{Duration: 9},
		Next: &Waits{Plain: time.Second, List: []time.Duration{}, ISOs: []*time.Duration{}, ByKey: map[time.Duration]string{},
			Values: map[string]time.Duration{}, Both: map[time.Duration]Inner{}, Opt: schema.Null[time.Duration]{Set: true},
			OptIn: schema.Null[Inner]{Set: true}, None: schema.NullOf(time.Duration(0))},
	}
	const want = `{"plain":"1m30s","ptr":"1.5ms","deep":2000,"unit":-60,"iso":"PT1H30M","list":["0s","-1ns"],"isos":["PT1H",null],` +
		`"pair":["1ns","1h0m0s"],"byKey":{"1m30s":"b","1s":"a"},"values":{"x":"1ms"},"both":{"1h0m0s":{"in":3}},"opt":"PT1M","optIn":{"in":1},"none":null,` +
		`"text":"5","named":6,"self":[7],"next":{"plain":"1s","ptr":null,"unit":0,"iso":"PT0S","list":[],"isos":[],"pair":["0s","0s"],"byKey":{},` +
		`"values":{},"both":{},"opt":null,"optIn":null,"none":"0s","text":"0","named":0,"self":[0],"in":0},"in":8,"Duration":"9ns","Other":""}`
	text, err := jsonx.Append(nil, v)
	if err != nil || string(text) != want {
		t.Fatalf("got  %s, %v\nwant %s", text, err, want)
	}
	for _, text := range []string{want, "\n" + strings.ReplaceAll(want, `"`+"plain", " \t"+`"\u0050LAIN`)} {
		var back Waits
		if err := jsonx.Unmarshal([]byte(text), &back); err != nil || !reflect.DeepEqual(back, v) {
			t.Errorf("back: %+v, %v", back, err)
		}
	}
	var boxed any = map[string]any{"d": time.Minute, "k": map[time.Duration]int{time.Hour: 1}}
	if text, err := jsonx.Append(nil, boxed); err != nil || string(text) != `{"d":"1m0s","k":{"1h0m0s":1}}` {
		t.Errorf("behind an interface: %s, %v", text, err)
	}
}

// Unmarshal also reads what others write: nanoseconds as encoding/json has
// them, and either text where the tag asks for another form.
func TestUnmarshalOtherDurations(t *testing.T) {
	for text, want := range map[string]Waits{
		`{"plain":90000000000,"list":[1],"byKey":{"5":"a"}}`: {Plain: 90 * time.Second, List: []time.Duration{1}, ByKey: map[time.Duration]string{5: "a"}},
		`{"plain":"PT1M30S","iso":"1m30s","unit":"5s"}`:      {Plain: 90 * time.Second, ISO: 90 * time.Second, Unit: 5 * time.Second},
		`{"plain":null,"unit":null,"x":{"plain":[]}}`:        {},
	} {
		var got Waits
		if err := jsonx.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		`{"plain":"soon"}`:                "cannot decode /plain: \"soon\" is not a duration",
		`{"plain":"P1Y"}`:                 "cannot decode /plain",
		`{"next":{"pair":["1s","1 s"]}}`:  "cannot decode /next/pair/1",
		`{"byKey":{"1x":"a"}}`:            "cannot decode /byKey/1x",
		`{"unit":1.5}`:                    "cannot decode /unit: 1.5 is not a whole number of the unit 1s",
		`{"unit":9223372036854775807}`:    "cannot decode /unit",
		`{"plain":1.5}`:                   "cannot unmarshal number 1.5",
		`{"plain":true}`:                  "cannot unmarshal bool",
		`{"plain":"1s"`:                   "unexpected end of JSON input",
		`{"plain":"1s"} x`:                "invalid character",
		`{"list":"1s"}`:                   "cannot unmarshal string",
		`{"self":{"D":"1s"}}`:             "",
		`[` + strings.Repeat("[", 20_000): "max depth",
	} {
		var got Waits
		if err := jsonx.Unmarshal([]byte(text), &got); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %q", text, err, want)
		}
	}
	var d time.Duration
	if err := jsonx.Unmarshal([]byte(`"2h"`), &d); err != nil || d != 2*time.Hour {
		t.Errorf("a bare duration: %s, %v", d, err)
	}
	if err := jsonx.Unmarshal([]byte(`"x"`), &d); err == nil || !strings.Contains(err.Error(), "cannot decode the value") {
		t.Errorf("a bare text: %v", err)
	}
	if err := jsonx.Unmarshal([]byte(`"1s"`), nil); err == nil {
		t.Error("nil takes a value")
	}
}

// Whatever a type holds, Unmarshal and json.Unmarshal agree on nanoseconds.
func TestUnmarshalAgrees(t *testing.T) {
	for _, text := range []string{`{"PLAIN":1,"plain":2,"Plain":3}`, `{"list":[1,null,3],"pair":[1,2,3],"values":{"a":1,"a":2}}`, `null`, `[]`, `7`,
		`{"both":{"1":{"In":null}},"next":{"next":{"plain":4}}}`, "{\"\\ud800\":1,\"\xff\":2,\"plain\":3}"} {
		var a, b Waits
		errA, errB := json.Unmarshal([]byte(text), &a), jsonx.Unmarshal([]byte(text), &b)
		if (errA == nil) != (errB == nil) || !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %+v, %v\n%+v, %v", text, a, errA, b, errB)
		}
	}
}

// What the form of a field cannot say is an error, not another duration.
func TestDurationsWithoutForm(t *testing.T) {
	for _, tt := range []struct {
		v    any
		want string
	}{
		{Inner{1500 * time.Millisecond}, "cannot encode /in: duration 1.5s is not a whole number of the unit 1s"},
		{Waits{ISO: -1}, "cannot encode /iso: duration -1ns: the ISO 8601 form has no sign"},
		{Waits{ISOs: []*time.Duration{ptr(time.Millisecond)}}, "cannot encode /isos/0"},
	} {
		if _, err := jsonx.Append(nil, tt.v); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.v, err, tt.want)
		}
	}
}

// A duration costs no memory when it is written.
func TestDurationAllocations(t *testing.T) {
	enc, err := jsonx.NewEncoder(reflect.TypeFor[Embedded]())
	if err != nil {
		t.Fatal(err)
	}
	buf, v := make([]byte, 0, 256), &Embedded{Duration: 90*time.Minute + 1}
	if n := testing.AllocsPerRun(100, func() { _, _ = enc.Append(buf, v) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
