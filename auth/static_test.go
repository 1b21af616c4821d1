package auth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/talaria-go/mcp/auth"
)

// Without an authorization server there is no metadata, and no challenge sends a
// client there; there is still one parameter, as RFC 6750 wants it.
func TestStaticTokens(t *testing.T) {
	static := auth.VerifierFunc(func(_ context.Context, token string) (*auth.Identity, error) {
		if token != "secret" {
			return nil, auth.Invalid("unknown")
		}
		return &auth.Identity{Subject: "ann"}, nil
	})
	const resource, elsewhere = "https://notes.example.com/mcp", "https://example.com/metadata"
	for _, tt := range []struct {
		name, token string
		opts        auth.Options
		want        map[string]string
	}{
		{"no token", "", auth.Options{}, map[string]string{"realm": resource}},
		{"no token, scopes", "", auth.Options{Scopes: []string{"a"}}, map[string]string{"scope": "a"}},
		{"wrong token", "other", auth.Options{}, map[string]string{"error": "invalid_token", "error_description": "unknown"}},
		{"metadata elsewhere", "", auth.Options{MetadataURL: elsewhere}, map[string]string{"resource_metadata": elsewhere}},
		{"an authorization server", "", auth.Options{AuthorizationServers: []string{"https://login.example.com"}},
			map[string]string{"resource_metadata": "https://notes.example.com/.well-known/oauth-protected-resource/mcp"}},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, resource, nil)
		if tt.token != "" {
			r.Header.Set("Authorization", "Bearer "+tt.token)
		}
		protect(static, resource, &tt.opts)(http.NotFoundHandler()).ServeHTTP(w, r)
		scheme, got := parseChallenge(t, w.Header().Get("WWW-Authenticate"))
		if w.Code != http.StatusUnauthorized || scheme != "Bearer" || len(got) != len(tt.want) {
			t.Errorf("%s: status %d, %s %v", tt.name, w.Code, scheme, got)
		}
		for name, value := range tt.want {
			if got[name] != value {
				t.Errorf("%s: %s is %q, want %q", tt.name, name, got[name], value)
			}
		}
	}
}
