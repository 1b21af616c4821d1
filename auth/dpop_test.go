package auth_test

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/auth"
)

// dpop returns a request with a token and a proof.
func dpop(token, proof string) *http.Request {
	return post("Authorization", "DPoP "+token, "DPoP", proof)
}

// A proof is taken once, while it is young, and forgotten when it is old.
func TestProofsAreNotReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := &reached{}
		protected := protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{})(handler)
		tok := bound()
		once := proof(tok, nil)
		for i, want := range []int{200, 401, 401} {
			res := serve(protected, dpop(tok, once))
			if res.StatusCode != want {
				t.Fatalf("use %d: status %d", i+1, res.StatusCode)
			}
			if want == 401 && !strings.Contains(res.Header.Get("WWW-Authenticate"), `DPoP error="invalid_dpop_proof", error_description="the proof was used before"`) {
				t.Errorf("challenge %s", res.Header.Get("WWW-Authenticate"))
			}
		}
		// At no time until it is too old, nor later.
		for range 200 {
			time.Sleep(time.Second)
			if res := serve(protected, dpop(tok, once)); res.StatusCode != 401 {
				t.Fatalf("status %d", res.StatusCode)
			}
			if res := serve(protected, dpop(tok, proof(tok, nil))); res.StatusCode != 200 {
				t.Fatalf("another proof: status %d", res.StatusCode)
			}
		}
		// The same id of another key is another proof.
		if handler.count() != 201 {
			t.Errorf("%d requests passed", handler.count())
		}
	})
}

// A bad proof does not use up its id.
func TestBadProofLeavesItsID(t *testing.T) {
	protected := protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{})(&reached{})
	tok, id := bound(), rand.Text()
	if res := serve(protected, dpop(tok, proof(tok, map[string]any{"jti": id, "htm": "GET"}))); res.StatusCode != 401 {
		t.Errorf("status %d", res.StatusCode)
	}
	if res := serve(protected, dpop(tok, proof(tok, map[string]any{"jti": id}))); res.StatusCode != 200 {
		t.Errorf("status %d", res.StatusCode)
	}
}

// There is room for so many proofs; beyond it nothing is forgotten early.
func TestProofsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		protected := protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{DPoP: auth.DPoPOptions{MaxReplays: 3}})(&reached{})
		tok := bound()
		first := proof(tok, nil)
		for i, want := range []int{200, 200, 200, 503, 503} {
			p := first
			if i > 0 {
				p = proof(tok, nil)
			}
			if res := serve(protected, dpop(tok, p)); res.StatusCode != want {
				t.Fatalf("proof %d: status %d", i+1, res.StatusCode)
			}
		}
		if res := serve(protected, dpop(tok, first)); res.StatusCode != 401 {
			t.Errorf("replayed: status %d", res.StatusCode)
		}
		time.Sleep(auth.DefaultProofAge + auth.DefaultProofLeeway)
		if res := serve(protected, dpop(tok, proof(tok, nil))); res.StatusCode != 200 {
			t.Errorf("later: status %d", res.StatusCode)
		}
	})
}

// With a key for nonces, a proof needs one of the server's.
func TestNonces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newProtected := func() http.Handler {
			return protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{
				DPoP: auth.DPoPOptions{NonceKey: []byte("0123456789abcdef")},
			})(&reached{})
		}
		protected := newProtected()
		tok := bound()
		ask := func(h http.Handler, nonce any) (int, string, string) {
			res := serve(h, dpop(tok, proof(tok, map[string]any{"nonce": nonce})))
			return res.StatusCode, res.Header.Get("DPoP-Nonce"), res.Header.Get("WWW-Authenticate")
		}
		status, nonce, challenge := ask(protected, nil)
		if status != 401 || nonce == "" || !strings.HasPrefix(challenge, `DPoP error="use_dpop_nonce"`) {
			t.Fatalf("status %d, nonce %q, %s", status, nonce, challenge)
		}
		if status, again, _ := ask(protected, nonce); status != 200 || again != "" {
			t.Errorf("status %d, nonce %q", status, again)
		}
		if status, _, _ := ask(newProtected(), nonce); status != 200 {
			t.Errorf("another process: status %d", status)
		}
		if status, _, _ := ask(protected, nonce+"x"); status != 401 {
			t.Errorf("made up: status %d", status)
		}
		time.Sleep(5 * time.Minute)
		status, newer, _ := ask(protected, nonce)
		if status != 200 || newer == "" || newer == nonce {
			t.Errorf("old: status %d, nonce %q", status, newer)
		}
		time.Sleep(5 * time.Minute)
		if status, _, _ := ask(protected, nonce); status != 401 {
			t.Errorf("too old: status %d", status)
		}
		if status, _, _ := ask(protected, newer); status != 200 {
			t.Errorf("the one before: status %d", status)
		}
	})
}

// A server may take bound tokens alone, or offer to.
func TestProofsRequired(t *testing.T) {
	for _, tt := range []struct {
		name       string
		opts       auth.DPoPOptions
		bearer     int
		challenges []string
	}{
		{"as it is", auth.DPoPOptions{}, 200, []string{"Bearer"}},
		{"offered", auth.DPoPOptions{Offer: true}, 200, []string{"Bearer", "DPoP"}},
		{"required", auth.DPoPOptions{Required: true}, 401, []string{"DPoP"}},
	} {
		protected := protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{AuthorizationServers: []string{issuerURL}, DPoP: tt.opts})(&reached{})
		var schemes []string
		for _, value := range serve(protected, post()).Header.Values("WWW-Authenticate") {
			scheme, params := parseChallenge(t, value)
			schemes = append(schemes, scheme)
			if params["resource_metadata"] != metadata || (params["algs"] != "") != (scheme == "DPoP") {
				t.Errorf("%s: challenge %s", tt.name, value)
			}
		}
		if strings.Join(schemes, " ") != strings.Join(tt.challenges, " ") {
			t.Errorf("%s: challenges %q", tt.name, schemes)
		}
		if res := serve(protected, post("Authorization", "Bearer "+token(nil))); res.StatusCode != tt.bearer {
			t.Errorf("%s: a bearer token got status %d", tt.name, res.StatusCode)
		}
		tok := bound()
		if res := serve(protected, dpop(tok, proof(tok, nil))); res.StatusCode != 200 {
			t.Errorf("%s: a bound token got status %d", tt.name, res.StatusCode)
		}
	}
}

// A bound token that lacks a scope is challenged in its own scheme.
func TestProofAndScope(t *testing.T) {
	protected := protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{Scopes: []string{"x"}})(&reached{})
	tok := bound()
	res := serve(protected, dpop(tok, proof(tok, nil)))
	if res.StatusCode != 403 || !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), `DPoP error="insufficient_scope"`) {
		t.Errorf("status %d, %s", res.StatusCode, res.Header.Get("WWW-Authenticate"))
	}
}

// The URL of a proof is the one that was asked for, whatever a router or a
// proxy has made of it.
func TestProofURL(t *testing.T) {
	guard := protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{})
	mux := http.NewServeMux()
	mux.Handle("/mcp/", http.StripPrefix("/mcp", guard(&reached{})))
	tok := bound()
	r := httptest.NewRequest(http.MethodPost, "/mcp/ws?x=y", nil)
	r.Header.Set("Authorization", "DPoP "+tok)
	r.Header.Set("DPoP", proof(tok, map[string]any{"htu": resource + "/ws"}))
	if res := serve(mux, r); res.StatusCode != 200 {
		t.Errorf("status %d, %s", res.StatusCode, res.Header.Get("WWW-Authenticate"))
	}
	proxied := protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{DPoP: auth.DPoPOptions{
		URL: func(r *http.Request) string { return "https://proxy.example.com/notes" + r.URL.Path },
	}})(&reached{})
	if res := serve(proxied, dpop(tok, proof(tok, map[string]any{"htu": "https://proxy.example.com/notes/mcp"}))); res.StatusCode != 200 {
		t.Errorf("behind a proxy: status %d", res.StatusCode)
	}
}
