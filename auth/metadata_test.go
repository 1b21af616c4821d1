package auth_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/talaria-go/mcp/auth"
)

// The metadata is where clients look for it, for everybody, and says what the
// server needs.
func TestMetadata(t *testing.T) {
	notes := must(auth.New(resource, newJWT(t, newIssuer(), auth.JWTOptions{}), &auth.Options{
		AuthorizationServers: []string{issuerURL}, Scopes: []string{"notes:read"},
		ScopesSupported: []string{"notes:read", "notes:write", "offline_access"},
		Name:            "Notes", Documentation: "https://notes.example.com/docs", DPoP: auth.DPoPOptions{Offer: true, Algorithms: []string{"ES256"}},
	}))
	want := map[string]any{
		"resource": resource, "authorization_servers": []any{issuerURL}, "scopes_supported": []any{"notes:read", "notes:write"},
		"bearer_methods_supported": []any{"header"}, "resource_name": "Notes", "resource_documentation": "https://notes.example.com/docs",
		"dpop_signing_alg_values_supported": []any{"ES256"},
	}
	r, mux := chi.NewRouter(), http.NewServeMux()
	r.Use(notes.Metadata)
	r.Handle("/mcp", &reached{})
	mux.Handle("/mcp", &reached{})
	for name, router := range map[string]http.Handler{"chi": r, "net/http": notes.Metadata(mux)} {
		for _, path := range []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"} {
			res := serve(router, httptest.NewRequest(http.MethodGet, path, nil))
			var got map[string]any
			if err := json.Unmarshal(must(io.ReadAll(res.Body)), &got); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s: %v, %v", name, path, got, err)
			}
			if res.Header.Get("Content-Type") != "application/json" || res.Header.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%s: %v", path, res.Header)
			}
		}
		if res := serve(router, httptest.NewRequest(http.MethodGet, "/.well-known/oauth-protected-resource/other", nil)); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: another resource: status %d", name, res.StatusCode)
		}
	}
	for method, status := range map[string]int{"HEAD": 200, "OPTIONS": 204, "POST": 405, "DELETE": 405} {
		if res := serve(r, httptest.NewRequest(method, "/.well-known/oauth-protected-resource", nil)); res.StatusCode != status {
			t.Errorf("%s: status %d", method, res.StatusCode)
		}
	}
}

// A router that is protected as a whole tells where to get a token, too, and
// nothing else.
func TestMetadataBehindBearer(t *testing.T) {
	r := chi.NewRouter()
	r.Use(protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{AuthorizationServers: []string{issuerURL}}))
	r.Handle("/mcp", &reached{})
	for path, want := range map[string]int{
		"/.well-known/oauth-protected-resource/mcp": 200, "/.well-known/oauth-protected-resource": 200,
		"/.well-known/oauth-protected-resource/other": 401, "/.well-known/oauth-protected-resource/mcp/": 401, "/.well-known/other": 401, "/mcp": 401,
	} {
		if res := serve(r, httptest.NewRequest(http.MethodGet, path, nil)); res.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, res.StatusCode, want)
		}
	}
}

// The least that can be said is enough, and a resource at the root has one
// place.
func TestMetadataOfTheRoot(t *testing.T) {
	static := auth.VerifierFunc(func(context.Context, string) (*auth.Identity, error) { return nil, auth.Invalid("no") })
	notes := must(auth.New("https://notes.example.com", static, &auth.Options{AuthorizationServers: []string{issuerURL}, Scopes: []string{"a"}}))
	res := serve(notes.Metadata(http.NotFoundHandler()), httptest.NewRequest(http.MethodGet, "/.well-known/oauth-protected-resource", nil))
	if got := string(must(io.ReadAll(res.Body))); got != `{"resource":"https://notes.example.com","authorization_servers":["https://auth.example.com"],"scopes_supported":["a"],"bearer_methods_supported":["header"]}` {
		t.Error(got)
	}
}

// The metadata is under the path of the resource, whatever that is.
func TestMetadataPath(t *testing.T) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	v := newJWT(t, newIssuer(), auth.JWTOptions{})
	for resource, path := range map[string]string{
		"https://h/mcp": "/mcp", "https://h": "", "https://h/": "", "https://h/a/b/": "/a/b/", "https://h:8443/a%20b": "/a%20b", "https://h/m?tenant=1": "/m?tenant=1",
	} {
		notes := must(auth.New(resource, v, nil))
		for asked, want := range map[string]int{wellKnown + path: 200, wellKnown: 200, wellKnown + "/other": 404} {
			if res := serve(notes.Metadata(http.NotFoundHandler()), httptest.NewRequest(http.MethodGet, asked, nil)); res.StatusCode != want {
				t.Errorf("%s: %s: status %d, want %d", resource, asked, res.StatusCode, want)
			}
		}
	}
}
