package openapi_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/openapi"
)

// FuzzTools: whatever a document says, Tools returns, and a server takes its tools.
func FuzzTools(f *testing.F) {
	f.Add([]byte(petstore))
	f.Add([]byte(getter(param("a", "query", `,"style":"deepObject"`))))
	f.Add([]byte(document(listed(`{"oneOf":[{"$ref":"#/components/schemas/A"}],"discriminator":{"propertyName":"t"}}`),
		`{"schemas":{"A":{"allOf":[{"$ref":"#/components/schemas/A"}],"discriminator":{"propertyName":"t","mapping":{"a":"A"}},"properties":{"t":{"pattern":"^a$","nullable":true,"default":1}}}}}`)))
	f.Add([]byte("openapi: 3.1.0\npaths: {/a: &x {get: {requestBody: {content: {multipart/form-data: {schema: {properties: {f: {type: string, format: binary}}}}}}}}, /b: *x}\n<<: {a: 0x1F, b: .inf, c: 2026-01-01, 200: ~}"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		tools, _, err := openapi.Tools(doc, &openapi.Options{Server: "http://api.example.com/v1", Fixed: map[string]string{"a": "b"}})
		if err != nil {
			return
		}
		log := zerolog.Nop()
		if err := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, &mcp.Options{Logger: &log}).Add(tools...); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzCall: whatever arguments say, the request keeps to its origin, its path and its
// headers.
func FuzzCall(f *testing.F) {
	var seen *http.Request
	client := &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
		seen = r
		return &http.Response{StatusCode: 204, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
	})}
	doc := document(`"/v1/{a}{b}/x":{"get":{"operationId":"op","parameters":[`+strings.Join([]string{param("a", "path", ""), param("b", "path", ""),
		param("q", "query", ""), param("d", "query", `,"style":"deepObject"`), param("h", "header", ""), param("c", "cookie", "")}, ",")+`]}}`, "")
	tools, _, err := openapi.Tools([]byte(doc), &openapi.Options{Server: "http://api.example.com/base", Client: client})
	if err != nil {
		f.Fatal(err)
	}
	log := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, &mcp.Options{Logger: &log})
	s.MustAdd(tools...)
	f.Add("a", "b", "q", "d", "h", "c")
	f.Add("..", "%2f", "&a=b#", "x]", "\r\nHost: x", "; a=b")
	f.Fuzz(func(t *testing.T, a, b, q, d, h, c string) {
		seen = nil
		client := mcptest.New(t, s)
		r, err := client.TryCall("op", map[string]any{"a": a, "b": b, "q": q, "d": map[string]string{d: d}, "h": h, "c": c})
		if err != nil || r.IsError {
			return
		}
		u, err := url.Parse(seen.URL.String())
		if err != nil || u.Host != "api.example.com" || strings.Count(u.EscapedPath(), "/") != 4 || !strings.HasPrefix(u.EscapedPath(), "/base/v1/") {
			t.Fatalf("%v, %v", seen.URL, err)
		}
		values, err := url.ParseQuery(u.RawQuery)
		if err != nil || len(values) != 2 || values.Get("q") != string([]rune(q)) {
			t.Fatalf("%q became %v, %v", q, values, err)
		}
		if len(seen.Header) != 3 || strings.ContainsAny(seen.Header.Get("h")+seen.Header.Get("Cookie"), "\r\n\x00") || strings.Contains(seen.Header.Get("Cookie"), ";") {
			t.Fatal(seen.Header)
		}
	})
}
