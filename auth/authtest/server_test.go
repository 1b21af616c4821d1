package authtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/auth"
)

const resource = "https://notes.example.com/mcp"

// started returns a Server that is closed at the end of the test.
func started(t *testing.T, opts *Options) *Server {
	t.Helper()
	s, err := Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A token is verified with the keys that the Server publishes, until it is
// revoked, whichever way.
func TestTokens(t *testing.T) {
	s := started(t, &Options{Resource: resource, Scopes: []Scope{{Name: "notes:read"}, {Name: "notes:write"}}})
	protected, err := auth.New(resource, auth.NewJWT(s.Issuer(), &auth.JWTOptions{Check: s.Revoked}), &auth.Options{CacheFor: -1})
	if err != nil {
		t.Fatal(err)
	}
	h := protected.Bearer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	status := func(token string) int {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	revocations := map[string]func(token string){
		"Revoke": s.Revoke,
		"endpoint": func(token string) {
			res, err := http.PostForm(s.Issuer()+"/revoke", url.Values{"token": {token}})
			if err != nil || res.StatusCode != http.StatusOK {
				t.Fatal(res, err)
			}
			res.Body.Close()
		},
	}
	other, err := s.Token("bob")
	if err != nil {
		t.Fatal(err)
	}
	for name, revoke := range revocations {
		token, err := s.Token("alice", "notes:read", "notes:write")
		if err != nil {
			t.Fatal(err)
		}
		if got := status(token); got != http.StatusOK {
			t.Errorf("%s: status %d before", name, got)
		}
		revoke("another")
		revoke(token)
		if got := status(token); got != http.StatusUnauthorized {
			t.Errorf("%s: status %d after", name, got)
		}
	}
	if got := status(other); got != http.StatusOK {
		t.Errorf("another token: status %d", got)
	}
	if _, err := s.Token("alice", "notes:delete"); err == nil || !strings.Contains(err.Error(), `"notes:delete"; Options.Scopes has ["notes:read" "notes:write"]`) {
		t.Errorf("%v", err)
	}
}

// Tokens of a Server that is closed, or over, are none.
func TestLifetime(t *testing.T) {
	s := started(t, &Options{Resource: resource, Lifetime: time.Nanosecond})
	token, err := s.Token("alice")
	if err != nil {
		t.Fatal(err)
	}
	verifier := auth.NewJWT(s.Issuer(), &auth.JWTOptions{Audiences: []string{resource}, Leeway: -1})
	if id, err := verifier.Verify(t.Context(), token); err == nil {
		t.Errorf("%+v", id)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(s.Issuer() + "/keys"); err == nil {
		t.Error("it still answers")
	}
}

// Requests to the Server are answered before the router behind it, those from
// elsewhere are refused, and all others pass.
func TestMiddleware(t *testing.T) {
	s, err := New(&Options{Issuer: "http://127.0.0.1:8080/auth", Resource: resource})
	if err != nil {
		t.Fatal(err)
	}
	h := s.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	const here = "127.0.0.1:5000"
	for _, tt := range []struct {
		method, url, from string
		status            int
	}{
		{"GET", "http://127.0.0.1:8080/auth/keys", here, 200},
		{"GET", "http://localhost:8080/.well-known/oauth-authorization-server/auth", here, 200},
		{"GET", "http://[::1]/.well-known/openid-configuration/auth", "[::1]:5000", 200},
		{"GET", "http://127.0.0.1:8080/auth/.well-known/openid-configuration", here, 200},
		{"POST", "http://127.0.0.1:8080/auth/keys", here, 405},
		{"GET", "http://127.0.0.1:8080/auth/token", here, 405},
		{"GET", "http://127.0.0.1:8080/auth/keys", "192.0.2.1:5000", 403},
		{"GET", "http://evil.example.com/auth/keys", here, 403},
		{"GET", "http://127.0.0.1:8080/auth/other", here, 418},
		{"GET", "http://127.0.0.1:8080/.well-known/oauth-authorization-server", here, 418},
		{"POST", "http://evil.example.com/mcp", "192.0.2.1:5000", 418},
	} {
		r := httptest.NewRequest(tt.method, tt.url, nil)
		r.RemoteAddr = tt.from
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("%s %s from %s: status %d, want %d", tt.method, tt.url, tt.from, w.Code, tt.status)
		}
	}
	res, err := http.Get(started(t, &Options{Resource: resource}).Issuer() + "/other")
	if err != nil || res.StatusCode != http.StatusNotFound {
		t.Fatal(res, err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
}

// A Server without scopes asks for none.
func TestWithoutScopes(t *testing.T) {
	const id = "https://app.example.com/client.json"
	docs := documents{id: `{"client_id":"` + id + `","client_name":"App","redirect_uris":["https://app.example.com/"]}`}
	s := started(t, &Options{Resource: resource, Client: &http.Client{Transport: docs}})
	q := url.Values{
		"response_type": {"code"}, "client_id": {id}, "resource": {resource},
		"code_challenge": {strings.Repeat("x", 43)}, "code_challenge_method": {"S256"},
	}
	res, err := http.Get(s.Issuer() + "/authorize?" + q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || strings.Contains(string(text), "checkbox") {
		t.Errorf("status %s, %v, %s", res.Status, err, text)
	}
}

// Options that make no sense are errors that say how to mend them.
func TestOptions(t *testing.T) {
	for want, opts := range map[string]*Options{"Options.Resource": {Issuer: "http://127.0.0.1:1/auth"}, "issuer must be": nil} {
		if _, err := New(opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := Start(nil); err == nil || !strings.Contains(err.Error(), "Options.Resource") {
		t.Errorf("%v", err)
	}
}
