package arguments

import (
	"reflect"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/schema"
)

// Arguments of the schema that hosts take, with null by an anyOf, are read as those of
// the exact one, and pass the check of the type.
func TestNarrowSchemas(t *testing.T) {
	type inner struct {
		A string `json:"a"`
	}
	type in struct {
		Text  *string        `json:"text" jsonschema:"nullable" validate:"max=5"`
		Count *int           `json:"count" jsonschema:"nullable" validate:"oneof=1 5"`
		Kind  *string        `json:"kind" jsonschema:"nullable" validate:"oneof=1 b"`
		Sure  *bool          `json:"sure" jsonschema:"nullable"`
		List  []string       `json:"list" jsonschema:"nullable"`
		Inner *inner         `json:"inner" jsonschema:"nullable"`
		Since *time.Time     `json:"since" jsonschema:"nullable"`
		Map   map[string]int `json:"map" jsonschema:"nullable"`
	}
	plan, err := schema.Compile(reflect.TypeFor[in](), nil)
	if err != nil {
		t.Fatal(err)
	}
	narrow, exact := object(t, string(plan.Internal(facts.Private{}).Narrow)), object(t, string(plan.JSON()))
	for _, words := range [][]string{
		{"text=5", "count=5", "kind=1", "sure=true", "list=[\"1\"]", "inner.a=7", "since=2026-01-02T03:04:05Z", "map.k=3"},
		{"text:=null", "count=null", "kind=null", "sure=null", "list:=null", "inner=null", "since:=null", "map=null"},
		{"text=", "count=1", "kind=b", "sure=false", "list=a", "list=b", `inner={"a":"x"}`, "since:=null", "map={}"},
	} {
		got, err := narrow.Parse(words)
		want, errExact := exact.Parse(words)
		if err != nil || errExact != nil || string(got) != string(want) {
			t.Errorf("%q: got %s, %v; with the exact schema %s, %v", words, got, err, want, errExact)
		}
		if err := plan.Check(got); err != nil {
			t.Errorf("%q: %s: %v", words, got, err)
		}
	}
}
