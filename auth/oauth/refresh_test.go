package oauth

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestRefresh(t *testing.T) {
	t.Run("rotates", func(t *testing.T) {
		w := newWorld(t)
		store := NewMemoryStore()
		c := w.client(&Options{Store: store})
		mustCall(t, c)
		for range 3 {
			w.expire()
			mustCall(t, c)
		}
		if n := w.count("issuer POST /token refresh_token"); n != 3 || w.stolen {
			t.Errorf("%d refreshes, stolen=%t", n, w.stolen)
		}
		if visits := w.count("issuer GET /authorize"); visits != 1 {
			t.Errorf("the user was visited %d times", visits)
		}
	})
	t.Run("without rotation", func(t *testing.T) {
		w := newWorld(t)
		c := w.client(nil)
		mustCall(t, c)
		w.given = func(doc map[string]any) { w.refresh["refresh-kept"] = nil; delete(doc, "refresh_token") }
		w.refresh["refresh-3"] = nil // what the client has stays valid
		w.expire()
		mustCall(t, c)
		if rec := c.newest(); rec.RefreshToken == "" {
			t.Error("the refresh token is lost")
		}
	})
	t.Run("before it is sent when expired", func(t *testing.T) {
		w := newWorld(t)
		store := NewMemoryStore()
		mustCall(t, w.client(&Options{Store: store}))
		expireStored(t, store)
		c := w.client(&Options{Store: store})
		token, err := c.Token(t.Context())
		if err != nil || token.AccessToken == "" {
			t.Fatal(err)
		}
		mustCall(t, c)
		if n := w.count("server POST /mcp"); n != 3 {
			t.Errorf("an expired token was sent: %q", w.log)
		}
	})
	t.Run("ended", func(t *testing.T) {
		w := newWorld(t)
		w.needs = []string{"read"}
		user := &consent{}
		c := w.client(&Options{Grant: &AuthorizationCode{Agent: user}})
		mustCall(t, c)
		mustCall(t, c, "write")
		w.expire()
		clear(w.refresh)
		mustCall(t, c)
		if got := user.scopes(2); got != "read write" {
			t.Errorf("after the grant has ended the client asks for %q", got)
		}
		if n := w.count("issuer POST /register"); n != 1 {
			t.Errorf("registered %d times", n)
		}
	})
	t.Run("ended, at a server that serves strangers", func(t *testing.T) {
		w, store := newWorld(t), NewMemoryStore()
		mustCall(t, w.client(&Options{Store: store}))
		expireStored(t, store)
		clear(w.refresh)
		w.expire()
		w.handlers["server /mcp"] = func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				_, _ = rw.Write([]byte("hello stranger"))
				return
			}
			w.mcp(rw, r)
		}
		mustCall(t, w.client(&Options{Store: store}))
	})
	t.Run("client dropped", func(t *testing.T) {
		w := newWorld(t)
		c := w.client(nil)
		mustCall(t, c)
		w.expire()
		dropped := true
		w.refuse = func(form url.Values) string {
			if dropped && form.Get("grant_type") == "refresh_token" {
				dropped = false
				return "invalid_client"
			}
			return ""
		}
		mustCall(t, c)
		if n := w.count("issuer POST /register"); n != 2 {
			t.Errorf("registered %d times", n)
		}
	})
	t.Run("refused for another reason", func(t *testing.T) {
		for _, code := range []string{"invalid_target", "invalid_request", "invalid_scope", "unsupported_grant_type", "access_denied", "something_new"} {
			w := newWorld(t)
			user := &consent{}
			c := w.client(&Options{Grant: &AuthorizationCode{Agent: user}})
			mustCall(t, c)
			w.expire()
			w.refuse = func(form url.Values) string {
				if form.Get("grant_type") == "refresh_token" {
					return code
				}
				return ""
			}
			mustCall(t, c)
			if len(user.visits) != 2 {
				t.Errorf("%s: the user was asked %d times", code, len(user.visits))
			}
		}
	})
	t.Run("refused, and the login too", func(t *testing.T) {
		w, store := newWorld(t), NewMemoryStore()
		mustCall(t, w.client(&Options{Store: store}))
		expireStored(t, store)
		w.expire()
		w.refuse = func(url.Values) string { return "invalid_target" }
		if _, _, err := call(w.client(&Options{Store: store})); !hasCode(err, "invalid_target") {
			t.Errorf("got %v", err)
		}
		w.refuse = nil
		mustCall(t, w.client(&Options{Store: store}))
		if n := w.count("issuer GET /authorize"); n != 2 {
			t.Errorf("the user was asked %d times: the refresh token is lost", n)
		}
	})
	t.Run("another authorization server", func(t *testing.T) {
		w, store := newWorld(t), NewMemoryStore()
		mustCall(t, w.client(&Options{Store: store}))
		expireStored(t, store)
		w.expire()
		metadata := "issuer /.well-known/oauth-authorization-server"
		w.metadata = func(doc map[string]any) { doc["issuer"] = w.issuer.URL + "/new" }
		w.resource = func(doc map[string]any) { doc["authorization_servers"] = []string{w.issuer.URL + "/new"} }
		w.handlers[metadata] = http.NotFound
		w.handlers[metadata+"/new"] = func(rw http.ResponseWriter, _ *http.Request) {
			writeJSON(rw, 200, map[string]any{
				"issuer": w.issuer.URL + "/new", "authorization_endpoint": w.issuer.URL + "/authorize", "token_endpoint": w.issuer.URL + "/token",
				"registration_endpoint": w.issuer.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
			})
		}
		w.answer = func(query url.Values) { query.Set("iss", w.issuer.URL+"/new") }
		mustCall(t, w.client(&Options{Store: store}))
	})
	t.Run("of no use", func(t *testing.T) {
		w := newWorld(t)
		c := w.client(nil)
		mustCall(t, c)
		w.expire()
		first := true
		w.given = func(doc map[string]any) {
			if first {
				doc["access_token"] = "unknown-to-the-MCP-server"
			}
			first = false
		}
		mustCall(t, c)
		if visits := w.count("issuer GET /authorize"); visits != 2 {
			t.Errorf("the user was visited %d times", visits)
		}
	})
	t.Run("out of order", func(t *testing.T) {
		w := newWorld(t)
		c := w.client(nil)
		mustCall(t, c)
		w.expire()
		w.handlers["issuer /token"] = status(503)
		if _, _, err := call(c); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("got %v", err)
		}
		delete(w.handlers, "issuer /token")
		mustCall(t, c)
		if visits := w.count("issuer GET /authorize"); visits != 1 {
			t.Errorf("a fault of the server cost the user a visit: %d", visits)
		}
	})
}

// TestSharedStore: two programs with one file use a refresh token once.
func TestSharedStore(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "sub", "tokens.json")
	mustCall(t, w.client(&Options{Store: NewFileStore(path)}))
	expireStored(t, NewFileStore(path))
	var calls sync.WaitGroup
	for range 6 {
		c := w.client(&Options{Store: NewFileStore(path)})
		calls.Go(func() { mustCall(t, c) })
	}
	calls.Wait()
	if n := w.count("issuer POST /token refresh_token"); n != 1 || w.stolen {
		t.Errorf("%d refreshes, stolen=%t", n, w.stolen)
	}
}

// expireStored makes every token in a store old.
func expireStored(t *testing.T, store Store) {
	t.Helper()
	var values map[string]json.RawMessage
	switch store := store.(type) {
	case *memoryStore:
		values = maps.Clone(store.values)
	case *fileStore:
		var err error
		if values, err = store.read(); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for key := range values {
		if !strings.HasPrefix(key, "token ") {
			continue
		}
		n++
		err := store.Update(t.Context(), key, func(old json.RawMessage) (json.RawMessage, error) {
			var rec record
			if err := json.Unmarshal(old, &rec); err != nil {
				return nil, err
			}
			rec.Expiry = time.Now().Add(-time.Minute)
			return json.Marshal(rec)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n == 0 {
		t.Fatal("the store has no token")
	}
}

func TestMigration(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	store := NewMemoryStore()
	c := w.client(&Options{Store: store})
	mustCall(t, c)
	first := c.newest()

	// The MCP server moves to the other authorization server.
	moved := httptest.NewServer(other.serve("issuer", map[string]http.HandlerFunc{
		"/authorize": other.authorize, "/register": other.register,
		"/token": func(rw http.ResponseWriter, r *http.Request) {
			for name, values := range r.PostForm {
				if text := strings.Join(values, " "); text == first.RefreshToken || name == "client_id" && text == first.ClientID {
					t.Errorf("the new authorization server gets %s=%s of the old one", name, text)
				}
			}
			w.token(rw, r)
		},
	}))
	defer moved.Close()
	w.tokens, w.serial, w.codes = map[string][]string{}, 100, other.codes
	other.serial = 200
	other.answer = func(q url.Values) { q.Set("iss", moved.URL) }
	other.handlers["issuer /.well-known/oauth-authorization-server"] = func(rw http.ResponseWriter, _ *http.Request) {
		writeJSON(rw, 200, map[string]any{
			"issuer": moved.URL, "authorization_endpoint": moved.URL + "/authorize", "token_endpoint": moved.URL + "/token",
			"registration_endpoint": moved.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
		})
	}
	w.resource = func(doc map[string]any) { doc["authorization_servers"] = []string{moved.URL} }
	mustCall(t, c)
	if second := c.newest(); second.Issuer != moved.URL || second.ClientID == first.ClientID {
		t.Errorf("got a token of %s for %s", second.Issuer, second.ClientID)
	}
	if n := other.count("issuer POST /register"); n != 1 {
		t.Errorf("registered %d times with the new authorization server", n)
	}
	if value, _ := store.Load(t.Context(), first.binding().tokenKey()); value != nil {
		t.Error("the token of the old authorization server is still there")
	}

	// A client that was registered beforehand does not move along.
	fixed := w.client(&Options{Clients: []Registration{{Issuer: w.issuer.URL, ClientID: "fixed"}}})
	if _, _, err := call(fixed); err == nil || !strings.Contains(err.Error(), "none for this authorization server") {
		t.Errorf("got %v", err)
	}
}

// TestUnboundClient: a client without an issuer belongs to the first one.
func TestUnboundClient(t *testing.T) {
	w := newWorld(t)
	store := NewMemoryStore()
	options := func() *Options {
		return &Options{Store: store, Clients: []Registration{{ClientID: "mine", ClientSecret: "secret"}}}
	}
	mustCall(t, w.client(options()))
	other := newWorld(t)
	w.resource = func(doc map[string]any) { doc["authorization_servers"] = []string{other.issuer.URL} }
	w.expire()
	if _, _, err := call(w.client(options())); err == nil || !strings.Contains(err.Error(), "belongs to "+w.issuer.URL) {
		t.Errorf("got %v", err)
	}
	if other.count("issuer POST /token authorization_code") > 0 {
		t.Error("the secret went to another authorization server")
	}
}

func TestLoginAndLogout(t *testing.T) {
	w := newWorld(t)
	store := NewFileStore(filepath.Join(t.TempDir(), "tokens.json"))
	c := w.client(&Options{Store: store})
	if _, err := c.Token(t.Context()); !errors.Is(err, ErrLoginRequired) {
		t.Errorf("before: %v", err)
	}
	if err := c.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	token, err := w.client(&Options{Store: store}).Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustCall(t, c)
	if err := c.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again, err := c.Token(t.Context()); err != nil || again.AccessToken == token.AccessToken {
		t.Errorf("a second login gave the same token, %v", err)
	}
	if err := c.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.count("issuer POST /revoke"); n != 2 {
		t.Errorf("%d revocations", n)
	}
	for _, client := range []*Client{c, w.client(&Options{Store: store})} {
		if _, err := client.Token(t.Context()); !errors.Is(err, ErrLoginRequired) {
			t.Errorf("after: %v", err)
		}
	}
	if n := w.count("issuer POST /register"); n != 1 {
		t.Errorf("registered %d times", n)
	}
	if err := c.Logout(t.Context()); err != nil {
		t.Errorf("a second logout: %v", err)
	}
}

func TestLogoutThatFails(t *testing.T) {
	w := newWorld(t)
	c := w.client(nil)
	mustCall(t, c)
	w.handlers["issuer /revoke"] = status(503)
	if err := c.Logout(t.Context()); err == nil || !strings.Contains(err.Error(), "revocation at ") {
		t.Errorf("got %v", err)
	}
	if _, err := c.Token(t.Context()); !errors.Is(err, ErrLoginRequired) {
		t.Errorf("the token is still there: %v", err)
	}
}
