package behavior_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
)

// authored is what the methods of the types below write: TestAuthoredSchemas sets it
// before it adds the tool that has them.
var authored string

// writeAuthored adds authored to a schema.
func writeAuthored(s *jsonschema.Schema) *jsonschema.Schema {
	if err := json.Unmarshal([]byte(authored), s); err != nil {
		panic(err)
	}
	return s
}

// The types whose schemas are written, and extended.
type (
	authoredWhole  struct{ value any }
	authoredText   string
	authoredNumber float64
	authoredList   []string
	authoredObject map[string]string
	authoredFields struct {
		A string `json:"a,omitempty"`
		B string `json:"b,omitempty"`
	}
)

func (w *authoredWhole) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &w.value) }

func (authoredWhole) JSONSchema() *jsonschema.Schema         { return writeAuthored(&jsonschema.Schema{}) }
func (authoredText) JSONSchemaExtend(s *jsonschema.Schema)   { writeAuthored(s) }
func (authoredNumber) JSONSchemaExtend(s *jsonschema.Schema) { writeAuthored(s) }
func (authoredList) JSONSchemaExtend(s *jsonschema.Schema)   { writeAuthored(s) }
func (authoredObject) JSONSchemaExtend(s *jsonschema.Schema) { writeAuthored(s) }
func (authoredFields) JSONSchemaExtend(s *jsonschema.Schema) { writeAuthored(s) }

// authoredTool returns a tool with an argument of such a type.
func authoredTool[T any](string) mcp.Component {
	return mcp.Tool("t", func(*mcp.Frame, struct {
		F T `json:"f"`
	}) (string, error) {
		return "", nil
	}, mcp.Doc("Does it."))
}

// What methods of a type write is sent as given, for each keyword that narrowing would
// change. Wrong values are refused, and Add logs what some host does not take.
func TestAuthoredSchemas(t *testing.T) {
	extended := map[string]func(string) mcp.Component{
		"string": authoredTool[authoredText], "number": authoredTool[authoredNumber], "array": authoredTool[authoredList], "object": authoredTool[authoredObject], "": authoredTool[authoredFields],
	}
	for _, tt := range []struct {
		typ, write string // the type, "" is a struct, and the keywords
		good, bad  string // values; bad is "" if the keyword checks nothing
		rules      string // that are logged
	}{
		{"number", `"exclusiveMinimum":0`, `1`, `0`, ""},
		{"number", `"exclusiveMaximum":0`, `-1`, `0`, ""},
		{"number", `"multipleOf":5`, `5`, `6`, ""},
		{"number", `"enum":[1,5]`, `5`, `3`, "enum-number"},
		{"number", `"const":5`, `5`, `3`, "enum-number"},
		{"number", `"format":"int64"`, `5`, ``, ""},
		{"number", `"format":"uint64"`, `5`, ``, ""},
		{"string", `"pattern":"\\d"`, `"5"`, `"a"`, "pattern-plain"},
		{"string", `"pattern":"^(?:a)\\/$"`, `"a/"`, `"a"`, "pattern-plain"},
		{"string", `"pattern":"^\\p{L}$"`, `"a"`, `"5"`, "pattern"},
		{"string", `"enum":["","a"]`, `"a"`, `"b"`, "enum-blank"},
		{"string", `"const":"a"`, `"a"`, `"b"`, ""},
		{"string", `"minLength":2000`, `"` + strings.Repeat("x", 2000) + `"`, `"a"`, "repeat"},
		{"string", `"maxLength":2000`, `"a"`, `"` + strings.Repeat("x", 2001) + `"`, "repeat"},
		{"string", `"format":"uri-reference"`, `"a"`, ``, ""},
		{"string", `"not":{"const":"a"}`, `"b"`, `"a"`, ""},
		{"string", `"if":{"const":"a"},"then":{"minLength":2},"else":{"minLength":1}`, `"b"`, `"a"`, ""},
		{"string", `"allOf":[{"minLength":2},{"maxLength":3}]`, `"ab"`, `"a"`, ""},
		{"string", `"anyOf":[{"pattern":"^a$"},{"pattern":"^b$"}]`, `"b"`, `"c"`, ""},
		{"string", `"oneOf":[{"pattern":"^a$"},{"pattern":"^b$"}]`, `"b"`, `"c"`, ""},
		{"array", `"items":{"type":"string"},"uniqueItems":true`, `["a"]`, `["a","a"]`, ""},
		{"array", `"items":{"type":"string"},"contains":{"const":"a"}`, `["a"]`, `["b"]`, ""},
		{"array", `"items":{"type":"string"},"prefixItems":[{"const":"a"}]`, `["a"]`, `["b"]`, "items, type-none"},
		{"array", `"items":{"type":"string"},"maxItems":2000`, `["a"]`, `["a"` + strings.Repeat(`,"a"`, 2000) + `]`, "repeat"},
		{"array", `"items":{"type":"string"},"minItems":2000`, `["a"` + strings.Repeat(`,"a"`, 1999) + `]`, `["a"]`, "repeat"},
		{"object", `"additionalProperties":{"type":"string"},"propertyNames":{"pattern":"^a$"}`, `{"a":"x"}`, `{"b":"x"}`, ""},
		{"object", `"additionalProperties":{"type":"string"},"patternProperties":{"^a$":{"const":"x"}}`, `{"a":"x"}`, `{"a":"y"}`, "type-none"},
		{"", `"dependentRequired":{"a":["b"]}`, `{"b":"x"}`, `{"a":"x"}`, ""},
		{"", `"dependentSchemas":{"a":{"required":["b"]}}`, `{"b":"x"}`, `{"a":"x"}`, ""},
	} {
		for _, method := range []string{"JSONSchema", "JSONSchemaExtend"} {
			t.Run(fmt.Sprintf("%s %.40s", method, tt.write), func(t *testing.T) {
				tool, want := extended[tt.typ]("f"), ""
				switch authored = "{" + tt.write + "}"; {
				case method == "JSONSchema":
					tool = authoredTool[authoredWhole]("f")
					authored = `{"type":"` + typeOr(tt.typ, "object") + `",` + tt.write + "}"
					want = authored
				case tt.typ == "":
					want = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"additionalProperties":false,` + tt.write + "}"
				default:
					want = `{"type":"` + tt.typ + `",` + tt.write + "}"
				}
				var log harness.LogText
				s := mcp.NewServer(mcp.Info{Name: "authored", Version: "1"}, &mcp.Options{Logger: new(zerolog.New(&log))})
				s.MustAdd(tool)
				c := mcptest.New(t, s)
				var sent struct {
					Properties struct{ F any }
				}
				var whole any
				if json.Unmarshal(c.Tools()[0].InputSchema, &sent) != nil || json.Unmarshal([]byte(want), &whole) != nil || !reflect.DeepEqual(sent.Properties.F, whole) {
					t.Errorf("sent %s, want %s", c.Tools()[0].InputSchema, want)
				}
				if r, err := c.TryCall("t", json.RawMessage(`{"f":`+tt.good+`}`)); err != nil || r.IsError {
					t.Errorf("%.20s is refused: %v, %v", tt.good, r, err)
				}
				if tt.bad != "" {
					if r, err := c.TryCall("t", json.RawMessage(`{"f":`+tt.bad+`}`)); err == nil && !r.IsError {
						t.Errorf("%.20s is taken", tt.bad)
					}
				}
				if got := loggedRules(t, log.String()); got != tt.rules {
					t.Errorf("logged %q, want %q: %s", got, tt.rules, log.String())
				}
			})
		}
	}
}

// typeOr returns typ, or another if there is none.
func typeOr(typ, other string) string {
	if typ == "" {
		return other
	}
	return typ
}

// loggedRules returns the rules of a log that are not the log of a call, each once, in order.
func loggedRules(t *testing.T, log string) string {
	var rules []string
	for line := range strings.Lines(log) {
		var entry struct{ Level, Rule string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Rule != "" && entry.Level == "warn" {
			rules = append(rules, entry.Rule)
		}
	}
	slices.Sort(rules)
	return strings.Join(slices.Compact(rules), ", ")
}

// TestAuthoredAmongOthers checks that the findings of a schema that a method wrote are
// logged, and that no member is logged twice. ExactSchemas adds no findings of the types.
func TestAuthoredAmongOthers(t *testing.T) {
	authored = `{"type":"array"}`
	tool := mcp.Tool("t", func(*mcp.Frame, struct {
		F    authoredWhole   `json:"f"`
		Any  any             `json:"any"`
		Raw  json.RawMessage `json:"raw"`
		Told any             `json:"told" jsonschema_description:"Any value."`
		Odd  string          `json:"odd[]" validate:"ne=x,max=5000"`
	}) (string, error) {
		return "", nil
	}, mcp.Doc("Does it."))
	for _, exact := range []bool{false, true} {
		var log harness.LogText
		s := mcp.NewServer(mcp.Info{Name: "authored", Version: "1"}, &mcp.Options{Logger: new(zerolog.New(&log)), ExactSchemas: exact})
		s.MustAdd(tool)
		got := log.String()
		if rules := loggedRules(t, got); rules != "items, type-none" || strings.Count(got, "\n") != 5 || strings.Count(got, "nothing describes it") != 2 || strings.Count(got, `name \"odd[]\"`) != 1 {
			t.Errorf("exact %v: %s", exact, got)
		}
	}
}
