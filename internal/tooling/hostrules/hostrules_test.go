package hostrules_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/tooling/hostrules"
	"github.com/talaria-go/mcp/protocol"
)

// rulesOf returns the rules that findings have, each once.
func rulesOf(findings []hostrules.Finding) (ids []string) {
	for _, f := range findings {
		ids = append(ids, f.Rule.ID)
	}
	return slices.Compact(ids)
}

// Each rule is complete, and its own input breaks it and no other that fails.
func TestRules(t *testing.T) {
	form := regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)*$`)
	beside := map[string][]string{"root-union": {"required"}, "unchecked": nil} // needs another one
	seen := map[string]bool{}
	for i := range hostrules.Rules {
		r := &hostrules.Rules[i]
		if !form.MatchString(r.ID) || seen[r.ID] || hostrules.Find(r.ID).ID != r.ID || r.Warns && !r.Fails {
			t.Errorf("rule %q", r.ID)
		}
		seen[r.ID] = true
		reason := hostrules.Reasons[i]
		if reason.Rule != r.ID {
			t.Fatalf("%s: the reasons at its place are those of %s", r.ID, reason.Rule)
		}
		for what, text := range map[string]string{"what": reason.What, "who": reason.Who, "source": reason.Source, "fix": r.Fix} {
			if text == "" || strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s is %q", r.ID, what, text)
			}
		}
		if !regexp.MustCompile(`^2026-(09|1[0-2])$`).MatchString(reason.Date) {
			t.Errorf("%s: the date is %q", r.ID, reason.Date)
		}
		findings := hostrules.Check("", inputs[r.ID]())
		own := 0
		for _, f := range findings {
			if f.Rule.ID == r.ID {
				own++
				if f.Warn != r.Warns || f.Text == "" {
					t.Errorf("%s: got %+v", r.ID, f)
				}
			} else if f.Rule.Fails && !slices.Contains(beside[r.ID], f.Rule.ID) && !(r.ID == "tokens" || r.ID == "tools") {
				t.Errorf("%s: its input breaks %s, too: %s", r.ID, f.Rule.ID, f)
			}
		}
		if own == 0 {
			t.Errorf("%s: its input does not break it: %v", r.ID, findings)
		}
	}
	if len(inputs) != len(hostrules.Rules) || len(hostrules.Reasons) != len(hostrules.Rules) {
		t.Errorf("%d rules, %d reasons, %d inputs", len(hostrules.Rules), len(hostrules.Reasons), len(inputs))
	}
	if hostrules.Find("none") != nil {
		t.Error("a rule that does not exist was found")
	}
}

// tool returns a tool with that schema of arguments, which is else in order.
func tool(schema string) protocol.Tool {
	yes := true
	return protocol.Tool{Name: "search", Description: "Searches.", Annotations: &protocol.ToolAnnotations{ReadOnlyHint: &yes}, InputSchema: json.RawMessage(schema)}
}

// Findings have the place and the text; what hosts accept has none.
func TestCheckSchemas(t *testing.T) {
	property := func(schema string) string {
		return `{"type":"object","properties":{"q":` + schema + `}}`
	}
	for _, tt := range []struct{ schema, want string }{
		{property(`{"type":"string","pattern":"^[a-z]+$","enum":["a","b"],"default":"a","description":"text","format":"uri","maxLength":1999}`), ""},
		{property(`{"anyOf":[{"type":"string"},{"type":"null"}]}`), ""},
		{property(`{"type":"object","properties":{"a.b[]":{"type":"integer","format":"int64","minimum":1}},"additionalProperties":true,"required":["a.b[]"]}`), ""},
		{property(`{"type":"array","items":{"type":"array","items":{"type":"boolean"}}}`), ""},
		{property(`{"type":"object","additionalProperties":{"type":"string","pattern":"x"}}`), "pattern-plain /properties/q/additionalProperties"},
		{property(`{"type":"object","patternProperties":{"^x$":{"type":"string","pattern":"x"}}}`), "keyword /properties/q"},
		{property(`{"type":["string","null"],"pattern":"x"}`), "pattern-plain /properties/q, type-list /properties/q"},
		{property(`{"type":"array","items":{"type":["string","null"]}}`), "type-list /properties/q/items"},
		{property(`{"type":"array","items":[{"type":"string"}]}`), "items /properties/q"},
		{property(`{"type":"array","prefixItems":[{"type":"string"}]}`), "items /properties/q"},
		{property(`{"type":"array","items":{}}`), "type-none /properties/q/items"},
		{property(`{"type":"array","items":true}`), "type-none /properties/q/items"},
		{property(`true`), "type-none /properties/q"},
		{property(`{"anyOf":[{"format":"email"},{"type":"string"}]}`), "type-none /properties/q/anyOf/0"},
		{property(`{"type":"string","anyOf":[{"format":"email"},{"minLength":3}]}`), ""},
		{property(`{"type":"string","allOf":[{"minLength":3}],"not":{"enum":["x"]}}`), "keyword /properties/q"},
		{property(`{"enum":["a"]}`), "type-none /properties/q"},
		{property(`{"type":"boolean","const":true}`), "enum-number /properties/q"},
		{property(`{"type":"integer","enum":[1,null]}`), "enum-number /properties/q, enum-blank /properties/q"},
		{property(`{"type":"array","items":{"type":"string"},"maxItems":2000,"uniqueItems":true}`), "keyword /properties/q, repeat /properties/q"},
		{property(`{"type":"string","enum":["a"],"maxLength":5000}`), ""},
		{property(`{"type":"string","format":"date","maxLength":5000}`), ""},
		{property(`{"type":"string","minLength":1e999}`), "repeat /properties/q"},
		{property(`{"type":"string","pattern":"^a{3000}$"}`), "repeat /properties/q"},
		{property(`{"type":"object","properties":{},"propertyNames":{"pattern":"x"}}`), "keyword /properties/q"},
		{property(`{"type":"integer","multipleOf":5}`), "keyword /properties/q"},
		{property(`{"$ref":"#"}`), "ref /properties/q"},
		{property(`{"$ref":"#/none"}`), "ref /properties/q"},
		{property(`{"$ref":"https://example.com/x"}`), "ref /properties/q"},
		{`{"type":"object","properties":{"a":{"$ref":"#/$defs/a~1b"},"b":{"$ref":"#/$defs/a~1b"}},"$defs":{"a/b":{"type":"array"}}}`, "items /$defs/a~1b, ref /properties/a"},
		{`{"type":"object","properties":{"a/b":{"type":"string"}}}`, "member /properties/a~1b"},
		{`{"type":"object","properties":{"":{"type":"string"}}}`, "member /properties/"},
		{`{"type":"object","properties":{"uids[]":{"type":"string"},"a b":{"type":"string"},"$id":{"type":"string"},"a:b":{"type":"string"}}}`, "member /properties/$id, member /properties/a b, member /properties/a:b, member /properties/uids[]"},
		{`{"type":"object","properties":{"größe":{"type":"string"},"日本":{"type":"string"},"😀":{"type":"string"},"a\u0301":{"type":"string"},"~":{"type":"string"}}}`, "member /properties/a\u0301, member /properties/größe, member /properties/~0, member /properties/日本, member /properties/😀"},
		{`{"type":"object","properties":{"` + strings.Repeat("x", 65) + `":{"type":"string"}}}`, "member /properties/" + strings.Repeat("x", 65)},
		{`{"type":"object","properties":{"` + strings.Repeat("x", 64) + `":{"type":"string"},"-":{"type":"string"},".":{"type":"string"},"_":{"type":"string"},"0":{"type":"string"},"__proto__":{"type":"string"},"A.b-C_9":{"type":"string"}}}`, ""},
		{property(`{"type":"object","properties":{"größe":{"type":"string"},"uids[]":{"type":"array","items":{"type":"object","properties":{"a b":{"type":"string"}}}}}}`), ""},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["größe"]}`, "required "},
		{`{"type":"object","properties":[]}`, "properties "},
		{`{"type":"object","properties":{},"required":["q",1]}`, "required , required "},
		{`{"type":"object","properties":{},"$schema":"http://json-schema.org/draft-07/schema#"}`, ""},
		{`{"type":"object","properties":{},"$schema":"https://json-schema.org/draft/2020-12/schema"}`, "dialect "},
		{`{"type":"object","properties":{},"if":{},"then":{}}`, "root-if "},
		{`{"type":"object","properties":{"q":{"type":"string","description":"a\u200bb"}}}`, "text-hidden /properties/q"},
		{`{"type":["object"],"properties":{}}`, "root-type , type-list "},
		{`{}`, "root-type "}, {`[]`, "root-type "}, {`null`, "root-type "}, {``, "root-type "}, {`{"type":"object"} {}`, "root-type "}, {`{"type":`, "root-type "},
	} {
		var got []string
		for _, f := range hostrules.Check("", []protocol.Tool{tool(tt.schema)}) {
			got = append(got, f.Rule.ID+" "+f.Path)
		}
		if text := strings.Join(got, ", "); text != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.schema, text, tt.want)
		}
	}
}

// Patterns belong to the host that refuses them.
func TestCheckPatterns(t *testing.T) {
	for want, patterns := range map[string][]string{
		"": {`^$`, `^[a-z]+$`, `^a\.b$`, `^(a|b)*$`, `^[^\]\[\\]$`, `^\x41B\t$`, `^a{2,3}$`, `^a{2,}$`, `^"$`, `^[a-]$`, `^a+?$`, `^é$`},
		"pattern-plain": {``, `a`, `^a`, `a$`, `^(?:a)$`, `^\d$`, `^\w\s$`, `^\/$`, `^[\-]$`, `^[\/]$`, `^[\.]$`, `^\-$`, `^(?i)a$`, `^(?P<n>a)$`, `^a}$`, `^]$`, `^[]a]$`, `^a{x}$`,
			`^(a$`, `^a)$`, `^[a$`, `^a\$`, `^\v$`, `^a{$`},
		"pattern":      {`^\p{L}+$`, `^\P{L}$`, `\u{61}`, `^(?<n>a)$`, `\k<n>`, `\cA`, `^\z`, `\xg`, `a\`, `^[\p{L}]$`, `\e`},
		"pattern-look": {`^(?=a)b$`, `(?!a)`, `(?<=a)`, `(?<!a)\p{L}`},
		"repeat":       {`^a{2000}$`, `^a{1,2001}$`, `^a{99999}$`},
	} {
		for _, p := range patterns {
			text, _ := json.Marshal(p)
			found := hostrules.Check("", []protocol.Tool{tool(fmt.Sprintf(`{"type":"object","properties":{"q":{"type":"string","pattern":%s}}}`, text))})
			if got := strings.Join(rulesOf(found), " "); got != want {
				t.Errorf("%s: got %q, want %q", p, got, want)
			}
		}
	}
}

// Names, descriptions and instructions.
func TestCheckTexts(t *testing.T) {
	named := func(name string) protocol.Tool {
		one := tool(`{"type":"object","properties":{}}`)
		one.Name = name
		return one
	}
	for _, tt := range []struct{ server, name, want string }{
		{"", strings.Repeat("x", 64), ""},
		{"", strings.Repeat("x", 65), `refused  name-long  ` + strings.Repeat("x", 65) + `: it has 65 characters, and Claude's API and OpenAI accept 64; shorten it`},
		{"notes", strings.Repeat("x", 52), ""},
		{"notes", strings.Repeat("x", 53), `refused  name-long  ` + strings.Repeat("x", 53) + `: mcp__notes__` + strings.Repeat("x", 53) + ` has 65 characters, and Claude's API accepts 64; shorten it`},
		{"", "weather.now", "refused  name  weather.now: Claude Desktop and OpenAI take letters, digits, _ and - only; rename it"},
		{"", "wétter", "refused  name  wétter: Claude Desktop and OpenAI take letters, digits, _ and - only; rename it"},
		{"", "\x1b[31mred\n", "refused  name  ␛[31mred: Claude Desktop and OpenAI take letters, digits, _ and - only; rename it"},
	} {
		var got []string
		for _, f := range hostrules.Check(tt.server, []protocol.Tool{named(tt.name)}) {
			got = append(got, f.Line())
		}
		if text := strings.Join(got, "\n"); text != tt.want {
			t.Errorf("got  %s\nwant %s", text, tt.want)
		}
	}
	if got := hostrules.Name("weather.now"); len(got) != 1 || got[0].String() != `tool "weather.now": name: Claude Desktop and OpenAI take letters, digits, _ and - only; rename it` {
		t.Errorf("got %v", got)
	}
	look := tool(`{"type":"object","properties":{"q":{"type":"string","pattern":"^\\p{L}+$"}}}`)
	if got := hostrules.Check("", []protocol.Tool{look}); len(got) != 1 || got[0].Line() != `refused  pattern  search /properties/q: OpenAI cannot compile ^\p{L}+$; write what it must be in the description` {
		t.Errorf("got %v", got)
	}
	for text, want := range map[string]string{"": "", "Use it.": "", strings.Repeat("ü", 2048): "", strings.Repeat("ü", 2049): "text-2048", "a\u202eb": "text-hidden", "👩‍👩‍👧 \r\n\tx": ""} {
		if got := strings.Join(rulesOf(hostrules.Server("", nil, text)), " "); got != want {
			t.Errorf("%.20q: got %s, want %s", text, got, want)
		}
	}
	same := []protocol.Tool{named("a_b"), named("a_b"), named("A-b"), named("a.B")}
	if got := rulesOf(hostrules.Check("", same)); !slices.Equal(got, []string{"name", "name-alike"}) {
		t.Errorf("got %v", got)
	}
}

func TestAllow(t *testing.T) {
	found := hostrules.Check("", []protocol.Tool{{Name: "a.b", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)}})
	for allow, want := range map[string]string{"": "name text-none hints", "name": "text-none hints", "name:a.b": "text-none hints", "name:b": "name text-none hints", "name text-none": "hints"} {
		allowed, err := hostrules.Allow(strings.Fields(allow))
		if err != nil {
			t.Fatal(err)
		}
		left := slices.DeleteFunc(slices.Clone(found), allowed.Has)
		if got := strings.Join(rulesOf(left), " "); got != want {
			t.Errorf("%q: got %s, want %s", allow, got, want)
		}
	}
	for text, want := range map[string]string{
		"nam": `there is no rule "nam"; did you mean name?`, "Pattern-plane:x": `did you mean pattern-plain?`,
		"name:": `"name:" names no tool; write RULE or RULE:TOOL`,
		"":      `there is no rule ""; docs/hosts.md lists them`, strings.Repeat("x", 1<<20): "there is no rule", "weather.now": "lists them",
	} {
		if _, err := hostrules.Allow([]string{"ref", text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// What an untrusted server sends costs no more than its size, and what is not looked
// at is said.
func TestCheckBounds(t *testing.T) {
	nested := func(n int) string {
		return `{"type":"object","properties":{"q":` + strings.Repeat(`{"type":"array","items":`, n) + `{"type":"string"}` + strings.Repeat(`}`, n) + `}}`
	}
	refs := func(n int) string { // each leads to a part of the others
		var b strings.Builder
		b.WriteString(`{"type":"object","properties":{"q":`)
		for i := range n {
			fmt.Fprintf(&b, `{"type":"object","anyOf":[{"$ref":"#/properties/q%s"}],"properties":{"q":`, strings.Repeat("/properties/q", i))
		}
		return b.String() + `{"type":"string"}` + strings.Repeat(`}}`, n) + `}}`
	}
	wide := `{"type":"object","properties":{` + strings.TrimSuffix(strings.Repeat(`"q":{"type":"array"},`, 10), ",") + `}}`
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `"q%d":{"type":"array"},`, i)
	}
	manyPlaces := `{"type":"object","properties":{` + strings.TrimSuffix(many.String(), ",") + `}}`
	big := tool(`{"type":"object","properties":{"q":{"type":"string","description":"` + strings.Repeat("x", 1<<20) + `"}}}`)
	for _, tt := range []struct {
		name  string
		tools []protocol.Tool
		rules string
		n     int // findings
	}{
		{"64 levels", []protocol.Tool{tool(nested(62))}, "", 0},
		{"more levels", []protocol.Tool{tool(nested(64))}, "unchecked", 1},
		{"many levels", []protocol.Tool{tool(nested(1000))}, "unchecked", 1},
		{"too many levels for JSON", []protocol.Tool{tool(nested(20_000))}, "root-type tokens", 2},
		{"references", []protocol.Tool{tool(refs(50))}, "ref", 20},
		{"a name again and again", []protocol.Tool{tool(wide)}, "items", 1},
		{"places", []protocol.Tool{tool(manyPlaces)}, "items", 20},
		{"tools", slices.Repeat([]protocol.Tool{tool(`{"type":"object","properties":{}}`)}, 20_001), "tools tokens unchecked", 3},
		{"bytes", slices.Repeat([]protocol.Tool{big}, 40), "tokens unchecked", 2},
		{"nothing", nil, "", 0},
	} {
		found := hostrules.Check("", tt.tools)
		if got := strings.Join(rulesOf(found), " "); got != tt.rules || len(found) != tt.n {
			t.Errorf("%s: got %d of %s, want %d of %s", tt.name, len(found), got, tt.n, tt.rules)
		}
	}
}

// FuzzCheck finds schemas that end the check, or whose findings cannot be shown.
func FuzzCheck(f *testing.F) {
	for i := range hostrules.Rules {
		r := &hostrules.Rules[i]
		for _, t := range inputs[r.ID]()[:1] {
			f.Add(t.Name, t.Description, []byte(t.InputSchema))
		}
	}
	f.Fuzz(func(t *testing.T, name, description string, schema []byte) {
		one := protocol.Tool{Name: name, Description: description, InputSchema: schema, OutputSchema: schema}
		for _, found := range hostrules.Check(name, []protocol.Tool{one, one}) {
			if line := found.Line() + found.String(); strings.ContainsAny(line, "\n\x1b") {
				t.Errorf("%q cannot be shown", line)
			}
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	schema := `{"type":"object","properties":{"q":{"type":"string","description":"What to look for.","minLength":1,"maxLength":200,"pattern":"^[a-z]+$"},` +
		`"limit":{"type":"integer","minimum":1,"maximum":100,"default":20},"in":{"type":"array","items":{"type":"string","enum":["title","body","tags"]}},` +
		`"by":{"anyOf":[{"type":"object","properties":{"name":{"type":"string"},"team":{"type":"string"}},"required":["name"],"additionalProperties":false},{"type":"null"}]}},"required":["q"],"additionalProperties":false}`
	tools := []protocol.Tool{tool(schema)}
	b.ReportAllocs()
	for b.Loop() {
		hostrules.Check("notes", tools)
	}
}
