package inspector

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestControlOfUnion: each kind that a schema allows can be chosen, and what is within it
// has controls, down to the bound.
func TestControlOfUnion(t *testing.T) {
	deep := `{"type":"boolean"}`
	for range 9 {
		deep = `{"type":"object","properties":{"in":` + deep + `}}`
	}
	for _, c := range []struct{ schema, want string }{
		{`{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}`, "union of string text, list of string list"},
		{`{"anyOf":[{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"boolean"}]}},{"type":"string"}]}`, "union of list of string or boolean list, string text"},
		{`{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"boolean"}]}}`, "list"},
		{`{"anyOf":[{"type":"array","items":{"enum":["a","b"]}},{"type":"null"}]}`, "list"},
		{`{"anyOf":[{"const":1},{"const":"asc"}]}`, "choice"},
		{`{"anyOf":[{"const":1},{"const":"asc"},{"type":"null"}]}`, "choice"},
		{`{"anyOf":[{"const":1},{"const":"asc"},{"type":"object","properties":{"by":{"type":"string"}}}]}`, "union of 1 choice, asc choice, {by?} object"},
		{`{"anyOf":[{"enum":["a","b"]},{"type":"string"}]}`, "union of string choice, string text"},
		{`{"anyOf":[{"enum":["a","b"]},{"enum":["c"]}]}`, "choice"},
		{`{"description":"Must be one of 1, 5.","anyOf":[{"type":"integer","maximum":5,"minimum":1},{"type":"null"}],"default":5}`, "number"},
		{`{"anyOf":[{"type":"string","enum":["a","b"]},{"type":"null"}]}`, "choice"},
		{`{"anyOf":[{"type":"boolean"},{"type":"null"}]}`, "bool"},
		{`{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}]}`, "datetime"},
		{`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false},{"type":"null"}]}`, "object in text"},
		{`{"anyOf":[{"type":"string","enum":["a","b"]},{"type":"string","maxLength":0}]}`, "union of string choice, string text"},
		{`{"anyOf":[{"type":"string","format":"email"},{"type":"string","format":"uri"},{"type":"null"}]}`, "union of string text, string text"},
		{`{"type":["boolean","string"]}`, "json of boolean string"},
		{`{"type":"object"}`, "json of object"},
		{`{}`, "json"},
		{deep, strings.Repeat("object in ", 9) + "bool"},
	} {
		form, _, err := draw(json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"p":%s}}`, c.schema)))
		if err != nil || len(form.Fields) != 1 {
			t.Errorf("%s: %d controls, %v", c.schema, len(form.Fields), err)
			continue
		}
		p, got := form.Fields[0], ""
		for p.Kind == "object" && len(p.Fields) == 1 {
			p, got = p.Fields[0], got+"object in "
		}
		got += p.Kind
		if len(p.Types) > 0 {
			got += " of " + strings.Join(p.Types, " ")
		}
		var kinds []string
		for _, v := range p.Variants {
			kinds = append(kinds, v.Label+" "+v.Kind)
		}
		if len(kinds) > 0 {
			got += " of " + strings.Join(kinds, ", ")
		}
		if got != c.want {
			t.Errorf("%s: %s, and not %s", c.schema, got, c.want)
		}
	}
	if form, _, err := draw(json.RawMessage(`{"type":"object"}`)); err != nil || form.Kind != "object" || !form.Free {
		t.Errorf("a tool that names no argument: %+v, %v", form, err)
	}
}
