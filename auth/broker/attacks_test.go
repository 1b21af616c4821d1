package broker

import (
	"context"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/internal/issuing"
	"github.com/talaria-go/mcp/scale"
)

// page opens an address and fails unless the answer is a page of that status and text,
// which leads nowhere.
func (b *browser) page(name string, status int, text, where string, form url.Values) {
	b.w.t.Helper()
	got, page, to := b.open(where, form)
	if got != status || !strings.Contains(page, text) || to != "" {
		b.w.t.Errorf("%s: status %d, to %q, want %d with %q: %s", name, got, to, status, text, page)
	}
}

// Attacks on the question: it is always asked, before the provider is visited, of
// the browser that answers it.
func TestAttacksOnTheQuestion(t *testing.T) {
	everywhere(t, func(t *testing.T, n int) {
		w := newWorld(t, n, nil)
		client := w.register(redirect)
		victim := w.browser()
		for range 2 { // nothing is remembered
			victim.login(query(client))
		}
		form := victim.ask(query(client))

		attacker := w.browser()
		theirs := attacker.ask(query(client))
		victim.page("form of another browser", 403, issuing.TextCookie, self+"/consent", theirs)
		w.browser().page("no cookie", 403, issuing.TextCookie, self+"/consent", form)
		forged := url.Values{"id": {base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat("x", 200)))}, "answer": {"allow"}}
		victim.page("forged form", 403, issuing.TextCookie, self+"/consent", forged)

		// The attacker agrees, and the victim opens the address of the provider.
		back := attacker.allow(query(client))
		victim.page("visit of another browser", 403, issuing.TextCookie, back, nil)

		// A form that is sent by a page of another site.
		r, err := http.NewRequest(http.MethodPost, self+"/consent", strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		for _, c := range victim.jar.Cookies(r.URL) {
			r.AddCookie(c)
		}
		if rec := w.serve(r); rec.Code != 403 || !strings.Contains(rec.Body.String(), "another site") {
			t.Errorf("status %d: %s", rec.Code, rec.Body)
		}

		form.Set("answer", "deny")
		status, _, to := victim.open(self+"/consent", form)
		if u, err := url.Parse(to); status != 303 || err != nil || u.Query().Get("error") != "access_denied" || u.Query().Get("iss") != self {
			t.Errorf("denied: status %d, to %q", status, to)
		}
		if got := w.kinds(); !slices.Equal(got, []string{"login", "login", "denied"}) {
			t.Errorf("events %v", got)
		}
	})
}

// Pages cannot be framed or run scripts; cookies belong to this host alone.
func TestPagesAndCookiesAreProtected(t *testing.T) {
	w := newWorld(t, 1, nil)
	status, m := w.post("/register", url.Values{"json": {asJSON(map[string]any{"client_name": `<script>alert(1)</script>` + "\u202e", "redirect_uris": []string{far}})}})
	if status != 201 {
		t.Fatal(status, m)
	}
	r, err := http.NewRequest(http.MethodGet, self+"/authorize?"+query(m["client_id"].(string), "redirect_uri", far).Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	rec := w.serve(r)
	text := rec.Body.String()
	for _, bad := range []string{"<script", "\u202e", "form-action"} {
		if strings.Contains(text+rec.Header().Get("Content-Security-Policy"), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{"app.example.com", "Nobody has verified its name", `name="began"`, "read your notes", "id.example.com", "&lt;script&gt;"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for name, want := range map[string]string{"X-Frame-Options": "DENY", "Content-Security-Policy": "frame-ancestors 'none'", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
		if !strings.Contains(rec.Header().Get(name), want) {
			t.Errorf("%s is %q", name, rec.Header().Get(name))
		}
	}
	c := rec.Result().Cookies()
	if len(c) != 1 || c[0].Name != "__Host-broker-browser" || !c[0].Secure || !c[0].HttpOnly || c[0].SameSite != http.SameSiteLaxMode || c[0].Path != "/" || c[0].Domain != "" {
		t.Errorf("cookies %+v", c)
	}
	// A redirect elsewhere needs the tick.
	b := w.browser()
	form := b.ask(query(m["client_id"].(string), "redirect_uri", far))
	form.Del("began")
	b.page("no tick", 400, "Tick that you began this", self+"/consent", form)
}

// Attacks on requests: what cannot be trusted is a page, and no redirect.
func TestAttacksOnRequests(t *testing.T) {
	everywhere(t, func(t *testing.T, n int) {
		w := newWorld(t, n, nil)
		b := w.browser()
		here, there := w.register(redirect), w.register(far)
		for name, tt := range map[string]struct {
			q    url.Values
			text string
		}{
			"unknown client":     {query("nobody"), issuing.TextUnknown},
			"forged client":      {query("r." + strings.Repeat("A", 200)), issuing.TextUnknown},
			"cut client":         {query(here[:len(here)-1]), issuing.TextUnknown},
			"no client":          {query("", "client_id", ""), issuing.TextUnknown},
			"other redirect":     {query(here, "redirect_uri", "https://evil.example.com/"), "redirect_uri is not one"},
			"other path":         {query(here, "redirect_uri", redirect+"/x"), "redirect_uri is not one"},
			"other query":        {query(here, "redirect_uri", redirect+"?x=1"), "redirect_uri is not one"},
			"userinfo":           {query(here, "redirect_uri", "http://x@127.0.0.1:4000/callback"), "redirect_uri is not one"},
			"fragment":           {query(here, "redirect_uri", redirect+"#x"), "redirect_uri is not one"},
			"other port far":     {query(there, "redirect_uri", "https://app.example.com:444/callback"), "redirect_uri is not one"},
			"fault, far":         {query(there, "redirect_uri", far, "code_challenge_method", "plain"), "PKCE with S256 is required"},
			"scope, far":         {query(there, "redirect_uri", far, "scope", "x"), "the scopes are notes:read, notes:write, offline_access."},
			"text as a scope":    {query(there, "redirect_uri", far, "scope", "\u202ecall\u2800+1-555"), "the scopes are notes:read"},
			"state too long":     {query(there, "redirect_uri", far, "state", strings.Repeat("x", 1025)), "state is too long"},
			"everything too big": {query(there, "scope", strings.Repeat("x", 5000)), "more than once, or too long"},
		} {
			b.page(name, 400, tt.text, self+"/authorize?"+tt.q.Encode(), nil)
		}
		for _, more := range []string{"client_id=" + there, "code_challenge_method=plain", "dpop_jkt=x&dpop_jkt=y", "x=1&x=2", "state=%zz", "x;y"} {
			b.page(more, 400, "more than once, or too long a one, or one that cannot be read", self+"/authorize?"+query(here).Encode()+"&"+more, nil)
		}
		for want, q := range map[string]url.Values{
			"unsupported_response_type": query(here, "response_type", "token"), "invalid_request": query(here, "code_challenge", ""),
			"invalid_target": query(here, "resource", "https://other.example.com/mcp"), "invalid_scope": query(here, "scope", "notes:burn"),
		} {
			status, _, to := b.open(self+"/authorize?"+q.Encode(), nil)
			if u, err := url.Parse(to); status != 303 || err != nil || u.Query().Get("error") != want || u.Query().Get("iss") != self {
				t.Errorf("%s: status %d, to %q", want, status, to)
			}
		}
		// Any port of this machine.
		b.login(query(here, "redirect_uri", "http://127.0.0.1:5123/callback"))
		for _, uri := range []string{
			"javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "ms-msdt:/id", "search-ms:query", "intent://x#Intent", "http://evil.example.com/",
			"https://", "x", "", "https://a.example.com/#x", "https://me@a.example.com/", "blob:https://a.example.com/x", "view-source:https://a.example.com", "https://a.example.com/\\x",
		} {
			if status, m := w.post("/register", url.Values{"json": {asJSON(map[string]any{"redirect_uris": []string{uri}})}}); status != 400 || m["error"] != "invalid_redirect_uri" {
				t.Errorf("%q: %d %v", uri, status, m)
			}
		}
		for _, uri := range []string{"cursor://anysphere.cursor-mcp/oauth/callback", "com.example.app:/callback", "http://localhost:1/", "http://[::1]/x", "https://a.example.com/x?y=1"} {
			if status, m := w.post("/register", url.Values{"json": {asJSON(map[string]any{"redirect_uris": []string{uri}})}}); status != 201 {
				t.Errorf("%q: %d %v", uri, status, m)
			}
		}
	})
}

// Attacks on codes: one that comes twice, from another client or with a wrong proof
// ends its login.
func TestAttacksOnCodes(t *testing.T) {
	everywhere(t, func(t *testing.T, n int) {
		w := newWorld(t, n, nil)
		client, other := w.register(redirect), w.register(redirect)
		for name, tt := range map[string]struct {
			form url.Values
			want string
		}{
			"again":        {codeForm(client, ""), "invalid_grant"},
			"other client": {codeForm(other, ""), "invalid_grant"},
			"verifier":     {codeForm(client, "", "code_verifier", strings.Repeat("v", 43)), "invalid_grant"},
			"no verifier":  {codeForm(client, "", "code_verifier", ""), "invalid_grant"},
			"redirect":     {codeForm(client, "", "redirect_uri", redirect+"/x"), "invalid_grant"},
		} {
			code := w.browser().login(query(client)).Get("code")
			tt.form.Set("code", code)
			var had tokens
			if name == "again" {
				_, m := w.post("/token", tt.form)
				had = tokens{client, m["access_token"].(string), m["refresh_token"].(string)}
			}
			if status, m := w.post("/token", tt.form); status != 400 || m["error"] != tt.want {
				t.Errorf("%s: %d %v", name, status, m)
			}
			if status, m := w.post("/token", codeForm(client, code)); status != 400 || m["error"] != "invalid_grant" {
				t.Errorf("%s, then the right one: %d %v", name, status, m)
			}
			if name == "again" {
				if got := w.user(had); !strings.Contains(got, "the login of the token has ended") {
					t.Errorf("the token: %s", got)
				}
				if status, code, _ := w.renew(had); status != 400 || code != "invalid_grant" {
					t.Errorf("refresh: %d %s", status, code)
				}
			}
		}
		// What does not open, or is about another resource, uses nothing up.
		code := w.browser().login(query(client)).Get("code")
		for _, form := range []url.Values{codeForm(client, code[:len(code)-1]), codeForm(client, code, "resource", "https://other.example.com/mcp"), codeForm("nobody", code)} {
			if status, m := w.post("/token", form); status != 400 && status != 401 {
				t.Errorf("%d %v", status, m)
			}
		}
		if status, m := w.post("/token", codeForm(client, code)); status != 200 {
			t.Errorf("the right one: %d %v", status, m)
		}
		if !slices.ContainsFunc(w.events, func(e Event) bool {
			return e.Kind == "reused" && e.Principal == "https://id.example.com#alice" && e.Client != ""
		}) {
			t.Errorf("events %+v", w.events)
		}
	})
}

// Attacks on the answer of the provider.
func TestAttacksOnTheAnswer(t *testing.T) {
	everywhere(t, func(t *testing.T, n int) {
		w := newWorld(t, n, nil)
		client := w.register(redirect)
		b := w.browser()
		back := b.allow(query(client))
		before := b.jar.Cookies(&url.URL{Scheme: "https", Host: "notes.example.com"})
		if status, page, _ := b.open(back, nil); status != 303 {
			t.Fatal(status, page)
		}
		b.page("again", 403, issuing.TextCookie, back, nil)
		b.jar.SetCookies(&url.URL{Scheme: "https", Host: "notes.example.com"}, before) // and with its cookie
		if status, _, to := b.open(back, nil); status == 200 || strings.Contains(to, "code=") {
			t.Errorf("again with the cookie: %d to %q", status, to)
		}
		b.page("no state", 403, issuing.TextOver, self+"/callback?code=x", nil)
		b.page("invented", 403, issuing.TextCookie, self+"/callback?code=x&state="+strings.Repeat("A", 52), nil)

		// Another provider's answer, and a code that was not for this visit.
		back = b.allow(query(client))
		if status, _, to := b.open(self+"/callback?"+back[strings.Index(back, "state="):], nil); status != 303 || !strings.Contains(to, "error=server_error") {
			t.Errorf("neither a code nor an error: %d to %q", status, to)
		}
		for _, more := range []string{"&code=y", "&iss=https%3A%2F%2Fid.example.com&iss=https%3A%2F%2Fevil.example.com", "&error=x&error=y", "&" + back[strings.Index(back, "state="):]} {
			b.page("twice: "+more, 403, issuing.TextOver, b.allow(query(client))+more, nil)
		}
		back = b.allow(query(client))
		b.page("other issuer", 403, "another provider than id.example.com", back+"&iss=https%3A%2F%2Fevil.example.com", nil)
		mine, theirs := b.allow(query(client)), w.browser().allow(query(client))
		u, err := url.Parse(mine)
		if err != nil {
			t.Fatal(err)
		}
		v, err := url.Parse(theirs)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("code", v.Query().Get("code"))
		u.RawQuery = q.Encode()
		if status, _, to := b.open(u.String(), nil); status != 303 || !strings.Contains(to, "error=server_error") {
			t.Errorf("injected code: %d to %q", status, to)
		}
		for given, want := range map[string]string{"access_denied": "access_denied", "temporarily_unavailable": "temporarily_unavailable", "not_allowed": "server_error"} {
			back = b.allow(query(client))
			state := back[strings.Index(back, "state="):]
			if status, _, to := b.open(self+"/callback?error="+given+"&"+state, nil); status != 303 || !strings.Contains(to, "error="+want) || !strings.Contains(to, "iss=") {
				t.Errorf("%s: %d to %q", given, status, to)
			}
		}
	})
}

// iss is required of a provider that announces it (RFC 9207).
func TestIssuerIsRequired(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.idp.meta = map[string]any{"authorization_response_iss_parameter_supported": true}
	b, client := w.browser(), w.register(redirect)
	b.page("none", 403, "another provider", b.allow(query(client)), nil)
	if status, _, to := b.open(b.allow(query(client))+"&iss="+url.QueryEscape(idpURL), nil); status != 303 || !strings.Contains(to, "code=") {
		t.Errorf("with iss: %d to %q", status, to)
	}
}

// ID tokens that are not those of this login are refused, whatever is wrong.
func TestAttacksOnIDTokens(t *testing.T) {
	// forged is right but for how it is signed.
	forged := func(algorithm string, sign func(p *idp, text string) []byte) func(p *idp) {
		return func(p *idp) {
			p.answer = func(*http.Request) (int, string) {
				_, body, _ := strings.Cut(p.idToken("alice", p.nonce), ".")
				body, _, _ = strings.Cut(body, ".")
				text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"`+algorithm+`","typ":"JWT","kid":"1"}`)) + "." + body
				return 200, asJSON(map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": text + "." + base64.RawURLEncoding.EncodeToString(sign(p, text))})
			}
		}
	}
	hashed := func(key func(p *idp) []byte) func(p *idp, text string) []byte {
		return func(p *idp, text string) []byte {
			mac := hmac.New(sha256.New, key(p))
			mac.Write([]byte(text))
			return mac.Sum(nil)
		}
	}
	public := func(p *idp) []byte { der, _ := x509.MarshalPKIXPublicKey(&p.key.PublicKey); return der }
	// Signed as it should be, it is taken.
	control := newWorld(t, 1, nil)
	forged("ES256", func(p *idp, text string) []byte {
		sum := sha256.Sum256([]byte(text))
		r, s, err := ecdsa.Sign(rand.Reader, p.key, sum[:])
		if err != nil {
			t.Error(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	})(control.idp)
	if got := control.browser().login(query(control.register(redirect))); !got.Has("code") {
		t.Errorf("signed: sent back with %v", got)
	}
	for name, change := range map[string]func(p *idp){
		"nonce":            func(p *idp) { p.claims = func(c map[string]any) { c["nonce"] = "other" } },
		"no nonce":         func(p *idp) { p.claims = func(c map[string]any) { delete(c, "nonce") } },
		"audience":         func(p *idp) { p.claims = func(c map[string]any) { c["aud"] = "other" } },
		"azp":              func(p *idp) { p.claims = func(c map[string]any) { c["azp"] = "other" } },
		"many, no azp":     func(p *idp) { p.claims = func(c map[string]any) { c["aud"] = []string{"front", "other"} } },
		"issuer":           func(p *idp) { p.claims = func(c map[string]any) { c["iss"] = "https://evil.example.com" } },
		"old":              func(p *idp) { p.claims = func(c map[string]any) { c["exp"] = 1 } },
		"no end":           func(p *idp) { p.claims = func(c map[string]any) { delete(c, "exp") } },
		"future":           func(p *idp) { p.claims = func(c map[string]any) { c["iat"] = 4e9 } },
		"no subject":       func(p *idp) { p.claims = func(c map[string]any) { delete(c, "sub") } },
		"empty subject":    func(p *idp) { p.claims = func(c map[string]any) { c["sub"] = "" } },
		"number":           func(p *idp) { p.claims = func(c map[string]any) { c["sub"] = 12345678 } },
		"access token":     func(p *idp) { p.header = func(o *jose.SignerOptions) { o.WithType("at+jwt") } },
		"refresh token":    func(p *idp) { p.claims = func(c map[string]any) { c["typ"] = "Refresh" } },
		"key":              func(p *idp) { p.header = func(o *jose.SignerOptions) { o.WithHeader("kid", "2") } },
		"none":             forged("none", func(*idp, string) []byte { return nil }),
		"HMAC, secret":     forged("HS256", hashed(func(*idp) []byte { return []byte("hush") })),
		"HMAC, public key": forged("HS256", hashed(public)),
		"missing": func(p *idp) {
			p.answer = func(*http.Request) (int, string) { return 200, `{"access_token":"x","token_type":"Bearer"}` }
		},
		"error in 200": func(p *idp) {
			p.answer = func(*http.Request) (int, string) { return 200, `{"error":"bad_verification_code"}` }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, nil)
			w.idp.set(func() { change(w.idp) })
			got := w.browser().login(query(w.register(redirect)))
			if got.Get("error") != "server_error" || got.Has("code") {
				t.Errorf("sent back with %v", got)
			}
			if e := w.events; len(e) != 1 || e[0].Kind != "denied" || e[0].Err == nil {
				t.Errorf("events %v", e)
			}
		})
	}
	// Keycloak's ID tokens say typ ID, and azp.
	w := newWorld(t, 1, nil)
	w.idp.claims = func(c map[string]any) { c["typ"], c["azp"], c["aud"] = "ID", "front", []string{"front"} }
	if got := w.browser().login(query(w.register(redirect))); !got.Has("code") {
		t.Errorf("typ ID: sent back with %v", got)
	}
}

// A token is for one resource of one issuer, and no client gets more than the user
// allowed.
func TestAttacksOnTokens(t *testing.T) {
	everywhere(t, func(t *testing.T, n int) {
		w := newWorld(t, n, func(o *Options) { o.Resources = []string{endpoint, self + "/other"} })
		tok := w.enter()
		if _, err := w.brokers[0].Verifier(self+"/other").Verify(t.Context(), tok.access); err == nil || !strings.Contains(err.Error(), "another server") {
			t.Errorf("another resource: %v", err)
		}
		elsewhere, err := New("https://b.example.com", &Provider{Issuer: idpURL, ClientID: "front"}, &Options{Resources: []string{endpoint}, Keys: testKeys, Store: w.brokers[0].opts.Store})
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"another issuer": tok.access, "refresh": tok.refresh, "provider's": w.idp.idToken("alice", ""), "junk": "x", "none": "", "cut": tok.access[1:]} {
			verifier := elsewhere.Verifier(endpoint)
			if name != "another issuer" {
				verifier = w.brokers[0].Verifier(endpoint)
			}
			if id, err := verifier.Verify(t.Context(), text); err == nil {
				t.Errorf("%s: %+v", name, id)
			}
		}
		other := w.register(redirect)
		for name, tt := range map[string]struct {
			changes []string
			want    string
		}{
			"other client":  {[]string{"client_id", other}, "invalid_grant"},
			"more scopes":   {[]string{"scope", "notes:read notes:burn"}, "invalid_scope"},
			"other target":  {[]string{"resource", self + "/other"}, "invalid_target"},
			"cut":           {[]string{"refresh_token", tok.refresh[:len(tok.refresh)-1]}, "invalid_grant"},
			"access token":  {[]string{"refresh_token", tok.access}, "invalid_grant"},
			"unknown":       {[]string{"client_id", "nobody"}, "invalid_client"},
			"with a secret": {[]string{"client_secret", "x"}, "invalid_client"},
		} {
			if status, code, _ := w.renew(tok, tt.changes...); status < 400 || code != tt.want {
				t.Errorf("%s: %d %s", name, status, code)
			}
		}
		status, _, less := w.renew(tok, "scope", "notes:read")
		if status != 200 || w.user(less) != "alice notes:read" {
			t.Errorf("fewer scopes: %d %s", status, w.user(less))
		}
		if status, _, all := w.renew(less); status != 200 || w.user(all) != "alice notes:read notes:write" {
			t.Errorf("all of them again: %d", status)
		}
		// The first one again, two rotations later: someone else has it.
		if status, code, _ := w.renew(tok); status != 400 || code != "invalid_grant" {
			t.Errorf("an old one: %d %s", status, code)
		}
		if got := w.user(less); !strings.Contains(got, "has ended") {
			t.Errorf("after that: %s", got)
		}
		// auth.Any shows its tokens to no other Verifier.
		fresh := w.enter()
		spy := auth.VerifierFunc(func(context.Context, string) (*auth.Identity, error) {
			t.Error("another verifier sees the token")
			return nil, errors.New("no")
		})
		if _, err := auth.Any(spy, w.brokers[0].Verifier(endpoint)).Verify(t.Context(), fresh.access); err != nil {
			t.Error(err)
		}
		// Its own client ends it.
		if status, _ := w.post("/revoke", url.Values{"token": {fresh.refresh}, "client_id": {other}}); status != 200 || w.user(fresh) == "" || strings.Contains(w.user(fresh), "ended") {
			t.Errorf("revoked by another client: %d %s", status, w.user(fresh))
		}
		if status, _ := w.post("/revoke", url.Values{"token": {fresh.access}, "client_id": {fresh.client}}); status != 200 || !strings.Contains(w.user(fresh), "has ended") {
			t.Errorf("revoked: %d %s", status, w.user(fresh))
		}
	})
}

// Accept refuses a client at every request, Permit a user.
func TestAcceptAndPermit(t *testing.T) {
	everywhere(t, func(t *testing.T, n int) {
		no := errors.New("not on the list")
		var accept, permit error
		w := newWorld(t, n, func(o *Options) {
			o.Accept = func(_ context.Context, c *Client) error {
				if c.Name != "Claude" || c.RedirectURIs[0] != redirect {
					return fmt.Errorf("client %+v", c)
				}
				return accept
			}
			o.Permit = func(_ context.Context, id *auth.Identity) ([]string, error) {
				if id.Subject != "alice" || id.Issuer != idpURL || id.HasScope("offline_access") {
					return nil, fmt.Errorf("user %+v", id)
				}
				return []string{"notes:read", "notes:burn"}, permit
			}
		})
		tok := w.enter()
		if got := w.user(tok); got != "alice notes:read" {
			t.Errorf("the user is %q", got)
		}
		b := w.browser()
		form := b.ask(query(tok.client))
		code := b.login(query(tok.client)).Get("code")
		accept = no
		b.page("question", 403, "does not let this program in", self+"/authorize?"+query(tok.client).Encode(), nil)
		if status, m := w.post("/token", codeForm(tok.client, code)); m["error"] != "unauthorized_client" {
			t.Errorf("token: %d %v", status, m)
		}
		if status, code, _ := w.renew(tok); code != "unauthorized_client" {
			t.Errorf("refresh: %d %s", status, code)
		}
		if status, m := w.post("/register", url.Values{"json": {`{"client_name":"Claude","redirect_uris":["` + redirect + `"]}`}}); m["error"] != "unauthorized_client" {
			t.Errorf("register: %d %v", status, m)
		}
		accept, permit = nil, no
		_, _, to := b.open(self+"/consent", form)
		if _, _, to = b.open(w.idp.visit(t, to), nil); !strings.Contains(to, "error=access_denied") || strings.Contains(to, "list") {
			t.Errorf("sent to %q", to)
		}
		for _, e := range w.events {
			if e.Kind == "refused" && !errors.Is(e.Err, no) {
				t.Errorf("event %+v", e)
			}
		}
	})
}

// Requests without a login write nothing to the store, and cause no request to it.
func TestStrangersKeepNothing(t *testing.T) {
	counted := &counting{Store: scale.NewLocal()}
	w := newWorld(t, 1, func(o *Options) { o.Store = counted })
	b := w.browser()
	for i := range 50 {
		client := w.register(fmt.Sprintf("http://127.0.0.1:%d/callback", 4000+i))
		b.ask(query(client))
		w.post("/token", codeForm(client, "invented"))
		w.post("/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"invented"}, "client_id": {client}})
		_, _ = w.brokers[0].Verifier(endpoint).Verify(t.Context(), "invented")
	}
	if counted.gets+counted.puts != 0 {
		t.Errorf("%d gets, %d puts", counted.gets, counted.puts)
	}
	tok := w.enter()
	if counted.puts != 3 {
		t.Errorf("a login makes %d writes", counted.puts)
	}
	counted.gets, counted.puts = 0, 0
	w.renew(tok)
	if counted.gets != 1 || counted.puts != 1 {
		t.Errorf("a refresh makes %d gets and %d puts", counted.gets, counted.puts)
	}
}

// counting counts the calls of a store.
type counting struct {
	scale.Store
	gets, puts int
}

func (c *counting) Get(ctx context.Context, ops ...scale.GetOp) ([]scale.Entry, error) {
	c.gets++
	return c.Store.Get(ctx, ops...)
}

func (c *counting) Put(ctx context.Context, ops ...scale.Write) ([]scale.Entry, error) {
	c.puts++
	return c.Store.Put(ctx, ops...)
}
