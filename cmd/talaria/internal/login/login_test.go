package login

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/talaria-go/mcp/auth/oauth"
)

func TestNormal(t *testing.T) {
	for _, test := range []struct{ raw, want string }{
		{"http://127.0.0.1:8080/mcp", "http://127.0.0.1:8080/mcp"},
		{"HTTPS://Example.COM:443/MCP#part", "https://example.com/MCP"},
		{"sse+http://example.com:80/sse?a=b", "http://example.com/sse?a=b"},
		{"wss://example.com/ws", "https://example.com/ws"},
		{"tcp://example.com:1", ""},
		{"unix:/run/x", ""},
		{"npx server", ""},
		{"https://me:secret@example.com/mcp", ""},
	} {
		got, err := Normal(test.raw)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: got %q, %v, want %q", test.raw, got, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the password: %v", test.raw, err)
		}
	}
}

type answers func(*http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestGate(t *testing.T) {
	for _, test := range []struct {
		name      string
		status    int
		challenge string
		token     bool
		want      string // of the error; none lets the answer pass
		hint      string
	}{
		{"fine", 200, "", false, "", ""},
		{"bare 401", 401, "", false, "wants a token or a key, and names nowhere to log in", "--token-file FILE"},
		{"bare 401 with metadata", 401, "", false, "https://x.example/mcp wants a login", "run: talaria login https://x.example/mcp\n"},
		{"metadata named", 401, `Bearer resource_metadata="https://x.example/m"`, false, "https://x.example/mcp wants a login", "run: talaria login https://x.example/mcp\n"},
		{"token refused, with metadata", 401, `Bearer error="invalid_token"`, true, "refuses the token", "or leave it out after: talaria login"},
		{"token refused", 401, `Bearer error="invalid_token", error_description="it has expired"`, true, `refuses the token; it says "it has expired"`, "check the token"},
		{"more scopes", 403, `Bearer error="insufficient_scope", scope="a:read offline_access b"`, false, "wants a login for a:read b", "--scope 'a:read b'"},
		{"more scopes than the token's", 403, `Bearer scope=w, error=insufficient_scope`, true, "wants a token with more scopes: w", "--scope w"},
		{"a command in a scope", 403, "Bearer error=\"insufficient_scope\", scope=\"a $(reboot) `reboot` b\"", false, "wants a login for a b", "--scope 'a b'"},
		{"a description for a terminal", 401, "Bearer error_description=\"\x1b[2J\"", true, `it says "\x1b[2J"`, ""},
		{"forbidden", 403, "", false, "", ""},
		{"forbidden with a token", 403, `Bearer error="access_denied"`, true, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			gate := &Gate{URL: "https://x.example/mcp", Token: test.token, Next: answers(func(r *http.Request) (*http.Response, error) {
				if strings.HasSuffix(test.name, "with metadata") && r.URL.Path == "/.well-known/oauth-authorization-server" {
					return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{"token_endpoint":"https://x.example/token"}`))}, nil
				}
				return &http.Response{StatusCode: test.status, Header: http.Header{"Www-Authenticate": {test.challenge}}, Body: io.NopCloser(strings.NewReader("body"))}, nil
			})}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gate.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := gate.RoundTrip(req)
			if test.want == "" {
				if err != nil || resp.StatusCode != test.status {
					t.Errorf("got %v, %v", resp, err)
				}
				return
			}
			needed, ok := errors.AsType[*Needed](err)
			if !ok || !strings.Contains(needed.Error(), test.want) || !strings.Contains(needed.Hint(), test.hint) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Addresses go into commands that are to be copied into a shell.
func TestHintIsQuoted(t *testing.T) {
	needed := &Needed{URL: "https://x.example/'mcp'&1"}
	if want := `talaria login 'https://x.example/'\''mcp'\''&1'`; !strings.Contains(needed.Hint(), want) {
		t.Errorf("got %s, want %s", needed.Hint(), want)
	}
}

// Keys in addresses are in no message.
func TestShown(t *testing.T) {
	const secret = "hunter2"
	for address, want := range map[string]string{
		"https://x.example/mcp":                                  "https://x.example/mcp",
		"https://x.example/mcp?key=" + secret + "&" + secret:     "https://x.example/mcp?key=…&…",
		"https://u:" + secret + "@x.example/mcp?a=1;b=" + secret: "https://…@x.example/mcp?a=…&b=…",
	} {
		if got := Shown(address); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
		for _, needed := range []*Needed{{URL: address}, {URL: address, Token: true}, {URL: address, Scopes: []string{"a"}}, {URL: address, None: true}} {
			if text := needed.Error() + needed.Hint(); strings.Contains(text, secret) {
				t.Errorf("the secret is in %s", text)
			}
		}
	}
}

func TestBook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talaria", "oauth.json")
	store := &Store{Path: path, store: oauth.NewFileStore(path)}
	if all, err := store.All(t.Context()); len(all) != 0 || err != nil {
		t.Errorf("an empty store: got %v, %v", all, err)
	}
	for _, l := range []Login{{URL: "https://s.example"}, {URL: "https://a.example", ClientID: "x", ClientSecret: "y"}} {
		if err := store.Put(t.Context(), &l); err != nil {
			t.Fatal(err)
		}
	}
	all, err := store.All(t.Context())
	if err != nil || len(all) != 2 || all[0].URL != "https://a.example" || all[0].ClientSecret != "y" {
		t.Errorf("got %v, %v", all, err)
	}
	if l, err := store.Find(t.Context(), "https://s.example"); err != nil || l == nil {
		t.Errorf("got %v, %v", l, err)
	}
	if l, err := store.Find(t.Context(), "https://s.example/mcp"); err != nil || l != nil {
		t.Errorf("another URL: got %v, %v", l, err)
	}
	if err := store.Remove(t.Context(), "https://s.example"); err != nil {
		t.Fatal(err)
	}
	if l, err := store.Find(t.Context(), "https://s.example"); err != nil || l != nil {
		t.Errorf("removed: got %v, %v", l, err)
	}
	if err := os.WriteFile(path, []byte(`{"talaria logins": ["secret"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.All(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a broken store: got %v", err)
	}
}

// The JWT of a platform goes where it is meant for, or where the user says.
func TestAssertion(t *testing.T) {
	jwt := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	for _, test := range []struct {
		text, named string
		fine        bool
	}{
		{jwt(`{"aud":"https://as.example"}`), "", true},
		{jwt(`{"aud":"https://as.example/"}`), "", true},
		{jwt(`{"aud":["https://x.example","https://as.example"]}`), "", true},
		{jwt(`{"aud":"https://good.example"}`), "", false},
		{jwt(`{"aud":["https://as.example.evil"]}`), "", false},
		{jwt(`{"aud":7}`), "", false},
		{jwt(`{}`), "", false},
		{"opaque", "", false},
		{"opaque", "https://as.example", true},
		{jwt(`{"aud":"https://good.example"}`), "https://as.example", true},
	} {
		file := filepath.Join(t.TempDir(), "jwt")
		if err := os.WriteFile(file, []byte(test.text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		l := &Login{AssertionFile: file, Issuer: test.named}
		got, err := l.assertion(t.Context(), "https://as.example")
		if (err == nil) != test.fine || test.fine && got != test.text || err != nil && strings.Contains(err.Error(), test.text) {
			t.Errorf("%s, --issuer %q: got %q, %v", test.text, test.named, got, err)
		}
	}
}

// A refusal whose body does not end is one all the same.
func TestGateWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, end := io.Pipe()
		defer end.Close()
		g := &Gate{URL: "https://x.example/mcp", Token: true, Next: answers(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{"Www-Authenticate": {"Bearer"}}, Body: body}, nil
		})}
		_, err := g.RoundTrip(httptest.NewRequest(http.MethodPost, "https://x.example/mcp", nil))
		if _, ok := errors.AsType[*Needed](err); !ok {
			t.Errorf("got %v", err)
		}
	})
}

// The logins are where the system keeps configuration.
func TestOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("sets the variables of Linux")
	}
	t.Setenv("XDG_CONFIG_HOME", "/home/x/.config")
	if store, err := Open(); err != nil || store.Path != "/home/x/.config/talaria/oauth.json" {
		t.Errorf("got %+v, %v", store, err)
	}
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("HOME", "")
	if _, err := Open(); err == nil {
		t.Error("a path without a home")
	}
}
