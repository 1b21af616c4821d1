package raw

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestRaw(t *testing.T) {
	r, err := Compile([]byte(`{ "type":"object", "properties":{"n":{"type":"integer","maximum":5},"mail":{"format":"email"}}, "required":["n"], "additionalProperties":false }`))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(r.JSON()), ": ") {
		t.Errorf("JSON is not compact: %s", r.JSON())
	}
	tests := []struct {
		input  string
		issues []string
	}{
		{`{"n":1}`, nil},
		{`{"n":9}`, []string{"/n maximum"}},
		{`{"n":1.0,"mail":"x"}`, []string{"/mail format"}},
		{`{"x/y":1}`, []string{"/n required", "/x~1y unknown"}},
		{`{"n":1,"n":2}`, []string{"/n duplicate"}},
		{`{"n":1`, []string{" syntax"}},
		{`{"n":1} {}`, []string{" syntax"}},
		{`[]`, []string{" type"}},
		{`{"n":1e999999999}`, []string{"/n range"}},
		{`{"n":-1e-999999999}`, []string{"/n range"}},
		{`{"n":1,"x":[1e99999999999999999999]}`, []string{"/x/0 range"}},
	}
	for _, c := range tests {
		if got := listed(t, r.Check([]byte(c.input))); !reflect.DeepEqual(got, c.issues) {
			t.Errorf("%s: issues are %q, want %q", c.input, got, c.issues)
		}
	}
}

// Of alternatives the message is about the one that was meant.
func TestRawAlternatives(t *testing.T) {
	r, err := Compile([]byte(`{"type":"object","properties":{
		"act":{"anyOf":[
			{"type":"object","properties":{"do":{"const":"say"},"text":{"type":"string","maxLength":3}},"required":["do","text"],"additionalProperties":false},
			{"type":"object","properties":{"do":{"const":"go"},"to":{"$ref":"#/$defs/place"}},"required":["do","to"],"additionalProperties":false}]},
		"maybe":{"anyOf":[{"type":"integer","minimum":5},{"type":"null"}]},
		"one":{"oneOf":[{"const":"a"},{"const":"b"}]},
		"both":{"oneOf":[{"type":"integer"},{"minimum":0}]},
		"pair":{"anyOf":[{"required":["x"]},{"required":["y"]}]},
		"data":{"type":"string","pattern":"^(?:[A-Za-z0-9+\\/]{4})*(?:[A-Za-z0-9+\\/]{2}==|[A-Za-z0-9+\\/]{3}=)?$"},
		"day":{"format":"date"},"at":{"format":"date-time"},"host":{"format":"hostname"},"long":{"type":"integer","format":"int64"},"count":{"format":"uint64"}
	},"$defs":{"place":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ input, want string }{
		{`{"act":{"do":"say","text":"hi"},"maybe":null,"one":"a","pair":{"x":1},"both":-1}`, ""},
		{`{"act":{"do":"say","text":"long","to":"x"}}`, "/act/text: must be at most 3 characters long; got 4 characters; /act/to: unknown property; allowed: do, text"},
		{`{"act":{"do":"go"}}`, "/act/to: is required"},
		{`{"act":{"do":"run"}}`, `/act/do: must be one of "say", "go"; got "run"`},
		{`{"act":{}}`, "/act/do: is required"},
		{`{"act":5}`, "/act: must be valid by one of the schemas in anyOf"},
		{`{"maybe":3}`, "/maybe: must be at least 5; got 3"},
		{`{"one":"c"}`, `/one: must be one of "a", "b"; got "c"`},
		{`{"both":1}`, "/both: must be valid by exactly one of the schemas in oneOf"},
		{`{"pair":{}}`, "/pair: must be valid by one of the schemas in anyOf"},
		{`{"data":"x"}`, `/data: must be base64 text; got "x"`},
		{`{"day":"x"}`, `/day: must be a date such as 2026-01-31; got "x"`},
		{`{"at":"x"}`, `/at: must be a date and time with an offset, such as 2026-01-31T09:30:00Z; got "x"`},
		{`{"host":"-"}`, `/host: must be text in the format hostname; got "-"`},
		{`{"long":9223372036854775808}`, `/long: must be an integer that fits 64 bits; got 9223372036854775808`},
		{`{"long":-9223372036854775809}`, `/long: must be an integer that fits 64 bits; got -9223372036854775809`},
		{`{"count":-1}`, `/count: must be an integer of at least 0 that fits 64 bits; got -1`},
		{`{"count":"18446744073709551616"}`, `/count: must be an integer of at least 0 that fits 64 bits; got "18446744073709551616"`},
	} {
		got := ""
		if err := r.Check([]byte(c.input)); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.input, got, c.want)
		}
	}
}

func TestRawRefuses(t *testing.T) {
	for _, text := range []string{``, `{`, `{"type":"objekt"}`, `{"$ref":"https://example.com/schema.json"}`, `{"$ref":"file:///etc/passwd"}`, `{"pattern":"("}`, `{"$ref":"#/$defs/none"}`, `{"maximum":1e999999999}`} {
		if _, err := Compile([]byte(text)); err == nil {
			t.Errorf("%s compiles", text)
		}
	}
	for depth, ok := range map[int]bool{128: true, 129: false, 10_000: false} {
		_, err := Compile([]byte(strings.Repeat(`{"not":`, depth-1) + `{}` + strings.Repeat(`}`, depth-1)))
		if (err == nil) != ok {
			t.Errorf("nested %d deep: %v", depth, err)
		}
	}
}

// listed returns the issues of an error, each as its path and rule.
func listed(t *testing.T, err error) (out []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	for _, is := range err.(*Error).Issues {
		out = append(out, is.Path+" "+is.Rule)
	}
	return out
}

// An unknown member has a hint, up to a number of them: names are compared with all that
// are allowed, and a document may have many.
func TestRawUnknown(t *testing.T) {
	many := func(n int, each func(i int) string) string {
		var parts []string
		for i := range n {
			parts = append(parts, each(i))
		}
		return strings.Join(parts, ",")
	}
	wide := `{"additionalProperties":false,"properties":{` + many(101, func(i int) string { return fmt.Sprintf(`"name%d":{}`, i) }) + `}}`
	for _, tt := range []struct{ schema, doc, want string }{
		{`{"additionalProperties":false,"properties":{"who":{},"from":{}}}`, `{"whom":1}`, "/whom: unknown property; did you mean /who? Allowed: from, who"},
		{`{"additionalProperties":false,"properties":{"who":{},"from":{}}}`, `{"FROM":1}`, "/FROM: unknown property; did you mean /from? Allowed: from, who"},
		{`{"additionalProperties":false,"properties":{"who":{}}}`, `{"other":1}`, "/other: unknown property; allowed: who"},
		{`{"additionalProperties":false,"properties":{"who":{}}}`, "{\"who\u200b\":1}", "cannot be seen; leave it out; allowed: who"},
		{`{"additionalProperties":false}`, `{"a":1}`, "/a: unknown property; the object has no properties"},
		{`{"additionalProperties":false,"properties":{"who":{}},"patternProperties":{"^x":{}}}`, `{"other":1}`, "/other: unknown property"},
		{`{"additionalProperties":false,"properties":{"who":{}},"patternProperties":{"^x":{}}}`, `{"whom":1}`, "/whom: unknown property; did you mean /who?"},
		{`{"unevaluatedProperties":false,"properties":{"who":{}},"allOf":[{"properties":{"a":{}}}]}`, `{"whom":1}`, "/whom: unknown property; did you mean /who?"},
		{`{"items":{"additionalProperties":false,"properties":{"a~/":{}}}}`, `[{"a~/b":1}]`, "/0/a~0~1b: unknown property; did you mean /0/a~0~1? Allowed: a~/"},
		{wide, `{"name1000":1}`, "did you mean /name100?"},
		{wide, `{"other":1}`, "/other: unknown property"},
	} {
		s, err := Compile([]byte(tt.schema))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check([]byte(tt.doc)); err == nil || !strings.HasSuffix(err.Error(), tt.want) && !strings.Contains(err.Error(), tt.want+" ") {
			t.Errorf("%s by %s: %v, want %s", tt.doc, tt.schema, err, tt.want)
		}
	}
	s, err := Compile([]byte(wide))
	if err != nil {
		t.Fatal(err)
	}
	hints, all := 0, 0
	if fault, ok := errors.AsType[*Error](s.Check([]byte("{" + many(1000, func(i int) string { return fmt.Sprintf(`"nume%d":1`, i) }) + "}"))); ok {
		for _, is := range fault.Issues {
			all++
			if is.Hint != "" {
				hints++
			}
		}
	}
	if all != 1000 || hints != maxHints {
		t.Errorf("%d issues, %d hints; want 1000 and %d", all, hints, maxHints)
	}
}

// A bound that the description of the schema makes an open one is named as such.
func TestOpenBounds(t *testing.T) {
	for _, tt := range []struct{ schema, doc, want string }{
		{`{"minimum":0}`, `-1`, "must be at least 0; got -1"},
		{`{"minimum":0,"description":"The total. Must be greater than 0."}`, `-1`, "must be greater than 0; got -1"},
		{`{"minimum":0,"maximum":1.5,"description":"Must be greater than 0 and less than 1.5."}`, `2`, "must be less than 1.5; got 2"},
		{`{"minimum":0,"maximum":1.5,"description":"Must be greater than 0 and less than 1.5."}`, `-2`, "must be greater than 0; got -2"},
		{`{"minimum":0,"description":"Must be greater than 0.5."}`, `-1`, "must be at least 0; got -1"},
		{`{"minimum":1,"description":"Must be greater than 10."}`, `-1`, "must be at least 1; got -1"},
		{`{"maximum":1,"description":"Must be greater than 1."}`, `2`, "must be at most 1; got 2"},
		{`{"exclusiveMaximum":1}`, `1`, "must be less than 1; got 1"},
		{`{"exclusiveMinimum":1,"description":5}`, `1`, ""},
	} {
		s, err := Compile([]byte(tt.schema))
		if err != nil {
			if tt.want != "" {
				t.Fatal(err)
			}
			continue
		}
		if err := s.Check([]byte(tt.doc)); err == nil || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%s by %s: %v, want %s", tt.doc, tt.schema, err, tt.want)
		}
	}
}
