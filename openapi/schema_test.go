package openapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/openapi"
)

// listed returns an operation whose body is a list with items of a schema, so that the
// schema stays as it is.
func listed(schema string) string {
	return operation("", `,"requestBody":{"required":true,"content":{"application/json":{"schema":{"type":"array","items":`+schema+`}}}}`)
}

// Each schema of a document takes and refuses what it means.
func TestSchemas(t *testing.T) {
	api := newRecorder(t)
	const pets = `{"schemas":{
		"Pet":{"type":"object","required":["kind"],"properties":{"kind":{"type":"string"},"name":{"type":"string"}},"discriminator":{"propertyName":"kind","mapping":{"cat":"#/components/schemas/Cat","dog":"Dog"}}},
		"Cat":{"allOf":[{"$ref":"#/components/schemas/Pet"},{"type":"object","required":["lives"],"properties":{"lives":{"type":"integer"}}}]},
		"Dog":{"allOf":[{"$ref":"#/components/schemas/Pet"},{"type":"object","properties":{"friend":{"$ref":"#/components/schemas/Pet"}}}]},
		"Bird":{"allOf":[{"$ref":"#/components/schemas/Pet"}]},
		"Node":{"type":"object","properties":{"next":{"$ref":"#/components/schemas/Node"},"n":{"type":"integer"}}},
		"A":{"type":"object","required":["t"],"properties":{"t":{"type":"string"},"a":{"type":"integer"}}},
		"B":{"type":"object","required":["t"],"properties":{"t":{"type":"string"},"b":{"type":"integer"}}},
		"AB":{"oneOf":[{"$ref":"#/components/schemas/A"},{"$ref":"#/components/schemas/B"}],"discriminator":{"propertyName":"t"}},
		"Maybe":{"type":"string","nullable":true,"readOnly":true},
		"x/y~z":{"type":"integer"}}}`
	for _, tt := range []struct{ name, schema, good, bad string }{
		{"a cycle", `{"$ref":"#/components/schemas/Node"}`, `{"next":{"next":{"n":1}}}`, `{"next":{"next":{"n":"x"}}}`},
		{"a name with slashes", `{"$ref":"#/components/schemas/x~1y~0z"}`, `1`, `"x"`},
		{"a part of another schema", `{"$ref":"#/components/schemas/Node/properties/n"}`, `1`, `"x"`},
		{"nullable", `{"type":"string","nullable":true}`, `null`, `{}`},
		{"nullable and enum", `{"type":"string","enum":["a","a"],"nullable":true}`, `null`, `"b"`},
		{"nullable reference", `{"nullable":true,"allOf":[{"$ref":"#/components/schemas/Node"}]}`, `null`, `"x"`},
		{"exclusive bounds", `{"type":"number","minimum":1,"exclusiveMinimum":true,"maximum":3,"exclusiveMaximum":false}`, `3`, `1`},
		{"an enum with duplicates", `{"type":"string","enum":["a","b","a"]}`, `"b"`, `"c"`},
		{"required twice", `{"type":"object","required":["a","a"],"properties":{"a":{}}}`, `{"a":1}`, `{}`},
		{"read-only members", `{"type":"object","required":["id","a"],"properties":{"id":{"readOnly":true,"type":"string"},"m":{"$ref":"#/components/schemas/Maybe"},"a":{}},"additionalProperties":false}`, `{"a":1}`, `{"a":1,"id":"x"}`},
		{"a read-only reference", `{"type":"object","required":["m","a"],"properties":{"m":{"$ref":"#/components/schemas/Maybe"},"a":{}},"additionalProperties":false}`, `{"a":1}`, `{"a":1,"m":"x"}`},
		{"a pattern that Go cannot read", `{"type":"string","pattern":"^(?=x).*$"}`, `"y"`, `{}`},
		{"a pattern", `{"type":"string","pattern":"^x+$"}`, `"xx"`, `"y"`},
		{"a pattern of ECMAScript", `{"type":"string","pattern":"^[\\u0061-\\u0063]+\\u000A?\\u00e4\\u005C$"}`, `"abcä\\"`, `"d"`},
		{"a pattern with a backslash before u", `{"type":"string","pattern":"^\\\\u0061$"}`, `"\\u0061"`, `"a"`},
		{"patterns of members that Go cannot read", `{"type":"object","patternProperties":{"^(?=x)":{"type":"string"},"^y":{"type":"string"}},"additionalProperties":false}`, `{"xa":"b"}`, `7`},
		{"patterns of members", `{"type":"object","patternProperties":{"^\\u0079":{"type":"string"}},"additionalProperties":false}`, `{"y":"b"}`, `{"y":{}}`},
		{"a union", `{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `1`, `[]`},
		{"a type that is none", `{"type":"any","format":"x"}`, `[1]`, ""},
		{"keywords of other forms", `{"type":"object","required":true,"maxLength":"5","minimum":"x","enum":"a","properties":{"a":{"type":"string","minLength":-1,"items":[]}}}`, `{"a":"x"}`, `{"a":{}}`},
		{"a discriminator", `{"$ref":"#/components/schemas/Pet"}`, `{"kind":"cat","lives":9}`, `{"kind":"cat"}`},
		{"a subtype", `{"$ref":"#/components/schemas/Cat"}`, `{"kind":"cat","lives":9}`, `{"lives":9}`},
		{"a subtype within a subtype", `{"$ref":"#/components/schemas/Pet"}`, `{"friend":{"kind":"cat","lives":1},"kind":"dog"}`, `{"kind":"dog","friend":{"kind":"cat"}}`},
		{"a subtype that no mapping names", `{"$ref":"#/components/schemas/Pet"}`, `{"kind":"Bird","name":"x"}`, `{"kind":"bird"}`},
		{"choices with a discriminator", `{"$ref":"#/components/schemas/AB"}`, `{"b":1,"t":"B"}`, `{"t":"C"}`},
		{"true and false", `{"type":"object","properties":{"a":true},"additionalProperties":false}`, `{"a":1}`, `{"b":1}`},
		{"a list without items", `{"type":"array"}`, `[1,"x"]`, `{}`},
		{"not", `{"not":{"type":"string"}}`, `{}`, `"x"`},
	} {
		c, problems := serve(t, document(listed(tt.schema), pets), &openapi.Options{Server: api.URL})
		if len(problems) > 0 {
			t.Errorf("%s: %s", tt.name, text(problems))
			continue
		}
		r := c.Call("op", mcptest.Raw(`{"body":[`+tt.good+`]}`))
		if r.IsError || api.last().body != "["+tt.good+"]" {
			t.Errorf("%s: %s is refused: %s", tt.name, tt.good, r.Text())
		}
		if tt.bad == "" {
			continue
		}
		if r := c.Call("op", mcptest.Raw(`{"body":[`+tt.bad+`]}`)); !r.IsError {
			t.Errorf("%s: %s is sent: %s", tt.name, tt.bad, api.last().body)
		}
	}
}

// A fault costs its operation and nothing else, and the problem says what to do.
func TestProblems(t *testing.T) {
	good := `,"/good":{"get":{"operationId":"good"}}`
	for _, tt := range []struct{ name, paths, want string }{
		{"another document", listed(`{"$ref":"other.yaml#/Pet"}`), `/paths/~1x/post: it refers to another document, "other.yaml#/Pet": bundle the documents into one first (left out)`},
		{"a file", operation(`{"$ref":"file:///etc/passwd"}`, ""), `/paths/~1x/post: a parameter: it refers to another document, "file:///etc/passwd": bundle the documents into one first (left out)`},
		{"a reference to nothing", listed(`{"$ref":"#/components/schemas/None"}`), `/paths/~1x/post: it refers to "#/components/schemas/None", which is not there (left out)`},
		{"an anchor", listed(`{"$ref":"#pet"}`), `/paths/~1x/post: it refers to "#pet", which is not there (left out)`},
		{"references that go in circles", operation(`{"$ref":"#/paths/~1x/post/parameters/0"}`, ""), `/paths/~1x/post: a parameter: its references lead nowhere (left out)`},
		{"a place that is none", operation(`{"name":"a","in":"body"}`, ""), `/paths/~1x/post: parameter "a": its place "body" is not path, query, header or cookie (left out)`},
		{"no name", operation(`{"in":"query"}`, ""), `/paths/~1x/post: a parameter has no name: the parameter is left out`},
		{"a header that is none", operation(param("X A\\r\\nHost", "header", ""), ""), `/paths/~1x/post: no header can have the name "X A\r\nHost": the parameter is left out`},
		{"a path with a line break", `"/x\n\u001b[2J{":{"get":{"operationId":"op","parameters":[{"in":"query"}]}}`, `/paths/~1x ␛[2J{/get: a parameter has no name: the parameter is left out`},
		{"too many parameters", operation(strings.Repeat(`{"in":"query"},`, 1_000)+`{}`, ""), `/paths/~1x/post: it has more than 1000 parameters (left out)`},
		{"another origin", operation("", `,"servers":[{"url":"https://uploads.example.com/v1"}]`), `/paths/~1x/post: its server https://uploads.example.com/v1 is another origin: call Tools again with it as Options.Server (left out)`},
		{"a server of the path", `"/x":{"servers":[{"url":"http://api.example.com:81"}],"get":{}}`, `/paths/~1x/get: its server http://api.example.com:81 is another origin: call Tools again with it as Options.Server (left out)`},
		{"a path parameter that is none", `"/x/{a}":{"get":{"operationId":"op"}}`, `/paths/~1x~1{a}/get: {a} of the path is no parameter: it is taken as a text`},
		{"a parameter that the path has not", operation(param("a", "path", ""), ""), `/paths/~1x/post: the path has no {a}: the parameter is left out`},
		{"TRACE", `"/x":{"trace":{}}`, `/paths/~1x/trace: TRACE would show the caller's credentials (left out)`},
		{"a body of GET", `"/x":{"get":{"requestBody":{"content":{"application/json":{}}}}}`, `/paths/~1x/get/requestBody: GET has no body: it is left out`},
		{"no path", `"x":{"get":{}}`, `/paths/x: a path begins with / and is there once (left out)`},
		{"a type of body that is none", operation("", `,"requestBody":{"content":{"a/b/c":{}}}`), `/paths/~1x/post: its body has the type "a/b/c", which is none (left out)`},
		{"values of other types", `"/x":{"get":7,"post":{"operationId":5,"tags":"a","parameters":{},"summary":[],"requestBody":3}}`, ``},
	} {
		c, problems := serve(t, document(tt.paths+good, ""), &openapi.Options{Server: "http://api.example.com"})
		if got := strings.TrimSpace(text(problems)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		var names []string
		for _, tool := range c.Tools() {
			names = append(names, tool.Name)
		}
		if !strings.Contains(strings.Join(names, " "), "good") {
			t.Errorf("%s: the other operation is lost: %v", tt.name, names)
		}
	}
}

// Servers of the document, of a path and of an operation.
func TestServers(t *testing.T) {
	api := newRecorder(t)
	doc := `{"openapi":"3.1.0","servers":[{"url":"` + api.URL + `/{v}/","variables":{"v":{"default":"v7"}}},{"url":"https://other.example.com"}],"paths":{
		"/a":{"get":{"operationId":"a"}},
		"/b":{"servers":[{"url":"/p"}],"get":{"operationId":"b"},"put":{"operationId":"c","servers":[{"url":"` + api.URL + `/o"}]}},
		"/d?fixed=1#part":{"parameters":[{"name":"q","in":"query","schema":{"type":"string"}}],"get":{"operationId":"d"}},
		"/e?q={q}":{"get":{"operationId":"e","parameters":[{"name":"q","in":"path","required":true,"schema":{"type":"string"}}]}},
		"/ä b":{"get":{"operationId":"f"}}}}`
	c, problems := serve(t, doc, nil)
	if len(problems) > 0 {
		t.Error(text(problems))
	}
	for _, tt := range []struct{ tool, args, want string }{
		{"a", `{}`, "/v7/a"}, {"b", `{}`, "/p/b"}, {"c", `{}`, "/o/b"},
		{"d", `{"q":"&x"}`, "/v7/d?fixed=1&q=%26x"}, {"e", `{"q":"&x=/"}`, "/v7/e?q=%26x%3D%2F"}, {"f", `{}`, "/v7/%C3%A4%20b"},
	} {
		if r := c.Call(tt.tool, mcptest.Raw(tt.args)); r.IsError {
			t.Error(r.Text())
		}
		if got := api.last().uri; got != tt.want {
			t.Errorf("%s: %s, want %s", tt.tool, got, tt.want)
		}
	}
}

// Fixed parameters are sent, and are no arguments.
func TestFixed(t *testing.T) {
	api := newRecorder(t)
	c, problems := serve(t, document(operation(param("key", "query", "")+","+param("X-Version", "header", "")+","+param("q", "query", ""), ""), ""),
		&openapi.Options{Server: api.URL, Fixed: map[string]string{"key": "k&1", "X-Version": "2026-01-01", "nobody": "1"}})
	if got := text(problems); got != "(root): Options.Fixed: no operation has a parameter \"nobody\"\n" {
		t.Error(got)
	}
	if got := properties(t, c); got != "q" {
		t.Error(got)
	}
	c.Call("op", mcptest.Raw(`{"q":1}`))
	if got := api.last(); got.uri != "/x?key=k%261&q=1" || got.header.Get("X-Version") != "2026-01-01" {
		t.Error(got.uri, got.header)
	}
}

// Names of tools fit every host, differ, and do not depend on the order.
func TestNames(t *testing.T) {
	long := strings.Repeat("a", 70)
	doc := document(`"/1":{"get":{"operationId":"get.item"},"put":{"operationId":"get_item"}},"/2":{"get":{"operationId":"`+long+`b"},"put":{"operationId":"`+long+`c"}},
		"/3":{"get":{"operationId":"twice"},"put":{"operationId":"twice"}},"/4/{id}":{"parameters":[`+param("id", "path", "")+`],"get":{}}`, "")
	c, _ := serve(t, doc, &openapi.Options{Server: "http://api.example.com"})
	seen := map[string]bool{}
	for _, tool := range c.Tools() {
		seen[tool.Name] = true
		if len(tool.Name) > 64 || strings.Trim(tool.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			t.Errorf("%q", tool.Name)
		}
	}
	if len(seen) != 7 || !seen["get_item"] || !seen["twice_GET__3"] || !seen["GET__4__id_"] {
		t.Error(sorted(seen))
	}
}

// Schemas that are too large lose descriptions, then optional members that are deep.
func TestLargeSchemas(t *testing.T) {
	level := `{"type":"string","description":"` + strings.Repeat("word ", 10) + `"}`
	for range 7 {
		level = `{"type":"object","required":["r"],"properties":{"r":{"type":"integer","description":"` + strings.Repeat("words ", 500) + `"},"next":` + level + `,"` + strings.Repeat("x", 60) + `":{"type":"string"}}}`
	}
	c, problems := serve(t, document(listed(level), ""), &openapi.Options{Server: "http://api.example.com"})
	text1 := text(problems)
	if len(c.Tools()[0].InputSchema) > 16<<10 || len(c.Tools()[0].InputSchema) < 500 || !strings.Contains(text1, "descriptions are left out") {
		t.Errorf("%d bytes: %s", len(c.Tools()[0].InputSchema), text1)
	}
	var wide strings.Builder
	for i := range 100 {
		fmt.Fprintf(&wide, `"m%d":{"$ref":"#/components/schemas/L1"},`, i)
	}
	components := `{"schemas":{`
	for i := 1; i < 8; i++ {
		components += fmt.Sprintf(`"L%d":{"type":"object","properties":{%s"need":{"type":"integer"}},"required":["need"]},`, i, strings.ReplaceAll(wide.String(), "L1", fmt.Sprint("L", i+1)))
	}
	components += `"L8":{"type":"integer"}}}`
	c, problems = serve(t, document(listed(`{"$ref":"#/components/schemas/L1"}`), components), &openapi.Options{Server: "http://api.example.com"})
	schema := c.Tools()[0].InputSchema
	if len(schema) > 16<<10 || !json.Valid(schema) || !strings.Contains(text(problems), "optional members deeper than") {
		t.Errorf("%d bytes: %s", len(schema), text(problems))
	}
}
