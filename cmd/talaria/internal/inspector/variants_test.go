package inspector

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/schema"
)

// TestVariants: what is wrong with the chosen variant of a union is said at its fields,
// with and without a discriminator, wherever the union is.
func TestVariants(t *testing.T) {
	const either = `{"oneOf":[{"title":"Person","type":"object","required":["name","age"],"properties":{"name":{"type":"string","minLength":1},"age":{"type":"integer","minimum":0}}},` +
		`{"title":"Firm","type":"object","required":["firm"],"properties":{"firm":{"type":"string"},"at":{"$ref":"#/$defs/place"}}}]}`
	const defs = `"$defs":{"place":{"anyOf":[{"type":"object","required":["city"],"properties":{"city":{"type":"string"}}},{"type":"object","required":["lat","lon"],"properties":{"lat":{"type":"number"},"lon":{"type":"number"}}}]}}`
	of := func(schema string) string {
		return `{"type":"object","required":["who"],"properties":{"who":` + schema + `},` + defs + `}`
	}
	for _, c := range []struct {
		name, schema, value string
		chosen              map[string]int
		want                string
	}{
		{"empty fields", of(either), `{"who":{}}`, map[string]int{"/who": 0}, "/who/age /who/name"},
		{"the other one", of(either), `{"who":{}}`, map[string]int{"/who": 1}, "/who/firm"},
		{"a rule", of(either), `{"who":{"name":"","age":-1}}`, map[string]int{"/who": 0}, "/who/age /who/name"},
		{"anyOf", of(strings.Replace(either, "oneOf", "anyOf", 1)), `{"who":{}}`, map[string]int{"/who": 1}, "/who/firm"},
		{"in a list", of(`{"type":"array","items":` + either + `}`), `{"who":[{"name":"a","age":1},{"firm":"b"},{}]}`, map[string]int{"/who/0": 0, "/who/1": 1, "/who/2": 1}, "/who/2/firm"},
		{"in a map", of(`{"type":"object","additionalProperties":` + either + `}`), `{"who":{"a/b":{}}}`, map[string]int{"/who/a~1b": 1}, "/who/a~1b/firm"},
		{"a union in a union", of(either), `{"who":{"firm":"f","at":{"lat":1}}}`, map[string]int{"/who": 1, "/who/at": 1}, "/who/at/lon"},
		{"the root", `{"type":"object",` + either[1:len(either)-1] + `,` + defs + `}`, `{}`, map[string]int{"": 1}, "/firm"},
		{"nothing is chosen", of(either), `{"who":{}}`, nil, "/who"},
		{"a variant that there is not", of(either), `{"who":{}}`, map[string]int{"/who": 7}, "/who"},
		{"below zero", of(either), `{"who":{}}`, map[string]int{"/who": -1}, "/who"},
		{"a place that there is not", of(either), `{"who":{}}`, map[string]int{"/whom": 0}, "/who"},
		{"nothing is wrong", of(either), `{"who":{"firm":"f"}}`, map[string]int{"/who": 1}, ""},
	} {
		var s schemas
		var got []string
		for _, issue := range s.narrowed([]byte(c.schema), []byte(c.value), s.check([]byte(c.schema), []byte(c.value)), c.chosen) {
			got = append(got, issue.Path)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	deep := []schema.Issue{{Path: "/a", Rule: "oneOf"}}
	if got := (&schemas{}).narrowed([]byte(`{"$ref":"#"}`), []byte(`{"a":1}`), deep, map[string]int{"/a": 0, "": 0}); fmt.Sprint(got) != fmt.Sprint(deep) {
		t.Errorf("%v", got)
	}
}
