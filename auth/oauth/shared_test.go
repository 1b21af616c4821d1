package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
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

// TestClientDropped: an authorization server that has forgotten the client gets
// a new one, if that can be made, and once.
func TestClientDropped(t *testing.T) {
	for _, ever := range []bool{false, true} {
		w := newWorld(t)
		n := 0
		w.refuse = func(form url.Values) string {
			if n++; n == 1 || ever {
				return "invalid_client"
			}
			return ""
		}
		_, _, err := call(w.client(nil))
		if ever != hasCode(err, "invalid_client") || w.count("issuer POST /register") != 2 {
			t.Errorf("ever=%t: got %v after %q", ever, err, w.log)
		}
	}
	w := newWorld(t)
	w.refuse = func(url.Values) string { return "invalid_client" }
	_, _, err := call(w.client(&Options{Clients: []Registration{{Issuer: w.issuer.URL, ClientID: "mine"}}}))
	if !hasCode(err, "invalid_client") || w.count("issuer GET /authorize") != 1 {
		t.Errorf("got %v after %q", err, w.log)
	}
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
