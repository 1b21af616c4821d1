package openapi_test

import (
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/openapi"
)

// param returns a parameter, with more members that begin with a comma.
func param(name, in, more string) string {
	if !strings.Contains(more, `"schema"`) && !strings.Contains(more, `"content"`) {
		more += `,"schema":{}`
	}
	return `{"name":"` + name + `","in":"` + in + `","required":true` + more + `}`
}

// TestStyles: every style of OpenAPI 3.1.1, "Style Examples", for a text, an array and an
// object.
func TestStyles(t *testing.T) {
	api := newRecorder(t)
	const list, object = `["blue","black"]`, `{"R":100,"G":200}`
	for _, tt := range []struct{ in, more, value, want string }{
		{"path", ``, `"blue"`, "/x/blue"},
		{"path", ``, list, "/x/blue,black"},
		{"path", ``, object, "/x/G,200,R,100"},
		{"path", `,"explode":true`, object, "/x/G=200,R=100"},
		{"path", `,"style":"label"`, `"blue"`, "/x/.blue"},
		{"path", `,"style":"label"`, list, "/x/.blue,black"},
		{"path", `,"style":"label"`, object, "/x/.G,200,R,100"},
		{"path", `,"style":"label","explode":true`, list, "/x/.blue.black"},
		{"path", `,"style":"label","explode":true`, object, "/x/.G=200.R=100"},
		{"path", `,"style":"matrix"`, `"blue"`, "/x/;color=blue"},
		{"path", `,"style":"matrix"`, list, "/x/;color=blue,black"},
		{"path", `,"style":"matrix"`, object, "/x/;color=G,200,R,100"},
		{"path", `,"style":"matrix","explode":true`, `"blue"`, "/x/;color=blue"},
		{"path", `,"style":"matrix","explode":true`, list, "/x/;color=blue;color=black"},
		{"path", `,"style":"matrix","explode":true`, object, "/x/;G=200;R=100"},
		{"path", `,"content":{"application/json":{"schema":{}}}`, `{"a":"/"}`, "/x/%7B%22a%22%3A%22%2F%22%7D"},
		{"query", ``, `"a b&c=d#e+f%"`, "/x?color=a%20b%26c%3Dd%23e%2Bf%25"},
		{"query", ``, `5.50`, "/x?color=5.50"},
		{"query", ``, `true`, "/x?color=true"},
		{"query", ``, list, "/x?color=blue&color=black"},
		{"query", ``, object, "/x?G=200&R=100"},
		{"query", `,"explode":false`, list, "/x?color=blue,black"},
		{"query", `,"explode":false`, `["a,b","c"]`, "/x?color=a%2Cb,c"},
		{"query", `,"explode":false`, object, "/x?color=G,200,R,100"},
		{"query", `,"style":"spaceDelimited"`, list, "/x?color=blue%20black"},
		{"query", `,"style":"pipeDelimited"`, list, "/x?color=blue%7Cblack"},
		{"query", `,"style":"pipeDelimited","explode":true`, list, "/x?color=blue&color=black"},
		{"query", `,"style":"deepObject"`, object, "/x?color%5BG%5D=200&color%5BR%5D=100"},
		{"query", `,"style":"deepObject"`, `{"a":{"b":[1,2]}}`, "/x?color%5Ba%5D%5Bb%5D%5B0%5D=1&color%5Ba%5D%5Bb%5D%5B1%5D=2"},
		{"query", `,"allowReserved":true`, `"a/b?c:d@e&f#g"`, "/x?color=a/b?c:d@e%26f%23g"},
		{"query", `,"content":{"application/json":{"schema":{}}}`, `{"a":[1]}`, "/x?color=%7B%22a%22%3A%5B1%5D%7D"},
		{"query", `,"schema":{"type":"array"}`, `[]`, "/x"},
		{"query", `,"required":false`, `null`, "/x"},
		{"query", ``, `["blue",null]`, "/x?color=blue"},
		{"query", `,"style":"deepObject"`, `{"a":null,"b":[{"c":null,"d":1}]}`, "/x?color%5Bb%5D%5B0%5D%5Bd%5D=1"},
		{"header", `,"required":false`, `null`, "/x "},
		{"header", ``, list, "/x blue,black"},
		{"header", ``, object, "/x G,200,R,100"},
		{"header", `,"explode":true`, object, "/x G=200,R=100"},
		{"header", ``, `7`, "/x 7"},
		{"cookie", ``, `"a;b c"`, "/x color=a%3Bb%20c"},
		{"cookie", `,"explode":false`, list, "/x color=blue,black"},
	} {
		path := "/x"
		if tt.in == "path" {
			path = "/x/{color}"
		}
		doc := document(`"`+path+`":{"get":{"operationId":"op","parameters":[`+param("color", tt.in, tt.more)+`]}}`, "")
		c, _ := serve(t, doc, &openapi.Options{Server: api.URL})
		r := c.Call("op", mcptest.Raw(`{"color":`+tt.value+`}`))
		got := api.last()
		uri := got.uri
		if tt.in == "header" || tt.in == "cookie" {
			uri += " " + got.header.Get(map[string]string{"header": "color", "cookie": "Cookie"}[tt.in])
		}
		if uri != tt.want {
			t.Errorf("%s%s %s: %q, want %q: %s", tt.in, tt.more, tt.value, uri, tt.want, r.Text())
		}
	}
}

// Null has no form in a style: a required parameter does not take it, and of an optional one
// nothing is sent.
func TestNullInParameters(t *testing.T) {
	api := newRecorder(t)
	const maybe = `{"schemas":{"Maybe":{"type":"string","nullable":true},"Choice":{"oneOf":[{"type":"string"},{"type":"null"}]}}}`
	for _, schema := range []string{
		`{"type":"string","nullable":true}`, `{"type":["string","null"]}`, `{"type":["string","null"],"enum":["a",null]}`, `{"enum":["a",null]}`,
		`{"$ref":"#/components/schemas/Maybe"}`, `{"$ref":"#/components/schemas/Choice"}`, `{"anyOf":[{"type":"string"},{"type":"null"}],"title":"t"}`,
	} {
		for _, in := range []string{"query", "header", "cookie", "path"} {
			path := map[bool]string{false: "/x", true: "/x/{p}"}[in == "path"]
			c, _ := serve(t, document(`"`+path+`":{"get":{"operationId":"op","parameters":[`+param("p", in, `,"schema":`+schema)+`,`+
				`{"name":"o","in":"query","schema":`+schema+`}]}}`, maybe), &openapi.Options{Server: api.URL})
			if r := c.Call("op", mcptest.Raw(`{"p":null,"o":null}`)); !r.IsError || api.last().method != "" {
				t.Errorf("%s %s: null is sent: %s", in, schema, r.Text())
			}
			if r := c.Call("op", mcptest.Raw(`{"p":"a","o":null}`)); r.IsError || strings.Contains(api.last().uri, "o=") {
				t.Errorf("%s %s: a text is refused: %s", in, schema, r.Text())
			}
		}
	}
	// The text null is not null.
	c, _ := serve(t, document(`"/x":{"get":{"operationId":"op","parameters":[`+param("p", "query", `,"schema":{"type":"string","enum":["a","null"]}`)+`]}}`, ""), &openapi.Options{Server: api.URL})
	if r := c.Call("op", mcptest.Raw(`{"p":"null"}`)); r.IsError || !strings.Contains(api.last().uri, "p=null") {
		t.Errorf("the text null is refused: %s", r.Text())
	}
}

// Values cannot change which path, which origin or which headers a request has.
func TestPathsThatLeadElsewhere(t *testing.T) {
	api := newRecorder(t)
	doc := document(`"/v1/{a}{b}/end":{"get":{"operationId":"two","parameters":[`+param("a", "path", "")+`,`+param("b", "path", "")+`]}},
		"/users/{id}":{"get":{"operationId":"one","parameters":[`+param("id", "path", "")+`,{"name":"X-H","in":"header","schema":{}},{"name":"c","in":"cookie","schema":{}}]}}`, "")
	c, _ := serve(t, doc, &openapi.Options{Server: api.URL + "/base"})
	for _, tt := range []struct{ tool, args, want string }{
		{"one", `{"id":"a"}`, "/base/users/a"},
		{"one", `{"id":"a/b"}`, "/base/users/a%2Fb"},
		{"one", `{"id":"a%2fb"}`, "/base/users/a%252fb"},
		{"one", `{"id":"a?x=1#f"}`, "/base/users/a%3Fx%3D1%23f"},
		{"one", `{"id":"..a"}`, "/base/users/..a"},
		{"one", `{"id":"@evil.example.com"}`, "/base/users/%40evil.example.com"},
		{"one", `{"id":""}`, ""},
		{"one", `{"id":"."}`, ""},
		{"one", `{"id":".."}`, ""},
		{"one", `{"id":"../x"}`, ""},
		{"one", `{"id":"..%2fx"}`, ""},
		{"one", `{"id":"x/../.."}`, ""},
		{"one", `{"id":"..\\x"}`, ""},
		{"one", `{"id":"%2e%2e"}`, ""},
		{"one", `{"id":"%252e%252e/x"}`, ""},
		{"one", `{"id":"..;x"}`, ""},
		{"one", `{"id":"%2e%2e%2f"}`, ""},
		{"one", `{"id":null}`, ""},
		{"one", `{"id":[]}`, ""},
		{"one", `{}`, ""},
		{"two", `{"a":".","b":"."}`, ""},
		{"two", `{"a":".","b":"./x"}`, ""},
		{"two", `{"a":"","b":""}`, ""},
		{"two", `{"a":"x","b":".."}`, "/base/v1/x../end"},
		{"one", `{"id":"a","X-H":"b\r\nHost: evil"}`, ""},
		{"one", `{"id":"a","X-H":"b\u0000"}`, ""},
		{"one", `{"id":"a","X-H":["b\n","c"]}`, ""},
		{"one", `{"id":"a","c":"b\r\nX: y"}`, "/base/users/a"},
	} {
		r := c.Call(tt.tool, mcptest.Raw(tt.args))
		got := api.last()
		if got.uri != tt.want || r.IsError != (tt.want == "") {
			t.Errorf("%s %s: %q, want %q: %s", tt.tool, tt.args, got.uri, tt.want, r.Text())
		}
		if got.header.Get("X") != "" || strings.ContainsAny(got.header.Get("Cookie"), "\r\n") {
			t.Errorf("%s %s: %v", tt.tool, tt.args, got.header)
		}
	}
}

// Headers that decide where a request goes and who sends it are no arguments.
func TestHeadersThatAreNoArguments(t *testing.T) {
	var params []string
	for _, name := range []string{"Host", "Authorization", "Cookie", "Content-Type", "content-length", "Accept-Encoding", "Mcp-Session-Id", "Proxy-Authorization",
		"Connection", "Transfer-Encoding", "TE", "Upgrade", "Accept", "X-Kept"} {
		params = append(params, param(name, "header", ""))
	}
	c, _ := serve(t, document(operation(strings.Join(params, ","), ""), ""), &openapi.Options{Server: "http://127.0.0.1:1"})
	if got := properties(t, c); got != "X-Kept" {
		t.Error(got)
	}
}

// properties returns the names of the arguments of the only tool.
func properties(t *testing.T, c *mcptest.Client) string {
	t.Helper()
	schema := struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}{}
	if err := json.Unmarshal(c.Tools()[0].InputSchema, &schema); err != nil {
		t.Fatal(err)
	}
	return strings.Join(sorted(schema.Properties), " ")
}

// Arguments are named, and names that clash or that hosts refuse are changed.
func TestArguments(t *testing.T) {
	api := newRecorder(t)
	long := strings.Repeat("n", 70)
	body := func(schema string) string {
		return `,"requestBody":{"required":true,"content":{"application/json":{"schema":` + schema + `}}}`
	}
	const ab = `{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"integer"}}}`
	for _, tt := range []struct{ name, params, more, properties, args, want string }{
		{"members beside parameters", param("q", "query", ""), body(ab), "a b q", `{"q":1,"a":"x"}`, `/x?q=1 {"a":"x"}`},
		{"a clash", param("a", "query", ""), body(ab), "a body", `{"a":1,"body":{"a":"x"}}`, `/x?a=1 {"a":"x"}`},
		{"a parameter called body", param("body", "query", ""), body(`{"type":"array","items":{}}`), "body body_query", `{"body_query":1,"body":[1]}`, `/x?body=1 [1]`},
		{"one name in two places", param("id", "query", "") + "," + param("id", "header", ""), "", "id_header id_query", `{"id_query":1,"id_header":2}`, `/x?id=1 `},
		{"a name that is taken", param("id", "query", "") + "," + param("id", "header", "") + "," + param("id_query", "query", ""), "", "id_header id_query id_query_query", `{"id_query":1,"id_header":2,"id_query_query":3}`, `/x?id=1&id_query=3 `},
		{"a name with brackets", param("id[]", "query", ""), "", "id__", `{"id__":[1,2]}`, `/x?id%5B%5D=1&id%5B%5D=2 `},
		{"a long name", param(long, "query", ""), "", long[:55] + "_0b3bd4e4", "", ""},
		{"a free map", "", body(`{"type":"object","additionalProperties":{"type":"string"}}`), "body", `{"body":{"x":"y"}}`, `/x {"x":"y"}`},
		{"a list", "", body(`{"type":"array","items":{"type":"integer"}}`), "body", `{"body":[1,"2"]}`, `/x [1,2]`},
		{"a text", "", body(`{"type":"string"}`), "body", `{"body":"x"}`, `/x "x"`},
		{"all members are optional", "", body(`{"type":"object","properties":{"a":{"type":"string"}}}`), "a", `{}`, `/x {}`},
		{"an optional body with required members", "", strings.Replace(body(ab), `"required":true,`, "", 1), "body", `{}`, `/x `},
		{"an optional body", "", strings.Replace(body(`{"type":"object","properties":{"a":{"type":"string"}}}`), `"required":true,`, "", 1), "a", `{}`, `/x `},
		{"a choice", "", body(`{"oneOf":[` + ab + `,{"type":"string"}]}`), "body", `{"body":{"a":"x"}}`, `/x {"a":"x"}`},
		{"a default is not sent", param("n", "query", `,"schema":{"type":"integer","default":5}`) + `,{"name":"m","in":"query","schema":{"type":"integer","default":5}}`, body(`{"type":"object","properties":{"a":{"default":1}}}`), "a m n", `{"n":1}`, `/x?n=1 {}`},
		{"large numbers keep their digits", "", body(`{"type":"object","properties":{"a":{"type":"integer"}}}`), "a", `{"a":12345678901234567890}`, `/x {"a":12345678901234567890}`},
	} {
		c, _ := serve(t, document(operation(tt.params, tt.more), ""), &openapi.Options{Server: api.URL})
		got := properties(t, c)
		if len(got) == 64 && tt.name == "a long name" {
			got = got[:55] + tt.properties[55:]
		}
		if got != tt.properties {
			t.Errorf("%s: the arguments are %q, want %q", tt.name, got, tt.properties)
		}
		if tt.args == "" {
			continue
		}
		r := c.Call("op", mcptest.Raw(tt.args))
		if last := api.last(); last.uri+" "+last.body != tt.want {
			t.Errorf("%s: %s %s, want %s: %s", tt.name, last.uri, last.body, tt.want, r.Text())
		}
	}
}

func TestBodies(t *testing.T) {
	api := newRecorder(t)
	for _, tt := range []struct{ media, schema, args, kind, want string }{
		{"application/x-www-form-urlencoded", `{"type":"object","properties":{"a":{},"b":{},"c":{}}}`, `{"body":{"a":"x y&z","b":[1,2],"c":{"d":1}}}`,
			"application/x-www-form-urlencoded", "a=x%20y%26z&b=1&b=2&c=%7B%22d%22%3A1%7D"},
		{"application/octet-stream", `{"type":"string","format":"binary"}`, `{"body":"AAEC/w=="}`, "application/octet-stream", "\x00\x01\x02\xff"},
		{"application/octet-stream", `{"type":"string","format":"binary"}`, `{"body":"no base64!"}`, "", ""},
		{"image/*", `{}`, `{"body":"AAEC"}`, "application/octet-stream", "\x00\x01\x02"},
		{"text/plain", `{"type":"string"}`, `{"body":"x\ny"}`, "text/plain", "x\ny"},
		{"application/xml", `{"type":"object","properties":{"a":{}}}`, `{"body":"<a/>"}`, "application/xml", "<a/>"},
		{"*/*", `{"type":"object","properties":{"a":{}}}`, `{"a":1}`, "application/json", `{"a":1}`},
		{"application/vnd.api+json; charset=utf-8", `{"type":"object","properties":{"a":{}}}`, `{"a":"<&>"}`, "application/vnd.api+json; charset=utf-8", `{"a":"<&>"}`},
	} {
		doc := document(operation("", `,"requestBody":{"required":true,"content":{"`+tt.media+`":{"schema":`+tt.schema+`}}}`), "")
		c, _ := serve(t, doc, &openapi.Options{Server: api.URL})
		r := c.Call("op", mcptest.Raw(tt.args))
		got := api.last()
		if got.header.Get("Content-Type") != tt.kind || got.body != tt.want {
			t.Errorf("%s %s: %q of %s, want %q: %s", tt.media, tt.args, got.body, got.header.Get("Content-Type"), tt.want, r.Text())
		}
	}
}

// Forms with files, as a server reads them.
func TestMultipart(t *testing.T) {
	api := newRecorder(t)
	var got []string
	api.answer = func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) }
	doc := document(operation("", `,"requestBody":{"required":true,"content":{"multipart/form-data":{"schema":{"$ref":"#/components/schemas/F"},"encoding":{"meta":{"contentType":"application/json"}}}}}`),
		`{"schemas":{"F":{"type":"object","required":["file"],"properties":{"file":{"type":"string","format":"binary"},"more":{"type":"array","items":{"$ref":"#/components/schemas/B"}},"meta":{"type":"object"},"note":{"type":"string"}}},"B":{"type":"string","format":"binary"}}}`)
	c, _ := serve(t, doc, &openapi.Options{Server: api.URL})
	call := func(args string) *mcptest.Result { got = nil; return c.Call("op", mcptest.Raw(args)) }
	r := call(`{"body":{"file":{"name":"a\"\r\nX: y.txt","type":"text/plain; charset=utf-8","data":"aGk="},"more":[{"data":"AA=="},{"data":"AQ=="}],"meta":{"k":1},"note":"n"}}`)
	last := api.last()
	_, params, err := mime.ParseMediaType(last.header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err, r.Text())
	}
	for reader := multipart.NewReader(strings.NewReader(last.body), params["boundary"]); ; {
		p, err := reader.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(p)
		if err != nil || p.Header.Get("X") != "" {
			t.Fatal(err, p.Header)
		}
		got = append(got, p.FormName()+"|"+p.FileName()+"|"+p.Header.Get("Content-Type")+"|"+string(data))
	}
	want := "file|a%22%0D%0AX: y.txt|text/plain; charset=utf-8|hi\nmeta||application/json|{\"k\":1}\nmore|file|application/octet-stream|\x00\nmore|file|application/octet-stream|\x01\nnote|||n"
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("got\n%q\nwant\n%q", s, want)
	}
	for _, args := range []string{`{"body":{"file":{"type":"x\r\nY: z","data":""}}}`, `{"body":{"file":{"data":"!"}}}`, `{"body":{"file":"x"}}`} {
		if r := call(args); !r.IsError || api.last().method != "" {
			t.Errorf("%s was sent: %s", args, r.Text())
		}
	}
}
