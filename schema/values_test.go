package schema

import (
	"context"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/internal/wording"
)

// TestUniqueBesideFaults checks that equal items are reported together with
// what else is wrong with the list.
func TestUniqueBesideFaults(t *testing.T) {
	type item struct {
		ID int    `json:"id"`
		S  string `json:"s" validate:"min=2"`
	}
	type args struct {
		Texts []string       `json:"texts,omitempty" validate:"unique,dive,min=2"`
		Ints  []int8         `json:"ints,omitempty" validate:"max=3,unique,dive,min=1"`
		Items []item         `json:"items,omitempty" validate:"unique"`
		IDs   []item         `json:"ids,omitempty" validate:"unique=ID"`
		Map   map[string]int `json:"map,omitempty" validate:"unique,dive,min=1"`
		Days  []civil.Date   `json:"days,omitempty" validate:"unique"`
	}
	tests := []struct{ input, want string }{
		{`{"texts":["a","bb","bb"]}`, `/texts/0: must be at least 2 characters long; got "a"; /texts: must be an array without duplicates; items 1 and 2 are equal`},
		{`{"texts":["a","a"]}`, `/texts/0: must be at least 2 characters long; got "a"; /texts/1: must be at least 2 characters long; got "a"; /texts: must be an array without duplicates; items 0 and 1 are equal`},
		{`{"texts":[[],{},""]}`, `/texts/0: must be a string of at least 2 characters; got an array; /texts/1: must be a string of at least 2 characters; got an object; /texts/2: must be at least 2 characters long; got ""`},
		{`{"ints":[0,0]}`, `/ints/0: must be between 1 and 127; got 0; /ints/1: must be between 1 and 127; got 0; /ints: must be an array without duplicates; items 0 and 1 are equal`},
		{`{"ints":[1000,2000,0.5,5]}`, `/ints/0: must be between 1 and 127; got 1000; /ints/1: must be between 1 and 127; got 2000; /ints/2: must be an integer between 1 and 127; got 0.5 (number); /ints: must be an array of at most 3 items; got 4 items`},
		{`{"ints":[5,6,5,5]}`, `/ints: must be an array of at most 3 items; got 4 items; /ints: must be an array without duplicates; items 0 and 2 are equal`},
		{`{"items":[{"id":1,"s":"xx"},{"id":1,"s":"xx"},{"id":2,"s":""}]}`, `/items/2/s: must be at least 2 characters long; got ""; /items: must be an array without duplicates; items 0 and 1 are equal`},
		{`{"ids":[{"id":1,"s":""},{"id":1,"s":"yy"}]}`, `/ids/0/s: must be at least 2 characters long; got ""; /ids: must be an array whose items all differ in id; items 0 and 1 are equal`},
		{`{"ids":[{"id":"x","s":"xx"},{"id":"y","s":"yy"}]}`, `/ids/0/id: must be an integer; got "x" (string); /ids/1/id: must be an integer; got "y" (string)`},
		{`{"ids":[{"id":0,"s":"xx"},5]}`, `/ids/1: must be an object; got 5 (integer)`},
		{`{"map":{"a":2,"b/c":2,"d":0}}`, `/map/d: must be at least 1; got 0; /map: must be an object whose values all differ; the values of a and b/c are equal`},
		{`{"map":{"b/c":0,"d":0}}`, `/map/b~1c: must be at least 1; got 0; /map/d: must be at least 1; got 0`},
		{`{"days":["2026-02-30","2026-01-01","2026-01-01"]}`, `/days/0: must be a date such as 2026-01-31; February 2026 has 28 days; got "2026-02-30"; /days: must be an array without duplicates; items 1 and 2 are equal`},
		{`{"days":"[\"2026-01-01\",\"2026-01-01\"]"}`, `/days: must be an array without duplicates; items 0 and 1 are equal`},
	}
	p := compile[args](t, nil)
	for _, c := range tests {
		if err := p.Check([]byte(c.input)); err == nil || err.Error() != c.want {
			t.Errorf("%s: error is\n%v\nwant\n%s", c.input, err, c.want)
		}
	}
	if err := p.Check([]byte(`{"texts":["aa","bb"],"ints":[1,2],"map":{"a":1,"b":2}}`)); err != nil {
		t.Error(err)
	}
}

// TestExactNumbers has numbers that differ only beyond what a float64 holds.
// The schema of each type must say the same.
func TestExactNumbers(t *testing.T) {
	tests := []struct {
		tags, value string
		valid       bool
	}{
		{`validate:"max=0.1"`, `0.1`, true},
		{`validate:"max=0.1"`, `0.10000000000000000001`, false},
		{`validate:"lt=0.1"`, `0.09999999999999999999`, true},
		{`validate:"lt=0.10000000000000000001"`, `0.1`, true},
		{`validate:"min=9007199254740993"`, `9007199254740992`, false},
		{`validate:"min=9007199254740993"`, `9007199254740993`, true},
		{`validate:"gt=0"`, `1e-400`, true},
		{`validate:"gt=0"`, `0.0`, false},
		{`validate:"gt=0"`, `-0`, false},
		{`validate:"eq=0.3"`, `0.30000000000000000001`, false},
		{`validate:"eq=0.3"`, `3e-1`, true},
		{`validate:"ne=0.3"`, `0.30000000000000000001`, true},
		{`validate:"latitude"`, `90.00000000000000000001`, false},
		{`validate:"eq=1|min=5"`, `4.99999999999999999999`, false},
		{`validate:"eq=1|min=5"`, `5.00000000000000000001`, true},
		{`jsonschema:"enum=0.5,enum=1.5"`, `0.50000000000000000001`, false},
		{`jsonschema:"enum=0.5,enum=1.5"`, `1.5`, true},
		{`jsonschema:"multipleOf=0.1"`, `0.30000000000000000001`, false},
		{`jsonschema:"multipleOf=0.1"`, `0.3`, true},
	}
	for _, c := range tests {
		p, err := Compile(holding(1.5, `json:"a" `+c.tags), nil)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := newJudge(t, p.JSON())
		if err != nil {
			t.Fatal(err)
		}
		doc := []byte(`{"a":` + c.value + `}`)
		if err := p.Check(doc); (err == nil) != c.valid {
			t.Errorf("%s with %s: %v", c.tags, c.value, err)
		}
		if err := raw.Check(doc); (err == nil) != c.valid {
			t.Errorf("%s with %s: the schema says %v", c.tags, c.value, err)
		}
	}
	// Past the limits the rounded value decides, at once.
	p, err := Compile(holding(1.5, `json:"a" validate:"gt=0"`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{`1e-999999999`, `0.` + strings.Repeat("0", 1_000_000) + `1`} {
		if err := p.Check([]byte(`{"a":` + value + `}`)); err == nil {
			t.Errorf("%.20s… is greater than 0 without its digits being kept", value)
		}
	}
}

func TestDateArithmetic(t *testing.T) {
	day, clock := civil.NewDate(2024, time.February, 28), civil.NewTimeOfDay(23*time.Hour)
	if got := day.At(clock).Add(2 * time.Hour).String(); got != "2024-02-29T01:00:00" {
		t.Errorf("two hours later it is %s", got)
	}
	if got := day.At(clock).Add(-48*time.Hour - time.Nanosecond).String(); got != "2024-02-26T22:59:59.999999999" {
		t.Errorf("two days before it was %s", got)
	}
	if got := day.At(civil.TimeOfDay{}).Add(-1).String(); got != "2024-02-27T23:59:59.999999999" {
		t.Errorf("a moment before midnight it was %s", got)
	}
	later := day.At(clock).Add(1)
	if !day.At(clock).Before(later) || !later.After(day.At(clock)) || later.Before(later) || later.After(later) {
		t.Error("Before and After of NaiveDateTime contradict")
	}
	if !day.Before(day.AddDays(1)) || !day.AddDays(1).After(day) || day.Before(day) || day.After(day) {
		t.Error("Before and After of Date contradict")
	}
	noon := civil.NewTimeOfDay(12 * time.Hour)
	if !noon.Before(clock) || !clock.After(noon) || noon.Before(noon) || noon.After(noon) {
		t.Error("Before and After of TimeOfDay contradict")
	}
}

// TestDatesBeyondText checks that a day without a text form is an error when it
// is written, and that sums never wrap round.
func TestDatesBeyondText(t *testing.T) {
	last := civil.NewDate(9999, time.December, 31)
	for want, v := range map[string]any{
		"date 10000-01-01: JSON has years from 0 to 9999 only":                         last.AddDays(1),
		"local date and time 10000-01-01T00:30:00: JSON has years from 0 to 9999 only": last.At(civil.NewTimeOfDay(23 * time.Hour)).Add(90 * time.Minute),
	} {
		if _, err := json.Marshal(v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q in it", err, want)
		}
	}
	for _, n := range []int{math.MaxInt, math.MaxInt32, math.MinInt, math.MinInt32} {
		if got := last.AddDays(n); got.Before(last) != (n < 0) {
			t.Errorf("%d days from %s it is %s", n, last, got)
		}
	}
	if got := civil.NewDate(math.MaxInt32, 1, 1); got.Before(last) {
		t.Errorf("the year %d is taken for %s", math.MaxInt32, got)
	}
	if got := last.At(civil.TimeOfDay{}).Add(math.MaxInt64); !got.After(last.At(civil.TimeOfDay{})) {
		t.Errorf("292 years later it is %s", got)
	}
}

// TestExamplesKeepToRules checks the examples that are given without a tag.
func TestExamplesKeepToRules(t *testing.T) {
	for _, c := range []struct {
		value any
		tags  string
		want  string // the examples as JSON; "" for none
	}{
		{time.Second, ``, `["30s","1h30m"]`},
		{time.Second, `validate:"max=1m"`, `["30s","1m"]`},
		{time.Second, `validate:"min=1h,max=168h"`, `["1h30m","1h"]`},
		{time.Second, `validate:"min=200h"`, `["200h"]`},
		{time.Second, `validate:"gt=200h"`, ``},
		{time.Second, `validate:"max=1m" jsonschema:"example=5s"`, `["5s"]`},
		{time.Second, `validate:"min=48h" jsonschema:"format=duration"`, `["PT48H"]`},
		{time.Second, `mcp:"unit=s"`, ``},
		{civil.TimeOfDay{}, ``, `["09:30","23:59:59"]`},
		{civil.TimeOfDay{}, `validate:"lt=09:00"`, ``},
		{civil.TimeOfDay{}, `validate:"min=10:00,max=18:00"`, `["10:00","18:00"]`},
		{civil.NaiveDateTime{}, `validate:"gte=2027-01-01T00:00:00"`, `["2027-01-01T00:00:00"]`},
	} {
		p, err := Compile(holding(c.value, `json:"a" `+c.tags), nil)
		if err != nil {
			t.Errorf("%T %s: %v", c.value, c.tags, err)
			continue
		}
		at, _ := p.Schema().Properties.Get("a")
		got := ""
		if at.Examples != nil {
			got = string(wording.AppendJSON(nil, at.Examples))
		}
		if got != c.want {
			t.Errorf("%T %s: examples are %s, want %s", c.value, c.tags, got, c.want)
		}
	}
}

// TestSecretsStaySecret breaks every rule on secret members; no issue may say
// what they hold.
func TestSecretsStaySecret(t *testing.T) {
	const secret = "hunter2"
	for _, c := range []struct {
		value      any
		tags, text string
	}{
		{"", `validate:"min=50"`, `"` + secret + `"`}, {"", `validate:"email"`, `"` + secret + `"`}, {"", `validate:"datetime=2006-01-02"`, `"` + secret + `"`},
		{1, ``, `"` + secret + `"`}, {1.5, ``, `"` + secret + `"`}, {true, ``, `"` + secret + `"`}, {civil.Date{}, ``, `"` + secret + `"`},
		{time.Second, ``, `"` + secret + `"`}, {time.Time{}, ``, `"` + secret + `"`}, {[]byte{}, ``, `"` + secret + `!"`}, {picky{}, ``, `"` + secret + `"`},
		{pointed{}, ``, `"HUNTER2 ` + secret + `"`}, {[]string{}, `validate:"dive,max=1"`, `["` + secret + `"]`}, {[]string{}, `validate:"min=3"`, `["` + secret + `"]`},
		{vowel(""), ``, `"` + secret + `"`}, {Null[string]{}, `validate:"max=1"`, `"` + secret + `"`}, {map[string]int{}, ``, `{"a":"` + secret + `"}`},
		{[2]string{}, ``, `["` + secret + `"]`}, {map[string]string{}, `validate:"dive,max=1"`, `{"a":"` + secret + `"}`},
		{textPlain{}, ``, `{"s":["` + secret + `"]}`}, {holdingSecret{}, ``, `{"deep":{"n":"` + secret + `"}}`},
	} {
		p, err := Compile(holding(c.value, `json:"a" mcp:"secret" `+c.tags), nil)
		if err != nil {
			t.Fatal(err)
		}
		err = p.Check([]byte(`{"a":` + c.text + `}`))
		if err == nil {
			t.Errorf("%T %s: %s is accepted", c.value, c.tags, c.text)
			continue
		}
		if text, _ := json.Marshal(err); strings.Contains(strings.ToLower(err.Error()+string(text)), secret) {
			t.Errorf("%T %s: the error gives it away: %v", c.value, c.tags, err)
		}
	}
}

type holdingSecret struct {
	Deep struct {
		N int `json:"n"`
	} `json:"deep"`
}

// TestShapesOfValues decodes what has unusual Go types.
func TestShapesOfValues(t *testing.T) {
	type args struct {
		PP   **int              `json:"pp,omitempty"`
		Arr  [3]bool            `json:"arr"`
		Grid [2][]int8          `json:"grid"`
		Ints map[int8]string    `json:"ints,omitempty"`
		Uns  map[uint]bool      `json:"uns,omitempty"`
		Days map[civil.Date]int `json:"days,omitempty"`
		Ptrs []*string          `json:"ptrs,omitempty"`
		MP   map[string]*args   `json:"mp,omitempty"`
		Raw  *json.RawMessage   `json:"raw,omitempty"`
	}
	p := compile[args](t, &Options{Strict: true})
	doc := []byte(`{"pp":5,"arr":[true,false,true],"grid":[[1],[]],"ints":{"-8":"x"},"uns":{"7":true},"days":{"2026-01-31":1},"ptrs":["a"],"raw":[1],
		"mp":{"k":{"arr":[false,false,false],"grid":[[],[2]]}}}`)
	var in, want args
	if err := p.Decode(context.Background(), doc, &in); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(doc, &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(in, want) {
		t.Errorf("decoded %+v, want %+v", in, want)
	}
	bad := `{"arr":[true],"grid":[[1],[1],[1]],"ints":{"300":"x","01":"x","a":"x"},"uns":{"-1":true},"days":{"x":1},"ptrs":[null],"mp":{"k":null}}`
	got := listed(t, p.Check([]byte(bad)))
	issues := []string{"/arr minItems", "/grid maxItems", "/ints/300 propertyNames", "/ints/01 propertyNames", "/ints/a propertyNames",
		"/uns/-1 propertyNames", "/days/x propertyNames", "/ptrs/0 type", "/mp/k type"}
	if !reflect.DeepEqual(got, issues) {
		t.Errorf("issues are %q, want %q", got, issues)
	}
}
