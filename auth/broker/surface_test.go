package broker

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/internal/issuing"
	"github.com/talaria-go/mcp/scale"
)

// All faults of arguments are named at once.
func TestFaults(t *testing.T) {
	p := &Provider{Issuer: idpURL, ClientID: "front"}
	for name, tt := range map[string]struct {
		issuer string
		p      *Provider
		o      *Options
		want   []string
	}{
		"nothing": {"", nil, nil, []string{`issuer "" is neither https nor on this machine`, "Resources are missing", "the Provider is missing"}},
		"double":  {self, p, &Options{Resources: []string{endpoint, endpoint + "/"}, Keys: testKeys}, []string{`resource "https://notes.example.com/mcp/" is there twice`}},
		"keys":    {self, p, &Options{Resources: []string{endpoint}}, []string{"Keys are missing: after a restart every client would have to be added again"}},
		"store":   {"http://localhost:1", p, &Options{Resources: []string{endpoint}, Store: scale.NewLocal()}, []string{"Keys are missing"}},
		"short":   {self, p, &Options{Resources: []string{endpoint}, Keys: [][]byte{[]byte("x")}}, []string{"1 bytes"}},
		"http":    {"http://notes.example.com", p, &Options{Resources: []string{"http://notes.example.com"}, Keys: testKeys}, []string{"neither https", "resource"}},
		"slash":   {self + "/", p, &Options{Resources: []string{endpoint}, Keys: testKeys}, []string{"slash at its end"}},
		"scopes":  {self, p, &Options{Resources: []string{endpoint}, Keys: testKeys, Scopes: []Scope{{"a b", ""}, {"offline_access", ""}, {"a", ""}, {"a", ""}}}, []string{`"a b"`, "offline_access", "twice"}},
		"clients": {self, p, &Options{Resources: []string{endpoint}, Keys: testKeys, Clients: []Client{{}, {ID: "x", RedirectURIs: []string{"javascript:x"}}}}, []string{"no ID", "no RedirectURIs", "javascript"}},
		"times":   {self, p, &Options{Resources: []string{endpoint}, Keys: testKeys, Lifetime: -1, Refresh: 1}, []string{"Lifetime", "Refresh"}},
		"email":   {self, &Provider{Issuer: idpURL, ClientID: "x", Subject: "email"}, &Options{Resources: []string{endpoint}, Keys: testKeys}, []string{`Subject "email" can change hands`}},
		"tenant":  {self, Entra("common", "x", "y"), &Options{Resources: []string{endpoint}, Keys: testKeys}, []string{"no single tenant"}},
		"unset":   {self, Entra("", "x", "y"), &Options{Resources: []string{endpoint}, Keys: testKeys}, []string{"no single tenant"}},
		"openid":  {self, &Provider{Issuer: idpURL, ClientID: "x", Scopes: []string{"email"}}, &Options{Resources: []string{endpoint}, Keys: testKeys}, []string{"Scopes lack openid"}},
		"no user": {self, &Provider{AuthURL: idpURL + "/a", TokenURL: idpURL + "/t", ClientID: "x"}, &Options{Resources: []string{endpoint}, Keys: testKeys}, []string{"User is missing"}},
		"both":    {self, &Provider{Issuer: idpURL, AuthURL: "http://a.example.com"}, &Options{Resources: []string{endpoint}, Keys: testKeys}, []string{"not both", "ClientID is missing"}},
	} {
		_, err := New(tt.issuer, tt.p, tt.o)
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
	for _, p := range []*Provider{Entra("8f1c", "x", "y"), Google("x", "y"), GitHub("x", "y")} {
		if _, err := New(self, p, &Options{Resources: []string{endpoint}, Keys: testKeys}); err != nil {
			t.Error(err)
		}
	}
}

// The metadata announces what the specification demands, also at the root.
func TestMetadata(t *testing.T) {
	w := &world{t: t, idp: newIDP(t)}
	b, err := New(self+"/auth", &Provider{Issuer: idpURL, ClientID: "front"}, &Options{Resources: []string{endpoint}, Keys: testKeys, Scopes: []Scope{{Name: "notes:read"}}})
	if err != nil {
		t.Fatal(err)
	}
	w.add(b)
	for _, path := range []string{"/.well-known/oauth-authorization-server/auth", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration/auth"} {
		rec := w.serve(httptest.NewRequest(http.MethodGet, self+path, nil))
		var m map[string]any
		if err := json.Unmarshal(rec.Body.Bytes(), &m); err != nil || rec.Code != 200 {
			t.Fatalf("%s: %d %s", path, rec.Code, rec.Body)
		}
		for name, want := range map[string]any{
			"issuer": self + "/auth", "authorization_endpoint": self + "/auth/authorize", "token_endpoint": self + "/auth/token", "registration_endpoint": self + "/auth/register",
			"client_id_metadata_document_supported": true, "authorization_response_iss_parameter_supported": true, "code_challenge_methods_supported": []any{"S256"},
		} {
			if fmt.Sprint(m[name]) != fmt.Sprint(want) {
				t.Errorf("%s: %s is %v, want %v", path, name, m[name], want)
			}
		}
	}
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"OPTIONS", "/auth/token", 204}, {"OPTIONS", "/auth/register", 204}, {"OPTIONS", "/auth/authorize", 405}, {"GET", "/auth/token", 405}, {"POST", "/auth/authorize", 405},
		{"GET", "/mcp", 418}, {"POST", "/auth", 418}, {"GET", "/auth/callback", 403}, {"GET", "/callback", 418},
	} {
		rec := w.serve(httptest.NewRequest(tt.method, self+tt.path, nil))
		if rec.Code != tt.status || tt.status == 204 && (rec.Header().Get("Access-Control-Allow-Origin") != "*" || rec.Header().Get("Access-Control-Allow-Credentials") != "") {
			t.Errorf("%s %s: %d %v", tt.method, tt.path, rec.Code, rec.Header())
		}
	}
}

// With an issuer on this machine other hosts are refused (DNS rebinding).
func TestHost(t *testing.T) {
	w := &world{t: t, idp: newIDP(t)}
	b, err := New("http://127.0.0.1:8080", &Provider{Issuer: idpURL, ClientID: "front"}, &Options{Resources: []string{"http://127.0.0.1:8080/mcp"}})
	if err != nil {
		t.Fatal(err)
	}
	w.add(b)
	for host, status := range map[string]int{"127.0.0.1:8080": 200, "localhost:8080": 200, "[::1]:8080": 200, "evil.example.com": 421, "127.0.0.1.evil.example.com": 421, "": 421} {
		r := httptest.NewRequest(http.MethodGet, "/.well-known/oauth-authorization-server", nil)
		r.Host = host
		if rec := w.serve(r); rec.Code != status {
			t.Errorf("%q: status %d, want %d", host, rec.Code, status)
		}
	}
}

// docs serves metadata documents of clients.
type docs map[string]string

func (d docs) RoundTrip(r *http.Request) (*http.Response, error) {
	text, ok := d[r.URL.String()]
	status := 200
	if !ok {
		status = 302
	}
	return response(r, status, text, "Location", "https://10.0.0.1/", "Cache-Control", "max-age=300"), nil
}

// A client may be a document on the web, which is public; one with a key is refused,
// and nothing of this network is reached or revealed.
func TestClientDocuments(t *testing.T) {
	const id, keyed = "https://app.example.com/client.json", "https://app.example.com/keyed.json"
	d := docs{
		id: asJSON(map[string]any{"client_id": id, "client_name": "App", "redirect_uris": []string{redirect}, "grant_types": []string{"authorization_code", "refresh_token"}}),
	}
	w := newWorld(t, 1, nil)
	b := w.brokers[0]
	b.entrance.protocol.SetDocuments(&http.Client{Transport: d, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }})
	status, m := w.post("/token", codeForm(id, w.browser().login(query(id)).Get("code")))
	if status != 200 || m["refresh_token"] == nil {
		t.Fatalf("%d %v", status, m)
	}
	tok := tokens{id, m["access_token"].(string), m["refresh_token"].(string)}
	if got, err := b.Verifier(endpoint).Verify(t.Context(), tok.access); err != nil || got.ClientID != id {
		t.Errorf("%+v, %v", got, err)
	}
	clear(d) // nothing is fetched for a refresh
	if status, code, _ := w.renew(tok); status != 200 {
		t.Errorf("%d %s", status, code)
	}
	_, page, _ := w.browser().open(self+"/authorize?"+query(id).Encode(), nil)
	if !strings.Contains(page, "name comes from app.example.com") {
		t.Errorf("the page: %s", page)
	}
	d[keyed] = asJSON(map[string]any{"client_id": keyed, "redirect_uris": []string{redirect}, "token_endpoint_auth_method": "private_key_jwt"})
	const big, other, bare = "https://app.example.com/big.json", "https://app.example.com/other.json", "https://app.example.com/bare.json"
	d[big] = strings.Repeat(" ", 17<<10) + "{}"
	d[other] = asJSON(map[string]any{"client_id": id, "client_name": "App", "redirect_uris": []string{redirect}})
	d[bare] = asJSON(map[string]any{"client_id": bare, "redirect_uris": []string{redirect}})
	for where, want := range map[string]string{
		keyed: "other than none", big: "cannot be had", other: "differs", bare: "has no client_name", "https://app.example.com/gone.json": "cannot be had", "https://app.example.com": "no URL", "https://me@app.example.com/x": "no URL",
		"https://app.example.com/./x": "no URL", "https://app.example.com/x/.": "no URL", "https://app.example.com/%2e/x": "no URL", "https://app.example.com/x#": "no URL", "https:///x": "no URL", "https://app.example.com//": "no URL",
	} {
		w.browser().page(where, 400, want, self+"/authorize?"+query(where).Encode(), nil)
	}
	// Without a transport of a test, addresses of this network are not reached, whatever
	// is there.
	v := newWorld(t, 1, nil)
	for _, where := range []string{"https://127.0.0.1:1/c.json", "https://169.254.169.254/c.json", "https://[::1]/c.json", "https://localhost/c.json"} {
		v.browser().page(where, 400, "The program cannot be checked: the client's metadata cannot be had.", self+"/authorize?"+query(where).Encode(), nil)
	}
}

// Clients can be configured, with a secret or without.
func TestConfiguredClients(t *testing.T) {
	w := newWorld(t, 2, func(o *Options) {
		o.Clients = []Client{{ID: "desk", Name: "Desk", RedirectURIs: []string{redirect}}, {ID: "web", Secret: "s3cret", Name: "Web", RedirectURIs: []string{redirect}}}
	})
	for id, secret := range map[string]string{"desk": "", "web": "s3cret"} {
		form := codeForm(id, w.browser().login(query(id)).Get("code"))
		if secret != "" {
			if status, m := w.post("/token", form); status != 401 {
				t.Errorf("%s without secret: %d %v", id, status, m)
			}
			form.Set("client_secret", secret)
		}
		if status, m := w.post("/token", form); status != 200 || m["refresh_token"] == nil {
			t.Errorf("%s: %d %v", id, status, m)
		}
	}
}

// Tokens of a client that proves a key are bound to it.
func TestBoundTokens(t *testing.T) {
	everywhere(t, func(t *testing.T, n int) {
		w := newWorld(t, n, nil)
		client := w.register(redirect)
		proof := prover(t)
		first := proof()
		status, m := w.post("/token", codeForm(client, w.browser().login(query(client)).Get("code")), first...)
		if status != 200 || m["token_type"] != "DPoP" {
			t.Fatalf("%d %v", status, m)
		}
		tok := tokens{client, m["access_token"].(string), m["refresh_token"].(string)}
		id, err := w.brokers[0].Verifier(endpoint).Verify(t.Context(), tok.access)
		if err != nil || fmt.Sprint(id.Claims["cnf"]) == "<nil>" {
			t.Errorf("%+v, %v", id, err)
		}
		if status, code, _ := w.renew(tok); status != 400 || code != "invalid_grant" {
			t.Errorf("without a proof: %d %s", status, code)
		}
		form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tok.refresh}, "client_id": {client}}
		if status, m := w.post("/token", form, first...); status != 400 || m["error"] != "invalid_dpop_proof" {
			t.Errorf("a proof again: %d %v", status, m)
		}
		if status, m := w.post("/token", form, proof()...); status != 200 {
			t.Errorf("with a proof: %d %v", status, m)
		}
	})
}

// prover returns a function that makes proofs of one new key for the token endpoint.
func prover(t *testing.T) func() []string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{EmbedJWK: true}).WithType("dpop+jwt"))
	if err != nil {
		t.Fatal(err)
	}
	return func() []string {
		signed, err := signer.Sign([]byte(asJSON(map[string]any{"jti": rand.Text(), "htm": "POST", "htu": self + "/token", "iat": time.Now().Unix()})))
		if err != nil {
			t.Fatal(err)
		}
		text, err := signed.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		return []string{"DPoP", text}
	}
}

// Whoever has a code or a token of a user, but not its key, uses up none of the
// proofs that are kept of the user.
func TestProofsOfThieves(t *testing.T) {
	w := newWorld(t, 1, nil)
	client := w.register(redirect)
	proof, theirs := prover(t), prover(t)
	used := codeForm(client, w.browser().login(query(client)).Get("code"))
	status, m := w.post("/token", used, proof()...)
	if status != 200 {
		t.Fatalf("%d %v", status, m)
	}
	stolen := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {m["refresh_token"].(string)}, "client_id": {client}}
	for range 300 {
		if status, m := w.post("/token", stolen, theirs()...); status != 400 || m["error"] != "invalid_grant" {
			t.Fatalf("another key: %d %v", status, m)
		}
	}
	again := proof()
	if status, m := w.post("/token", stolen, again...); status != 200 {
		t.Errorf("the user's key: %d %v", status, m)
	}
	if status, m := w.post("/token", stolen, again...); status != 400 || m["error"] != "invalid_dpop_proof" {
		t.Errorf("a proof again: %d %v", status, m)
	}
	for range 300 { // the first of them ends the login
		if status, m := w.post("/token", used, theirs()...); status != 400 || m["error"] != "invalid_grant" {
			t.Fatalf("a used code: %d %v", status, m)
		}
	}
	if status, m := w.post("/token", codeForm(client, w.browser().login(query(client)).Get("code")), proof()...); status != 200 {
		t.Errorf("the next login: %d %v", status, m)
	}
}

// What users and browsers make the server keep is bounded.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nil)
		w.idp.claims = func(c map[string]any) {
			c["groups"] = strings.Repeat("g", 20<<10)
			c["cnf"] = map[string]any{"jkt": "x"}
		}
		first := w.enter()
		var last tokens
		for range 32 {
			time.Sleep(time.Millisecond) // a login notes the time in milliseconds
			last = w.enter()
		}
		if got := w.user(first); !strings.Contains(got, "has ended") {
			t.Errorf("the login unused longest: %s", got)
		}
		id, err := w.brokers[0].Verifier(endpoint).Verify(t.Context(), last.access)
		if err != nil || id.Claims["groups"] != nil || id.Claims["cnf"] != nil || id.Claims["email"] != "alice@example.com" {
			t.Errorf("%+v, %v", id, err)
		}
		u, err := w.brokers[0].entrance.protocol.Users.Get(t.Context(), issuing.Hash(id.Principal()))
		if err != nil || len(u.Logins) != 32 {
			t.Errorf("%d logins, %v", len(u.Logins), err)
		}
		// Cookies of visits: the oldest go.
		b, client := w.browser(), w.register("https://app.example.com/"+strings.Repeat("r", 900))
		q := query(client, "redirect_uri", "https://app.example.com/"+strings.Repeat("r", 900), "state", strings.Repeat("&", 1024))
		for range 4 {
			b.allow(q)
		}
		size := 0
		for _, c := range b.jar.Cookies(&url.URL{Scheme: "https", Host: "notes.example.com"}) {
			if size += len(c.Value); len(c.Name)+len(c.Value) > 4096 {
				t.Errorf("a cookie of %d bytes, which browsers drop", len(c.Name)+len(c.Value))
			}
		}
		if size > maxCookies+100 || size < 3000 {
			t.Errorf("cookies of %d bytes", size)
		}
		if got := b.login(q); !got.Has("code") {
			t.Errorf("the last visit: %v", got)
		}
		for name, redirects := range map[string][]string{"many": make([]string, 11), "long": {"https://a.example.com/" + strings.Repeat("x", 1100)}, "all": {"https://a.example.com/" + strings.Repeat("x", 990), "https://b.example.com/" + strings.Repeat("x", 990), "https://c.example.com/"}} {
			for i := range redirects {
				if redirects[i] == "" {
					redirects[i] = fmt.Sprintf("https://%d.example.com/", i)
				}
			}
			if status, m := w.post("/register", url.Values{"json": {asJSON(map[string]any{"redirect_uris": redirects})}}); status != 400 {
				t.Errorf("%s: %d %v", name, status, m)
			}
		}
	})
}

// A provider without ID tokens names users by Provider.User; the store of GitHub's
// numbers is exact.
func TestProviderWithoutIDTokens(t *testing.T) {
	w := newWorldAt(t, 1, bare(gitHubUser), func(o *Options) {
		web := o.Transport
		o.Transport = transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host != "api.github.com" {
				return web.RoundTrip(r)
			}
			if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer at-") {
				return response(r, 401, "{}"), nil
			}
			return response(r, 200, `{"id":90071992547409931,"login":"alice","name":"Alice","email":null}`), nil
		})
	})
	tok := w.enter()
	id, err := w.brokers[0].Verifier(endpoint).Verify(t.Context(), tok.access)
	if err != nil || id.Subject != "90071992547409931" || id.Issuer != "https://id.example.com" {
		t.Errorf("%+v, %v", id, err)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A transport, or a Provider.User, that does not return is a provider that does not
// answer.
func TestProviderCodeThatDoesNotReturn(t *testing.T) {
	for name, way := range map[string]func(){"panic": func() { panic("no way") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			armed := false
			p := bare(func(context.Context, *http.Client) (*auth.Identity, error) { way(); return nil, nil })
			w := newWorldAt(t, 1, p, func(o *Options) {
				web := o.Transport
				o.Transport = transport(func(r *http.Request) (*http.Response, error) {
					if armed {
						way()
					}
					return web.RoundTrip(r)
				})
			})
			client, user := w.register(redirect), w.browser()
			user.page("User", 503, "id.example.com does not answer. Try again in a minute.", user.allow(query(client)), nil)
			armed = true
			user.page("Transport", 503, "does not answer", user.allow(query(client)), nil)
		})
	}
}

// A provider that does not answer is a page before the user leaves.
func TestProviderIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nil)
		w.idp.fail = true
		client, b := w.register(redirect), w.browser()
		b.page("discovery", 503, "id.example.com does not answer. Try again in a minute.", self+"/consent", b.ask(query(client)))
		w.idp.fail = false
		time.Sleep(discoveryPause)
		back := b.allow(query(client))
		w.idp.fail = true
		b.page("exchange", 503, "id.example.com does not answer. Try again in a minute.", back, nil)
		for _, e := range w.events {
			if e.Err == nil || !errors.Is(e.Err, errBusy) || strings.Contains(e.Err.Error(), "hush") {
				t.Errorf("event %+v", e)
			}
		}
	})
}

// Whatever is sent as form, cookie, token or client id, nothing but what was sealed is
// taken, and nothing fails otherwise.
func FuzzSealed(f *testing.F) {
	key := []byte(rand.Text()) // other processes that run this have seeds of their own
	w := newWorld(f, 1, func(o *Options) { o.Keys = [][]byte{key} })
	tok := w.enter()
	b := w.browser()
	form := b.ask(query(tok.client))
	for _, seed := range []string{"", "x", tok.access, tok.refresh, tok.client, form.Get("id"), strings.Repeat("A", 300), "https://a.example.com/x"} {
		f.Add(seed)
	}
	// What was sealed in this process opens, and nothing else does.
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := w.brokers[0].Verifier(endpoint).Verify(t.Context(), text); err == nil && text != tok.access {
			t.Errorf("token %q", text)
		}
		if status, _ := w.post("/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {text}, "client_id": {tok.client}}); status == 200 && text != tok.refresh {
			t.Errorf("refresh token %q", text)
		}
		if status, _ := w.post("/token", codeForm(tok.client, text)); status == 200 {
			t.Errorf("code %q", text)
		}
		if !strings.HasPrefix(text, "https://") {
			if status, _, _ := b.open(self+"/authorize?"+query(text).Encode(), nil); status == 200 && text != tok.client {
				t.Errorf("client %q", text)
			}
		}
		if status, _, _ := b.open(self+"/consent", url.Values{"id": {text}, "answer": {"allow"}}); status != 403 && text != form.Get("id") {
			t.Errorf("form %q: %d", text, status)
		}
		r := httptest.NewRequest(http.MethodGet, self+"/callback?code=x&state="+strings.Repeat("A", 52), nil)
		r.Header.Set("Cookie", "__Host-broker-visit-t1-"+hash(strings.Repeat("A", 52))[:16]+"="+text)
		if rec := w.serve(r); rec.Code != 403 {
			t.Errorf("cookie %q: %d", text, rec.Code)
		}
	})
}
