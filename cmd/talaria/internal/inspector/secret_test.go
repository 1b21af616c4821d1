package inspector

import (
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

func TestUnveil(t *testing.T) {
	const schema = `{"type":"object","properties":{"user":{"type":"string"},"n":{},
		"password":{"type":"string","format":"password"},"token":{"$ref":"#/$defs/secret"},"anchored":{"$ref":"#key"},
		"list":{"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"string","writeOnly":true}]}},
		"tuple":{"prefixItems":[{"format":"Password"},{}]},
		"deep":{"type":"object","properties":{"in":{"allOf":[{"type":"string"},{"writeOnly":true}]},"out":{}}},
		"tree":{"$ref":"#"}},
		"patternProperties":{"^x-":{"writeOnly":true}},
		"$defs":{"secret":{"writeOnly":true},"k":{"$anchor":"key","format":"password"}}}`
	for _, c := range []struct{ value, dropped, marked, found string }{
		{`{"user":"ann","n":1.50}`, `{"user":"ann","n":1.50}`, `{"user":"ann","n":1.50}`, ""},
		{`{"user":"ann","password":"p","x-y":[1,{"a":"b"}]}`, `{"user":"ann"}`, `{"user":"ann","password":"***","x-y":"***"}`, "1|b|p"},
		{`{"token":"t","anchored":"k"}`, `{}`, `{"token":"***","anchored":"***"}`, "k|t"},
		{`{"list":[9007199254740993]}`, `{"list":[null]}`, `{"list":["***"]}`, "9007199254740993"},
		{`{"list":[],"tuple":["a",{"b":"a"}]}`, `{"list":[],"tuple":[null,{"b":"a"}]}`, `{"list":[],"tuple":["***",{"b":"a"}]}`, "a"},
		{`{"deep":{"out":1,"in":"s"},"tree":{"tree":{"password":"q"}}}`, `{"deep":{"out":1},"tree":{"tree":{}}}`, `{"deep":{"out":1,"in":"***"},"tree":{"tree":{"password":"***"}}}`, "q|s"},
		{`{"a`, ``, ``, ""},
		{`7`, `7`, `7`, ""},
	} {
		dropped, found := unveil([]byte(schema), []byte(c.value), "")
		marked, _ := unveil([]byte(schema), []byte(c.value), `"***"`)
		slices.Sort(found)
		if string(dropped) != c.dropped || string(marked) != c.marked || strings.Join(found, "|") != c.found {
			t.Errorf("%s: got %s, %s, %v", c.value, dropped, marked, found)
		}
	}
	if out, found := unveil([]byte(`{"writeOnly":true}`), []byte(`{"a":"b"}`), `"***"`); string(out) != `"***"` || len(found) != 1 {
		t.Errorf("%s %v", out, found)
	}
	if out, _ := unveil([]byte(`5`), []byte(`{"a":"b"}`), ""); string(out) != `{"a":"b"}` {
		t.Errorf("%s", out)
	}
}

// TestUnveilBounds: a schema that goes round, or a value that is too deep, ends, and
// what was not looked at counts as secret.
func TestUnveilBounds(t *testing.T) {
	testdep.NoRace(t, "one goroutine walks a schema without an end")
	round := `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}}}`
	if out, found := unveil([]byte(round), []byte(`{"a":"b"}`), ""); len(out) > 0 || len(found) != 1 {
		t.Errorf("%s %v", out, found)
	}
	deep := strings.Repeat(`{"a":`, 500) + `"deep"` + strings.Repeat(`}`, 500)
	if out, found := unveil([]byte(`{"additionalProperties":{"$ref":"#"}}`), []byte(deep), ""); strings.Contains(string(out), "deep") || len(found) != 1 {
		t.Errorf("%d bytes, %v", len(out), found)
	}
}
