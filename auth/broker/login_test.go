package broker

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

// A user logs in at the provider, and the program gets tokens that name the user.
func TestLogin(t *testing.T) {
	everywhere(t, func(t *testing.T, n int) {
		w := newWorld(t, n, nil)
		tok := w.enter()
		if got := w.user(tok); got != "alice notes:read notes:write" {
			t.Errorf("the user is %q", got)
		}
		id, err := w.brokers[0].Verifier(endpoint).Verify(t.Context(), tok.access)
		if err != nil || id.Issuer != idpURL || id.Claims["email"] != "alice@example.com" || id.Principal() != "https://id.example.com#alice" || !strings.HasPrefix(id.ClientID, "r.") {
			t.Errorf("%+v, %v", id, err)
		}
		if len(tok.access) > 300 {
			t.Errorf("the token has %d bytes", len(tok.access))
		}
		status, code, next := w.renew(tok)
		if status != 200 || w.user(next) != "alice notes:read notes:write" || next.refresh == tok.refresh {
			t.Errorf("refresh: %d %s", status, code)
		}
		if got := w.kinds(); !slices.Equal(got, []string{"login"}) {
			t.Errorf("events %v", got)
		}
		w.idp.mu.Lock()
		defer w.idp.mu.Unlock()
		for _, form := range w.idp.forms {
			if form.Has("resource") || form.Get("code_verifier") == "" {
				t.Errorf("sent to the provider: %v", form)
			}
		}
	})
}

// What the provider is asked: PKCE, nonce, state, its own scopes and parameters; the
// query of its address stays, and the provider gets nothing of the client.
func TestAuthorizationURL(t *testing.T) {
	w := newWorld(t, 1, nil)
	b := w.browser()
	_, _, to := b.open(self+"/consent", b.ask(query(w.register(redirect))))
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for name, want := range map[string]string{
		"company": "1", "client_id": "front", "redirect_uri": self + "/callback", "scope": "openid email offline_access", "prompt": "consent",
		"response_type": "code", "code_challenge_method": "S256", "resource": "",
	} {
		if q.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, q.Get(name), want)
		}
	}
	if len(q.Get("state")) < 40 || len(q.Get("nonce")) < 20 || len(q.Get("code_challenge")) != 43 || strings.Contains(to, "127.0.0.1") {
		t.Errorf("sent to %s", to)
	}
}
