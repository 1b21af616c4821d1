package auth_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/auth"
)

// A request whose token was verified before takes a context and a request that
// has it, and no more.
func TestWarmAllocations(t *testing.T) {
	protected := protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{AuthorizationServers: []string{issuerURL}})(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r, w := post("Authorization", "Bearer "+token(nil)), httptest.NewRecorder()
	if n := testing.AllocsPerRun(100, func() { protected.ServeHTTP(w, r) }); n > 2 {
		t.Errorf("%v allocations", n)
	}
}

// What the middleware adds to a request whose token was verified before.
func BenchmarkWarm(b *testing.B) {
	tok := sign(jose.RS256, rsaKey, map[string]any{"kid": "rsa", "typ": "at+jwt"}, valid(nil))
	protected := protect(newJWT(b, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{})(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := post("Authorization", "Bearer "+tok)
	w := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		protected.ServeHTTP(w, r)
	}
	b.ReportMetric(float64(len(tok)), "token-bytes")
}
