package auth_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/auth"
)

const introspectionURL = issuerURL + "/introspect"

// startServer starts a server on this machine and returns its URL.
func startServer(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// answering returns an issuer that answers questions so.
func answering(status int, answer map[string]any) *issuer {
	s := newIssuer()
	s.handle = func(*http.Request) (int, string) { return status, string(must(json.Marshal(answer))) }
	return s
}

func newIntrospection(t *testing.T, s *issuer, opts auth.IntrospectionOptions) auth.Verifier {
	t.Helper()
	opts.Client = s.client()
	if !opts.AnyAudience {
		opts.Audiences = append([]string{resource}, opts.Audiences...)
	}
	return auth.NewIntrospection(introspectionURL, &opts)
}

// What the authorization server says of a token decides.
func TestIntrospection(t *testing.T) {
	now := time.Now().Unix()
	said := func(others map[string]any) map[string]any {
		all := valid(others)
		if _, ok := others["active"]; !ok {
			all["active"] = true
		}
		return all
	}
	tests := []struct {
		name   string
		status int
		answer map[string]any
		want   string
	}{
		{"active", 200, said(nil), "ok"},
		{"active without times", 200, said(map[string]any{"exp": nil, "iat": nil}), "ok"},
		{"active without issuer", 200, said(map[string]any{"iss": nil}), "ok"},
		{"user name alone", 200, said(map[string]any{"sub": nil, "client_id": nil, "username": "alice"}), "ok"},
		{"refresh token", 200, said(map[string]any{"token_use": "refresh_token"}), "invalid_token"},
		{"refresh token of another kind", 200, said(map[string]any{"typ": "Offline"}), "invalid_token"},
		{"ID token", 200, said(map[string]any{"token_type": "id_token"}), "invalid_token"},
		{"Bearer", 200, said(map[string]any{"token_type": "bearer", "typ": "at+jwt", "token_use": "access_token"}), "ok"},
		{"bound to a key that nobody tells", 200, said(map[string]any{"token_type": "DPoP"}), "invalid_token"},
		{"inactive", 200, map[string]any{"active": false}, "invalid_token"},
		{"inactive, with claims", 200, said(map[string]any{"active": false}), "invalid_token"},
		{"active that is text", 200, said(map[string]any{"active": "true"}), "invalid_token"},
		{"no active", 200, valid(nil), "invalid_token"},
		{"for another server", 200, said(map[string]any{"aud": "https://other.example.com"}), "invalid_token"},
		{"for nobody", 200, said(map[string]any{"aud": nil}), "invalid_token"},
		{"of another issuer", 200, said(map[string]any{"iss": "https://evil.example.com"}), "invalid_token"},
		{"expired", 200, said(map[string]any{"exp": now - 60}), "invalid_token"},
		{"not yet valid", 200, said(map[string]any{"nbf": now + 60}), "invalid_token"},
		{"malformed", 200, said(map[string]any{"exp": "soon"}), "later"},
		{"unauthorized", 401, map[string]any{"error": "invalid_client"}, "later"},
		{"redirected", 302, said(nil), "later"},
		{"broken", 500, nil, "later"},
	}
	for _, tt := range tests {
		v := newIntrospection(t, answering(tt.status, tt.answer), auth.IntrospectionOptions{Issuer: issuerURL})
		if got := verdict(t, v, "opaque"); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// The question is as RFC 7662 has it, and says who asks.
func TestIntrospectionRequest(t *testing.T) {
	s := answering(200, nil)
	var form url.Values
	var user, password, accept string
	s.handle = func(r *http.Request) (int, string) {
		_ = r.ParseForm()
		form, accept = r.PostForm, r.Header.Get("Accept")
		user, password, _ = r.BasicAuth()
		return 200, `{"active":false}`
	}
	_, _ = newIntrospection(t, s, auth.IntrospectionOptions{ClientID: "a b", ClientSecret: "c:d%"}).Verify(t.Context(), "tok/en+=")
	if form.Get("token") != "tok/en+=" || form.Get("token_type_hint") != "access_token" || user != "a+b" || password != "c%3Ad%25" || accept != "application/json" {
		t.Errorf("%v, %q, %q, %q", form, user, password, accept)
	}
	v := newIntrospection(t, s, auth.IntrospectionOptions{ClientID: "unused", Authorize: func(r *http.Request) error {
		r.SetBasicAuth("own", "way")
		return nil
	}})
	if _, _ = v.Verify(t.Context(), "x"); user != "own" {
		t.Errorf("user %q", user)
	}
	v = newIntrospection(t, s, auth.IntrospectionOptions{Authorize: func(*http.Request) error { return errors.New("no key") }})
	if got := verdict(t, v, "x"); got != "later" {
		t.Errorf("without key: %s", got)
	}
}

// Without the name of its issuer, a token's subject is not mixed up with that
// of another server's.
func TestIntrospectionIssuers(t *testing.T) {
	s := answering(200, map[string]any{"active": true, "sub": "alice", "aud": resource})
	a, err := newIntrospection(t, s, auth.IntrospectionOptions{}).Verify(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	other := auth.NewIntrospection("https://other.example.com/introspect", &auth.IntrospectionOptions{Client: s.client(), AnyAudience: true})
	b, err := other.Verify(t.Context(), "x")
	if err != nil || a.Principal() == b.Principal() {
		t.Errorf("%q and %q, %v", a.Principal(), b.Principal(), err)
	}
}

// Answers are kept, and one question is asked for many requests; a revoked
// token is of no use any more when what is kept has become old.
func TestIntrospectionIsCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := answering(200, map[string]any{"active": true, "sub": "alice", "aud": resource})
		s.delay = time.Second
		protected := protect(newIntrospection(t, s, auth.IntrospectionOptions{}), resource, &auth.Options{CacheFor: 30 * time.Second})(&reached{})
		ask := func() int { return serve(protected, post("Authorization", "Bearer opaque")).StatusCode }
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if status := ask(); status != 200 {
					t.Errorf("status %d", status)
				}
			})
		}
		all.Wait()
		if n := s.count(introspectionURL); n != 1 {
			t.Errorf("%d questions", n)
		}
		s.set(func() { s.handle = func(*http.Request) (int, string) { return 200, `{"active":false}` } })
		if status := ask(); status != 200 {
			t.Errorf("status %d", status)
		}
		time.Sleep(31 * time.Second)
		if status := ask(); status != 401 {
			t.Errorf("after its revocation: status %d", status)
		}
	})
}

// A flood of made up tokens does not become one of questions.
func TestIntrospectionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := answering(200, map[string]any{"active": false})
		s.delay = time.Second
		protected := protect(newIntrospection(t, s, auth.IntrospectionOptions{MaxConcurrent: 5}), resource, &auth.Options{})(&reached{})
		var mu sync.Mutex
		statuses := map[int]int{}
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				status := serve(protected, post("Authorization", fmt.Sprintf("Bearer x%d", i))).StatusCode
				mu.Lock()
				defer mu.Unlock()
				statuses[status]++
			})
		}
		all.Wait()
		if statuses[401] != 5 || statuses[503] != 95 || s.count(introspectionURL) != 5 {
			t.Errorf("%v, %d questions", statuses, s.count(introspectionURL))
		}
	})
}

// Tokens do not follow a redirect.
func TestTokensAreNotRedirected(t *testing.T) {
	var elsewhere []string
	target := startServer(t, func(_ http.ResponseWriter, r *http.Request) { elsewhere = append(elsewhere, r.FormValue("token")) })
	source := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target, http.StatusTemporaryRedirect)
	})
	v := auth.NewIntrospection(source, &auth.IntrospectionOptions{ClientID: "me", ClientSecret: "secret", AnyAudience: true})
	if got := verdict(t, v, "opaque"); got != "later" || elsewhere != nil {
		t.Errorf("%s, %q elsewhere", got, elsewhere)
	}
}

func TestNewIntrospectionFaults(t *testing.T) {
	wrong := auth.NewIntrospection("http://auth.example.com/introspect", nil)
	if _, err := auth.New(resource, auth.Any(wrong), nil); err == nil || !strings.Contains(err.Error(), "has to be an https URL") {
		t.Errorf("error %v", err)
	}
	if _, err := auth.NewIntrospection(introspectionURL, nil).Verify(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "knows no audience") {
		t.Errorf("error %v", err)
	}
}
