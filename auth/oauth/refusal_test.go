package oauth

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/talaria-go/mcp/internal/outbound"
)

// TestRefusals has one line for each way in which a server can misbehave. The
// client must refuse it, say why, go no further than the step given, and send
// no token to the MCP server.
func TestRefusals(t *testing.T) {
	const (
		noMetadata  = "issuer GET /.well-known/oauth-authorization-server"
		noVisit     = "issuer GET /authorize"
		noToken     = "issuer POST /token authorization_code"
		noOtherStep = ""
	)
	set := func(name string, value any) func(map[string]any) {
		return func(doc map[string]any) { doc[name] = value }
	}
	answer := func(name, value string) func(url.Values) {
		return func(query url.Values) { query.Set(name, value) }
	}
	tests := []struct {
		name string
		bend func(w *world)
		step string // that must not be reached
		want string // in the error
	}{
		{"resource of another host", func(w *world) { w.resource = set("resource", "https://evil.example/mcp") }, noMetadata, "not the MCP server"},
		{"resource of another path", func(w *world) { w.resource = set("resource", w.server.URL+"/other") }, noMetadata, "not the MCP server"},
		{"resource of a longer path", func(w *world) { w.resource = set("resource", w.server.URL+"/mcp/more") }, noMetadata, "not the MCP server"},
		{"resource of half a segment", func(w *world) { w.resource = set("resource", w.server.URL+"/m") }, noMetadata, "not the MCP server"},
		{"resource of another scheme", func(w *world) { w.resource = set("resource", "https"+strings.TrimPrefix(w.server.URL, "http")+"/mcp") }, noMetadata, "not the MCP server"},
		{"resource with a query", func(w *world) { w.resource = set("resource", w.server.URL+"/mcp?tenant=2") }, noMetadata, "not the MCP server"},
		{"resource with a fragment", func(w *world) { w.resource = set("resource", w.server.URL+"/mcp#x") }, noMetadata, "without fragment"},
		{"resource with a user", func(w *world) { w.resource = set("resource", strings.Replace(w.server.URL, "//", "//u@", 1)+"/mcp") }, noMetadata, "not an absolute URL"},
		{"no resource", func(w *world) { w.resource = func(doc map[string]any) { delete(doc, "resource") } }, noMetadata, "not an absolute URL"},
		{"no authorization server", func(w *world) { w.resource = set("authorization_servers", []string{}) }, noMetadata, "is empty"},
		{"bad scopes_supported", func(w *world) { w.resource = set("scopes_supported", []string{"a\"b"}) }, noMetadata, "scopes_supported"},
		{"metadata of the wrong form", func(w *world) { w.resource = set("authorization_servers", "x") }, noMetadata, `its member authorization_servers is "\"x\""`},
		{"metadata with a number", func(w *world) { w.metadata = set("token_endpoint", 5) }, noVisit, "its member token_endpoint is 5"},
		{"metadata with a text for a list", func(w *world) { w.metadata = set("scopes_supported", "x") }, noVisit, "its member scopes_supported is"},
		{"no token type", func(w *world) { w.given = func(doc map[string]any) { delete(doc, "token_type") } }, noOtherStep, "has no token_type"},
		{"a token type that is null", func(w *world) { w.given = set("token_type", nil) }, noOtherStep, "has no token_type"},
		{"an empty token type", func(w *world) { w.given = set("token_type", "") }, noOtherStep, "has no token_type"},
		{"a number for the token type", func(w *world) { w.given = set("token_type", 5) }, noOtherStep, "token_type"},
		{"named metadata is missing", func(w *world) {
			w.handlers["server /.well-known/oauth-protected-resource/mcp"] = http.NotFound
		}, noMetadata, "names this place"},
		{"named metadata is broken", func(w *world) {
			w.handlers["server /.well-known/oauth-protected-resource/mcp"] = status(500)
		}, noMetadata, "500"},
		{"oversize resource metadata", func(w *world) { w.resource = set("padding", strings.Repeat("x", 2<<20)) }, noMetadata, "more than 1048576 bytes"},
		{"challenge with a bad scope", func(w *world) {
			w.challenge = func(h http.Header) { h.Set("WWW-Authenticate", `Bearer scope="a\\b"`) }
		}, noMetadata, "scope parameter"},
		{"challenge with an endless scope", func(w *world) {
			w.challenge = func(h http.Header) { h.Set("WWW-Authenticate", `Bearer scope="`+strings.Repeat("x ", 3000)+`"`) }
		}, noMetadata, "scope parameter"},

		{"issuer with a query", func(w *world) { w.resource = set("authorization_servers", []string{w.issuer.URL + "?x=1"}) }, noMetadata, "without query"},
		{"issuer of another scheme", func(w *world) { w.resource = set("authorization_servers", []string{"ftp://evil.example"}) }, noMetadata, "scheme"},
		{"issuer over http", func(w *world) { w.resource = set("authorization_servers", []string{"http://evil.example"}) }, noMetadata, "http"},
		{"issuer with a user", func(w *world) { w.resource = set("authorization_servers", []string{"https://u:p@evil.example"}) }, noMetadata, "user information"},
		{"wrong issuer", func(w *world) { w.metadata = set("issuer", "https://honest.example") }, noVisit, "must be identical"},
		{"issuer with a slash more", func(w *world) { w.metadata = set("issuer", w.issuer.URL+"/") }, noVisit, "must be identical"},
		{"no issuer", func(w *world) { w.metadata = func(doc map[string]any) { delete(doc, "issuer") } }, noVisit, "issuer is missing; it must be identical"},
		{"an issuer that is no text", func(w *world) { w.metadata = set("issuer", 5) }, noVisit, "no JSON of the right form: its member issuer is 5$"},
		{"no metadata at all", func(w *world) {
			w.handlers["issuer /.well-known/oauth-authorization-server"] = http.NotFound
		}, noVisit, "there is none"},
		{"metadata out of order", func(w *world) {
			w.handlers["issuer /.well-known/oauth-authorization-server"] = status(503)
		}, noVisit, "503"},
		{"metadata that redirects for ever", func(w *world) {
			w.handlers["issuer /.well-known/oauth-authorization-server"] = redirect("/.well-known/oauth-authorization-server")
		}, noVisit, "redirects"},
		{"metadata that redirects to a file", func(w *world) {
			w.handlers["issuer /.well-known/oauth-authorization-server"] = redirect("file:///etc/passwd")
		}, noVisit, "scheme"},
		{"metadata that redirects to the cloud", func(w *world) {
			w.handlers["issuer /.well-known/oauth-authorization-server"] = redirect("https://169.254.169.254/latest/meta-data")
		}, noVisit, "private or reserved"},
		{"oversize server metadata", func(w *world) { w.metadata = set("padding", strings.Repeat("x", 2<<20)) }, noVisit, "more than 1048576 bytes"},
		{"no token endpoint", func(w *world) { w.metadata = set("token_endpoint", "") }, noVisit, "token_endpoint is missing"},
		{"token endpoint over http", func(w *world) { w.metadata = set("token_endpoint", "http://evil.example/token") }, noVisit, "token_endpoint"},
		{"token endpoint with a fragment", func(w *world) { w.metadata = set("token_endpoint", w.issuer.URL+"/token#x") }, noVisit, "fragment"},
		{"authorization endpoint is a script", func(w *world) { w.metadata = set("authorization_endpoint", "javascript:alert(1)") }, noVisit, "authorization_endpoint"},
		{"authorization endpoint of a router at home", func(w *world) { w.metadata = set("authorization_endpoint", "https://192.168.1.1/reset") }, noVisit, "private or reserved"},
		{"addresses that act on terminals", func(w *world) {
			w.resource = set("authorization_servers", []string{"https://\x1b[31mevil.example"})
		}, noMetadata, `\x1b[31mevil`},
		{"authorization endpoint that browsers take for this machine", func(w *world) { w.metadata = set("authorization_endpoint", "https://2130706433/reset") }, noVisit, "in disguise"},
		{"issuer with a space", func(w *world) { w.resource = set("authorization_servers", []string{w.issuer.URL + "/a client"}) }, noMetadata, "space"},
		{"no authorization endpoint", func(w *world) { w.metadata = set("authorization_endpoint", "") }, noVisit, "no authorization_endpoint"},
		{"registration endpoint of a private host", func(w *world) { w.metadata = set("registration_endpoint", "https://10.0.0.1/register") }, noVisit, "private or reserved"},
		{"no PKCE", func(w *world) {
			w.metadata = func(doc map[string]any) { delete(doc, "code_challenge_methods_supported") }
		}, noVisit, "does not support PKCE"},
		{"PKCE without S256", func(w *world) { w.metadata = set("code_challenge_methods_supported", []string{"plain"}) }, noVisit, "S256"},
		{"no code grant", func(w *world) { w.metadata = set("grant_types_supported", []string{"client_credentials"}) }, noVisit, "authorization_code"},
		{"no code response", func(w *world) { w.metadata = set("response_types_supported", []string{"token"}) }, noVisit, "response type code"},
		{"no registration", func(w *world) { w.metadata = set("registration_endpoint", "") }, noVisit, "does not register clients"},
		{"registration refused", func(w *world) {
			w.handlers["issuer /register"] = func(rw http.ResponseWriter, _ *http.Request) {
				writeJSON(rw, 400, map[string]any{"error": "invalid_redirect_uri", "error_description": "no \x1b[31mloopback"})
			}
		}, noVisit, `invalid_redirect_uri: the server says "no \x1b[31mloopback"`},
		{"registration refused by its status", func(w *world) {
			w.handlers["issuer /register"] = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(403) }
		}, noVisit, "refuses to register the client; register one"},
		{"registration unavailable", func(w *world) {
			w.handlers["issuer /register"] = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(503) }
		}, noVisit, "cannot register the client now; try again later"},
		{"registration too often", func(w *world) {
			w.handlers["issuer /register"] = func(rw http.ResponseWriter, _ *http.Request) {
				writeJSON(rw, 400, map[string]any{"error": "temporarily_unavailable"})
			}
		}, noVisit, "cannot register the client now; try again later"},
		{"registration without an id", func(w *world) {
			w.handlers["issuer /register"] = func(rw http.ResponseWriter, _ *http.Request) { writeJSON(rw, 201, map[string]any{}) }
		}, noVisit, "no client_id"},
		{"registration of a secret without one", func(w *world) {
			w.handlers["issuer /register"] = func(rw http.ResponseWriter, _ *http.Request) {
				writeJSON(rw, 201, map[string]any{"client_id": "x", "token_endpoint_auth_method": "client_secret_basic"})
			}
		}, noVisit, "needs a ClientSecret"},
		{"registration redirects", func(w *world) { w.handlers["issuer /register"] = redirect("/elsewhere") }, noVisit, "redirected"},

		{"state of another request", func(w *world) { w.answer = answer("state", "other") }, noToken, "another state"},
		{"no state", func(w *world) { w.answer = func(q url.Values) { q.Del("state") } }, noToken, "another state"},
		{"mixed-up iss", func(w *world) { w.answer = answer("iss", "https://evil.example") }, noToken, "another issuer"},
		{"iss with a slash more", func(w *world) { w.answer = answer("iss", w.issuer.URL+"/") }, noToken, "another issuer"},
		{"iss in capitals", func(w *world) { w.answer = answer("iss", strings.ToUpper(w.issuer.URL)) }, noToken, "another issuer"},
		{"promised iss is missing", func(w *world) { w.answer = func(q url.Values) { q.Del("iss") } }, noToken, "no iss parameter"},
		{"empty iss", func(w *world) { w.answer = answer("iss", "") }, noToken, "another issuer"},
		{"mixed-up iss without a promise", func(w *world) {
			w.metadata = set("authorization_response_iss_parameter_supported", false)
			w.answer = answer("iss", "https://evil.example")
		}, noToken, "another issuer"},
		{"an error of another issuer is not shown", func(w *world) {
			w.answer = func(q url.Values) {
				q.Del("code")
				q.Set("iss", "https://evil.example")
				q.Set("error", "access_denied")
			}
		}, noToken, "another issuer"},
		{"two codes", func(w *world) { w.answer = func(q url.Values) { q.Add("code", "second") } }, noToken, "twice"},
		{"no code", func(w *world) { w.answer = func(q url.Values) { q.Del("code") } }, noToken, "no code"},
		{"access denied", func(w *world) {
			w.answer = func(q url.Values) {
				q.Del("code")
				q.Set("error", "access_denied")
				q.Set("error_description", "not today")
			}
		}, noToken, `access_denied: the authorization server refuses and says "not today"`},

		{"token refused", func(w *world) { w.refuse = func(url.Values) string { return "invalid_grant" } }, noOtherStep, `invalid_grant: the server says "as the test\nwants"`},
		{"token endpoint that repeats the code", func(w *world) {
			w.handlers["issuer /token"] = func(rw http.ResponseWriter, r *http.Request) {
				writeJSON(rw, 400, map[string]any{
					"error":             "unknown_" + r.PostForm.Get("code"),
					"error_description": "no such code: " + r.PostForm.Get("code") + " with " + r.PostForm.Get("code_verifier"),
				})
			}
		}, noOtherStep, `"unknown_***": the server says "no such code: *** with ***"`},
		{"token of two lines", func(w *world) { w.given = set("access_token", "token-1\r\nX-Evil: 1") }, noOtherStep, "no header may have"},
		{"token of two words", func(w *world) { w.given = set("access_token", "token-1 token-2") }, noOtherStep, "no header may have"},
		{"token endpoint redirects", func(w *world) { w.handlers["issuer /token"] = redirect("https://evil.example/token") }, noOtherStep, "redirected"},
		{"token endpoint breaks", func(w *world) { w.handlers["issuer /token"] = status(500) }, noOtherStep, "500"},
		{"oversize token", func(w *world) { w.given = set("padding", strings.Repeat("x", 2<<20)) }, noOtherStep, "more than 1048576 bytes"},
		{"no access token", func(w *world) { w.given = set("access_token", "") }, noOtherStep, "no access_token"},
		{"token of another type", func(w *world) { w.given = set("token_type", "mac") }, noOtherStep, "the token_type is mac, not Bearer"},
		{"token of type DPoP that nobody asked for", func(w *world) { w.given = set("token_type", "DPoP") }, noOtherStep, "not Bearer"},
		{"token with a bad scope", func(w *world) { w.given = set("scope", "a\"") }, noOtherStep, "scope parameter"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.bend(w)
			_, _, err := call(w.client(nil))
			if err == nil || !strings.Contains(err.Error()+"$", test.want) {
				t.Fatalf("got error %v, want %q in it", err, test.want)
			}
			if test.step != "" && w.count(test.step) > 0 {
				t.Errorf("the client went on to %q: %q", test.step, w.log)
			}
			if len(w.received) > 0 {
				t.Errorf("the MCP server got %q", w.received)
			}
			if strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("the error has control characters: %q", err)
			}
			for _, secret := range []string{"code-", "token-", "refresh-"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error gives a secret away: %v", err)
				}
			}
		})
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) }
}

// TestPagesAreNoMetadata: sites that answer everything with a page for people
// are as good as those that have nothing there.
func TestPagesAreNoMetadata(t *testing.T) {
	w := newWorld(t)
	page := func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("<!doctype html>")) }
	w.challenge = func(h http.Header) { h.Set("WWW-Authenticate", "Bearer") }
	w.handlers["server /.well-known/oauth-protected-resource/mcp"] = page
	w.handlers["server /.well-known/oauth-protected-resource"] = func(rw http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(rw).Encode(map[string]any{"resource": w.server.URL, "authorization_servers": []string{w.issuer.URL}})
	}
	mustCall(t, w.client(nil))
}

// An answer of 401 without an OAuth error may be that of a server that has forgotten the
// client: the error says what helps.
func TestUnauthorizedWithoutError(t *testing.T) {
	for status, helps := range map[int]bool{401: true, 403: false, 400: false} {
		for _, body := range []string{"", "no", `{"message":"Unauthorized"}`} {
			err := refusedToken(&outbound.Response{Status: status, Body: []byte(body)}, nil)
			if strings.Contains(err.Problem, "ForgetRegistration") != helps || !strings.Contains(err.Problem, strconv.Itoa(status)) {
				t.Errorf("%d %q: %s", status, body, err.Problem)
			}
		}
	}
}
