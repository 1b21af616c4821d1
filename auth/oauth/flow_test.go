package oauth

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestFirstRequest(t *testing.T) {
	w := newWorld(t)
	user := &consent{}
	c := w.client(&Options{Grant: &AuthorizationCode{Agent: user}, ClientName: "Test"})
	mustCall(t, c)
	mustCall(t, c)
	want := []string{
		"server POST /mcp",
		"server GET /.well-known/oauth-protected-resource/mcp",
		"issuer GET /.well-known/oauth-authorization-server",
		"issuer POST /register",
		"issuer GET /authorize",
		"issuer POST /token authorization_code",
		"server POST /mcp",
		"server POST /mcp",
	}
	if !slices.Equal(w.log, want) {
		t.Errorf("got %q\nwant %q", w.log, want)
	}
	asked := user.visits[0]
	for name, value := range map[string]string{
		"response_type": "code", "code_challenge_method": "S256", "redirect_uri": consentURI, "resource": w.server.URL + "/mcp",
	} {
		if asked.Get(name) != value {
			t.Errorf("%s is %q, want %q", name, asked.Get(name), value)
		}
	}
	if asked.Has("scope") {
		t.Errorf("a scope is asked for that nobody has named: %q", asked.Get("scope"))
	}
	token, err := c.Token(t.Context())
	if err != nil || token.TokenType != "Bearer" || !strings.HasPrefix(token.AccessToken, "token-") {
		t.Errorf("got %v, %v", token, err)
	}
}

// TestDiscoveryOrder: where metadata is looked for, and in which order.
func TestDiscoveryOrder(t *testing.T) {
	const resource, server, openid = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	tests := []struct {
		name    string
		path    string // of the MCP server
		issuer  string // path of the issuer
		place   string // where its metadata is
		root    bool   // the metadata of the resource is at the root
		options Options
		want    []string
	}{
		{"path", "/mcp", "", server, false, Options{}, []string{"server " + resource + "/mcp", "issuer " + server}},
		{"root", "/mcp", "", server, true, Options{}, []string{"server " + resource + "/mcp", "server " + resource, "issuer " + server}},
		{"server at the root", "/", "", server, true, Options{}, []string{"server " + resource, "issuer " + server}},
		{"OpenID", "/mcp", "", openid, false, Options{}, []string{"server " + resource + "/mcp", "issuer " + server, "issuer " + openid}},
		{"tenant", "/mcp", "/t1", server + "/t1", false, Options{}, []string{"server " + resource + "/mcp", "issuer " + server + "/t1"}},
		{"tenant, OpenID inserted", "/mcp", "/t1", openid + "/t1", false, Options{},
			[]string{"server " + resource + "/mcp", "issuer " + server + "/t1", "issuer " + openid + "/t1"}},
		{"tenant, OpenID appended", "/mcp", "/t1", "/t1" + openid, false, Options{},
			[]string{"server " + resource + "/mcp", "issuer " + server + "/t1", "issuer " + openid + "/t1", "issuer /t1" + openid}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.handlers["issuer "+server] = http.NotFound
			w.handlers["server "+resource+"/mcp"] = http.NotFound
			place := resource + strings.TrimSuffix(test.path, "/")
			if test.root {
				place = resource
			}
			w.handlers["server "+place] = func(rw http.ResponseWriter, _ *http.Request) {
				base := strings.TrimSuffix(w.server.URL+test.path, "/")
				if test.root {
					base = w.server.URL
				}
				writeJSON(rw, 200, map[string]any{"resource": base, "authorization_servers": []string{w.issuer.URL + test.issuer}})
			}
			w.handlers["issuer "+test.place] = func(rw http.ResponseWriter, _ *http.Request) {
				writeJSON(rw, 200, map[string]any{
					"issuer": w.issuer.URL + test.issuer, "authorization_endpoint": w.issuer.URL + "/authorize",
					"token_endpoint": w.issuer.URL + "/token", "registration_endpoint": w.issuer.URL + "/register",
					"code_challenge_methods_supported": []string{"S256"},
				})
			}
			w.answer = func(q url.Values) { q.Del("iss") }
			w.handlers["server "+test.path] = w.mcp
			w.challenge = func(h http.Header) { h.Set("WWW-Authenticate", "Bearer") }
			options := test.options
			options.Grant = &AuthorizationCode{Agent: &consent{}}
			c, err := New(w.server.URL+test.path, &options)
			if err != nil {
				t.Fatal(err)
			}
			mustCall(t, c)
			var got []string
			for _, line := range w.log {
				if strings.Contains(line, "/.well-known/") {
					got = append(got, strings.Replace(line, " GET ", " ", 1))
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// TestLegacyDiscovery: servers of 2025-03-26 are their own authorization
// servers, with metadata or with the default endpoints.
func TestLegacyDiscovery(t *testing.T) {
	for _, metadata := range []bool{true, false} {
		t.Run(fmt.Sprintf("metadata=%t", metadata), func(t *testing.T) {
			w := newWorld(t)
			w.issuer = w.server
			w.handlers["server /.well-known/oauth-protected-resource/mcp"] = http.NotFound
			w.challenge = func(h http.Header) { h.Del("WWW-Authenticate") }
			w.handlers["server /authorize"], w.handlers["server /register"] = w.authorize, w.register
			w.handlers["server /token"] = w.token
			w.answer = func(q url.Values) { q.Del("iss") }
			if metadata {
				w.handlers["server /token"], w.handlers["server /oauth/token"] = http.NotFound, w.token
				w.handlers["server /.well-known/oauth-authorization-server"] = func(rw http.ResponseWriter, _ *http.Request) {
					writeJSON(rw, 200, map[string]any{
						"issuer": w.server.URL, "authorization_endpoint": w.server.URL + "/authorize",
						"token_endpoint": w.server.URL + "/oauth/token", "registration_endpoint": w.server.URL + "/register",
						"code_challenge_methods_supported": []string{"S256"},
					})
				}
			}
			store := NewMemoryStore()
			mustCall(t, w.client(&Options{Store: store}))
			// Another program finds the same endpoints when it has to refresh.
			expireStored(t, store)
			mustCall(t, w.client(&Options{Store: store}))
			if metadata != (w.count("server POST /oauth/token refresh_token") == 1) {
				t.Errorf("refreshed elsewhere: %q", w.log)
			}

			_, _, err := call(w.client(&Options{NoLegacyDiscovery: true}))
			if err == nil || !strings.Contains(err.Error(), "has no metadata") {
				t.Errorf("without fallbacks: %v", err)
			}
		})
	}
}

func TestScopes(t *testing.T) {
	tests := []struct {
		name    string
		bend    func(w *world)
		options Options
		want    string
	}{
		{"of the challenge", func(w *world) {
			w.needs = []string{"a", "b"}
			w.resource = func(doc map[string]any) { doc["scopes_supported"] = []string{"a", "b", "c"} }
		}, Options{}, "a b"},
		{"of the resource", func(w *world) {
			w.resource = func(doc map[string]any) { doc["scopes_supported"] = []string{"a", "b", "c"} }
		}, Options{}, "a b c"},
		{"none", func(*world) {}, Options{}, ""},
		{"of the options", func(w *world) { w.needs = []string{"a"} }, Options{Scopes: []string{"x"}}, "a x"},
		{"offline", func(w *world) {
			w.needs = []string{"a"}
			w.metadata = func(doc map[string]any) { doc["scopes_supported"] = []string{"a", "offline_access"} }
		}, Options{}, "a offline_access"},
		{"offline is not wanted", func(w *world) {
			w.needs = []string{"a"}
			w.metadata = func(doc map[string]any) { doc["scopes_supported"] = []string{"a", "offline_access"} }
		}, Options{NoOfflineAccess: true}, "a"},
		{"offline is not offered", func(w *world) {
			w.needs = []string{"a"}
			w.metadata = func(doc map[string]any) { doc["scopes_supported"] = []string{"a"} }
		}, Options{}, "a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			test.bend(w)
			user := &consent{}
			test.options.Grant = &AuthorizationCode{Agent: user}
			mustCall(t, w.client(&test.options))
			if got := user.scopes(0); got != test.want {
				t.Errorf("asked for %q, want %q", got, test.want)
			}
		})
	}
}

func TestStepUp(t *testing.T) {
	t.Run("accumulates", func(t *testing.T) {
		w := newWorld(t)
		w.needs = []string{"read"}
		user := &consent{}
		c := w.client(&Options{Grant: &AuthorizationCode{Agent: user}})
		mustCall(t, c)
		mustCall(t, c, "write")
		mustCall(t, c, "read", "write")
		mustCall(t, c, "delete")
		got := []string{user.scopes(0), user.scopes(1), user.scopes(2)}
		if want := []string{"read", "read write", "read write delete"}; !slices.Equal(got, want) || len(user.visits) != 3 {
			t.Errorf("asked for %q, want %q", got, want)
		}
	})
	t.Run("keeps what was granted unasked", func(t *testing.T) {
		w := newWorld(t)
		w.codeScope = func(asked []string) []string { return append([]string{"basic"}, asked...) }
		user := &consent{}
		c := w.client(&Options{Grant: &AuthorizationCode{Agent: user}})
		mustCall(t, c, "basic")
		mustCall(t, c, "write")
		if got := user.scopes(1); got != "basic write" {
			t.Errorf("asked for %q", got)
		}
	})
	t.Run("not granted", func(t *testing.T) {
		w := newWorld(t)
		w.codeScope = func([]string) []string { return []string{"read"} }
		c := w.client(nil)
		mustCall(t, c, "read")
		for range 3 {
			if _, _, err := call(c, "write"); err == nil || !strings.Contains(err.Error(), "step-up") {
				t.Fatalf("got %v", err)
			}
		}
		if visits := w.count("issuer GET /authorize"); visits != 2 {
			t.Errorf("the user was visited %d times for what he does not grant", visits)
		}
	})
	t.Run("endless", func(t *testing.T) {
		w := newWorld(t)
		step := 0
		w.handlers["server /mcp"] = func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				w.mcp(rw, r)
				return
			}
			step++
			w.refused(rw, 403, fmt.Sprintf(`Bearer error="insufficient_scope", scope="s%d"`, step))
		}
		_, _, err := call(w.client(nil))
		if err == nil || !strings.Contains(err.Error(), "after 2 step-ups") {
			t.Errorf("got %v", err)
		}
		if visits := w.count("issuer GET /authorize"); visits != 3 {
			t.Errorf("the user was visited %d times", visits)
		}
	})
	t.Run("concurrent", func(t *testing.T) {
		w := newWorld(t)
		c := w.client(nil)
		mustCall(t, c)
		var calls sync.WaitGroup
		for range 10 {
			calls.Go(func() {
				if _, _, err := call(c, "write"); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if visits := w.count("issuer GET /authorize"); visits != 2 {
			t.Errorf("the user was visited %d times", visits)
		}
	})
	t.Run("forbidden for another reason", func(t *testing.T) {
		w := newWorld(t)
		c := w.client(nil)
		mustCall(t, c)
		w.handlers["server /mcp"] = status(403)
		if got, _, err := call(c); got != 403 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
	})
}

// TestEndlessRefusal: a server that refuses every token does not keep the
// client busy.
func TestEndlessRefusal(t *testing.T) {
	w := newWorld(t)
	w.handlers["server /mcp"] = func(rw http.ResponseWriter, _ *http.Request) { w.refused(rw, 401, `Bearer error="invalid_token"`) }
	w.challenge = func(h http.Header) {
		h.Set("WWW-Authenticate", `Bearer resource_metadata="`+w.server.URL+`/.well-known/oauth-protected-resource/mcp"`)
	}
	_, _, err := call(w.client(nil))
	if err == nil || !strings.Contains(err.Error(), "refuses the token") {
		t.Errorf("got %v", err)
	}
	if tries, visits := w.count("server POST /mcp"), w.count("issuer GET /authorize"); tries != 2 || visits != 1 {
		t.Errorf("%d tries, %d visits of the user", tries, visits)
	}
}
