package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestClientCredentials(t *testing.T) {
	w := newWorld(t)
	w.needs = []string{"read"}
	w.given = func(doc map[string]any) { delete(doc, "refresh_token") }
	c := w.client(&Options{
		Grant:   &ClientCredentials{},
		Clients: []Registration{{Issuer: w.issuer.URL, ClientID: "machine", ClientSecret: "s"}},
	})
	mustCall(t, c)
	mustCall(t, c, "write") // step-up works without a user
	w.expire()
	mustCall(t, c, "read", "write")
	if n := w.count("issuer POST /token client_credentials"); n != 3 || w.count("issuer GET /authorize") > 0 {
		t.Errorf("asked %q", w.log)
	}
	token, err := w.client(&Options{Grant: &ClientCredentials{}, Clients: []Registration{{ClientID: "m", ClientSecret: "s"}}}).Token(t.Context())
	if err != nil || token.AccessToken == "" {
		t.Errorf("a token without a request: %v", err)
	}
	for want, options := range map[string]*Options{
		"has no client":    {},
		"does not support": {Clients: []Registration{{ClientID: "m", ClientSecret: "s"}}, Scopes: []string{"unsupported"}},
	} {
		w.metadata = func(doc map[string]any) {
			if options.Scopes != nil {
				doc["grant_types_supported"] = []string{"authorization_code"}
			}
		}
		options.Grant = &ClientCredentials{}
		if _, _, err := call(w.client(options)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestWorkloadIdentity(t *testing.T) {
	w := newWorld(t)
	var audiences []string
	var form url.Values
	w.handlers["issuer /token"] = func(rw http.ResponseWriter, r *http.Request) { form = r.PostForm; w.token(rw, r) }
	grant := &WorkloadIdentity{Assertion: func(_ context.Context, audience string) (string, error) {
		audiences = append(audiences, audience)
		return "jwt", nil
	}}
	mustCall(t, w.client(&Options{Grant: grant, Clients: []Registration{{ClientID: "workload"}}}))
	mustCall(t, w.client(&Options{Grant: grant}))
	if form.Has("client_id") || form.Get("assertion") != "jwt" || form.Get("grant_type") != grantJWTBearer {
		t.Errorf("asked with %v", form)
	}
	if !slices.Equal(audiences, []string{w.issuer.URL, w.issuer.URL}) {
		t.Errorf("audiences %q", audiences)
	}

	// A refusal is final: no second try, no other grant.
	for _, code := range []string{"invalid_grant", "invalid_scope", "unauthorized_client"} {
		w.log = nil
		w.refuse = func(url.Values) string { return code }
		if _, _, err := call(w.client(&Options{Grant: grant})); !hasCode(err, code) {
			t.Errorf("got %v, want %s", err, code)
		}
		if n := w.count("issuer POST /token " + grantJWTBearer); n != 1 || w.count("issuer GET /authorize") > 0 {
			t.Errorf("after %s: %q", code, w.log)
		}
	}
	broken := &WorkloadIdentity{Assertion: func(context.Context, string) (string, error) { return "", errors.New("no platform") }}
	if _, _, err := call(w.client(&Options{Grant: broken})); err == nil || !strings.Contains(err.Error(), "no platform") {
		t.Errorf("got %v", err)
	}
}

func TestEnterpriseManaged(t *testing.T) {
	tests := []struct {
		name     string
		metadata func(w *world, doc map[string]any)
		provider func(form url.Values) (status int, doc map[string]any)
		options  Options
		endpoint bool // the token endpoint is given, not discovered
		want     string
	}{
		{name: "registered"},
		{name: "endpoint given", endpoint: true},
		{name: "registered dynamically", options: Options{Clients: []Registration{}}},
		{name: "provider refuses", provider: func(url.Values) (int, map[string]any) {
			return 400, map[string]any{"error": "access_denied"}
		}, want: "token exchange at"},
		{name: "something else is issued", provider: func(url.Values) (int, map[string]any) {
			return 200, map[string]any{"access_token": "x", "token_type": "N_A", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}
		}, want: "not an ID-JAG"},
		{name: "grant is not supported", metadata: func(_ *world, doc map[string]any) {
			doc["grant_types_supported"] = []string{"authorization_code"}
		}, want: "does not support the grant type"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.needs = []string{"read"}
			w.metadata = func(doc map[string]any) {
				if test.metadata != nil {
					test.metadata(w, doc)
				}
			}
			var exchanged, granted url.Values
			dynamic := test.options.Clients != nil
			var provider *httptest.Server
			provider = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				_ = r.ParseForm()
				if r.URL.Path == "/.well-known/openid-configuration" {
					writeJSON(rw, 200, map[string]any{"issuer": provider.URL, "token_endpoint": provider.URL + "/token"})
					return
				}
				if r.URL.Path != "/token" {
					http.NotFound(rw, r)
					return
				}
				exchanged = r.PostForm
				if test.provider != nil {
					status, doc := test.provider(r.PostForm)
					writeJSON(rw, status, doc)
					return
				}
				writeJSON(rw, 200, map[string]any{"access_token": "id-jag", "token_type": "N_A", "issued_token_type": tokenTypeIDJAG})
			}))
			defer provider.Close()
			w.handlers["issuer /token"] = func(rw http.ResponseWriter, r *http.Request) {
				granted = r.PostForm
				if _, _, basic := r.BasicAuth(); basic == dynamic {
					t.Error("the client authenticates in another way")
				}
				r.PostForm.Set("scope", exchanged.Get("scope")) // in the assertion
				w.token(rw, r)
			}
			grant := &EnterpriseManaged{
				Provider: provider.URL, Client: Registration{ClientID: "sso", ClientSecret: "s"},
				Assertion: func(context.Context) (string, error) { return "id-token", nil },
			}
			if test.endpoint {
				grant.TokenEndpoint = provider.URL + "/token"
			}
			test.options.Grant = grant
			if !dynamic {
				test.options.Clients = []Registration{{Issuer: w.issuer.URL, ClientID: "app", ClientSecret: "s"}}
			}
			c := w.client(&test.options)
			if test.want != "" {
				if _, _, err := call(c); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v", err)
				}
				return
			}
			mustCall(t, c)
			for name, want := range map[string]string{
				"grant_type": grantExchange, "requested_token_type": tokenTypeIDJAG, "audience": w.issuer.URL, "resource": w.server.URL + "/mcp",
				"scope": "read", "subject_token": "id-token", "subject_token_type": tokenTypeIDToken,
			} {
				if exchanged.Get(name) != want {
					t.Errorf("exchanged with %s=%q, want %q", name, exchanged.Get(name), want)
				}
			}
			if granted.Get("grant_type") != grantJWTBearer || granted.Get("assertion") != "id-jag" {
				t.Errorf("granted with %v", granted)
			}
		})
	}
}
