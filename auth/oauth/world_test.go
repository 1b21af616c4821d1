package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// world is an MCP server and its authorization server. Both do as they should;
// a test changes what it wants to be wrong.
type world struct {
	t      testing.TB
	server *httptest.Server // the MCP server, at /mcp
	issuer *httptest.Server

	// What a test may change, before the first request.
	resource  func(doc map[string]any)            // the metadata of the resource
	metadata  func(doc map[string]any)            // that of the authorization server
	answer    func(query url.Values)              // the redirect to the client
	given     func(doc map[string]any)            // the answer of the token endpoint
	challenge func(header http.Header)            // the challenge
	handlers  map[string]http.HandlerFunc         // by "server /path" or "issuer /path"
	refuse    func(form url.Values) (code string) // an error of the token endpoint
	needs     []string                            // scopes that /mcp needs
	codeScope func(asked []string) (given []string)

	mu       sync.Mutex
	log      []string // what was asked of either server, in short
	tokens   map[string][]string
	refresh  map[string][]string // refresh tokens that are valid
	codes    map[string]url.Values
	serial   int
	stolen   bool     // a refresh token was used twice
	received []string // Authorization headers at the MCP server
}

func newWorld(t testing.TB) *world {
	w := &world{
		t: t, handlers: map[string]http.HandlerFunc{},
		tokens: map[string][]string{}, refresh: map[string][]string{}, codes: map[string]url.Values{},
	}
	w.server = httptest.NewServer(w.serve("server", map[string]http.HandlerFunc{
		"/mcp": w.mcp,
		"/.well-known/oauth-protected-resource/mcp": func(rw http.ResponseWriter, _ *http.Request) {
			writeJSON(rw, 200, change(w.resource, map[string]any{
				"resource": w.server.URL + "/mcp", "authorization_servers": []string{w.issuer.URL},
			}))
		},
	}))
	w.issuer = httptest.NewServer(w.serve("issuer", map[string]http.HandlerFunc{
		"/.well-known/oauth-authorization-server": func(rw http.ResponseWriter, _ *http.Request) {
			writeJSON(rw, 200, change(w.metadata, map[string]any{
				"issuer":                 w.issuer.URL,
				"authorization_endpoint": w.issuer.URL + "/authorize", "token_endpoint": w.issuer.URL + "/token",
				"registration_endpoint": w.issuer.URL + "/register", "revocation_endpoint": w.issuer.URL + "/revoke",
				"code_challenge_methods_supported":               []string{"S256"},
				"authorization_response_iss_parameter_supported": true,
				"token_endpoint_auth_methods_supported":          []string{"none", "client_secret_basic", "client_secret_post", "private_key_jwt"},
				"dpop_signing_alg_values_supported":              []string{"ES256"},
			}))
		},
		"/authorize": w.authorize, "/token": w.token, "/register": w.register, "/revoke": w.revoke,
	}))
	t.Cleanup(w.server.Close)
	t.Cleanup(w.issuer.Close)
	return w
}

func change(by func(map[string]any), doc map[string]any) map[string]any {
	if by != nil {
		by(doc)
	}
	return doc
}

func writeJSON(w http.ResponseWriter, status int, doc any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(doc)
}

func (w *world) serve(who string, handlers map[string]http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		note := who + " " + r.Method + " " + r.URL.Path
		if grant := r.PostForm.Get("grant_type"); grant != "" {
			note += " " + grant
		}
		w.mu.Lock()
		w.log = append(w.log, note)
		if who == "server" && r.Header.Get("Authorization") != "" {
			w.received = append(w.received, r.Header.Get("Authorization"))
		}
		w.mu.Unlock()
		if handler := w.handlers[who+" "+r.URL.Path]; handler != nil {
			handler(rw, r)
		} else if handler := handlers[r.URL.Path]; handler != nil {
			handler(rw, r)
		} else {
			http.NotFound(rw, r)
		}
	}
}

// mcp answers requests whose token has the scopes that the request needs: those
// of the header Needs, or of all requests.
func (w *world) mcp(rw http.ResponseWriter, r *http.Request) {
	needs := w.needs
	if header := r.Header.Get("Needs"); header != "" {
		needs = strings.Fields(header)
	}
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	w.mu.Lock()
	has, valid := w.tokens[token]
	w.mu.Unlock()
	metadata := fmt.Sprintf(`resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, w.server.URL)
	switch missing := slices.DeleteFunc(slices.Clone(needs), func(s string) bool { return slices.Contains(has, s) }); {
	case !valid:
		text := "Bearer " + metadata
		if len(needs) > 0 {
			text += fmt.Sprintf(`, scope="%s"`, strings.Join(needs, " "))
		}
		w.refused(rw, 401, text)
	case len(missing) > 0:
		w.refused(rw, 403, fmt.Sprintf(`Bearer error="insufficient_scope", scope="%s", %s`, strings.Join(missing, " "), metadata))
	default:
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "hello %s", body)
	}
}

func (w *world) refused(rw http.ResponseWriter, status int, text string) {
	rw.Header().Set("WWW-Authenticate", text)
	if w.challenge != nil {
		w.challenge(rw.Header())
	}
	rw.WriteHeader(status)
}

func (w *world) authorize(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.serial++
	code := fmt.Sprintf("code-%d", w.serial)
	w.codes[code] = r.URL.Query()
	w.mu.Unlock()
	query := url.Values{"code": {code}, "state": {r.FormValue("state")}, "iss": {w.issuer.URL}}
	if w.answer != nil {
		w.answer(query)
	}
	http.Redirect(rw, r, r.FormValue("redirect_uri")+"?"+query.Encode(), http.StatusFound)
}

func (w *world) register(rw http.ResponseWriter, r *http.Request) {
	var meta map[string]any
	if err := json.NewDecoder(r.Body).Decode(&meta); err != nil {
		writeJSON(rw, 400, map[string]any{"error": "invalid_client_metadata"})
		return
	}
	w.mu.Lock()
	w.serial++
	meta["client_id"] = fmt.Sprintf("client-%d", w.serial)
	w.mu.Unlock()
	writeJSON(rw, 201, meta)
}

func (w *world) token(rw http.ResponseWriter, r *http.Request) {
	if w.refuse != nil {
		if code := w.refuse(r.PostForm); code != "" {
			writeJSON(rw, 400, map[string]any{"error": code, "error_description": "as the test\nwants"})
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var granted []string
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		asked := w.codes[r.PostForm.Get("code")]
		delete(w.codes, r.PostForm.Get("code"))
		hash := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		if asked == nil || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(hash[:]) ||
			asked.Get("code_challenge_method") != "S256" || asked.Get("redirect_uri") != r.PostForm.Get("redirect_uri") {
			writeJSON(rw, 400, map[string]any{"error": "invalid_grant"})
			return
		}
		granted = strings.Fields(asked.Get("scope"))
		if w.codeScope != nil {
			granted = w.codeScope(granted)
		}
	case "refresh_token":
		old := r.PostForm.Get("refresh_token")
		has, valid := w.refresh[old]
		if !valid {
			w.stolen = w.stolen || strings.HasPrefix(old, "refresh-")
			writeJSON(rw, 400, map[string]any{"error": "invalid_grant"})
			return
		}
		delete(w.refresh, old)
		granted = has
	default:
		granted = strings.Fields(r.PostForm.Get("scope"))
	}
	w.serial++
	token, refresh := fmt.Sprintf("token-%d", w.serial), fmt.Sprintf("refresh-%d", w.serial)
	w.tokens[token], w.refresh[refresh] = granted, granted
	if r.PostForm.Get("resource") != w.server.URL+"/mcp" && r.PostForm.Get("resource") != w.server.URL {
		w.t.Errorf("token request without the resource: %v", r.PostForm)
	}
	kind := "Bearer"
	if r.Header.Get("DPoP") != "" {
		kind = "DPoP"
	}
	writeJSON(rw, 200, change(w.given, map[string]any{
		"access_token": token, "token_type": kind, "refresh_token": refresh, "expires_in": 3600, "scope": strings.Join(granted, " "),
	}))
}

func (w *world) revoke(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tokens, r.PostForm.Get("token"))
	delete(w.refresh, r.PostForm.Get("token"))
}

// expire makes the server forget every access token.
func (w *world) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.tokens)
}

// count says how often something was asked.
func (w *world) count(note string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, each := range w.log {
		if each == note {
			n++
		}
	}
	return n
}

// direct makes the requests of tests. They cannot share http.DefaultTransport: each
// httptest.Server that another test closes takes connections from it which are new.
var direct = http.DefaultTransport.(*http.Transport).Clone()

// client returns a client whose user consents at once.
func (w *world) client(options *Options) *Client {
	w.t.Helper()
	if options == nil {
		options = &Options{}
	}
	if options.Grant == nil {
		options.Grant = &AuthorizationCode{Agent: &consent{}}
	}
	if options.Transport == nil {
		options.Transport = direct
	}
	c, err := New(w.server.URL+"/mcp", options)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// call posts to the MCP server and returns the status and the body.
func call(c *Client, needs ...string) (int, string, error) {
	req, err := http.NewRequest(http.MethodPost, c.server.String(), strings.NewReader("world"))
	if err != nil {
		return 0, "", err
	}
	if len(needs) > 0 {
		req.Header.Set("Needs", strings.Join(needs, " "))
	}
	resp, err := c.HTTPClient().Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

func mustCall(t testing.TB, c *Client, needs ...string) {
	t.Helper()
	status, body, err := call(c, needs...)
	if err != nil || status != 200 || body != "hello world" {
		t.Fatalf("got %d %q, %v", status, body, err)
	}
}

// consent is a user agent that goes where it is sent, up to the redirect URI.
type consent struct {
	mu     sync.Mutex
	visits []url.Values // the queries of authorization requests
}

const consentURI = "http://127.0.0.1:1/callback"

func (u *consent) Open(context.Context, []string) (Visit, error) { return u, nil }
func (u *consent) RedirectURI() string                           { return consentURI }
func (u *consent) Close() error                                  { return nil }

func (u *consent) Authorize(ctx context.Context, address string) (string, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	u.mu.Lock()
	u.visits = append(u.visits, parsed.Query())
	u.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	resp, err := direct.RoundTrip(req)
	if err != nil {
		return "", err
	}
	resp.Body.Close()
	if resp.Header.Get("Location") == "" {
		return "", errors.New("no redirect")
	}
	return resp.Header.Get("Location"), nil
}

func (u *consent) scopes(visit int) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.visits[visit].Get("scope")
}
