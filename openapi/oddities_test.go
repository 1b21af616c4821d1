package openapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/openapi"
)

// bodyOf returns an operation with a body of a media type, and more members of that.
func bodyOf(media, schema, more string) string {
	return operation("", `,"requestBody":{"required":true,"content":{"`+media+`":{"schema":`+schema+more+`}}}`)
}

// TestOddDocuments: what documents do in practice, and what a server then gets.
func TestOddDocuments(t *testing.T) {
	api := newRecorder(t)
	const components = `{"parameters":{"Q":{"name":"q","in":"query","schema":{"type":"integer"}}},
		"pathItems":{"X":{"get":{"operationId":"op"}}},
		"requestBodies":{"R":{"$ref":"#/components/requestBodies/S"},"S":{"content":{"Application/JSON":{"schema":{"type":"object","properties":{"a":{}}}}}}},
		"securitySchemes":{"k":{"type":"apiKey","in":"cookie","name":"session"},"h":{"type":"apiKey","in":"header","name":"X-Key"},"o":{"type":"oauth2"}},
		"schemas":{"Base":{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}},"File":{"type":"string","format":"binary"},
			"Item":{"type":"object","properties":{"n":{"type":"integer"}},"$defs":{"Color":{"enum":["red"]}}}}}`
	get := func(params string) string { return `"/x":{"get":{"operationId":"op","parameters":[` + params + `]}}` }
	for _, tt := range []struct{ name, paths, args, want string }{
		{"a parameter of the path that the operation has again", `"/x":{"parameters":[` + param("q", "query", `,"schema":{"type":"string"}`) + `,` + param("z", "query", "") + `],"get":{"operationId":"op","parameters":[{"name":"q","in":"query","schema":{"type":"integer"}}]}}`, `{"z":1}`, "GET /x?z=1"},
		{"of the same name in another place", `"/x":{"parameters":[` + param("q", "header", "") + `],"get":{"operationId":"op","parameters":[` + param("q", "query", "") + `]}}`, `{"q_query":1,"q_header":2}`, "GET /x?q=1 q:2"},
		{"a parameter by reference", get(`{"$ref":"#/components/parameters/Q","description":"beside"}`), `{"q":7}`, "GET /x?q=7"},
		{"a path item by reference", `"/x":{"$ref":"#/components/pathItems/X"}`, `{}`, "GET /x"},
		{"a body by references, its type in other letters", operation("", `,"requestBody":{"$ref":"#/components/requestBodies/R"}`), `{"a":1}`, `POST /x {"a":1}`},
		{"keys of alternative schemes", `"/x":{"get":{"operationId":"op","security":[{"k":[]},{"h":[],"o":["read"]},{}],"parameters":[` + param("session", "cookie", "") + `,` + param("X-Key", "header", "") + `,{"name":"q","in":"query","schema":{}}]}}`, `{"q":1}`, "GET /x?q=1"},
		{"an exploded cookie", get(param("c", "cookie", "")), `{"c":{"R":100,"G":"a;b"}}`, "GET /x Cookie:G=a%3Bb; R=100"},
		{"several cookies", get(param("c", "cookie", "") + `,` + param("d", "cookie", `,"content":{"application/json":{"schema":{}}}`)), `{"c":["x","y"],"d":{"a":"é"}}`, "GET /x Cookie:c=x; c=y; d=%7B%22a%22%3A%22%C3%A9%22%7D"},
		{"a cookie that is not given", get(`{"name":"c","in":"cookie","schema":{"type":"string"}}`), `{}`, "GET /x"},
		{"content of a text", get(param("q", "query", `,"content":{"text/plain":{"schema":{"type":"string"}}}`)), `{"q":"a b"}`, "GET /x?q=a%20b"},
		{"content of JSON in a header", get(param("q", "header", `,"content":{"application/vnd.x+json":{"schema":{"type":"object"}}}`)), `{"q":{"a":"x\r\ny"}}`, `GET /x q:{"a":"x\r\ny"}`},
		{"content and a schema", get(param("q", "query", `,"schema":{"type":"string"},"content":{"application/json":{"schema":{"type":"array"}}}`)), `{"q":[1]}`, "GET /x?q=%5B1%5D"},
		{"a style of another place", get(param("q", "header", `,"style":"form"`)), `{"q":["a","b"]}`, "GET /x q:a,b"},
		{"deepObject that is not exploded", get(param("q", "query", `,"style":"deepObject","explode":false`)), `{"q":{"a":1}}`, "GET /x?q%5Ba%5D=1"},
		{"a delimited object", get(param("q", "query", `,"style":"pipeDelimited"`)), `{"q":{"a":1,"b":2}}`, "GET /x?q=a%7C1%7Cb%7C2"},
		{"an empty text", get(param("q", "query", "")), `{"q":""}`, "GET /x?q="},
		{"an empty object", get(param("q", "query", "")), `{"q":{}}`, "GET /x"},
		{"a list in an object", get(param("q", "query", "")), `{"q":{"a":[1,2],"b":{"c":3}}}`, "GET /x?a=1&a=2&b=%7B%22c%22%3A3%7D"},
		{"matrix with an empty text", `"/x/{p}":{"get":{"operationId":"op","parameters":[` + param("p", "path", `,"style":"matrix"`) + `]}}`, `{"p":""}`, "GET /x/;p"},
		{"matrix, exploded, with an empty text", `"/x/{p}":{"get":{"operationId":"op","parameters":[` + param("p", "path", `,"style":"matrix","explode":true`) + `]}}`, `{"p":["","a"]}`, "GET /x/;p;p=a"},
		{"text around variables", `"/x/{a}-{b}.json:run":{"get":{"operationId":"op","parameters":[` + param("a", "path", "") + `,` + param("b", "path", "") + `]}}`, `{"a":"1:2","b":3}`, "GET /x/1%3A2-3.json:run"},
		{"one variable twice", `"/x/{a}/y/{a}":{"get":{"operationId":"op","parameters":[` + param("a", "path", "") + `]}}`, `{"a":"1"}`, "GET /x/1/y/1"},
		{"enumerations of another type", get(param("s", "query", `,"schema":{"type":"string","enum":[1,2.50,true]}`) + `,` + param("n", "query", `,"schema":{"type":"integer","enum":["10","20"]}`) + `,` + param("b", "query", `,"schema":{"type":"boolean","enum":["true"]}`)), `{"s":"2.50","n":20,"b":true}`, "GET /x?s=2.50&n=20&b=true"},
		{"lines of JSON", bodyOf("application/jsonl", `{"type":"array"}`, ""), `{"body":"{}\n{}\n"}`, "POST /x {}\n{}\n"},
		{"more lines of JSON", bodyOf("application/x-ndjson", `{}`, ""), `{"body":"1\n2"}`, "POST /x 1\n2"},
		{"a picture as text", bodyOf("image/svg+xml", `{"type":"string"}`, ""), `{"body":"<svg/>"}`, "POST /x <svg/>"},
		{"a patch", bodyOf("application/json-patch+json", `{"type":"array","items":{"type":"object"}}`, ""), `{"body":[{"op":"remove"}]}`, `POST /x [{"op":"remove"}]`},
		{"a form of lists", bodyOf("application/x-www-form-urlencoded", `{"type":"object","properties":{"a":{"type":"array"},"b":{"type":"array"},"c":{"type":"object"}}}`, `,"encoding":{"a":{"explode":false},"b":{"style":"pipeDelimited"},"c":{"style":"deepObject"}}`),
			`{"body":{"a":["x,y","z"],"b":[1,2],"c":{"k":"v"}}}`, "POST /x a=x%2Cy,z&b=1%7C2&c%5Bk%5D=v"},
		{"required by an allOf, and read-only in it", bodyOf("application/json", `{"allOf":[{"type":"object","properties":{"id":{"type":"string","readOnly":true}}},{"type":"object","required":["id","a"],"properties":{"a":{}}}]}`, ""), `{"body":{"a":1}}`, `POST /x {"a":1}`},
		{"a part of another schema", bodyOf("application/json", `{"type":"array","items":{"$ref":"#/components/schemas/Item/$defs/Color"}}`, ""), `{"body":["red"]}`, `POST /x ["red"]`},
	} {
		c, problems := serve(t, strings.Replace(document(tt.paths, components), `"3.0.3"`, `"3.1.0"`, 1), &openapi.Options{Server: api.URL})
		if got := text(problems); got != "" {
			t.Errorf("%s: %s", tt.name, got)
			continue
		}
		r := c.Call("op", mcptest.Raw(tt.args))
		last := api.last()
		got := last.method + " " + last.uri
		for _, name := range []string{"q", "Cookie"} {
			if value := last.header.Get(name); value != "" {
				got += " " + name + ":" + value
			}
		}
		if last.body != "" {
			got += " " + last.body
		}
		if got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s\n%s", tt.name, got, tt.want, r.Text())
		}
	}
}

// TestOddSchemas: discriminators and null in their many forms, in both versions.
func TestOddSchemas(t *testing.T) {
	api := newRecorder(t)
	const components = `{"schemas":{
		"Animal":{"type":"object","required":["kind"],"properties":{"kind":{"type":"string"}},"discriminator":{"propertyName":"kind"}},
		"Cat":{"allOf":[{"$ref":"#/components/schemas/Animal"},{"type":"object","required":["lives"],"properties":{"lives":{"type":"integer"}}}],"discriminator":{"propertyName":"kind"}},
		"Lion":{"allOf":[{"$ref":"#/components/schemas/Cat"},{"type":"object","required":["mane"],"properties":{"mane":{"type":"string"}}}]},
		"A":{"type":"object","properties":{"t":{"type":"string"}}},"B":{"type":"object","properties":{"t":{"type":"string"}}},
		"Text":{"type":"string"}}}`
	const ab = `{"$ref":"#/components/schemas/A"},{"$ref":"#/components/schemas/B"}`
	for _, tt := range []struct{ name, version, schema, good, bad string }{
		{"a subtype", "3.0", `{"$ref":"#/components/schemas/Animal"}`, `{"kind":"Cat","lives":9}`, `{"kind":"Cat"}`},
		{"a subtype of a subtype", "3.0", `{"$ref":"#/components/schemas/Animal"}`, `{"kind":"Lion","lives":9,"mane":"x"}`, `{"kind":"Lion","lives":9}`},
		{"a subtype that is a base", "3.0", `{"$ref":"#/components/schemas/Cat"}`, `{"kind":"Lion","lives":9,"mane":"x"}`, `{"kind":"Lion","mane":"x"}`},
		{"the base itself", "3.0", `{"$ref":"#/components/schemas/Animal"}`, `{"kind":"Animal"}`, `{"kind":"Dog"}`},
		{"choices and null", "3.1", `{"oneOf":[` + ab + `,{"type":"null"}],"discriminator":{"propertyName":"t"}}`, `null`, `{}`},
		{"choices that are alike", "3.1", `{"oneOf":[` + ab + `,{"type":"null"}],"discriminator":{"propertyName":"t"}}`, `{"t":"B"}`, `{"t":"C"}`},
		{"choices that may be null", "3.0", `{"nullable":true,"oneOf":[` + ab + `],"discriminator":{"propertyName":"t"}}`, `null`, `1`},
		{"choices without references", "3.1", `{"oneOf":[{"type":"object","required":["a"]},{"type":"object","required":["b"]}],"discriminator":{"propertyName":"t"}}`, `{"a":1}`, `{}`},
		{"anyOf with a mapping", "3.0", `{"anyOf":[` + ab + `],"discriminator":{"propertyName":"t","mapping":{"x":"A","y":"#/components/schemas/A","z":"B"}}}`, `{"t":"y"}`, `{"t":"A"}`},
		{"nullable", "3.0", `{"type":"integer","nullable":true,"enum":[1,null]}`, `null`, `2`},
		{"nullable without a type", "3.0", `{"nullable":true}`, `null`, ""},
		{"not nullable", "3.0", `{"type":"string","nullable":false}`, `"a"`, `null`},
		{"nullable in 3.1", "3.1", `{"type":"string","nullable":true}`, `null`, `{}`},
		{"a list of types", "3.1", `{"type":["string","null"],"maxLength":1}`, `null`, `"ab"`},
		{"null beside a reference", "3.1", `{"anyOf":[{"$ref":"#/components/schemas/Text"},{"type":"null"}]}`, `null`, `{}`},
		{"a nullable reference", "3.0", `{"$ref":"#/components/schemas/Text","nullable":true}`, `null`, `{}`},
		{"keywords beside a reference", "3.1", `{"$ref":"#/components/schemas/Text","maxLength":1}`, `"a"`, `"ab"`},
		{"keywords beside a reference in 3.0", "3.0", `{"$ref":"#/components/schemas/Text","maxLength":1}`, `"ab"`, `{}`},
		{"a member called $ref", "3.1", `{"type":"object","properties":{"$ref":{"type":"string"}},"required":["$ref"]}`, `{"$ref":"#/x"}`, `{"$ref":{}}`},
		{"const", "3.1", `{"const":null}`, `null`, `1`},
		{"bounds of 3.1", "3.1", `{"type":"number","exclusiveMinimum":1}`, `1.5`, `1`},
		{"a tuple", "3.1", `{"type":"array","prefixItems":[{"type":"string"}],"items":false}`, `["a"]`, `["a","b"]`},
		{"nothing", "3.1", `{"type":"object","properties":{"a":false}}`, `{}`, `{"a":1}`},
	} {
		doc := strings.Replace(document(listed(tt.schema), components), `"3.0.3"`, `"`+tt.version+`.0"`, 1)
		c, problems := serve(t, doc, &openapi.Options{Server: api.URL})
		if len(problems) > 0 {
			t.Errorf("%s: %s", tt.name, text(problems))
			continue
		}
		if r := c.Call("op", mcptest.Raw(`{"body":[`+tt.good+`]}`)); r.IsError || api.last().body != "["+tt.good+"]" {
			t.Errorf("%s: %s is refused: %s", tt.name, tt.good, r.Text())
		}
		if tt.bad == "" {
			continue
		}
		if r := c.Call("op", mcptest.Raw(`{"body":[`+tt.bad+`]}`)); !r.IsError {
			t.Errorf("%s: %s is sent: %s", tt.name, tt.bad, api.last().body)
		}
	}
	// The error of a choice names the values.
	c, _ := serve(t, document(listed(`{"$ref":"#/components/schemas/Animal"}`), components), &openapi.Options{Server: api.URL})
	if r := c.Call("op", mcptest.Raw(`{"body":[{"kind":"Dog"}]}`)); !strings.Contains(r.Text(), "Cat") || !strings.Contains(r.Text(), "Lion") {
		t.Errorf("the error does not name the choices: %s", r.Text())
	}
}

// TestFilesInParts: a form whose members are in the parts of an allOf has files, too.
func TestFilesInParts(t *testing.T) {
	api := newRecorder(t)
	doc := document(bodyOf("multipart/form-data", `{"allOf":[{"$ref":"#/components/schemas/Base"},{"type":"object","required":["doc"],"properties":{"doc":{"type":"string","format":"binary"},"all":{"type":"array","items":{"type":"object"}},"tags":{"type":"array","items":{"type":"string"}}}}]}`, ""),
		`{"schemas":{"Base":{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}}}`)
	c, problems := serve(t, doc, &openapi.Options{Server: api.URL})
	if len(problems) > 0 {
		t.Error(text(problems))
	}
	r := c.Call("op", mcptest.Raw(`{"body":{"id":"7","doc":{"name":"a.txt","data":"aGk="},"all":[{"a":1},{"a":2}],"tags":["x","y"]}}`))
	body := api.last().body
	for _, want := range []string{"filename=\"a.txt\"\r\nContent-Type: application/octet-stream\r\n\r\nhi\r\n", "name=\"all\"\r\nContent-Type: application/json\r\n\r\n{\"a\":2}\r\n", "name=\"tags\"\r\n\r\ny\r\n", "name=\"id\"\r\n\r\n7\r\n"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in %q: %s", want, body, r.Text())
		}
	}
	for _, args := range []string{`{"body":{"id":"7"}}`, `{"body":{"doc":{"data":""}}}`, `{"body":{"id":"7","doc":"text"}}`} {
		if r := c.Call("op", mcptest.Raw(args)); !r.IsError {
			t.Errorf("%s is sent", args)
		}
	}
}

// TestOddServers: servers with variables, of operations and of paths.
func TestOddServers(t *testing.T) {
	for _, tt := range []struct{ servers, op, server, want string }{
		{`[{"url":"https://{host}:{port}/{v}","variables":{"host":{"default":"api.example.com","enum":["api.example.com","b"]},"port":{"default":8443},"v":{"default":"v1","description":"x"}}}]`, ``, "", "https://api.example.com:8443/v1/x"},
		{`[{"url":"https://api.example.com/a/"}]`, `[{"url":"../b"}]`, "", "https://api.example.com/b/x"},
		{`[{"url":"https://api.example.com/a"}]`, `[{"url":"//api.example.com/c"}]`, "", "https://api.example.com/c/x"},
		{`[{"url":"https://api.example.com/a"}]`, `[{"url":"https://API.example.com:443/{t}","variables":{"t":{"default":"d"}}}]`, "", "https://API.example.com:443/d/x"},
		{`[{"url":"/v2"}]`, ``, "https://api.example.com/v3?key=k#f", "https://api.example.com/v3/x"},
		{`[]`, ``, "https://api.example.com", "https://api.example.com/x"},
		{`[{"url":"https://ann:secret@api.example.com/v1"}]`, ``, "", "https://api.example.com/v1/x"},
	} {
		op := `"operationId":"op"`
		if tt.op != "" {
			op += `,"servers":` + tt.op
		}
		sent := ""
		doc := `{"openapi":"3.1.0","servers":` + tt.servers + `,"paths":{"/x":{"get":{` + op + `}}}}`
		c, problems := serve(t, doc, &openapi.Options{Server: tt.server, Client: noted(&sent)})
		if r := c.Call("op", nil); sent != tt.want || len(problems) > 0 {
			t.Errorf("%s %s: %s, want %s; %s %s", tt.servers, tt.op, sent, tt.want, r.Text(), text(problems))
		}
	}
}

// TestYAML: what YAML has in other forms than JSON.
func TestYAML(t *testing.T) {
	api := newRecorder(t)
	doc := "\ufeff%YAML 1.2\r\n# a comment\r\n---\r\nopenapi: 3.1\r\nservers: [{url: " + api.URL + `}]
info: {title: 2026-01-01, version: 1.0}
x-common: &common {operationId: op, parameters: [{name: on, in: query, schema: {type: string, enum: [on, off, yes, no, 1, 0x1F, ~]}}]}
paths:
  /x:
    post:
      <<: *common
      requestBody:
        content:
          application/json:
            schema:
              type: object
              properties:
                200: {type: integer}
                null: {type: string}
                yes: {type: boolean}
                when: {type: string, example: 2026-01-01, pattern: '^\d+$'}
`
	c, problems := serve(t, doc, nil)
	if len(problems) > 0 {
		t.Error(text(problems))
	}
	r := c.Call("op", mcptest.Raw(`{"on":"off","200":7,"null":"x","yes":true,"when":"1"}`))
	if last := api.last(); last.uri != "/x?on=off" || last.body != `{"200":7,"null":"x","when":"1","yes":true}` {
		t.Errorf("%s %s: %s", last.uri, last.body, r.Text())
	}
	if r := c.Call("op", mcptest.Raw(`{"on":"1"}`)); r.IsError {
		t.Errorf("a number among texts: %s", r.Text())
	}
}

// TestWhatToolsSay: hints by method, no output schema, one definition for each schema that is
// reached and none for others, and a problem for a method in other letters.
func TestWhatToolsSay(t *testing.T) {
	doc := document(`"/x":{"get":{"operationId":"get"},"head":{"operationId":"head"},"put":{"operationId":"put"},"post":{"operationId":"post","requestBody":{"content":{"application/json":{"schema":{"type":"array","items":{"$ref":"#/components/schemas/Node"}}}}},
		"responses":{"200":{"content":{"application/json":{"schema":{"type":"object"}}}}}},"patch":{"operationId":"patch"},"delete":{"operationId":"delete"},"options":{"operationId":"options"},"Get":{"operationId":"never"}}`,
		`{"schemas":{"Node":{"type":"object","properties":{"next":{"$ref":"#/components/schemas/Node"},"other":{"$ref":"#/components/schemas/Other"}}},"Other":{"type":"object","properties":{"back":{"$ref":"#/components/schemas/Node"}}},"Unused":{"type":"string"}}}`)
	c, problems := serve(t, doc, &openapi.Options{Server: "http://api.example.com"})
	if got := text(problems); got != "/paths/~1x/Get: a method is written in lower case (left out)\n" {
		t.Error(got)
	}
	var got []string
	for _, tool := range c.Tools() {
		line := tool.Name
		for name, hint := range map[string]*bool{"read-only": tool.Annotations.ReadOnlyHint, "idempotent": tool.Annotations.IdempotentHint, "destructive": tool.Annotations.DestructiveHint} {
			if hint != nil && *hint && (name != "destructive" || tool.Name == "delete") {
				line += " " + name
			}
		}
		if tool.OutputSchema != nil {
			t.Errorf("%s has the output schema %s", tool.Name, tool.OutputSchema)
		}
		if tool.Name == "post" {
			var schema struct {
				Defs map[string]json.RawMessage `json:"$defs"`
			}
			if err := json.Unmarshal(tool.InputSchema, &schema); err != nil || fmt.Sprint(sorted(schema.Defs)) != "[Node Other]" || strings.Count(string(tool.InputSchema), `"$ref"`) != 4 {
				t.Errorf("the schema is %s", tool.InputSchema)
			}
		}
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{"get read-only", "head read-only", "put idempotent", "post", "patch", "options"} {
		if !strings.Contains("\n"+strings.Join(got, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}
