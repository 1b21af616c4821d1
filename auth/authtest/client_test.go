package authtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// documents are the answers to requests, by URL.
type documents map[string]string

// RoundTrip implements http.RoundTripper.
func (d documents) RoundTrip(r *http.Request) (*http.Response, error) {
	text, ok := d[r.URL.String()]
	status := http.StatusOK
	if !ok {
		status = http.StatusNotFound
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// ask opens the page of a client and returns it.
func ask(t *testing.T, docs documents, id, redirect string) (status int, page string) {
	t.Helper()
	opts := Options{Issuer: "http://127.0.0.1:8080/auth", Resource: "http://127.0.0.1:8080/mcp", Scopes: []Scope{{"notes:read", "Read notes"}}}
	if docs != nil {
		opts.Client = &http.Client{Transport: docs}
	}
	s, err := New(&opts)
	if err != nil {
		t.Fatal(err)
	}
	q := url.Values{
		"response_type": {"code"}, "client_id": {id}, "redirect_uri": {redirect}, "resource": {opts.Resource},
		"code_challenge": {strings.Repeat("x", 43)}, "code_challenge_method": {"S256"},
	}
	req := httptest.NewRequest(http.MethodGet, opts.Issuer+"/authorize?"+q.Encode(), nil)
	req.RemoteAddr = "127.0.0.1:5000"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

// A client may be a document on the web; the page shows where it sends users.
func TestClientMetadataDocument(t *testing.T) {
	const id = "https://app.example.com/client.json"
	docs := documents{
		id:                                   `{"client_id":"` + id + `","client_name":"<b>App</b>","redirect_uris":["http://127.0.0.1/callback","https://app.example.com/callback"]}`,
		"https://app.example.com/other.json": `{"client_id":"` + id + `","redirect_uris":["https://app.example.com/callback"]}`,
		"https://app.example.com/bad.json":   `{`,
		"https://app.example.com/evil.json":  `{"client_id":"https://app.example.com/evil.json","client_name":"App","redirect_uris":["javascript:alert(1)"]}`,
		"https://app.example.com/":           `{"client_id":"https://app.example.com/","redirect_uris":["https://app.example.com/callback"]}`,
	}
	tests := []struct {
		id, redirect string
		status       int
		want         string
	}{
		{id, "https://app.example.com/callback", 200, "https://app.example.com</strong>"},
		{id, "http://127.0.0.1:51234/callback", 200, "http://127.0.0.1:51234</strong>"},
		{id, "http://127.0.0.1:51234/other", 400, "redirect_uri is not one"},
		{id, "http://evil.example.com/callback", 400, "redirect_uri is not one"},
		{"https://app.example.com/other.json", "https://app.example.com/callback", 400, "differs"},
		{"https://app.example.com/bad.json", "https://app.example.com/callback", 400, "no JSON object"},
		{"https://app.example.com/evil.json", "javascript:alert(1)", 400, "must be https"},
		{"https://app.example.com/gone.json", "https://app.example.com/callback", 400, "cannot be had"},
		{"https://app.example.com/", "https://app.example.com/callback", 400, "no URL of a metadata document"},
		{"http://app.example.com/client.json", "https://app.example.com/callback", 400, "not known here"},
	}
	for _, tt := range tests {
		status, page := ask(t, docs, tt.id, tt.redirect)
		if status != tt.status || !strings.Contains(page, tt.want) || strings.Contains(page, "<b>") {
			t.Errorf("%s to %s: status %d, %s", tt.id, tt.redirect, status, page)
		}
	}
}

// Documents on this machine or in its network are not fetched.
func TestClientMetadataIsPublic(t *testing.T) {
	reached := false
	web := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer web.Close()
	for _, id := range []string{web.URL + "/client.json", "https://10.0.0.1/client.json", "https://[::1]/client.json", "https://169.254.169.254/client.json"} {
		if status, page := ask(t, nil, id, "https://app.example.com/"); status != 400 || !strings.Contains(page, "cannot be had") || reached {
			t.Errorf("%s: status %d, %s", id, status, page)
		}
	}
}

// It guards nothing but this machine.
func TestIssuers(t *testing.T) {
	for issuer, ok := range map[string]bool{
		"http://127.0.0.1:8080/auth": true, "http://localhost:8080/auth": true, "http://[::1]:8080/auth": true,
		"https://auth.example.com/auth": false, "http://192.0.2.1/auth": false, "http://127.0.0.1:8080": false, "http://127.0.0.1:8080/": false, "http://127.0.0.1:8080/auth/": false, "": false, ":": false,
	} {
		if _, err := New(&Options{Issuer: issuer, Resource: "http://127.0.0.1:8080/mcp", Scopes: []Scope{{"a", "A"}}}); (err == nil) != ok {
			t.Errorf("%s: %v", issuer, err)
		}
	}
}
