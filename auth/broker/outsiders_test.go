package broker

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/internal/issuing"
)

// send sends a request as it is, and returns the answer.
func (w *world) send(method, path, kind, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, self+path, strings.NewReader(body))
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return w.serve(r)
}

// Requests for tokens that are not as OAuth has them get none, and use nothing up.
func TestOddTokenRequests(t *testing.T) {
	everywhere(t, func(t *testing.T, n int) {
		w := newWorld(t, n, nil)
		tok := w.enter()
		form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tok.refresh}, "client_id": {tok.client}}
		const plain = "application/x-www-form-urlencoded"
		var parts bytes.Buffer
		m := multipart.NewWriter(&parts)
		for name := range form {
			if err := m.WriteField(name, form.Get(name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		basic := func(id, secret string) string {
			return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
		}
		var secrets, ids [2]string
		for i := range ids {
			_, m := w.post("/register", url.Values{"json": {asJSON(map[string]any{"redirect_uris": []string{redirect}, "token_endpoint_auth_method": "client_secret_post"})}})
			ids[i], secrets[i] = m["client_id"].(string), m["client_secret"].(string)
		}
		for name, c := range map[string]struct {
			method, path, kind, body string
			header                   []string
			status                   int
		}{
			"in the URL":                   {"POST", "/token?" + form.Encode(), plain, "", nil, 401},
			"in the URL, by GET":           {"GET", "/token?" + form.Encode(), "", "", nil, 405},
			"by HEAD":                      {"HEAD", "/token?" + form.Encode(), "", "", nil, 405},
			"multipart":                    {"POST", "/token", m.FormDataContentType(), parts.String(), nil, 400},
			"JSON":                         {"POST", "/token", "application/json", asJSON(map[string]string{"grant_type": "refresh_token", "refresh_token": tok.refresh, "client_id": tok.client}), nil, 400},
			"text":                         {"POST", "/token", "text/plain", form.Encode(), nil, 400},
			"without a type":               {"POST", "/token", "", form.Encode(), nil, 400},
			"two tokens":                   {"POST", "/token", plain, form.Encode() + "&refresh_token=x", nil, 400},
			"two grants":                   {"POST", "/token", plain, form.Encode() + "&grant_type=authorization_code", nil, 400},
			"broken escapes":               {"POST", "/token", plain, form.Encode() + "&x=%zz", nil, 400},
			"two resources":                {"POST", "/token", plain, form.Encode() + "&" + url.Values{"resource": {endpoint, self + "/other"}}.Encode(), nil, 400},
			"a resource with a fragment":   {"POST", "/token", plain, form.Encode() + "&" + url.Values{"resource": {endpoint + "#x"}}.Encode(), nil, 400},
			"another id in the header":     {"POST", "/token", plain, form.Encode(), []string{"Authorization", basic("nobody", "")}, 401},
			"a secret in the header":       {"POST", "/token", plain, form.Encode(), []string{"Authorization", basic(tok.client, "x")}, 401},
			"broken escapes in the header": {"POST", "/token", plain, form.Encode(), []string{"Authorization", basic("%zz", "x")}, 401},
			"the secret of another client": {"POST", "/token", plain, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tok.refresh}, "client_id": {ids[0]}, "client_secret": {secrets[1]}}.Encode(), nil, 401},
			"both ways to give a secret": {"POST", "/token", plain, url.Values{"grant_type": {"refresh_token"}, "client_id": {ids[0]}, "client_secret": {secrets[0]}}.Encode(),
				[]string{"Authorization", basic(ids[0], secrets[0])}, 401},
		} {
			if rec := w.send(c.method, c.path, c.kind, c.body, c.header...); rec.Code != c.status || strings.Contains(rec.Body.String(), "access_token") {
				t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
			}
		}
		for _, grant := range []string{
			"password", "client_credentials", "implicit", "", "urn:ietf:params:oauth:grant-type:token-exchange", "urn:ietf:params:oauth:grant-type:jwt-bearer",
			"urn:ietf:params:oauth:grant-type:device_code", "Refresh_Token", "refresh_token ",
		} {
			if status, code, _ := w.renew(tok, "grant_type", grant, "username", "alice", "password", "x", "subject_token", tok.access, "assertion", w.idp.idToken("alice", "")); status != 400 || code != "unsupported_grant_type" {
				t.Errorf("grant %q: %d %s", grant, status, code)
			}
		}
		// A scope that is asked for a thousand times is one.
		status, _, many := w.renew(tok, "scope", strings.Repeat("notes:read ", 1000))
		if status != 200 || len(many.access) > 2*len(tok.access) || w.user(many) != "alice notes:read" {
			t.Errorf("%d, a token of %d bytes for %.40s", status, len(many.access), w.user(many))
		}
		if status, code, _ := w.renew(many, "scope", "offline_access"); status != 200 {
			t.Errorf("offline_access alone: %d %s", status, code)
		}
	})
}

// What else a client may ask of an authorization server changes nothing: no question is left
// out, nothing is fetched, and nothing of it reaches the provider.
func TestOddQuestions(t *testing.T) {
	w := newWorld(t, 1, nil)
	b := w.brokers[0]
	b.entrance.protocol.SetDocuments(&http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		t.Errorf("fetched %s", r.URL)
		return response(r, 404, ""), nil
	})})
	status, m := w.post("/register", url.Values{"json": {asJSON(map[string]any{
		"client_name": "Claude", "redirect_uris": []string{redirect}, "token_endpoint_auth_method": "none", "logo_uri": "https://evil.example.com/logo", "jwks_uri": "https://evil.example.com/keys", "policy_uri": "javascript:x",
		"sector_identifier_uri": "https://evil.example.com/sector", "software_statement": "x.y.z", "initiate_login_uri": "https://evil.example.com/login", "request_uris": []string{"https://evil.example.com/r"},
		"scope": "notes:burn", "default_max_age": 1, "tls_client_auth_subject_dn": "CN=x",
	})}})
	if status != 201 {
		t.Fatal(status, m)
	}
	client := m["client_id"].(string)
	for name, change := range map[string][]string{
		"a request elsewhere":   {"request_uri", "https://evil.example.com/request"},
		"a request":             {"request", "e30.e30."},
		"without a question":    {"prompt", "none"},
		"for somebody":          {"login_hint", "root@example.com", "id_token_hint", w.idp.idToken("root", "")},
		"claims":                {"claims", `{"userinfo":{"admin":null}}`, "acr_values", "0", "max_age", "0", "nonce", "chosen"},
		"another mode":          {"response_mode", "fragment"},
		"a mode of forms":       {"response_mode", "form_post"},
		"another answer, too":   {"response_type", "code", "display", "popup", "ui_locales", "<script>"},
		"a challenge, not S256": {"code_challenge_method", "S256", "code_challenge_methods", "plain"},
	} {
		user := w.browser()
		q := query(client, change...)
		_, page, _ := user.open(self+"/authorize?"+q.Encode(), nil)
		if !strings.Contains(page, "Claude") || strings.Contains(page, "evil.example.com") || strings.Contains(page, "<script") || strings.Contains(page, "notes:burn") {
			t.Errorf("%s: %s", name, page)
		}
		_, _, to := user.open(self+"/consent", user.ask(q))
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(u.Query())); strings.Join(got, " ") != "client_id code_challenge code_challenge_method company nonce prompt redirect_uri response_type scope state" ||
			u.Query().Get("prompt") != "consent" || u.Query().Get("scope") != "openid email offline_access" || u.Query().Get("nonce") == "chosen" {
			t.Errorf("%s: the provider is asked with %v", name, u.Query())
		}
		if _, _, to = user.open(w.idp.visit(t, to), nil); !strings.HasPrefix(to, redirect+"?") || strings.Contains(to, "#") {
			t.Errorf("%s: sent to %s", name, to)
		}
	}
	// A state comes back as it was, whatever its bytes are, and is part of one line.
	for _, state := range []string{"a\r\nSet-Cookie: x=y", "\xff\xfe", `"><script>`, "a+b c%20d", "\x00", "状態"} {
		if got := w.browser().login(query(client, "state", state)); got.Get("state") != state {
			t.Errorf("state %q came back as %q", state, got.Get("state"))
		}
	}
	user := w.browser()
	for name, change := range map[string][]string{"scope": {"scope", "\xff"}, "challenge": {"code_challenge", strings.Repeat("\xff", 43)}, "client": {"client_id", "\xff"}} {
		if status, page, to := user.open(self+"/authorize?"+query(client, change...).Encode(), nil); status >= 500 || strings.Contains(page+to, "\xff") {
			t.Errorf("%s: %d %q %q", name, status, page, to)
		}
	}
	// A user may take out all scopes.
	user = w.browser()
	form := user.ask(query(client))
	form.Del("scope")
	_, _, to := user.open(self+"/consent", form)
	_, _, to = user.open(w.idp.visit(t, to), nil)
	back, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	status, m = w.post("/token", codeForm(client, back.Query().Get("code")))
	if status != 200 || m["scope"] != "" {
		t.Fatalf("no scopes: %d %v", status, m)
	}
	if got := w.user(tokens{access: m["access_token"].(string)}); got != "alice " {
		t.Errorf("no scopes: %q", got)
	}
}

// Redirects that look like this machine or like a private scheme, and are neither.
func TestOddRedirects(t *testing.T) {
	w := newWorld(t, 1, nil)
	for _, uri := range []string{
		"https://\u0430pple.com/", "http://0.0.0.0:4000/", "http://2130706433/", "http://0x7f.1/", "http://127.0.0.1./", "http://[fe80::1%25lo]/", "http://[::ffff:8.8.8.8]/", "http://localhost.localdomain/",
		"applescript://com.apple.scripteditor?action=new", "microsoft-edge:https://evil.example.com", "shortcuts://run-shortcut?name=x", "x-man-page:///x", "help:openbook", "itms-services://?action=x",
		"feed:https://evil.example.com", "android-app://x/", "market://x", "devtools://x", "edge://settings", "read:x", "wyciwyg://x", "x-apple.systempreferences:x", "gopher://x", "telnets://x", "onenote:x",
		"https:///x", "https:x", "//app.example.com/x", "http:app", "https://app.example.com/x y", "https://app.example.com/\u202e", "urn:ietf:wg:oauth:2.0:oob", "1x:y",
	} {
		if status, m := w.post("/register", url.Values{"json": {asJSON(map[string]any{"redirect_uris": []string{uri}})}}); status != 400 || m["error"] != "invalid_redirect_uri" {
			t.Errorf("%q: %d %v", uri, status, m)
		}
	}
	for _, text := range []string{
		`{"redirect_uris":"https://a.example.com"}`, `{"redirect_uris":null}`, `{"redirect_uris":[1]}`, `{"redirect_uris":[null]}`, `{"redirect_uris":[["https://a.example.com"]]}`, `[]`, `null`, `1`, ``, `{"client_name":1,"redirect_uris":["https://a.example.com"]}`,
		strings.Repeat("[", 30_000), `{"redirect_uris":["https://a.example.com/"],"grant_types":["password"]}`, `{"redirect_uris":["https://a.example.com/"],"grant_types":["client_credentials"]}`,
		`{"redirect_uris":["https://a.example.com/"],"token_endpoint_auth_method":"private_key_jwt"}`, `{"redirect_uris":["https://a.example.com/"],"token_endpoint_auth_method":"client_secret_jwt"}`,
	} {
		if rec := w.send("POST", "/register", "application/json", text); rec.Code != 400 || !strings.Contains(rec.Body.String(), `"error"`) {
			t.Errorf("%.60s: %d %s", text, rec.Code, rec.Body)
		}
	}
}

// Other paths, methods, hosts and origins reach nothing, and do not get into links.
func TestOddRequests(t *testing.T) {
	w := newWorld(t, 1, nil)
	client := w.register(redirect)
	for _, path := range []string{"/authorize/", "//authorize", "/x/../authorize", "/./authorize", "/Authorize", "/authorize%2f", "/authorize;x", "/callback/", "/callback/../token", "/consent/x", "/connect/", "/.well-known/oauth-authorization-server/x"} {
		if rec := w.send("GET", path+"?"+query(client).Encode(), "", ""); rec.Code != http.StatusTeapot {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
	for path, methods := range map[string]string{"/callback": "POST HEAD OPTIONS PUT", "/consent": "GET HEAD OPTIONS", "/connect": "HEAD OPTIONS DELETE", "/authorize": "POST HEAD OPTIONS", "/register": "GET PUT DELETE", "/revoke": "GET"} {
		for method := range strings.FieldsSeq(methods) {
			if rec := w.send(method, path, "", "", "Origin", "https://evil.example.com", "X-HTTP-Method-Override", "GET"); rec.Code != 405 || rec.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s: %d %v", method, path, rec.Code, rec.Header())
			}
		}
	}
	// Links are made of the issuer, whatever a request says of its host.
	user := w.browser()
	form := user.ask(query(client))
	r := httptest.NewRequest(http.MethodPost, self+"/consent", strings.NewReader(form.Encode()))
	for _, c := range user.jar.Cookies(r.URL) {
		r.AddCookie(c)
	}
	r.Host = "evil.example.com"
	for name, value := range map[string]string{"Content-Type": "application/x-www-form-urlencoded", "X-Forwarded-Host": "evil.example.com", "X-Forwarded-Proto": "http", "Forwarded": "host=evil.example.com", "X-Original-URL": "/token"} {
		r.Header.Set(name, value)
	}
	rec := w.serve(r)
	if to := rec.Header().Get("Location"); rec.Code != 303 || !strings.Contains(to, url.QueryEscape(self+"/callback")) || strings.Contains(to, "evil") {
		t.Errorf("%d, sent to %s", rec.Code, to)
	}
	if text := w.send("GET", "/.well-known/oauth-authorization-server", "", "", "X-Forwarded-Host", "evil.example.com").Body.String(); strings.Contains(text, "evil") {
		t.Errorf("metadata %s", text)
	}
	// A browser with a hundred visits, which it cannot have from here, can still log in.
	user = w.browser()
	for i := range 100 {
		user.jar.SetCookies(&url.URL{Scheme: "https", Host: "notes.example.com", Path: "/"}, []*http.Cookie{{Name: fmt.Sprintf("__Host-broker-visit-0-%016d", i), Value: strings.Repeat("A", 300), Secure: true, Path: "/"}})
	}
	if got := user.login(query(client)); !got.Has("code") {
		t.Errorf("sent back with %v", got)
	}
	if n := len(user.jar.Cookies(&url.URL{Scheme: "https", Host: "notes.example.com", Path: "/"})); n > 25 {
		t.Errorf("%d cookies are left", n)
	}
}

// Answers of a provider that are not those of this visit, or odd.
func TestOddAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string // of the token endpoint, with the ID token for %s
		ok     bool
	}{
		"an end far away":     {`{"access_token":"x","token_type":"Bearer","expires_in":1000000000000000000,"id_token":"%s"}`, true},
		"an end of long ago":  {`{"access_token":"x","token_type":"Bearer","expires_in":-1000000000000000000,"id_token":"%s"}`, true},
		"an end as text":      {`{"access_token":"x","token_type":"Bearer","expires_in":"3600","id_token":"%s"}`, true},
		"an end that is none": {`{"access_token":"x","token_type":"Bearer","expires_in":"soon","id_token":"%s"}`, false},
		"no access token":     {`{"access_token":"","token_type":"Bearer","id_token":"%s"}`, false},
		"a number":            {`{"access_token":1,"token_type":"Bearer","id_token":"%s"}`, false},
		"a list":              {`[{"access_token":"x","id_token":"%s"}]`, false},
		"ID token is no text": {`{"access_token":"x","token_type":"Bearer","id_token":["%s"]}`, false},
		"a form":              {`access_token=x&token_type=Bearer&id_token=%s`, false},
		"megabytes":           {`{"access_token":"` + strings.Repeat("x", 2<<20) + `","id_token":"%s"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, nil)
			w.idp.answer = func(*http.Request) (int, string) {
				return 200, strings.Replace(tt.answer, "%s", w.idp.idToken("alice", w.idp.nonce), 1)
			}
			user := w.browser()
			status, page, to := user.open(user.allow(query(w.register(redirect))), nil)
			if ok := strings.Contains(to, "code="); ok != tt.ok || status >= 500 && status != 503 {
				t.Errorf("%d, sent to %q: %s", status, to, plain(page))
			}
		})
	}
	w := newWorld(t, 1, nil)
	client, user := w.register(redirect), w.browser()
	if _, _, to := user.open(user.allow(query(client))+"&error=access_denied", nil); !strings.Contains(to, "error=access_denied") || strings.Contains(to, "code=") {
		t.Errorf("a code and an error: %s", to)
	}
	back := user.allow(query(client))
	state := back[strings.Index(back, "state="):]
	if _, _, to := user.open(self+"/callback?"+url.Values{"error": {"x\r\n\x1b[31m\u202e" + strings.Repeat("y", 500)}, "error_description": {"<b>"}, "error_uri": {"https://evil.example.com"}}.Encode()+"&"+state, nil); !strings.Contains(to, "error=server_error") || strings.Contains(to, "evil") {
		t.Errorf("an odd error: %s", to)
	}
	if e := w.events[len(w.events)-1]; e.Err == nil || strings.ContainsAny(e.Err.Error(), "\r\n\x1b\u202e") || len(e.Err.Error()) > 300 {
		t.Errorf("event %q", e.Err)
	}
	// Metadata of another provider, or with endpoints that no request should go to.
	for name, meta := range map[string]map[string]any{
		"issuer": {"issuer": "https://evil.example.com"}, "no issuer": {"issuer": nil}, "token": {"token_endpoint": "http://id.example.com/token"}, "keys": {"jwks_uri": "http://id.example.com/keys"},
		"script": {"authorization_endpoint": "javascript:alert(1)"}, "relative": {"authorization_endpoint": "/authorize"}, "none": {"token_endpoint": ""}, "a number": {"token_endpoint": 1},
	} {
		w := newWorld(t, 1, nil)
		w.idp.meta = meta
		user := w.browser()
		user.page(name, 503, "does not answer", self+"/consent", user.ask(query(w.register(redirect))))
	}
}

// ID tokens that bring a key of their own, or ask for what is not known here.
func TestKeysOfIDTokens(t *testing.T) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, header := range map[string]func(o *jose.SignerOptions){
		"its own key":        func(o *jose.SignerOptions) { o.WithHeader("jwk", jose.JSONWebKey{Key: &own.PublicKey, KeyID: "1"}) },
		"keys elsewhere":     func(o *jose.SignerOptions) { o.WithHeader("jku", "https://evil.example.com/keys") },
		"its own chain":      func(o *jose.SignerOptions) { o.WithHeader("x5c", []string{"AAAA"}) },
		"crit":               func(o *jose.SignerOptions) { o.WithHeader("crit", []string{"exp"}) },
		"no name of its key": func(o *jose.SignerOptions) { o.WithHeader("kid", "") },
	} {
		w := newWorld(t, 1, nil)
		right := w.idp.key
		w.idp.header = header
		w.idp.key = own // what signs; the keys of the provider stay
		w.idp.answer = nil
		keys := asJSON(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &right.PublicKey, KeyID: "1", Use: "sig"}, {Key: &own.PublicKey, KeyID: "1", Use: "enc"}, {Key: []byte("hush hush hush hush hush hush hu"), KeyID: "1"}}})
		w.brokers[0].login.web.Transport = transport(func(r *http.Request) (*http.Response, error) {
			switch {
			case r.URL.Host != "id.example.com":
				t.Errorf("%s: fetched %s", name, r.URL)
			case r.URL.Path == "/keys":
				return response(r, 200, keys), nil
			}
			return w.idp.RoundTrip(r)
		})
		if got := w.browser().login(query(w.register(redirect))); got.Has("code") || got.Get("error") != "server_error" {
			t.Errorf("%s: sent back with %v", name, got)
		}
	}
}

// What the operator writes is text on pages.
func TestMarkupOfTheOperator(t *testing.T) {
	w := newWorld(t, 1, func(o *Options) {
		o.Name, o.Scopes = `<img src=x>`, []Scope{{"notes:read", `read </form><script>x</script>`}}
	})
	user := w.browser()
	user.raw = true
	_, page, _ := user.open(self+"/authorize?"+query(w.register(redirect), "scope", "notes:read").Encode(), nil)
	if strings.Contains(page, "<img") || strings.Contains(page, "<script") || strings.Count(page, "</form>") != 1 || !strings.Contains(page, "&lt;img") {
		t.Error(page)
	}
}

// Answers and links of one purpose are of no use at another callback, and a robot that opens
// a link connects nothing.
func TestOtherCallbacks(t *testing.T) {
	s := newShop(t, 1, false)
	user := s.browser()
	back := user.allow(query(s.register(redirect), "scope", ""))
	user.page("login at a service", 403, issuing.TextOver, strings.Replace(back, "/callback?", "/callback/tracker?", 1), nil)
	link := s.linkOf("alice")
	for _, method := range []string{"GET", "GET", "HEAD"} {
		if rec := s.send(method, strings.TrimPrefix(link, self), "", ""); rec.Code >= 300 && rec.Code != 405 || rec.Header().Get("Location") != "" {
			t.Errorf("%s: %d to %q", method, rec.Code, rec.Header().Get("Location"))
		}
	}
	if status, page := s.connect(s.browser(), link); status != 200 {
		t.Fatalf("status %d: %s", status, page)
	}
	user = s.browser()
	_, _, to := user.press(link, "connect")
	_, _, to = user.open(s.idp.visit(t, to), nil)
	back = s.tracker.visit(t, to)
	user.page("a service at the login", 403, issuing.TextOver, strings.Replace(back, "/callback/tracker?", "/callback?", 1), nil)
	user.page("a service that is not there", http.StatusTeapot, "", strings.Replace(back, "/callback/tracker?", "/callback/other?", 1), nil)
	// The link of a service in the place of a form, and the other way round.
	form, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	user.page("the link as a form", 403, "This link is over", self+"/connect", url.Values{"form": {form.Query().Get("t")}, "answer": {"connect"}})
}

// A token that is bound to a key is of no use without it, nor one in the URL.
func TestBoundTokenAtTheResource(t *testing.T) {
	w := newWorld(t, 1, nil)
	resource, err := auth.New(endpoint, w.brokers[0].Verifier(endpoint), nil)
	if err != nil {
		t.Fatal(err)
	}
	h := resource.Bearer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	call := func(address string, header ...string) int {
		r := httptest.NewRequest(http.MethodPost, address, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec.Code
	}
	e := w.brokers[0].entrance
	tok := w.enter()
	g, _ := e.opened(tok.access)
	g.Key, g.End = strings.Repeat("k", 43), time.Now().Add(time.Hour)
	bound, err := e.access(&g)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		address string
		header  []string
		want    int
	}{
		"a token":                       {endpoint, []string{"Authorization", "Bearer " + tok.access}, 202},
		"bound, as bearer":              {endpoint, []string{"Authorization", "Bearer " + bound}, 401},
		"bound, without a proof":        {endpoint, []string{"Authorization", "DPoP " + bound}, 401},
		"bound, with junk":              {endpoint, []string{"Authorization", "DPoP " + bound, "DPoP", "x.y.z"}, 401},
		"in the URL":                    {endpoint + "?access_token=" + tok.access, nil, 400},
		"a refresh token":               {endpoint, []string{"Authorization", "Bearer " + tok.refresh}, 401},
		"the client's id":               {endpoint, []string{"Authorization", "Bearer " + tok.client}, 401},
		"a megabyte":                    {endpoint, []string{"Authorization", "Bearer " + strings.Repeat("A", 1<<20)}, 401},
		"with a line break":             {endpoint, []string{"Authorization", "Bearer " + tok.access + "\n"}, 400},
		"with padding":                  {endpoint, []string{"Authorization", "Bearer " + tok.access + "="}, 401},
		"of the provider, for the same": {endpoint, []string{"Authorization", "Bearer " + w.idp.idToken("alice", "")}, 401},
	} {
		if got := call(c.address, c.header...); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Proofs that are not of this request, or not signed as they have to be, and such of a key
// that the token is not bound to. None of them uses the token up.
func TestOddProofs(t *testing.T) {
	w := newWorld(t, 2, nil)
	tok := w.enter()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	proof := func(kind jose.ContentType, own bool, changes ...any) string {
		claims := map[string]any{"jti": rand.Text(), "htm": "POST", "htu": self + "/token", "iat": time.Now().Unix()}
		for i := 0; i < len(changes); i += 2 {
			claims[changes[i].(string)] = changes[i+1]
		}
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{EmbedJWK: own}).WithType(kind))
		if err != nil {
			t.Fatal(err)
		}
		signed, err := signer.Sign([]byte(asJSON(claims)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := signed.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const kind = "dpop+jwt"
	for name, text := range map[string]string{
		"ahead": proof(kind, true, "iat", time.Now().Unix()+90), "late": proof(kind, true, "iat", time.Now().Unix()-90), "far ahead": proof(kind, true, "iat", 1e300), "a query": proof(kind, true, "htu", self+"/token?x=1"),
		"another endpoint": proof(kind, true, "htu", self+"/revoke"), "another method": proof(kind, true, "htm", "GET"), "no id": proof(kind, true, "jti", ""), "a number": proof(kind, true, "jti", 5), "another type": proof("JWT", true),
		"no key": proof(kind, false), "none": "eyJhbGciOiJub25lIiwidHlwIjoiZHBvcCtqd3QifQ.e30.", "five parts": "a.b.c.d.e", "nothing": "", "JSON": `{"payload":""}`, "cut": proof(kind, true)[:200],
	} {
		form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tok.refresh}, "client_id": {tok.client}}
		if status, m := w.post("/token", form, "DPoP", text); status != 400 || m["error"] != "invalid_dpop_proof" {
			t.Errorf("%s: %d %v", name, status, m)
		}
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tok.refresh}, "client_id": {tok.client}}
	if status, m := w.post("/token", form, "DPoP", proof(kind, true, "jti", strings.Repeat("j", 30_000))); status != 400 || m["error"] != "invalid_grant" {
		t.Errorf("of another key: %d %v", status, m)
	}
	if status, code, _ := w.renew(tok); status != 200 {
		t.Errorf("without a proof: %d %s", status, code)
	}
}

// An answer to a question counts only as the form of the page sends it: from this origin, with
// the cookie of the browser that was asked, and in the body.
func TestOddConsents(t *testing.T) {
	w := newWorld(t, 2, nil)
	client := w.register(redirect)
	const plain = "application/x-www-form-urlencoded"
	other := w.browser()
	other.ask(query(client))
	for name, c := range map[string]struct {
		site, kind string
		in, tossed bool // in the URL; after the cookie of another browser
		want       int
	}{
		"as the page": {"same-origin", plain, false, false, 303}, "an old browser": {"", plain, false, false, 303}, "another host": {"same-site", plain, false, false, 403}, "another site": {"cross-site", plain, false, false, 403},
		"an old browser with an origin": {" " + self, plain, false, false, 303}, "an old browser elsewhere": {" https://evil.example", plain, false, false, 403}, "an old browser in a frame": {" null", plain, false, false, 403},
		"by hand": {"none", plain, false, false, 403}, "two sites": {"same-origin,cross-site", plain, false, false, 403}, "text": {"", "text/plain", false, false, 403}, "JSON": {"", "application/json", false, false, 403},
		"parts": {"", "multipart/form-data; boundary=x", false, false, 403}, "in the URL": {"", plain, true, false, 403}, "another cookie first": {"", plain, false, true, 403},
	} {
		b := w.browser()
		address, body := self+"/consent", b.ask(query(client)).Encode()
		if c.in {
			address, body = address+"?"+body, ""
		}
		r := httptest.NewRequest(http.MethodPost, address, strings.NewReader(body))
		r.Header.Set("Content-Type", c.kind)
		site, origin, _ := strings.Cut(c.site, " ")
		for name, value := range map[string]string{"Sec-Fetch-Site": site, "Origin": origin} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		cookies := b.jar.Cookies(r.URL)
		if c.tossed {
			cookies = append(other.jar.Cookies(r.URL), cookies...)
		}
		for _, cookie := range cookies {
			r.AddCookie(cookie)
		}
		if rec := w.serve(r); rec.Code != c.want || (rec.Header().Get("Location") != "") != (c.want == 303) {
			t.Errorf("%s: %d to %q", name, rec.Code, rec.Header().Get("Location"))
		}
	}
}

// After Revoke, or a request to /revoke, all tokens of the login are invalid, also those of
// concurrent refreshes.
func TestRevokeBesideRefreshes(t *testing.T) {
	for name, revoke := range map[string]func(w *world, tok tokens, at int) error{
		"Revoke": func(w *world, _ tokens, at int) error { return w.brokers[at].Revoke(t.Context(), idpURL+"#alice") },
		"/revoke": func(w *world, tok tokens, _ int) error {
			w.post("/revoke", url.Values{"token": {tok.refresh}, "client_id": {tok.client}})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, nil)
			for range 5 {
				tok := w.enter()
				var all sync.WaitGroup
				var mu sync.Mutex
				issued := []tokens{tok}
				for i := range 12 {
					all.Go(func() {
						if i%2 == 0 {
							if err := revoke(w, tok, i/2%2); err != nil {
								t.Error(err)
							}
						} else if status, _, next := w.renew(tok); status == 200 {
							mu.Lock()
							defer mu.Unlock()
							issued = append(issued, next)
						}
					})
				}
				all.Wait()
				for _, tok := range issued {
					status, _, _ := w.renew(tok)
					if got := w.user(tok); status != 400 || !strings.Contains(got, "has ended") {
						t.Errorf("%d, %s", status, got)
					}
				}
			}
		})
	}
}
