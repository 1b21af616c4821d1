package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// visitor is a client of the protected workbench, and its user's browser.
type visitor struct {
	t        *testing.T
	http     *http.Client
	resource string
	issuer   string
	client   string // its id
	token    string
	refresh  string
}

const redirect = "http://127.0.0.1:3999/callback"

// newVisitor serves a protected workbench and registers a client.
func newVisitor(t *testing.T) *visitor {
	t.Helper()
	bench := newBench(t, t.TempDir())
	bench.notes.scoped = true
	web := httptest.NewUnstartedServer(nil)
	base := "http://" + web.Listener.Addr().String()
	v := &visitor{t: t, resource: base + "/mcp"}
	h, _, err := router(newServer(bench), base, true)
	if err != nil {
		t.Fatal(err)
	}
	web.Config.Handler = h
	web.Start()
	t.Cleanup(web.Close)
	v.http = web.Client()
	v.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	v.discover()
	var registered struct {
		ID string `json:"client_id"`
	}
	v.json(v.post(v.issuer+"/register", "application/json", `{"client_name":"Test","redirect_uris":["`+redirect+`"],"grant_types":["authorization_code","refresh_token"],"token_endpoint_auth_method":"none"}`), 201, &registered)
	v.client = registered.ID
	return v
}

func (v *visitor) post(url, contentType, body string) *http.Response {
	v.t.Helper()
	res, err := v.http.Post(url, contentType, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	return res
}

// json reads an answer with that status.
func (v *visitor) json(res *http.Response, status int, into any) {
	v.t.Helper()
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		v.t.Fatalf("status %d, want %d: %v, %s", res.StatusCode, status, err, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		v.t.Fatalf("%v: %s", err, text)
	}
}

// discover finds the authorization server, beginning with a bare request.
func (v *visitor) discover() {
	v.t.Helper()
	res := v.post(v.resource, "application/json", "{}")
	res.Body.Close()
	_, where, ok := strings.Cut(res.Header.Get("WWW-Authenticate"), `resource_metadata="`)
	if where, _, _ = strings.Cut(where, `"`); res.StatusCode != 401 || !ok {
		v.t.Fatalf("status %d, %v", res.StatusCode, res.Header)
	}
	var metadata struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	v.json(v.get(where), 200, &metadata)
	if metadata.Resource != v.resource || len(metadata.Servers) != 1 {
		v.t.Fatalf("metadata %+v", metadata)
	}
	u, err := url.Parse(metadata.Servers[0])
	if err != nil {
		v.t.Fatal(err)
	}
	var server struct {
		Issuer string   `json:"issuer"`
		PKCE   []string `json:"code_challenge_methods_supported"`
	}
	v.json(v.get(u.Scheme+"://"+u.Host+"/.well-known/oauth-authorization-server"+u.Path), 200, &server)
	if v.issuer = server.Issuer; v.issuer != metadata.Servers[0] || len(server.PKCE) != 1 || server.PKCE[0] != "S256" {
		v.t.Fatalf("metadata %+v", server)
	}
}

func (v *visitor) get(where string) *http.Response {
	v.t.Helper()
	res, err := v.http.Get(where)
	if err != nil {
		v.t.Fatal(err)
	}
	return res
}

const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

// request is an authorization request for that scope, with changes to it.
func (v *visitor) request(scope string, changes ...string) url.Values {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"response_type": {"code"}, "client_id": {v.client}, "redirect_uri": {redirect}, "state": {"s1"}, "resource": {v.resource},
		"scope": {scope}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	for i := 0; i < len(changes); i += 2 {
		q.Set(changes[i], changes[i+1])
	}
	return q
}

var hiddenID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// agree has the user agree to what is asked and returns the parameters that
// the client gets.
func (v *visitor) agree(scope string, changes ...string) url.Values {
	v.t.Helper()
	res := v.get(v.issuer + "/authorize?" + v.request(scope, changes...).Encode())
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	if res.StatusCode == http.StatusOK {
		id := hiddenID.FindSubmatch(page)
		if id == nil || !bytes.Contains(page, []byte("For development only")) {
			v.t.Fatalf("the page has no form or no warning: %s", page)
		}
		form := url.Values{"id": {string(id[1])}, "user": {"alice"}, "answer": {"allow"}, "scope": strings.Fields(scope)}
		res = v.post(v.issuer+"/consent", "application/x-www-form-urlencoded", form.Encode())
		res.Body.Close()
	}
	to, err := res.Location()
	if err != nil || !strings.HasPrefix(to.String(), redirect+"?") {
		v.t.Fatalf("status %d, %v, to %v: %s", res.StatusCode, err, to, page)
	}
	if q := to.Query(); q.Get("iss") != v.issuer || q.Get("state") != "s1" {
		v.t.Fatalf("sent back with %v", q)
	}
	return to.Query()
}

// tokens asks for tokens and keeps them.
func (v *visitor) tokens(status int, form url.Values) (fault string) {
	v.t.Helper()
	var answer struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Error   string `json:"error"`
	}
	v.json(v.post(v.issuer+"/token", "application/x-www-form-urlencoded", form.Encode()), status, &answer)
	if status == 200 {
		v.token, v.refresh = answer.Access, answer.Refresh
	}
	return answer.Error
}

// code is the form that redeems a code.
func (v *visitor) code(code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "code": {code}, "client_id": {v.client},
		"redirect_uri": {redirect}, "code_verifier": {verifier}, "resource": {v.resource}}
}

func (v *visitor) renewal(refresh string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}, "client_id": {v.client}, "resource": {v.resource}}
}

// login gets tokens with that scope.
func (v *visitor) login(scope string) {
	v.t.Helper()
	v.tokens(200, v.code(v.agree(scope).Get("code")))
}

// call calls a tool and returns the status, the challenge and the answer.
func (v *visitor) call(tool, arguments string) (status int, challenge, body string) {
	v.t.Helper()
	text := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, v.resource, strings.NewReader(text))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if v.token != "" {
		req.Header.Set("Authorization", "Bearer "+v.token)
	}
	req.Header.Set("MCP-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", "tools/call")
	req.Header.Set("Mcp-Name", tool)
	res, err := v.http.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("WWW-Authenticate"), string(answer)
}

// The whole way: discovery, registration, consent, a call, more scope, a new
// token, revocation.
func TestAuthorizationFlow(t *testing.T) {
	v := newVisitor(t)
	v.login(scopeRead)
	if status, _, body := v.call("search_notes", `{}`); status != 200 || !strings.Contains(body, `"total":0`) {
		t.Fatalf("status %d, %s", status, body)
	}
	status, challenge, _ := v.call("add_note", `{"text":"milk"}`)
	if status != 403 || !strings.Contains(challenge, `error="insufficient_scope"`) || !strings.Contains(challenge, `scope="notes:read notes:write"`) {
		t.Fatalf("status %d, %q", status, challenge)
	}
	v.login(scopeRead + " " + scopeWrite)
	if status, _, body := v.call("add_note", `{"text":"milk"}`); status != 200 || strings.Contains(body, "isError") {
		t.Fatalf("status %d, %s", status, body)
	}
	first, old := v.refresh, v.token
	v.tokens(200, v.renewal(first))
	if v.token == old || v.refresh == first {
		t.Error("the tokens are the old ones")
	}
	if status, _, body := v.call("search_notes", `{}`); status != 200 || !strings.Contains(body, "milk") {
		t.Errorf("status %d, %s", status, body)
	}
	v.post(v.issuer+"/revoke", "application/x-www-form-urlencoded", url.Values{"token": {v.refresh}}.Encode()).Body.Close()
	if fault := v.tokens(400, v.renewal(v.refresh)); fault != "invalid_grant" {
		t.Errorf("a revoked refresh token: %s", fault)
	}
}

// A revoked access token is of no use.
func TestRevokedAccessToken(t *testing.T) {
	v := newVisitor(t)
	v.login(scopeRead)
	v.post(v.issuer+"/revoke", "application/x-www-form-urlencoded", url.Values{"token": {v.token}}.Encode()).Body.Close()
	if status, challenge, _ := v.call("search_notes", `{}`); status != 401 || !strings.Contains(challenge, "revoked") {
		t.Errorf("status %d, %q", status, challenge)
	}
}

// A code is good once, and a refresh token until the one after the next is given,
// since clients refresh in parallel. One that comes later ends its login.
func TestTokensAreGoodOnce(t *testing.T) {
	v := newVisitor(t)
	code := v.agree(scopeRead).Get("code")
	v.tokens(200, v.code(code))
	refresh := v.refresh
	if fault := v.tokens(400, v.code(code)); fault != "invalid_grant" {
		t.Errorf("a code again: %s", fault)
	}
	if fault := v.tokens(400, v.renewal(refresh)); fault != "invalid_grant" {
		t.Errorf("the refresh token of a code that came again: %s", fault)
	}
	v.login(scopeRead)
	refresh = v.refresh
	v.tokens(200, v.renewal(refresh))
	newer := v.refresh
	if v.tokens(200, v.renewal(refresh)); v.refresh == refresh {
		t.Error("a refresh token again gives none of the number after it")
	}
	v.tokens(200, v.renewal(newer))
	newer = v.refresh
	for _, r := range []string{refresh, newer} {
		if fault := v.tokens(400, v.renewal(r)); fault != "invalid_grant" {
			t.Errorf("a refresh token again: %s", fault)
		}
	}
}

// What is wrong with a request is said to the client, or to the user if the
// client is not to be trusted.
func TestAuthorizationRefusals(t *testing.T) {
	v := newVisitor(t)
	for want, changes := range map[string][]string{
		"unsupported_response_type": {"response_type", "token"},
		"invalid_request":           {"code_challenge_method", "plain"},
		"invalid_target":            {"resource", "https://other.example.com"},
		"invalid_scope":             {"scope", "notes:burn"},
	} {
		if got := v.agree(scopeRead, changes...).Get("error"); got != want {
			t.Errorf("%v: %s, want %s", changes, got, want)
		}
	}
	for _, changes := range [][]string{{"client_id", "nobody"}, {"redirect_uri", "https://evil.example.com/"}, {"redirect_uri", redirect + "/x"}, {"client_id", "https://127.0.0.1:1/client.json"}} {
		res := v.get(v.issuer + "/authorize?" + v.request(scopeRead, changes...).Encode())
		res.Body.Close()
		if res.StatusCode != 400 || res.Header.Get("Location") != "" {
			t.Errorf("%v: status %d, to %q", changes, res.StatusCode, res.Header.Get("Location"))
		}
	}
	for name, change := range map[string][2]string{
		"verifier": {"code_verifier", "another"}, "redirect": {"redirect_uri", "another"}, "resource": {"resource", "another"},
	} {
		form := v.code(v.agree(scopeRead).Get("code"))
		form.Set(change[0], change[1])
		if fault := v.tokens(400, form); fault != "invalid_grant" && fault != "invalid_target" {
			t.Errorf("%s: %s", name, fault)
		}
	}
	unknown := v.code(v.agree(scopeRead).Get("code"))
	unknown.Set("client_id", "another")
	if fault := v.tokens(401, unknown); fault != "invalid_client" {
		t.Errorf("unknown client: %s", fault)
	}
	for body, want := range map[string]string{
		`{"redirect_uris":["http://evil.example.com/"]}`: "invalid_redirect_uri", `{"redirect_uris":[]}`: "invalid_redirect_uri", `[]`: "invalid_client_metadata",
		`{"redirect_uris":["` + redirect + `"],"token_endpoint_auth_method":"client_secret_basic"}`: "invalid_client_metadata",
	} {
		var answer struct {
			Error string `json:"error"`
		}
		if v.json(v.post(v.issuer+"/register", "application/json", body), 400, &answer); answer.Error != want {
			t.Errorf("%s: %s, want %s", body, answer.Error, want)
		}
	}
}

// Nobody but this machine is served, under its own name alone.
func TestAuthorizationIsForThisMachine(t *testing.T) {
	bench := newBench(t, t.TempDir())
	h, _, err := router(newServer(bench), "http://127.0.0.1:8080", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		host, remote string
		want         int
	}{{"127.0.0.1:8080", "127.0.0.1:5000", 200}, {"[::1]:8080", "[::1]:5000", 200}, {"evil.example.com", "127.0.0.1:5000", 403}, {"127.0.0.1:8080", "192.0.2.7:5000", 403}} {
		r := httptest.NewRequest(http.MethodGet, "/auth/keys", nil)
		r.Host, r.RemoteAddr = tt.host, tt.remote
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s from %s: status %d", tt.host, tt.remote, w.Code)
		}
	}
	if _, _, err := protect("https://notes.example.com"); err == nil {
		t.Error("it guards a server on the network")
	}
}
