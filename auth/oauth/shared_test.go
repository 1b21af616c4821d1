package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/clients/attend"
)

// TestOtherPrograms: what another program has done to the store is respected.
func TestOtherPrograms(t *testing.T) {
	t.Run("refreshed", func(t *testing.T) {
		w, store := newWorld(t), NewMemoryStore()
		one, two := w.client(&Options{Store: store}), w.client(&Options{Store: store})
		mustCall(t, one)
		mustCall(t, two)
		w.expire()
		mustCall(t, one)
		mustCall(t, two)
		if n := w.count("issuer POST /token refresh_token"); n != 1 {
			t.Errorf("%d refreshes", n)
		}
	})
	t.Run("something else", func(t *testing.T) {
		w, store := newWorld(t), NewMemoryStore()
		clients := []Registration{{Issuer: w.issuer.URL, ClientID: "mine", ClientSecret: "s"}}
		all := []*Client{
			w.client(&Options{Store: store}),
			w.client(&Options{Store: store, ClientName: "Other"}),
			w.client(&Options{Store: store, Clients: clients}),
			w.client(&Options{Store: store, Clients: clients, Grant: &ClientCredentials{}}),
		}
		for range 2 {
			for _, c := range all {
				mustCall(t, c)
			}
			w.expire()
		}
		tokens := map[string]bool{}
		for _, c := range all {
			mustCall(t, c)
			tokens[c.newest().AccessToken] = true
		}
		if visits := w.count("issuer GET /authorize"); len(tokens) != 4 || visits != 3 {
			t.Errorf("%d tokens, %d visits of the user", len(tokens), visits)
		}
	})
	t.Run("logged out", func(t *testing.T) {
		w, store := newWorld(t), NewMemoryStore()
		one, two := w.client(&Options{Store: store}), w.client(&Options{Store: store})
		mustCall(t, one)
		mustCall(t, two)
		if err := one.Logout(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustCall(t, two)
		if visits := w.count("issuer GET /authorize"); visits != 2 || w.count("issuer POST /token refresh_token") > 0 {
			t.Errorf("asked %q", w.log)
		}
	})
	t.Run("logged out while the token had expired", func(t *testing.T) {
		w, store := newWorld(t), NewMemoryStore()
		mustCall(t, w.client(&Options{Store: store}))
		expireStored(t, store)
		two := w.client(&Options{Store: store})
		if _, err := two.stored(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.client(&Options{Store: store}).Logout(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := two.Token(t.Context()); !errors.Is(err, ErrLoginRequired) {
			t.Errorf("got %v", err)
		}
	})
}

// TestBrokenStore: a login that cannot be kept is no login.
func TestBrokenStore(t *testing.T) {
	full := errors.New("disk full")
	w := newWorld(t)
	c := w.client(&Options{Store: brokenStore{NewMemoryStore(), full}})
	if _, _, err := call(c); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if err := w.client(&Options{Store: NewFileStore(filepath.Join(os.DevNull, "x"))}).Login(t.Context()); err == nil {
		t.Error("a store within a device")
	}
}

type brokenStore struct {
	Store
	err error
}

func (b brokenStore) Update(context.Context, string, func(json.RawMessage) (json.RawMessage, error)) error {
	return b.err
}

// TestClientDropped: an authorization server that has forgotten a client which
// was registered earlier gets a new one, once. A client that it refuses right
// after registering it is refused for good: the user is asked once, and the next
// login registers another one.
func TestClientDropped(t *testing.T) {
	tests := []struct {
		name             string
		earlier          bool // the client was registered at an earlier login
		refusals         int
		works            bool
		registered, asks int
	}{
		{"registered now", false, 1, false, 1, 1},
		{"registered earlier", true, 1, true, 2, 2},
		{"registered earlier, refused for ever", true, 9, false, 2, 2},
	}
	for _, tt := range tests {
		w, store := newWorld(t), NewMemoryStore()
		visits := 0
		if tt.earlier {
			one := w.client(&Options{Store: store})
			mustCall(t, one)
			if err := one.Logout(t.Context()); err != nil {
				t.Fatal(err)
			}
			visits = 1
		}
		n := 0
		w.refuse = func(url.Values) string {
			if n++; n <= tt.refusals {
				return "invalid_client"
			}
			return ""
		}
		_, _, err := call(w.client(&Options{Store: store}))
		if tt.works != (err == nil) || !tt.works && (!hasCode(err, "invalid_client") || !errors.Is(err, attend.ErrUnauthorized)) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got, asks := w.count("issuer POST /register"), w.count("issuer GET /authorize")-visits; got != tt.registered || asks != tt.asks {
			t.Errorf("%s: registered %d times, the user was asked %d times", tt.name, got, asks)
		}
		w.refuse = nil
		mustCall(t, w.client(&Options{Store: store}))
		if got := w.count("issuer POST /register"); !tt.works && got != tt.registered+1 {
			t.Errorf("%s: after the next login it was registered %d times", tt.name, got)
		}
	}
	w := newWorld(t)
	w.refuse = func(url.Values) string { return "invalid_client" }
	_, _, err := call(w.client(&Options{Clients: []Registration{{Issuer: w.issuer.URL, ClientID: "mine"}}}))
	if !hasCode(err, "invalid_client") || w.count("issuer GET /authorize") != 1 {
		t.Errorf("got %v after %q", err, w.log)
	}
}

// TestForgetRegistration: an authorization server may tell the user alone, on a
// page, that it has forgotten the client.
func TestForgetRegistration(t *testing.T) {
	w, store := newWorld(t), NewMemoryStore()
	mustCall(t, w.client(&Options{Store: store}))
	known := "client-1"
	w.handlers["issuer /authorize"] = func(rw http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_id") == known {
			http.Error(rw, "unknown client", http.StatusBadRequest)
			return
		}
		w.authorize(rw, r)
	}
	c := w.client(&Options{Store: store})
	if err := c.Login(t.Context()); !errors.Is(err, attend.ErrUnauthorized) {
		t.Errorf("with the forgotten client: %v", err)
	}
	for range 2 { // the second time there is none
		if err := c.ForgetRegistration(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Login(t.Context()); err != nil {
		t.Error(err)
	}
	if n := w.count("issuer POST /register"); n != 2 {
		t.Errorf("registered %d times", n)
	}
}

// TestRefusedLogin: each refusal of a login is an error that only a caller can
// do something about, and the user was asked once for it. A failure that may
// pass before the user was asked is none, and is not remembered.
func TestRefusedLogin(t *testing.T) {
	says := func(code string) func(w *world) {
		return func(w *world) {
			w.answer = func(query url.Values) {
				query.Del("code")
				query.Set("error", code)
			}
		}
	}
	token := func(code string) func(w *world) {
		return func(w *world) { w.refuse = func(url.Values) string { return code } }
	}
	broken := func(path string, status int) func(w *world) {
		return func(w *world) {
			w.handlers[path] = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(status) }
		}
	}
	const metadata, register = "issuer /.well-known/oauth-authorization-server", "issuer /register"
	tests := []struct {
		name    string
		bend    func(w *world)
		final   bool
		windows int
	}{
		{"access_denied", says("access_denied"), true, 1},
		{"invalid_scope", says("invalid_scope"), true, 1},
		{"unauthorized_client", says("unauthorized_client"), true, 1},
		{"invalid_client", says("invalid_client"), true, 1},
		{"server_error after the user was asked", says("server_error"), true, 1},
		{"temporarily_unavailable after the user was asked", says("temporarily_unavailable"), true, 1},
		{"another state", func(w *world) { w.answer = func(q url.Values) { q.Set("state", "other") } }, true, 1},
		{"a callback without code", func(w *world) { w.answer = func(q url.Values) { q.Del("code") } }, true, 1},
		{"the window was closed", func(w *world) { w.handlers["issuer /authorize"] = http.NotFound }, true, 1},
		{"invalid_client at the token endpoint", token("invalid_client"), true, 1},
		{"invalid_grant at the token endpoint", token("invalid_grant"), true, 1},
		{"invalid_scope at the token endpoint", token("invalid_scope"), true, 1},
		{"the token endpoint is out of order", broken("issuer /token", 503), true, 1},
		{"no token in the answer", func(w *world) { w.given = func(doc map[string]any) { doc["token_type"] = "mac" } }, true, 1},
		{"metadata out of order", broken(metadata, 503), false, 0},
		{"metadata in a hurry", broken(metadata, 429), false, 0},
		{"metadata too early", broken(metadata, 425), false, 0},
		{"metadata too slow", broken(metadata, 408), false, 0},
		{"registration out of order", broken(register, 502), false, 0},
		{"registration refused", broken(register, 403), true, 0},
	}
	for _, tt := range tests {
		w := newWorld(t)
		tt.bend(w)
		user := &consent{}
		c := w.client(&Options{Grant: &AuthorizationCode{Agent: user}})
		var occasion attend.Occasion
		for range 3 {
			req, err := http.NewRequestWithContext(occasion.With(t.Context()), http.MethodPost, c.server.String(), strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := c.HTTPClient().Do(req)
			if err == nil {
				resp.Body.Close()
				t.Errorf("%s: status %d", tt.name, resp.StatusCode)
			} else if errors.Is(err, attend.ErrUnauthorized) != tt.final {
				t.Errorf("%s: final=%t: %v", tt.name, !tt.final, err)
			}
		}
		if len(user.visits) != tt.windows {
			t.Errorf("%s: on one occasion the user was asked %d times, want %d", tt.name, len(user.visits), tt.windows)
		}
		w.answer, w.refuse, w.given = nil, nil, nil
		clear(w.handlers)
		mustCall(t, c)
	}
}

// TestLoginTakesTime: the clock of the request stops while the user is asked.
func TestLoginTakesTime(t *testing.T) {
	w := newWorld(t)
	c := w.client(nil)
	holds := &holding{}
	req, err := http.NewRequestWithContext(context.WithValue(t.Context(), attend.Key{}, holds), http.MethodPost, c.server.String(), strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.HTTPClient().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if holds.begun != 1 || holds.ended != 1 || holds.err != nil {
		t.Errorf("%+v", holds)
	}
	req = req.Clone(attend.Never(t.Context()))
	w.expire()
	clear(w.refresh)
	if _, err := c.HTTPClient().Do(req); !errors.Is(err, ErrLoginRequired) || !errors.Is(err, attend.ErrUnauthorized) {
		t.Errorf("a background request: %v", err)
	}
}

// holding is an attend.Asker that counts.
type holding struct {
	begun, ended int
	err          error
}

func (h *holding) Ask() (func(error), error) {
	h.begun++
	return func(err error) { h.ended, h.err = h.ended+1, err }, nil
}

func TestTokenWithoutExpiry(t *testing.T) {
	w, store := newWorld(t), NewMemoryStore()
	w.given = func(doc map[string]any) { delete(doc, "expires_in") }
	mustCall(t, w.client(&Options{Store: store}))
	token, err := w.client(&Options{Store: store}).Token(t.Context())
	if err != nil || !token.Expiry.IsZero() {
		t.Errorf("got %v, %v", token, err)
	}
}

// TestBusy: nobody waits longer than he wants to.
func TestBusy(t *testing.T) {
	c := newWorld(t).client(nil)
	unlock, err := c.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"Login": c.Login(ctx), "Logout": c.Logout(ctx), "Token": func() error { _, err := c.Token(ctx); return err }(),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBrowserIsAsked(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("replaces xdg-open, which is not used here")
	}
	dir := t.TempDir()
	script := "#!/bin/sh\nprintf %s \"$1\" >" + filepath.Join(dir, "opened") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	const address = "https://issuer.example/authorize?a=1&b=$(touch+evil);c"
	if err := OpenBrowser(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	if opened, err := os.ReadFile(filepath.Join(dir, "opened")); string(opened) != address {
		t.Errorf("opened %q, %v", opened, err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := OpenBrowser(t.Context(), address); err == nil || !strings.Contains(err.Error(), "xdg-open") {
		t.Errorf("got %v", err)
	}
}

func FuzzReadAnswer(f *testing.F) {
	const state = "state"
	server := &serverMetadata{Issuer: "https://issuer.example", IssuerParameterPromise: true}
	f.Add("http://127.0.0.1/callback?code=c&state=state&iss=https%3A%2F%2Fissuer.example")
	f.Add("http://127.0.0.1/callback?error=access_denied&state=state&iss=https%3A%2F%2Fissuer.example")
	f.Add("http://127.0.0.1/callback?code=c&state=state&iss=https%3A%2F%2Fissuer.example&iss=x#frag")
	f.Add("http://[::1]%zz/\x00")
	f.Fuzz(func(t *testing.T, redirected string) {
		code, err := readAnswer(redirected, "http://127.0.0.1/callback", state, server)
		if err != nil {
			if code != "" {
				t.Errorf("a code %q beside the error %v", code, err)
			}
			return
		}
		u, err := url.Parse(redirected)
		if err != nil || u.Host != "127.0.0.1" || u.Path != "/callback" {
			t.Fatalf("%q is taken for an answer", redirected)
		}
		query := u.Query()
		if query.Get("state") != state || query.Get("iss") != server.Issuer || query.Get("code") != code || code == "" || query.Has("error") && query.Get("error") != "" {
			t.Errorf("%q is taken for an answer with the code %q", redirected, code)
		}
	})
}
