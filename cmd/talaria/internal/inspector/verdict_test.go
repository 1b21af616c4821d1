package inspector

import (
	"net/http"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/tooling/hostrules"
)

// verdictTools are tools of which hosts do not accept something, and one that is broken.
const verdictTools = `{"tools":[
	{"name":"notes.find","description":"Finds notes","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"q":{"type":["string","null"]}}}},
	{"name":"notes_find","inputSchema":{"type":"object"}},
	{"name":"bad","description":5,"inputSchema":{"type":"object"}},
	{"name":"typed","description":"Has a result","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{}},"outputSchema":{"type":"object"}}]}`

// TestVerdict: it has what lint has, and what only an inspector sees; the head counts it,
// the list marks it, and the form has the line.
func TestVerdict(t *testing.T) {
	i := inspect(t, scripted("2025-11-25", map[string]string{
		"tools/list": verdictTools, "tools/call typed": `{"content":[{"type":"text","text":"no"}]}`, "prompts/list": `{"prompts":[{"name":"p","description":5}]}`,
		"resources/list": `{"resources":[]}`, "resources/templates/list": `{"resourceTemplates":[]}`}), "")
	list := listed(t, i, "tool")
	listed(t, i, "prompt")
	if c := finished(t, i, "typed", "{}"); c.State != "invalid" {
		t.Fatalf("%+v", c)
	}
	var v verdict
	if code := ask(t, i, "GET", "/api/verdict", "", &v); code != http.StatusOK {
		t.Fatal(code)
	}
	var lines []string
	fails := map[string]int{}
	notes := 0
	for _, f := range v.Findings {
		lines = append(lines, strings.TrimSpace(f.Rule+" "+f.Tool+" "+f.Path))
		if f.Fails {
			fails[f.Tool]++
		} else {
			notes++
		}
		if f.Tool != f.Name || f.Who == "" || f.Fix == "" || f.Line != 0 {
			t.Errorf("%+v", f)
		}
	}
	const want = "name notes.find, name-alike notes_find, properties notes_find, type-list notes.find /properties/q, text-none notes_find, hints notes_find"
	if got := strings.Join(lines, ", "); got != want {
		t.Errorf("found %s\nwant  %s", got, want)
	}
	if len(v.Broken) != 2 || v.Broken[0].Name != "bad" || !strings.Contains(v.Broken[0].Wrong, "description") || v.Broken[1].Kind != "prompt" {
		t.Errorf("broken: %+v", v.Broken)
	}
	if len(v.Results) != 1 || v.Results[0].Name != "typed" || len(v.Results[0].Issues) != 1 {
		t.Errorf("results: %+v", v.Results)
	}
	sum := 0
	for _, w := range v.Tokens {
		sum += w.Tokens
	}
	if v.Tools != 4 || len(v.Tokens) != 4 || sum != v.Total || v.Total == 0 {
		t.Errorf("tokens: %+v, %d", v.Tokens, v.Total)
	}
	for _, e := range list.Entries {
		if e.Fails != fails[e.Name] {
			t.Errorf("%s has %d findings, and not %d", e.Name, e.Fails, fails[e.Name])
		}
	}
	if got := snapshot(i).Check; got != (counts{Fails: 5, Notes: notes, Broken: 2, Results: 1}) {
		t.Errorf("the head has %+v", got)
	}
	ask(t, i, "GET", "/api/verdict?as="+strings.Repeat("x", 60), "", &v)
	if len(v.Findings) <= len(lines) {
		t.Error("the name of the server counts for nothing")
	}
	var f form
	ask(t, i, "GET", "/api/form?tool=notes.find", "", &f)
	sent := strings.Split(f.Sent, "\n")
	for n, want := range []string{`"name": "notes.find"`, `"q": {`} {
		if at := f.Findings[n].Line; !strings.Contains(sent[at-1], want) {
			t.Errorf("finding %d is at line %d, %s, and not %s", n, at, sent[at-1], want)
		}
	}
}

// TestVerdictBounds: a list with more than can be listed is counted.
func TestVerdictBounds(t *testing.T) {
	var tools []string
	for range maxFindings {
		tools = append(tools, `{"name":"a b","inputSchema":{"type":"object","properties":{}}}`)
	}
	i := inspect(t, scripted("2025-11-25", map[string]string{"tools/list": `{"tools":[` + strings.Join(tools, ",") + `]}`}), "")
	listed(t, i, "tool")
	var v verdict
	ask(t, i, "GET", "/api/verdict", "", &v)
	if c := snapshot(i).Check; len(v.Findings) != maxFindings || len(v.Broken) != maxWeighed || len(v.Tokens) != maxWeighed ||
		v.More != c.Fails+c.Notes+c.Broken-maxFindings-maxWeighed || v.Tools != maxFindings {
		t.Errorf("%d findings, %d broken, %d weighed, %d more, %+v", len(v.Findings), len(v.Broken), len(v.Tokens), v.More, c)
	}
}

// TestLineOf: a pointer leads to a line, or to the last place on the way.
func TestLineOf(t *testing.T) {
	text := indented([]byte(`{"name":"n","inputSchema":{"properties":{"a/b":{"anyOf":[{"type":"string"},{"type":"null"}]}}},"x":`))
	whole := indented([]byte(`{"name":"n","inputSchema":{"properties":{"a/b":{"anyOf":[{"type":"string"},{"type":"null"}]}}}}`))
	for pointer, want := range map[string]string{
		"": "{", "/name": `"name"`, "/inputSchema": `"inputSchema"`, "/inputSchema/properties/a~1b": `"a/b"`,
		"/inputSchema/properties/a~1b/anyOf/1/type": `"type": "null"`, "/inputSchema/properties/none/x": `"properties"`, "/inputSchema/properties/a~1b/anyOf/7": `"anyOf"`, "/name/x": `"name"`,
	} {
		line := strings.Split(whole, "\n")[lineOf(whole, pointer)-1]
		if !strings.HasPrefix(strings.TrimSpace(line), want) {
			t.Errorf("%s leads to %s, and not to %s", pointer, line, want)
		}
	}
	for _, broken := range []string{"", "no", text, `{"a":`} {
		if line := lineOf(broken, "/inputSchema/properties/none"); line < 1 || line > 1+strings.Count(broken, "\n") {
			t.Errorf("%q: line %d", broken, line)
		}
	}
	if hostrules.Find("hints") == nil || hostrules.Find("text-none") == nil {
		t.Error("a rule that pointerOf names is not there")
	}
}
