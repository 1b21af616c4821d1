package broker

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/internal/issuing"
	"github.com/talaria-go/mcp/scale"
)

const (
	self     = "https://notes.example.com"
	endpoint = self + "/mcp"
	idpURL   = "https://id.example.com"
	redirect = "http://127.0.0.1:4000/callback"
	far      = "https://app.example.com/callback"
	verify   = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
)

// idp is an identity provider as a transport: no socket, so that its clock is that of
// a bubble. mu guards all fields.
type idp struct {
	mu      sync.Mutex
	key     *ecdsa.PrivateKey
	user    string
	nonce   string                              // of the last visit
	codes   map[string]url.Values               // what a code was asked with
	refresh map[string]string                   // user of a refresh token
	gone    map[string]bool                     // users who have left
	claims  func(map[string]any)                // changes those of an ID token
	header  func(*jose.SignerOptions)           // changes its header
	answer  func(r *http.Request) (int, string) // in place of the token endpoint; status 0 is none
	meta    map[string]any                      // changes the metadata
	offline bool                                // gives refresh tokens
	asked   map[string]int                      // requests, by path
	forms   []url.Values                        // of the token endpoint
	fail    bool                                // no answer
}

func newIDP(t testing.TB) *idp {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &idp{key: key, user: "alice", codes: map[string]url.Values{}, refresh: map[string]string{}, gone: map[string]bool{}, offline: true, asked: map[string]int{}}
}

// set changes fields.
func (p *idp) set(fn func()) { p.mu.Lock(); defer p.mu.Unlock(); fn() }

// RoundTrip implements http.RoundTripper.
func (p *idp) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[r.URL.Path]++
	if p.fail {
		return nil, fmt.Errorf("no route to %s", r.URL.Host)
	}
	status, text := 404, ""
	switch r.URL.Host + r.URL.Path {
	case "id.example.com/.well-known/openid-configuration":
		m := map[string]any{
			"issuer": idpURL, "jwks_uri": idpURL + "/keys", "authorization_endpoint": idpURL + "/authorize?company=1", "token_endpoint": idpURL + "/token",
			"revocation_endpoint": idpURL + "/revoke",
		}
		maps.Copy(m, p.meta)
		status, text = 200, asJSON(m)
	case "id.example.com/keys":
		status, text = 200, asJSON(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &p.key.PublicKey, KeyID: "1", Use: "sig"}}})
	case "id.example.com/token":
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, err
		}
		p.forms = append(p.forms, form)
		status, text = p.token(r, form)
	}
	return response(r, status, text), nil
}

// response is an answer to a request, with JSON and further headers.
func response(r *http.Request, status int, text string, header ...string) *http.Response {
	res := &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: r}
	for i := 0; i < len(header); i += 2 {
		res.Header.Set(header[i], header[i+1])
	}
	return res
}

// redeems reports whether a token request is right for a code, which was asked for with q.
func redeems(form, q url.Values) bool {
	return q != nil && issuing.Hash(form.Get("code_verifier")) == q.Get("code_challenge") && form.Get("redirect_uri") == q.Get("redirect_uri")
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// token answers the token endpoint. p.mu is held.
func (p *idp) token(r *http.Request, form url.Values) (int, string) {
	if p.answer != nil {
		if status, text := p.answer(r); status != 0 {
			return status, text
		}
	}
	if id, secret, ok := r.BasicAuth(); !ok || id != "front" || secret != "hush" {
		return 401, `{"error":"invalid_client"}`
	}
	user, nonce := "", ""
	switch form.Get("grant_type") {
	case "authorization_code":
		q := p.codes[form.Get("code")]
		delete(p.codes, form.Get("code"))
		if !redeems(form, q) {
			return 400, `{"error":"invalid_grant"}`
		}
		user, nonce = q.Get("user"), q.Get("nonce")
	case "refresh_token":
		user = p.refresh[form.Get("refresh_token")]
		delete(p.refresh, form.Get("refresh_token"))
		if user == "" || p.gone[user] {
			return 400, `{"error":"invalid_grant"}`
		}
	}
	answer := map[string]any{"access_token": "at-" + rand.Text(), "token_type": "Bearer", "expires_in": 600, "id_token": p.idToken(user, nonce)}
	if p.offline {
		next := "rt-" + rand.Text()
		p.refresh[next] = user
		answer["refresh_token"] = next
	}
	return 200, asJSON(answer)
}

// idToken returns a signed ID token. p.mu is held.
func (p *idp) idToken(user, nonce string) string {
	claims := map[string]any{
		"iss": idpURL, "sub": user, "aud": "front", "iat": time.Now().Unix(), "exp": time.Now().Add(5 * time.Minute).Unix(), "email": user + "@example.com",
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	if p.claims != nil {
		p.claims(claims)
	}
	opts := (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", "1")
	if p.header != nil {
		p.header(opts)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: p.key}, opts)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign([]byte(asJSON(claims)))
	if err != nil {
		panic(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return text
}

// visit is what the provider does when a browser comes to its authorization URL: it
// sends it back with a code.
func (p *idp) visit(t testing.TB, where string) (back string) {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil || !strings.HasPrefix(where, idpURL+"/authorize?company=1&") {
		t.Fatalf("sent to %q, %v", where, err)
	}
	q := u.Query()
	p.mu.Lock()
	defer p.mu.Unlock()
	q.Set("user", p.user)
	code := rand.Text()
	p.codes[code], p.nonce = q, q.Get("nonce")
	return q.Get("redirect_uri") + "?" + url.Values{"code": {code}, "state": {q.Get("state")}}.Encode()
}

// world is a provider, and replicas of a broker in front of it.
type world struct {
	t        testing.TB
	idp      *idp
	brokers  []*Broker
	handlers []http.Handler
	events   []Event
	mu       sync.Mutex // guards events and next
	next     int
}

// testKeys are the secrets of all brokers.
var testKeys = [][]byte{[]byte("a key of sixteen bytes or more")}

// newWorld returns a world with that many replicas. change changes the options of
// each.
func newWorld(t testing.TB, replicas int, change func(*Options)) *world {
	t.Helper()
	return newWorldAt(t, replicas, &Provider{
		Issuer: idpURL, ClientID: "front", ClientSecret: "hush", Scopes: []string{"openid", "email", "offline_access"}, Params: url.Values{"prompt": {"consent"}},
	}, change)
}

// newWorldAt is newWorld with another provider for the login.
func newWorldAt(t testing.TB, replicas int, p *Provider, change func(*Options)) *world {
	t.Helper()
	w := &world{t: t, idp: newIDP(t)}
	store := scale.NewLocal()
	for range replicas {
		o := &Options{
			Resources: []string{endpoint}, Keys: testKeys, Store: store, Transport: w.idp, Name: "Notes",
			Scopes: []Scope{{"notes:read", "read your notes"}, {"notes:write", "change them"}},
			Event:  func(e Event) { w.mu.Lock(); defer w.mu.Unlock(); w.events = append(w.events, e) },
		}
		if change != nil {
			change(o)
		}
		b, err := New(self, p, o)
		if err != nil {
			t.Fatal(err)
		}
		w.add(b)
	}
	return w
}

// bare is a provider at the addresses of idp that has no ID tokens. user names the owner of a
// token.
func bare(user func(ctx context.Context, c *http.Client) (*auth.Identity, error)) *Provider {
	return &Provider{AuthURL: idpURL + "/authorize?company=1", TokenURL: idpURL + "/token", ClientID: "front", ClientSecret: "hush", User: user}
}

// add adds a replica.
func (w *world) add(b *Broker) {
	w.brokers = append(w.brokers, b)
	w.handlers = append(w.handlers, b.Middleware(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTeapot) })))
}

// serve has the replicas answer in turn.
func (w *world) serve(r *http.Request) *httptest.ResponseRecorder {
	w.mu.Lock()
	h := w.handlers[w.next%len(w.handlers)]
	w.next++
	w.mu.Unlock()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

// kinds returns the kinds of the events so far.
func (w *world) kinds() (kinds []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// post posts a form or JSON to an endpoint, and returns the answer.
func (w *world) post(path string, form url.Values, header ...string) (int, map[string]any) {
	body, kind := form.Encode(), "application/x-www-form-urlencoded"
	if text := form.Get("json"); text != "" {
		body, kind = text, "application/json"
	}
	r := httptest.NewRequest(http.MethodPost, self+path, strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := w.serve(r)
	m := map[string]any{}
	_ = json.Unmarshal(rec.Body.Bytes(), &m)
	return rec.Code, m
}

// register registers a public client that takes refresh tokens.
func (w *world) register(redirects ...string) string {
	w.t.Helper()
	status, m := w.post("/register", url.Values{"json": {asJSON(map[string]any{
		"client_name": "Claude", "redirect_uris": redirects, "grant_types": []string{"authorization_code", "refresh_token"}, "token_endpoint_auth_method": "none",
	})}})
	if status != 201 {
		w.t.Fatal(status, m)
	}
	return m["client_id"].(string)
}

// browser is that of a user.
type browser struct {
	w   *world
	jar http.CookieJar
	raw bool // pages are as they were sent
}

func (w *world) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return &browser{w: w, jar: jar}
}

// open gets a page of the broker, or posts to it, and returns status, text and where
// it leads.
func (b *browser) open(where string, form url.Values) (int, string, string) {
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	r := httptest.NewRequest(method, where, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range b.jar.Cookies(r.URL) {
		r.AddCookie(c)
	}
	rec := b.w.serve(r)
	b.jar.SetCookies(r.URL, rec.Result().Cookies())
	page := rec.Body.String()
	if !b.raw {
		page = html.UnescapeString(page)
	}
	return rec.Code, page, rec.Header().Get("Location")
}

// query is the authorization request of a client, with changes: a name and its value,
// "" for none.
func query(client string, changes ...string) url.Values {
	q := url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirect}, "state": {"s & t"}, "resource": {endpoint},
		"scope": {"notes:read notes:write offline_access"}, "code_challenge": {issuing.Hash(verify)}, "code_challenge_method": {"S256"},
	}
	for i := 0; i < len(changes); i += 2 {
		if q.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			q.Del(changes[i])
		}
	}
	return q
}

var hiddenForm = regexp.MustCompile(`name="(?:id|form)" value="([^"]+)"`)

// ask opens the question of a client and returns the form.
func (b *browser) ask(q url.Values) url.Values {
	b.w.t.Helper()
	status, page, to := b.open(self+"/authorize?"+q.Encode(), nil)
	found := hiddenForm.FindStringSubmatch(page)
	if status != 200 || found == nil {
		b.w.t.Fatalf("status %d, to %q: %s", status, to, page)
	}
	return url.Values{"id": {found[1]}, "answer": {"allow"}, "scope": {"notes:read", "notes:write"}, "began": {"yes"}}
}

// allow answers the question and visits the provider; it returns the address that the
// provider sends to.
func (b *browser) allow(q url.Values) (back string) {
	b.w.t.Helper()
	status, page, to := b.open(self+"/consent", b.ask(q))
	if status != 303 {
		b.w.t.Fatalf("status %d: %s", status, page)
	}
	return b.w.idp.visit(b.w.t, to)
}

// login does all of that and returns what the client is sent.
func (b *browser) login(q url.Values) url.Values {
	b.w.t.Helper()
	status, page, to := b.open(b.allow(q), nil)
	u, err := url.Parse(to)
	if status != 303 || err != nil || !strings.HasPrefix(to, q.Get("redirect_uri")) {
		b.w.t.Fatalf("status %d, to %q: %s", status, to, page)
	}
	if got := u.Query(); got.Get("iss") != self || got.Get("state") != q.Get("state") {
		b.w.t.Fatalf("sent back with %v", got)
	}
	return u.Query()
}

// code is the request for tokens, with changes.
func codeForm(client, code string, changes ...string) url.Values {
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "client_id": {client}, "redirect_uri": {redirect}, "code_verifier": {verify}, "resource": {endpoint},
	}
	for i := 0; i < len(changes); i += 2 {
		form.Set(changes[i], changes[i+1])
	}
	return form
}

// tokens are what a client has.
type tokens struct{ client, access, refresh string }

// enter logs a user in with a new client, whose query has changes, and returns its tokens.
func (w *world) enter(changes ...string) tokens {
	w.t.Helper()
	client := w.register(redirect)
	status, m := w.post("/token", codeForm(client, w.browser().login(query(client, changes...)).Get("code")))
	if status != 200 {
		w.t.Fatal(status, m)
	}
	return tokens{client, m["access_token"].(string), m["refresh_token"].(string)}
}

// renew refreshes, and returns status, the error and the new tokens.
func (w *world) renew(tok tokens, changes ...string) (int, string, tokens) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tok.refresh}, "client_id": {tok.client}}
	for i := 0; i < len(changes); i += 2 {
		form.Set(changes[i], changes[i+1])
	}
	status, m := w.post("/token", form)
	code, _ := m["error"].(string)
	next := tok
	if status == 200 {
		next.access, next.refresh = m["access_token"].(string), m["refresh_token"].(string)
	}
	return status, code, next
}

// user returns the subject of a token at some replica, or the error.
func (w *world) user(tok tokens) string {
	b := w.brokers[len(w.brokers)-1]
	id, err := b.Verifier(endpoint).Verify(w.t.Context(), tok.access)
	if err != nil {
		return err.Error()
	}
	return id.Subject + " " + strings.Join(slices.Sorted(slices.Values(id.Scopes)), " ")
}

// everywhere runs a test with one process and with two replicas.
func everywhere(t *testing.T, fn func(t *testing.T, replicas int)) {
	for _, n := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d replicas", n), func(t *testing.T) { fn(t, n) })
	}
}
