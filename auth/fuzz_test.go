package auth_test

import (
	"strings"
	"testing"

	"github.com/talaria-go/mcp/auth"
)

// Whatever headers say, nothing that was not signed by the issuer gets through,
// and every refusal is whole.
func FuzzBearer(f *testing.F) {
	good := token(nil)
	half, _, _ := strings.Cut(good, ".")
	for _, header := range []string{"", "Bearer", "Bearer x", "bearer ===", "DPoP a.b.c", "Basic YTpi", "Bearer " + good[:len(good)-5], "Bearer " + half + "..", "Bearer\t" + good, "Bearer a,Bearer b"} {
		f.Add(header, "", "")
	}
	f.Add("DPoP "+bound(), "x.y.z", "access_token=1")
	f.Add("DPoP "+bound(), proof(good, nil), "a=b&c")
	handler := &reached{}
	protected := protect(newJWT(f, newIssuer(), auth.JWTOptions{Keys: auth.KeyOptions{}}), resource, &auth.Options{AuthorizationServers: []string{issuerURL}, Scopes: []string{"notes:read"}})(handler)
	f.Fuzz(func(t *testing.T, header, proof, query string) {
		r := post()
		r.Header["Authorization"], r.Header["Dpop"], r.URL.RawQuery = []string{header}, []string{proof}, query
		res := serve(protected, r)
		if res.StatusCode != 400 && res.StatusCode != 401 || handler.count() != 0 {
			t.Fatalf("status %d, %d passed", res.StatusCode, handler.count())
		}
		if _, params := parseChallenge(t, res.Header.Get("WWW-Authenticate")); params["resource_metadata"] != metadata {
			t.Fatalf("challenge %q", res.Header.Get("WWW-Authenticate"))
		}
	})
}
