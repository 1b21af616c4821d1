package openapi_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/openapi"
	"github.com/talaria-go/mcp/protocol"
)

// getter returns a document with GET /x and these parameters.
func getter(parameters string) string {
	return document(`"/x":{"get":{"operationId":"op","parameters":[`+parameters+`]},"head":{"operationId":"head"},"delete":{"operationId":"del"}}`, "")
}

func TestResults(t *testing.T) {
	api := newRecorder(t)
	c, _ := serve(t, getter(`{"name":"page","in":"query","schema":{"type":"integer"}},{"name":"q","in":"query","schema":{"type":"string"}}`), &openapi.Options{Server: api.URL})
	long := strings.Repeat("0123456789abcde\n", 75_000) // 1,200,000 bytes
	for _, tt := range []struct {
		name, tool, kind string
		status           int
		header, body     string
		isError          bool
		want             string
	}{
		{"JSON", "op", "application/json", 200, "", `{"a":1}`, false, `{"a":1}`},
		{"JSON of a vendor", "op", "application/vnd.github+json; charset=utf-8", 200, "", `[]`, false, `[]`},
		{"a text without a type", "op", "-", 200, "", "plain", false, "plain"},
		{"Latin-1", "op", "text/plain; charset=ISO-8859-1", 200, "", "caf\xe9", false, "café"},
		{"a byte order mark", "op", "application/json", 200, "", "\ufeff{}", false, "{}"},
		{"broken UTF-8", "op", "text/plain", 200, "", "a\xffb", false, "a\ufffdb"},
		{"204", "del", "", 204, "", "", false, "Done (204)."},
		{"an empty 201", "op", "application/json", 201, "", "", false, "Done (201)."},
		{"HEAD", "head", "text/plain", 200, "", "", false, "Done (200).\nContent-Type: text/plain"},
		{"a long text", "op", "text/plain", 200, "Content-Length: 1200000", long, false, "0123456789abcde\n[cut: 39,999 of 1,200,000 bytes; ask for less, with a filter or a limit]"},
		{"a long text of unknown length", "op", "text/plain", 200, "", long, false, "0123456789abcde\n[cut: 39,999 bytes; ask for less, with a filter or a limit]"},
		{"an archive", "op", "application/zip", 200, "Content-Length: 1200000", long, false, "200 with 1 MB of application/zip, not shown"},
		{"an archive of unknown length", "op", "application/zip", 200, "", long, false, "200 with more than 40,000 bytes of application/zip, not shown"},
		{"404", "op", "application/json", 404, "", `{"message":"Not Found"}`, true, "HTTP status 404 Not Found\n{\"message\":\"Not Found\"}"},
		{"429", "op", "text/plain", 429, "Retry-After: 30", "slow down", true, "HTTP status 429 Too Many Requests\nRetry-After: 30\nslow down"},
		{"a long error", "op", "text/html", 500, "", strings.Repeat("é", 3_000), true, "HTTP status 500 Internal Server Error\n" + strings.Repeat("é", 2_048) + "\n[cut]"},
		{"a redirect to another port", "op", "text/plain", 302, "Location: http://127.0.0.1:1/x?key=secret", "", true, "HTTP status 302 Found\nLocation: http://127.0.0.1:1/x?key=*"},
		{"a redirect to the metadata of a cloud", "op", "text/plain", 302, "Location: http://169.254.169.254/latest", "", true, "HTTP status 302 Found\nLocation: http://169.254.169.254/latest"},
		{"a redirect of DELETE", "del", "", 307, "Location: /x", "", true, "HTTP status 307 Temporary Redirect\nLocation: /x"},
		{"a next page", "op", "application/json", 200, `Link: <https://api/x?page=1&q=z>; rel="prev", <https://api/x?page=3&q=a,b&k=1>; rel="next last"; title="x"`, `[]`, false, "There is a next page: call again with page=3, q=a,b."},
		{"a next page of nothing", "op", "application/json", 204, `Link: <https://api/x?page=3>; rel="next"`, "", false, "There is a next page: call again with page=3."},
		{"no next page", "op", "application/json", 200, `Link: <https://api/x?page=1>; rel="prev next-one"`, `[]`, false, "[]"},
		{"a bad link", "op", "application/json", 200, `Link: <http://[::1?page=1>; rel="next", x`, `[]`, false, "[]"},
	} {
		api.answer = func(w http.ResponseWriter, r *http.Request) {
			if tt.kind == "-" {
				w.Header()["Content-Type"] = nil
			} else if tt.kind != "" {
				w.Header().Set("Content-Type", tt.kind)
			}
			if name, value, ok := strings.Cut(tt.header, ": "); ok {
				w.Header().Set(name, value)
			}
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.body)
		}
		r := c.Call(tt.tool, nil)
		got := r.Text()
		if strings.HasPrefix(tt.name, "a long text") {
			got = got[39_984:]
		}
		if i := strings.Index(got, "=*"); i > 0 {
			got = got[:i+2]
		}
		if strings.HasPrefix(tt.name, "a next") {
			got = r.Content[1].(protocol.TextContent).Text
		}
		if got != tt.want || r.IsError != tt.isError {
			t.Errorf("%s: %v %q, want %q", tt.name, r.IsError, got, tt.want)
		}
	}
}

func TestMedia(t *testing.T) {
	api := newRecorder(t)
	c, _ := serve(t, getter(`{"name":"k","in":"query","schema":{}}`), &openapi.Options{Server: api.URL})
	for kind, want := range map[string]string{
		"image/png": "protocol.ImageContent image/png", "audio/mpeg": "protocol.AudioContent audio/mpeg",
		"application/pdf": "protocol.EmbeddedResource application/pdf", "application/octet-stream": "protocol.EmbeddedResource application/octet-stream",
		"image/svg+xml": "protocol.TextContent ", "pdf": "protocol.EmbeddedResource application/octet-stream", "image/": "protocol.EmbeddedResource application/octet-stream",
		"image/p ng": "protocol.EmbeddedResource application/octet-stream", "application/pdf, application/pdf": "protocol.EmbeddedResource application/octet-stream",
		"application/" + strings.Repeat("x", 200): "protocol.EmbeddedResource application/octet-stream", "image/png; q": "protocol.ImageContent image/png",
	} {
		api.answer = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, "\x00\x01\xff")
		}
		r := c.Call("op", mcptest.Raw(`{"k":"v"}`))
		got := ""
		switch item := r.Content[0].(type) {
		case protocol.ImageContent:
			got = item.MIMEType
		case protocol.AudioContent:
			got = item.MIMEType
		case protocol.EmbeddedResource:
			got = item.Resource.MIMEType
			if item.Resource.URI != api.URL+"/x" || string(item.Resource.Blob) != "\x00\x01\xff" {
				t.Errorf("%s: %v", kind, item.Resource)
			}
		}
		if got = fmt.Sprintf("%T %s", r.Content[0], got); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
}

// TestSecrets: what Auth puts in is in no result, no error and no log.
func TestSecrets(t *testing.T) {
	const key, token = "k3y/with+signs=", "t0ken-of-the-caller"
	echo := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/y?"+r.URL.RawQuery)
		w.Header().Set("Link", "</x?"+r.URL.RawQuery+"&page=2>; rel=next")
		w.Header().Set("Content-Type", "text/plain")
		status := http.StatusOK
		if r.URL.Query().Get("page") != "" {
			status = http.StatusUnauthorized
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprintln(w, "not valid:", r.URL, r.URL.Query(), r.Header)
	}
	api := newRecorder(t)
	api.answer = echo
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, o := range map[string]*openapi.Options{
		"answers": {Server: api.URL},
		"gone":    {Server: gone.URL},
		"url.Error": {Server: api.URL, Client: &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("proxy: %w", &url.Error{Op: "Get", URL: r.URL.String(), Err: errors.New("no route")})
		})}},
		"body": {Server: api.URL, Client: &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}}, Request: r,
				Body: io.NopCloser(io.MultiReader(strings.NewReader("x"), failing{&url.Error{Op: "read", URL: r.URL.String(), Err: io.ErrUnexpectedEOF}}))}, nil
		})}},
		"fixed": {Server: api.URL, Fixed: map[string]string{"page": "a-long-fixed-key-of-ours"}},
	} {
		o.Auth = func(_ *mcp.Frame, _ openapi.Operation, r *http.Request) error {
			q := r.URL.Query()
			q.Set("api_key", key)
			r.URL.RawQuery = q.Encode()
			r.Header.Set("Authorization", "Bearer "+token)
			return nil
		}
		tools, _, err := openapi.Tools([]byte(getter(`{"name":"page","in":"query","schema":{}}`)), o)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		logger := zerolog.New(&locked{w: &log}).Level(zerolog.TraceLevel)
		s := mcp.NewServer(mcp.Info{Name: "api", Version: "1"}, &mcp.Options{Logger: &logger})
		s.MustAdd(tools...)
		c := mcptest.New(t, s)
		args := []string{`{}`}
		if name == "answers" {
			args = append(args, `{"page":1}`)
		}
		for _, a := range args {
			r := c.Call("op", mcptest.Raw(a))
			all := fmt.Sprint(r.Text(), r.Content, log.String())
			for _, secret := range []string{key, url.QueryEscape(key), token, "a-long-fixed-key-of-ours"} {
				if strings.Contains(all, secret) {
					t.Errorf("%s %s: %s is in %s", name, a, secret, all)
				}
			}
			if name == "answers" && !strings.Contains(all, "[hidden]") {
				t.Errorf("%s", all)
			}
		}
	}
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A body of a GiB, as it is or in gzip, costs little memory.
func TestHugeBodies(t *testing.T) {
	api := newRecorder(t)
	c, _ := serve(t, getter(""), &openapi.Options{Server: api.URL})
	for _, kind := range []string{"text/plain", "application/json", "image/png", "application/zip", "application/octet-stream"} {
		for _, zipped := range []bool{false, true} {
			for _, status := range []int{200, 500} {
				api.answer = func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", kind)
					out := io.Writer(w)
					if zipped {
						w.Header().Set("Content-Encoding", "gzip")
						z := gzip.NewWriter(w)
						defer func() { _ = z.Close() }()
						out = z
					}
					w.WriteHeader(status)
					size := int64(1 << 30)
					if zipped {
						size = 64 << 20 // which takes its time to compress
					}
					_, _ = io.CopyN(out, endless{}, size)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				r := c.Call("op", nil)
				runtime.ReadMemStats(&after)
				if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
					t.Errorf("%s, %v, %d: %d MB for %.60s", kind, zipped, status, used>>20, r.Text())
				}
			}
		}
	}
}

// bare is an http.RoundTripper that returns a response without its request.
type bare func(*http.Request) *http.Response

func (b bare) RoundTrip(r *http.Request) (*http.Response, error) {
	res := b(r)
	res.Request = nil
	return res, nil
}

// Neither the query of the server nor a fixed value is in a result, whatever the transport does.
func TestSecretsInAddresses(t *testing.T) {
	const key, path = "key-of-the-server-0123456789", "fixed-value-of-the-path-0123456789"
	for name, trip := range map[string]func(*http.Request) *http.Response{
		"bytes": func(*http.Request) *http.Response {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/zip"}}, Body: io.NopCloser(strings.NewReader("PK\x00"))}
		},
		"panic": func(*http.Request) *http.Response { panic("no") },
		"end":   func(*http.Request) *http.Response { runtime.Goexit(); return nil },
	} {
		log := &locked{w: &strings.Builder{}}
		logger := zerolog.New(log)
		tools, _, err := openapi.Tools([]byte(document(`"/{account}/x":{"get":{"operationId":"op","parameters":[`+param("account", "path", "")+`]}}`, "")), &openapi.Options{
			Server: "https://ann:" + key + "@api.example.com/v1?key=" + key, Client: &http.Client{Transport: bare(trip)}, Fixed: map[string]string{"account": path},
		})
		if err != nil {
			t.Fatal(err)
		}
		s := mcp.NewServer(mcp.Info{Name: "api", Version: "1"}, &mcp.Options{Logger: &logger})
		s.MustAdd(tools...)
		c := mcptest.New(t, s)
		r, err := c.TryCall("op", nil)
		got := fmt.Sprintf("%v %+v %s", err, r, log.w)
		if strings.Contains(got, key) || strings.Contains(got, path) || name == "bytes" && (r == nil || r.IsError || len(r.Content) != 1) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
