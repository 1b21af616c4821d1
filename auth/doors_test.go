package auth_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/auth"
)

// springs is a RoundTripper that does not return while it is armed.
type springs struct {
	http.RoundTripper
	way *func()
}

func (s springs) RoundTrip(r *http.Request) (*http.Response, error) {
	(*s.way)()
	return s.RoundTripper.RoundTrip(r)
}

// Code that a Verifier or the check of a proof is made of, and that does not
// return, refuses the request with nothing of it in the answer, and the next one
// is served.
func TestDoorsOfVerifiers(t *testing.T) {
	active := func() *issuer {
		return answering(200, valid(map[string]any{"active": true}))
	}
	for name, protected := range map[string]func(way *func()) func(http.Handler) http.Handler{
		"JWTOptions.Check": func(way *func()) func(http.Handler) http.Handler {
			return protect(newJWT(t, newIssuer(), auth.JWTOptions{Check: func(context.Context, *auth.Identity) error { (*way)(); return nil }}), resource, &auth.Options{})
		},
		"KeyOptions.Client": func(way *func()) func(http.Handler) http.Handler {
			s := newIssuer()
			v := auth.NewJWT(issuerURL, &auth.JWTOptions{Audiences: []string{resource}, Keys: auth.KeyOptions{Client: &http.Client{Transport: springs{s, way}}, MinInterval: time.Nanosecond}})
			return protect(v, resource, &auth.Options{})
		},
		"IntrospectionOptions.Authorize": func(way *func()) func(http.Handler) http.Handler {
			return protect(newIntrospection(t, active(), auth.IntrospectionOptions{Authorize: func(*http.Request) error { (*way)(); return nil }}), resource, &auth.Options{})
		},
		"IntrospectionOptions.Client": func(way *func()) func(http.Handler) http.Handler {
			v := auth.NewIntrospection(introspectionURL, &auth.IntrospectionOptions{ClientID: "c", ClientSecret: "s", Client: &http.Client{Transport: springs{active(), way}}})
			return protect(v, resource, &auth.Options{})
		},
		"DPoPOptions.URL": func(way *func()) func(http.Handler) http.Handler {
			return protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{DPoP: auth.DPoPOptions{
				URL: func(*http.Request) string { (*way)(); return resource },
			}})
		},
	} {
		for kind, fail := range map[string]func(){"panic": func() { panic("pa55phrase") }, "goexit": runtime.Goexit} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				way := fail
				web := httptest.NewServer(protected(&way)(&reached{}))
				t.Cleanup(web.Close)
				ask := func() (int, string) {
					t.Helper()
					r, err := http.NewRequest(http.MethodPost, web.URL, strings.NewReader("{}"))
					if err != nil {
						t.Fatal(err)
					}
					if r.Header.Set("Authorization", "Bearer "+token(nil)); name == "DPoPOptions.URL" {
						tok := bound()
						r.Header.Set("Authorization", "DPoP "+tok)
						r.Header.Set("DPoP", proof(tok, nil))
					}
					res, err := web.Client().Do(r)
					if err != nil {
						t.Fatal(err)
					}
					defer res.Body.Close()
					body, _ := io.ReadAll(res.Body)
					return res.StatusCode, string(body) + res.Header.Get("WWW-Authenticate")
				}
				if status, text := ask(); status != http.StatusServiceUnavailable && status != http.StatusUnauthorized || strings.Contains(text, "pa55phrase") || strings.Contains(text, "goroutine") {
					t.Errorf("%d %s", status, text)
				}
				way = func() {}
				if status, text := ask(); status != http.StatusOK {
					t.Errorf("the next: %d %s", status, text)
				}
			})
		}
	}
}
