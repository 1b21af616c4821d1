package toollock

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/talaria-go/mcp/protocol"
)

// pairs are two schemas of a member "x", and the classes of four changes by their
// first letters: the arguments from the first to the second and back, and the results
// from the first to the second and back. A person has given them.
var pairs = []struct{ name, one, other, want string }{
	{"nothing", `{"type":"string"}`, `{"type":"string"}`, "----"},
	{"order of keys", `{"type":"string","minLength":1}`, `{"minLength":1,"type":"string"}`, "----"},
	{"order of required", `{"type":"object","properties":{"a":{},"b":{}},"required":["a","b"]}`, `{"type":"object","properties":{"a":{},"b":{}},"required":["b","a"]}`, "----"},
	{"form of a number", `{"type":"number","maximum":10}`, `{"type":"number","maximum":1e1}`, "----"},
	{"description", `{"type":"string","description":"a"}`, `{"type":"string","description":"b"}`, "WWWW"},
	{"title goes", `{"type":"string","title":"a"}`, `{"type":"string"}`, "WWWW"},
	{"default", `{"type":"string","default":"a"}`, `{"type":"string","default":"b"}`, "WWWW"},
	{"examples", `{"type":"string"}`, `{"type":"string","examples":["a"]}`, "WWWW"},
	{"type", `{"type":"string"}`, `{"type":"integer"}`, "BBBB"},
	{"integer to number", `{"type":"integer"}`, `{"type":"number"}`, "CBBC"},
	{"any type", `{"type":"string"}`, `{}`, "CBBC"},
	{"true", `{"type":"string"}`, `true`, "CBBC"},
	{"false", `{"type":"string"}`, `false`, "BCCB"},
	{"null in a list of types", `{"type":"string"}`, `{"type":["string","null"]}`, "CBBC"},
	{"two spellings of null", `{"type":["string","null"]}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`, "CCCC"},
	{"null as anyOf", `{"type":"string","maxLength":3}`, `{"anyOf":[{"type":"string","maxLength":3},{"type":"null"}]}`, "CBBC"},
	{"enum gets a value", `{"enum":["a"]}`, `{"enum":["a","b"]}`, "CBBC"},
	{"enum in another order", `{"enum":["b","a"]}`, `{"enum":["a","b"]}`, "CCCC"},
	{"const is an enum of one", `{"const":"a"}`, `{"enum":["a"]}`, "CCCC"},
	{"enum of a text", `{"type":"string"}`, `{"type":"string","enum":["a"]}`, "BCCB"},
	{"enum of all booleans", `{"type":"boolean"}`, `{"type":"boolean","enum":[false,true]}`, "CCCC"},
	{"minimum", `{"type":"integer","minimum":1}`, `{"type":"integer","minimum":2}`, "BCCB"},
	{"maximum", `{"type":"integer","maximum":1}`, `{"type":"integer","maximum":2}`, "CBBC"},
	{"maximum of 64 bits", `{"type":"integer","maximum":9223372036854775806}`, `{"type":"integer","maximum":9223372036854775807}`, "CBBC"},
	{"a bound goes", `{"type":"integer","minimum":1}`, `{"type":"integer"}`, "CBBC"},
	{"exclusive bound of integers", `{"type":"integer","exclusiveMinimum":0}`, `{"type":"integer","minimum":1}`, "CCCC"},
	{"exclusive bound of numbers", `{"type":"number","exclusiveMinimum":0}`, `{"type":"number","minimum":0}`, "CBBC"},
	{"two bounds", `{"type":"number","maximum":5,"exclusiveMaximum":5}`, `{"type":"number","maximum":5}`, "CBBC"},
	{"a bound beyond all numbers", `{"type":"number","maximum":1e999999999}`, `{"type":"number","maximum":1e99999}`, "BCCB"},
	{"minLength", `{"type":"string","minLength":1}`, `{"type":"string","minLength":2}`, "BCCB"},
	{"minLength of nothing", `{"type":"string","minLength":0}`, `{"type":"string"}`, "CCCC"},
	{"maxLength", `{"type":"string","maxLength":2}`, `{"type":"string","maxLength":1}`, "BCCB"},
	{"pattern comes", `{"type":"string"}`, `{"type":"string","pattern":"^a"}`, "BCCB"},
	{"pattern differs", `{"type":"string","pattern":"^b"}`, `{"type":"string","pattern":"^a"}`, "BBBB"},
	{"format goes", `{"type":"string","format":"email"}`, `{"type":"string"}`, "CBBC"},
	{"multipleOf", `{"type":"integer","multipleOf":2}`, `{"type":"integer","multipleOf":4}`, "BBBB"},
	{"uniqueItems", `{"type":"array","uniqueItems":true}`, `{"type":"array"}`, "CBBC"},
	{"items", `{"type":"array","items":{"type":"string"}}`, `{"type":"array","items":{"type":["string","null"]}}`, "CBBC"},
	{"items of any type", `{"type":"array","items":{"type":"string"}}`, `{"type":"array"}`, "CBBC"},
	{"maxItems", `{"type":"array","maxItems":2}`, `{"type":"array","maxItems":3}`, "CBBC"},
	{"member is new", `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"additionalProperties":false}`, "CBCB"},
	{"member is new and required", `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"]}`, "BBCB"},
	{"member is required", `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, "BCCB"},
	{"member's type", `{"type":"object","properties":{"a":{"type":"integer"}}}`, `{"type":"object","properties":{"a":{"type":"number"}}}`, "CBBC"},
	{"no other members", `{"type":"object"}`, `{"type":"object","additionalProperties":false}`, "BCCB"},
	{"other members of a type", `{"type":"object","additionalProperties":{"type":"string"}}`, `{"type":"object"}`, "CBBC"},
	{"values of a map", `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"type":"object","additionalProperties":{"type":"number"}}`, "CBBC"},
	{"propertyNames", `{"type":"object"}`, `{"type":"object","propertyNames":{"maxLength":3}}`, "BBBB"},
	{"a keyword of somebody", `{"type":"string"}`, `{"type":"string","x-thing":1}`, "BBBB"},
	{"a range for its numbers", `{"type":"integer","enum":[3,1,2]}`, `{"type":"integer","minimum":1,"maximum":3}`, "CBBC"},
	{"a narrow range for numbers", `{"type":"integer","enum":[0,1,2]}`, `{"type":"integer","minimum":1,"maximum":3}`, "BBBB"},
	{"a range for numbers and null", `{"type":["integer","null"],"enum":[1,5,null]}`, `{"anyOf":[{"type":"integer","minimum":1,"maximum":5},{"type":"null"}]}`, "CBBC"},
	{"a range for a number beyond all", `{"type":"number","enum":[-1e9999999999,5]}`, `{"type":"number","minimum":1,"maximum":5}`, "BBBB"},
	{"not", `{"type":"string","not":{"const":"a"}}`, `{"type":"string"}`, "BBBB"},
	{"anyOf gets a form", `{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"boolean"}]}`, "CBBC"},
	{"a form takes more", `{"anyOf":[{"type":"string","maxLength":3},{"type":"integer"}]}`, `{"anyOf":[{"type":"string"},{"type":"integer"}]}`, "CBBC"},
	{"oneOf of types", `{"oneOf":[{"type":"string"}]}`, `{"oneOf":[{"type":"string"},{"type":"integer"}]}`, "CBBC"},
	{"oneOf that two accept", `{"oneOf":[{"type":"integer"},{"type":"string"}]}`, `{"oneOf":[{"type":"integer"},{"type":"string"},{"type":"number"}]}`, "BBBB"},
	{"variants", `{"oneOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]}]}`, `{"oneOf":[{"type":"object","properties":{"k":{"const":"a"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"b"}},"required":["k"]}]}`, "CBBC"},
	{"a reference", `{"$ref":"#/$defs/s"}`, `{"type":"string"}`, "CCCC"},
	{"a reference to another", `{"$ref":"#/$defs/s"}`, `{"$ref":"#/$defs/n"}`, "BBBB"},
	{"a reference to nothing", `{"$ref":"#/$defs/none"}`, `{"type":"string"}`, "BBBB"},
	{"a recursive type", `{"$ref":"#/$defs/tree"}`, `{"$ref":"#/$defs/wide"}`, "CBBC"},
	{"beside a union", `{"maxLength":3,"anyOf":[{"type":"string"},{"type":"integer"}]}`, `{"anyOf":[{"type":"string"},{"type":"integer"}]}`, "CBBC"},
	{"allOf", `{"allOf":[{"type":"string"}]}`, `{"allOf":[{"type":"string"},{"minLength":1}]}`, "BBBB"},
}

const defs = `"$defs":{"s":{"type":"string"},"n":{"type":"integer"},` +
	`"tree":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/tree"}}},` +
	`"wide":{"type":"object","properties":{"v":{"type":"number"},"next":{"$ref":"#/$defs/wide"}}}}`

func schemaOf(x string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"x":` + x + `},"additionalProperties":false,` + defs + `}`)
}

func lockOf(t *testing.T, tools ...protocol.Tool) *Lock {
	t.Helper()
	l, err := New("s", "", tools)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func classOf(t *testing.T, old, now protocol.Tool) (letter, shown string) {
	t.Helper()
	before, after := lockOf(t, old), lockOf(t, now)
	found := Compare(before, after)
	same := before.Judge(now) == nil
	if same != (len(found) == 0) {
		t.Errorf("Judge says that they are the same: %v; Compare finds %v", same, found)
	}
	if len(found) == 0 {
		return "-", ""
	}
	for _, d := range found {
		shown += d.String() + "\n"
	}
	return strings.ToUpper(found[0].Class.String()[:1]), shown
}

func TestClasses(t *testing.T) {
	arguments := func(x string) protocol.Tool { return protocol.Tool{Name: "t", InputSchema: schemaOf(x)} }
	results := func(x string) protocol.Tool {
		return protocol.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: schemaOf(x)}
	}
	judged := 0
	for _, pair := range pairs {
		t.Run(pair.name, func(t *testing.T) {
			for i, change := range []struct{ old, now protocol.Tool }{
				{arguments(pair.one), arguments(pair.other)}, {arguments(pair.other), arguments(pair.one)},
				{results(pair.one), results(pair.other)}, {results(pair.other), results(pair.one)},
			} {
				got, shown := classOf(t, change.old, change.now)
				if want := pair.want[i : i+1]; got != want {
					t.Errorf("change %d is %s, want %s: %s", i, got, want, shown)
				}
				judged++
			}
			checkDocuments(t, pair.one, pair.other, pair.want[0] != 'B')
			checkDocuments(t, pair.other, pair.one, pair.want[1] != 'B')
		})
	}
	if judged < 200 {
		t.Errorf("only %d changes", judged)
	}
}

// checkDocuments validates documents that the old schema accepts under the new one,
// with a validator that is not ours.
func checkDocuments(t *testing.T, old, now string, compatible bool) {
	t.Helper()
	if !compatible {
		return
	}
	before, after := compiled(t, schemaOf(old)), compiled(t, schemaOf(now))
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		document := map[string]any{"x": value(random, 3)}
		if before.Validate(document) == nil && after.Validate(document) != nil {
			t.Errorf("%v was accepted by %s, and is not by %s", document, old, now)
		}
	}
}

func compiled(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:x", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:x")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// value returns a document in which values near the bounds of the pairs are frequent.
func value(random *rand.Rand, depth int) any {
	switch n := random.IntN(8); {
	case n == 0:
		return nil
	case n == 1:
		return random.IntN(2) == 0
	case n <= 3:
		return []any{0, 1, 2, 3, 4, 5, 6, 10, 11, -1, 0.5, 1.5, json.Number("9223372036854775807")}[random.IntN(13)]
	case n <= 5 || depth == 0:
		return []string{"", "a", "b", "ab", "abc", "abcd", "a@b.c"}[random.IntN(7)]
	case n == 6:
		list := make([]any, random.IntN(4))
		for i := range list {
			list[i] = value(random, depth-1)
		}
		return list
	}
	m := map[string]any{}
	for range random.IntN(4) {
		m[[]string{"a", "b", "k", "v", "next", "other"}[random.IntN(6)]] = value(random, depth-1)
	}
	return m
}

// What is not a schema changes a class as well.
func TestClassesOfTools(t *testing.T) {
	base := protocol.Tool{Name: "t", Description: "d", InputSchema: json.RawMessage(`{"type":"object"}`)}
	change := func(f func(*protocol.Tool)) protocol.Tool {
		tool := base
		f(&tool)
		return tool
	}
	hints := func(a protocol.ToolAnnotations) protocol.Tool {
		return change(func(t *protocol.Tool) { t.Annotations = &a })
	}
	for name, test := range map[string]struct {
		old, now protocol.Tool
		want     string
	}{
		"description":      {base, change(func(t *protocol.Tool) { t.Description = "e" }), "words: t: its description differs\n"},
		"title":            {base, change(func(t *protocol.Tool) { t.Title = "e" }), "words: t: its title differs\n"},
		"icons":            {base, change(func(t *protocol.Tool) { t.Icons = []protocol.Icon{{Src: "data:,"}} }), ""},
		"_meta":            {base, change(func(t *protocol.Tool) { t.Meta = map[string]any{"ui": 1} }), "breaking: t: its _meta differs\n"},
		"more checks":      {base, change(func(t *protocol.Tool) { t.Meta = map[string]any{"io.github.talaria-go/checks": true} }), ""},
		"results":          {base, change(func(t *protocol.Tool) { t.OutputSchema = json.RawMessage(`{"type":"object"}`) }), "compatible: t: its results have a schema now\n"},
		"no results":       {change(func(t *protocol.Tool) { t.OutputSchema = json.RawMessage(`{"type":"object"}`) }), base, "breaking: t: its results have no schema now\n"},
		"another name":     {base, change(func(t *protocol.Tool) { t.Name = "u" }), "breaking: t: the tool is gone\ncompatible: u: the tool is new\n"},
		"is read-only":     {base, hints(protocol.ToolAnnotations{ReadOnlyHint: new(true)}), "compatible: t: annotations.readOnlyHint is true now\n"},
		"is not":           {hints(protocol.ToolAnnotations{ReadOnlyHint: new(true)}), base, "breaking: t: annotations.readOnlyHint is false now\n"},
		"is destructive":   {hints(protocol.ToolAnnotations{DestructiveHint: new(false)}), base, "breaking: t: annotations.destructiveHint is true now\n"},
		"says the default": {base, hints(protocol.ToolAnnotations{DestructiveHint: new(true)}), "compatible: t: annotations.destructiveHint says what its absence means\n"},
	} {
		if _, got := classOf(t, test.old, test.now); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A lock is the same after it was written and read.
func TestText(t *testing.T) {
	l, err := New("weather", "Ask for <places>.\n", []protocol.Tool{
		{Name: "b", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"maximum":18446744073709551615}}}`)},
		{Name: "a", Title: "A", Description: "\u202e & <", InputSchema: schemaOf(`true`), Annotations: &protocol.ToolAnnotations{ReadOnlyHint: new(true)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mcp.lock")
	if err := l.Write(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if found := Compare(l, again); len(found) > 0 {
		t.Error(found)
	}
	if err := again.Write(file); err != nil {
		t.Error(err)
	}
	twice, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(twice, text) {
		t.Errorf("%v\n%s\n%s", err, text, twice)
	}
	if !strings.HasPrefix(string(text), "{\n  \"lock\": 1,\n  \"server\": {\n    \"name\": \"weather\"\n  },\n  \"instructions\": \"Ask for <places>.\\n\",\n  \"tools\": {\n    \"a\": {") {
		t.Errorf("%s", text)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"": "x: it is not a lock: unexpected end of JSON input", "[]": "x: it is not a lock: json: cannot unmarshal array",
		"{}": `x: it is not a lock: the member "lock" must be 1`, `{"lock":2,"tools":{}}`: "x: version 2 is newer than this talaria",
		`{"lock":1}`:                            `x: it is not a lock: the member "tools" is missing`,
		`{"lock":1,"tools":{"a":[]}}`:           `x: tool "a": json: cannot unmarshal array`,
		`{"lock":1,"tools":{"a":null}}`:         `x: tool "a" has another name in its definition`,
		`{"lock":1,"tools":{"a":{"name":"b"}}}`: `x: tool "a" has another name in its definition`,
	} {
		if _, err := parse("x", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte("package main"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "mcp.lock")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := new(Lock).Write(empty); err != nil {
		t.Error(err)
	}
	if err := new(Lock).Write(source); err == nil || !strings.HasSuffix(err.Error(), "it is left as it is") {
		t.Errorf("what is no lock is overwritten: %v", err)
	}
	if text, err := os.ReadFile(source); err != nil || string(text) != "package main" {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := New("s", "", []protocol.Tool{{Name: "a"}, {Name: "a"}}); err == nil {
		t.Error("a tool is listed twice")
	}
}

// A lock that an editor or a formatter has rewritten is the same lock.
func TestForms(t *testing.T) {
	want := lockOf(t, protocol.Tool{Name: "a", InputSchema: json.RawMessage(`{"type":"object","maxProperties":10}`)})
	const text = `{"lock":1,"server":{"name":"s"},"tools":{"a":{"name":"a","inputSchema":{"type":"object","maxProperties":10}}}}`
	for name, form := range map[string][2]string{
		"as it is":            {"", ""},
		"a mark":              {"{", "\ufeff\r\n{"},
		"N.0":                 {`"lock":1`, `"lock":1.0`},
		"an exponent":         {`10`, `1e1`},
		"N.0 in a definition": {`10`, `10.0`},
		"null":                {`"server"`, `"instructions":null,"server"`},
		"half a pair":         {`"server"`, `"note":"\ud83d","server"`},
	} {
		got, err := parse("x", []byte(strings.Replace(text, form[0], form[1], 1)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if found := Compare(want, got); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
	}
}

// Unions in unions cost no more than a limit.
func TestManyForms(t *testing.T) {
	grow := func(leaf string) string {
		for range 12 {
			leaf = `{"type":"object","properties":{"a":{"anyOf":[` + leaf + `,{"type":"string","maxLength":1}]}},"anyOf":[{"required":["a"]},{"minProperties":1},{"maxProperties":3}]}`
		}
		return leaf
	}
	got, shown := classOf(t, protocol.Tool{Name: "t", InputSchema: schemaOf(grow(`{"type":"integer"}`))}, protocol.Tool{Name: "t", InputSchema: schemaOf(grow(`{"type":"number"}`))})
	if got != "B" || !strings.Contains(shown, "too many forms") {
		t.Errorf("%s %s", got, shown)
	}
}
