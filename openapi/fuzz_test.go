package openapi_test

import (
	"fmt"
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

// FuzzSecrets: whatever a server says of a request, and wherever it ends, no result, no error and
// no line of the log has what Auth, Options.Fixed or the address of the server put into it.
func FuzzSecrets(f *testing.F) {
	const key = "Ma2k8dQz/+7Fp0-which-is-long"
	for _, seed := range []struct {
		body, kind, location string
		status               int
	}{
		{"not valid: %s", "text/plain", "/y?%s", 200}, {`{"a":"%s"}`, "application/json", "", 401}, {"%s", "text/html", "http://x.example/?%s", 302}, {"%s", "application/zip", "http://[::1?%s", 307},
		{strings.Repeat("x", 4<<10-10) + "%s", "text/plain", "", 500}, {strings.Repeat("x", 40_000-12) + "%s", "text/plain", "", 200}, {"", "", "", 204}, {"%s", "image/png", "", 206}, {"%s", "text/plain", "", 0},
	} {
		f.Add(seed.body, seed.kind, seed.location, seed.status)
	}
	f.Fuzz(func(t *testing.T, body, kind, location string, status int) {
		if status != 0 && (status < 200 || status > 599) {
			return
		}
		client := &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
			said := fmt.Sprint(r.URL, " ", r.URL.Query(), " ", r.Header)
			fill := func(text string) string { return strings.ReplaceAll(text, "%s", said) }
			if status == 0 {
				return nil, fmt.Errorf("%s: %w", fill(body), &url.Error{Op: "Get", URL: r.URL.String(), Err: io.ErrUnexpectedEOF})
			}
			h := http.Header{"Content-Type": {kind}, "Location": {strings.ReplaceAll(location, "%s", r.URL.RawQuery)}, "Link": {"</x?page=2&" + r.URL.RawQuery + ">; rel=next"}, "Retry-After": {fill(location)}, "Etag": {fill(location)}}
			return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(fill(body))), Request: r}, nil
		})}
		tools, problems, err := openapi.Tools([]byte(getter(param("fixed", "query", "")+`,{"name":"page","in":"query","schema":{}}`)), &openapi.Options{
			Server: "http://ann:" + url.QueryEscape(key) + "@api.example.com/?key=" + url.QueryEscape(key), Client: client, Fixed: map[string]string{"fixed": key + "-fixed"},
			Auth: func(_ *mcp.Frame, _ openapi.Operation, r *http.Request) error {
				q := r.URL.Query()
				q.Set("api_key", key)
				r.URL.RawQuery = q.Encode()
				r.Header.Set("Authorization", "Bearer "+key)
				r.AddCookie(&http.Cookie{Name: "session", Value: key})
				return nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		log := &locked{w: &strings.Builder{}}
		logger := zerolog.New(log)
		s := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, &mcp.Options{Logger: &logger})
		s.MustAdd(tools...)
		c := mcptest.New(t, s)
		all := text(problems)
		for _, tool := range []string{"op", "head", "del"} {
			r, err := c.TryCall(tool, nil)
			all += fmt.Sprintf("%v %+v\n", err, r)
		}
		all += fmt.Sprint(log.w)
		for _, secret := range []string{key, url.QueryEscape(key)} {
			if at := strings.Index(all, secret); at >= 0 {
				t.Errorf("the key is in …%.400q", all[max(0, at-200):])
			}
		}
	})
}
