package auth_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/auth"
)

const keysURL = issuerURL + "/keys"

// verdict says what a Verifier makes of a token: "ok", the code, or "later".
func verdict(t *testing.T, v auth.Verifier, token string) string {
	t.Helper()
	_, err := v.Verify(t.Context(), token)
	if err == nil {
		return "ok"
	}
	if why, ok := errors.AsType[*auth.Error](err); ok {
		return why.Code
	}
	return "later"
}

// rotated returns a token of a key that the issuer did not have at first.
func rotated() string { return sign(jose.ES256, otherKey, map[string]any{"kid": "new"}, valid(nil)) }

func (s *issuer) rotate() {
	s.set(func() { s.keys = []jose.JSONWebKey{{Key: &otherKey.PublicKey, KeyID: "new", Use: "sig"}} })
}

// A new key is found when the first token comes that it has signed, and keys
// that were withdrawn are forgotten.
func TestKeyRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newIssuer()
		v := newJWT(t, issuer, auth.JWTOptions{})
		want := func(token, verdictWanted string, fetches int) {
			t.Helper()
			if got := verdict(t, v, token); got != verdictWanted || issuer.count(keysURL) != fetches {
				t.Fatalf("%s with %d fetches, want %s with %d", got, issuer.count(keysURL), verdictWanted, fetches)
			}
		}
		want(token(nil), "ok", 1)
		issuer.rotate()
		want(token(nil), "ok", 1)           // nobody knows yet
		want(rotated(), "invalid_token", 1) // not again within ten seconds
		time.Sleep(auth.DefaultKeyInterval)
		want(rotated(), "ok", 2)
		want(token(nil), "invalid_token", 2) // the old key is gone
		time.Sleep(auth.DefaultKeyAge / 2)
		want(token(nil), "invalid_token", 3) // an unknown key makes it look
		want(rotated(), "ok", 3)
		time.Sleep(auth.DefaultKeyAge)
		want(rotated(), "ok", 4) // it is time to look anyway
		if n := issuer.count(issuerURL + "/.well-known/oauth-authorization-server"); n != 1 {
			t.Errorf("the metadata was fetched %d times", n)
		}
	})
}

// A key that was withdrawn is used for MaxAge at most, though no token comes
// with an unknown one.
func TestWithdrawnKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newIssuer()
		v := newJWT(t, issuer, auth.JWTOptions{Keys: auth.KeyOptions{MaxAge: time.Minute}})
		if got := verdict(t, v, token(nil)); got != "ok" {
			t.Fatal(got)
		}
		issuer.rotate()
		time.Sleep(59 * time.Second)
		if got := verdict(t, v, token(nil)); got != "ok" {
			t.Error(got)
		}
		time.Sleep(time.Second)
		if got := verdict(t, v, token(nil)); got != "invalid_token" {
			t.Error(got)
		}
	})
}

// However many tokens come at once, known or unknown, the keys are fetched
// once, and all wait for them.
func TestKeyStampede(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newIssuer()
		issuer.delay = 2 * time.Second
		v := newJWT(t, issuer, auth.JWTOptions{})
		storm := func(token string, n int) (ok int) {
			var mu sync.Mutex
			var all sync.WaitGroup
			for range n {
				all.Go(func() {
					if verdict(t, v, token) == "ok" {
						mu.Lock()
						defer mu.Unlock()
						ok++
					}
				})
			}
			all.Wait()
			return ok
		}
		if ok := storm(token(nil), 500); ok != 500 || issuer.count(keysURL) != 1 {
			t.Errorf("%d tokens passed, %d fetches", ok, issuer.count(keysURL))
		}
		issuer.rotate()
		time.Sleep(auth.DefaultKeyInterval)
		if ok := storm(rotated(), 500); ok != 500 || issuer.count(keysURL) != 2 {
			t.Errorf("after the rotation %d tokens passed, %d fetches", ok, issuer.count(keysURL))
		}
		made := sign(jose.ES256, strangeKey, map[string]any{"kid": "made up"}, valid(nil))
		for range 60 {
			if ok := storm(made, 20); ok != 0 {
				t.Errorf("%d made up tokens passed", ok)
			}
			time.Sleep(time.Second)
		}
		// A minute has room for six fetches.
		if n := issuer.count(keysURL); n > 2+7 {
			t.Errorf("made up tokens caused %d fetches in a minute", n-2)
		}
	})
}

// A client that goes away does not take the fetch with it.
func TestKeyFetchOutlivesItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newIssuer()
		issuer.delay = time.Second
		protected := protect(newJWT(t, issuer, auth.JWTOptions{}), resource, &auth.Options{})(&reached{})
		var first, second int
		var all sync.WaitGroup
		all.Go(func() { first = serve(protected, post("Authorization", "Bearer "+token(nil))).StatusCode })
		synctest.Wait()
		all.Go(func() {
			second = serve(protected, post("Authorization", "Bearer "+token(map[string]any{"sub": "bob"}))).StatusCode
		})
		all.Wait()
		if first != 200 || second != 200 || issuer.count(keysURL) != 1 {
			t.Errorf("status %d and %d, %d fetches", first, second, issuer.count(keysURL))
		}
	})
}

// While the issuer is down, its keys go on to serve for a while; without any,
// clients are asked to come later, and the issuer is not stormed.
func TestIssuerIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newIssuer()
		issuer.fail = true
		v := newJWT(t, issuer, auth.JWTOptions{Keys: auth.KeyOptions{MaxStale: 5 * time.Minute}})
		first := issuerURL + "/.well-known/oauth-authorization-server"
		for range 10 {
			if got := verdict(t, v, token(nil)); got != "later" {
				t.Fatal(got)
			}
		}
		if n := issuer.count(first); n != 1 {
			t.Errorf("%d attempts", n)
		}
		issuer.set(func() { issuer.fail = false })
		time.Sleep(auth.DefaultKeyInterval)
		if got := verdict(t, v, token(nil)); got != "ok" {
			t.Fatal(got)
		}
		issuer.set(func() { issuer.fail = true })
		time.Sleep(auth.DefaultKeyAge + 4*time.Minute)
		if got := verdict(t, v, token(nil)); got != "ok" {
			t.Errorf("old keys: %s", got)
		}
		time.Sleep(2 * time.Minute)
		if got := verdict(t, v, token(nil)); got != "later" {
			t.Errorf("too old keys: %s", got)
		}
	})
}

// An issuer that never answers costs a request its time limit, and no more.
func TestIssuerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := newIssuer()
		issuer.delay = time.Hour
		v := newJWT(t, issuer, auth.JWTOptions{})
		start := time.Now()
		if got := verdict(t, v, token(nil)); got != "later" || time.Since(start) != auth.DefaultKeyTimeout {
			t.Errorf("%s after %v", got, time.Since(start))
		}
	})
}

// Where the keys are is found in any of the places that the specification
// names, and only if the issuer there is the right one.
func TestDiscovery(t *testing.T) {
	const tenant = "https://auth.example.com/tenant1"
	document := func(issuer, keys string) string { return `{"issuer":"` + issuer + `","jwks_uri":"` + keys + `"}` }
	tests := []struct {
		name, issuer string
		answers      map[string]string
		want         string
	}{
		{"OAuth", issuerURL, map[string]string{issuerURL + "/.well-known/oauth-authorization-server": document(issuerURL, keysURL)}, "ok"},
		{"OpenID", issuerURL, map[string]string{issuerURL + "/.well-known/openid-configuration": document(issuerURL, keysURL)}, "ok"},
		{"OAuth with path", tenant, map[string]string{issuerURL + "/.well-known/oauth-authorization-server/tenant1": document(tenant, keysURL)}, "ok"},
		{"OpenID with path inserted", tenant, map[string]string{issuerURL + "/.well-known/openid-configuration/tenant1": document(tenant, keysURL)}, "ok"},
		{"OpenID with path before", tenant, map[string]string{tenant + "/.well-known/openid-configuration": document(tenant, keysURL)}, "ok"},
		{"issuer of another", issuerURL, map[string]string{issuerURL + "/.well-known/oauth-authorization-server": document("https://honest.example.com", keysURL)}, "later"},
		{"no issuer", issuerURL, map[string]string{issuerURL + "/.well-known/oauth-authorization-server": `{"jwks_uri":"` + keysURL + `"}`}, "later"},
		{"no keys", issuerURL, map[string]string{issuerURL + "/.well-known/oauth-authorization-server": document(issuerURL, "")}, "later"},
		{"keys in the clear", issuerURL, map[string]string{issuerURL + "/.well-known/oauth-authorization-server": document(issuerURL, "http://auth.example.com/keys")}, "later"},
		{"no JSON", issuerURL, map[string]string{issuerURL + "/.well-known/oauth-authorization-server": "<html>"}, "later"},
		{"far too long", issuerURL, map[string]string{issuerURL + "/.well-known/oauth-authorization-server": strings.Repeat(" ", 2<<20) + document(issuerURL, keysURL)}, "later"},
		{"nothing", issuerURL, nil, "later"},
	}
	for _, tt := range tests {
		issuer := newIssuer()
		issuer.answers = tt.answers
		v := auth.NewJWT(tt.issuer, &auth.JWTOptions{AnyAudience: true, Keys: auth.KeyOptions{Client: issuer.client()}})
		if got := verdict(t, v, token(map[string]any{"iss": tt.issuer})); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Keys that are no public keys for signatures are left out.
func TestKeySets(t *testing.T) {
	public := func(key any) string {
		return string(must(json.Marshal(jose.JSONWebKey{Key: key, KeyID: "ec"})))
	}
	for text, want := range map[string]string{
		`{"keys":[` + public(&ecKey.PublicKey) + `]}`:                                     "ok",
		`{"keys":[{"kty":"XYZ"},7,` + public(&ecKey.PublicKey) + `]}`:                     "ok",
		`{"keys":[` + public(&otherKey.PublicKey) + `,` + public(&ecKey.PublicKey) + `]}`: "ok",
		`{"keys":[` + public(&otherKey.PublicKey) + `]}`:                                  "invalid_token",
		`{"keys":[` + public(ecKey) + `]}`:                                                "error",
		`{"keys":[{"kty":"oct","kid":"ec","k":"c2VjcmV0"}]}`:                              "error",
		`{"keys":[]}`: "error", `{}`: "error", `[]`: "error", `x`: "error",
	} {
		v := auth.NewJWT(issuerURL, &auth.JWTOptions{AnyAudience: true, Keys: auth.KeyOptions{Static: json.RawMessage(text)}})
		got := "error"
		if _, err := auth.New(resource, v, nil); err == nil {
			got = verdict(t, v, token(nil))
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Arguments that make no sense are found when the program starts.
func TestNewJWTFaults(t *testing.T) {
	for want, tt := range map[string]struct {
		issuer string
		opts   *auth.JWTOptions
	}{
		"the issuer is empty":    {"", nil},
		"has to be an https URL": {"http://auth.example.com", nil},
		"give KeyOptions.URL":    {"my-issuer", nil},
		`"HS256" cannot be`:      {issuerURL, &auth.JWTOptions{Algorithms: []string{"HS256"}}},
		`"none" cannot be`:       {issuerURL, &auth.JWTOptions{Algorithms: []string{"ES256", "none"}}},
		"ftp://x":                {issuerURL, &auth.JWTOptions{Keys: auth.KeyOptions{URL: "ftp://x"}}},
		"no public key":          {issuerURL, &auth.JWTOptions{Keys: auth.KeyOptions{Static: json.RawMessage(`{"keys":[]}`)}}},
	} {
		v := auth.NewJWT(tt.issuer, tt.opts)
		if _, err := auth.New(resource, auth.Any(v), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if _, err := v.Verify(t.Context(), token(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Verify: error %v, want %q", err, want)
		}
	}
	for _, tt := range []struct {
		issuer string
		opts   *auth.JWTOptions
	}{
		{"http://127.0.0.1:9000", nil},
		{"http://localhost:9000/x", nil},
		{"my-issuer", &auth.JWTOptions{Keys: auth.KeyOptions{URL: "https://auth.example.com/keys"}}},
		{issuerURL, &auth.JWTOptions{AnyAudience: true}},
		{issuerURL, &auth.JWTOptions{Audiences: []string{"x"}}},
	} {
		if _, err := auth.New(resource, auth.NewJWT(tt.issuer, tt.opts), nil); err != nil {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	if _, err := auth.NewJWT(issuerURL, nil).Verify(t.Context(), token(nil)); err == nil || !strings.Contains(err.Error(), "knows no audience") {
		t.Errorf("without an audience: %v", err)
	}
}

// The options of a JWT verifier do what they say.
func TestJWTOptions(t *testing.T) {
	other := token(map[string]any{"aud": "https://other.example.com"})
	rsa := sign(jose.RS256, rsaKey, map[string]any{"kid": "rsa"}, valid(nil))
	late := token(map[string]any{"exp": time.Now().Add(-10 * time.Second).Unix()})
	tests := []struct {
		name, token string
		opts        auth.JWTOptions
		want        string
	}{
		{"Audiences", other, auth.JWTOptions{Audiences: []string{"https://OTHER.example.com/"}}, "ok"},
		{"AnyAudience", other, auth.JWTOptions{AnyAudience: true}, "ok"},
		{"Algorithms", rsa, auth.JWTOptions{Algorithms: []string{"ES256"}}, "invalid_token"},
		{"Algorithms", rsa, auth.JWTOptions{Algorithms: []string{"RS256"}}, "ok"},
		{"no Leeway", late, auth.JWTOptions{Leeway: -1}, "invalid_token"},
		{"Leeway", late, auth.JWTOptions{Leeway: time.Minute}, "ok"},
	}
	for _, tt := range tests {
		if got := verdict(t, newJWT(t, newIssuer(), tt.opts), tt.token); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	v := newJWT(t, newIssuer(), auth.JWTOptions{ScopeClaims: []string{"permissions"}})
	id, err := v.Verify(t.Context(), token(map[string]any{"permissions": []any{"a", 7, "b c"}}))
	if err != nil || strings.Join(id.Scopes, "+") != "a+b+c" {
		t.Errorf("%+v, %v", id, err)
	}
}

// The default client follows nobody elsewhere.
func TestKeysAreNotRedirected(t *testing.T) {
	elsewhere := 0
	target := startServer(t, func(w http.ResponseWriter, _ *http.Request) { elsewhere++ })
	source := startServer(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, http.StatusFound) })
	v := auth.NewJWT(source, &auth.JWTOptions{AnyAudience: true})
	if got := verdict(t, v, token(map[string]any{"iss": source})); got != "later" || elsewhere != 0 {
		t.Errorf("%s, %d requests elsewhere", got, elsewhere)
	}
}
