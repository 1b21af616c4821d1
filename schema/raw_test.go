package schema

import (
	"reflect"
	"strings"
	"testing"
)

func TestRaw(t *testing.T) {
	r, err := CompileRaw([]byte(`{ "type":"object", "properties":{"n":{"type":"integer","maximum":5},"mail":{"format":"email"}}, "required":["n"], "additionalProperties":false }`))
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

func TestRawRefuses(t *testing.T) {
	for _, text := range []string{``, `{`, `{"type":"objekt"}`, `{"$ref":"https://example.com/schema.json"}`, `{"$ref":"file:///etc/passwd"}`, `{"pattern":"("}`, `{"$ref":"#/$defs/none"}`, `{"maximum":1e999999999}`} {
		if _, err := CompileRaw([]byte(text)); err == nil {
			t.Errorf("%s compiles", text)
		}
	}
}
