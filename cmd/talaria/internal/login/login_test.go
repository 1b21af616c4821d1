package login

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		{"bare 401", 401, "", false, "https://x.example/mcp wants a login", "run: talaria login https://x.example/mcp\n"},
		{"token refused", 401, `Bearer error="invalid_token", error_description="it has expired"`, true, `refuses the token; it says "it has expired"`, "check the token"},
		{"more scopes", 403, `Bearer error="insufficient_scope", scope="a:read offline_access b"`, false, "wants a login for a:read b", "--scope 'a:read b'"},
		{"more scopes than the token's", 403, `Bearer scope=w, error=insufficient_scope`, true, "wants a token with more scopes: w", "--scope w"},
		{"a command in a scope", 403, "Bearer error=\"insufficient_scope\", scope=\"a $(reboot) `reboot` b\"", false, "wants a login for a b", "--scope 'a b'"},
		{"a description for a terminal", 401, "Bearer error_description=\"\x1b[2J\"", true, `it says "\x1b[2J"`, ""},
		{"forbidden", 403, "", false, "", ""},
		{"forbidden with a token", 403, `Bearer error="access_denied"`, true, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			gate := &Gate{URL: "https://x.example/mcp", Token: test.token, Next: answers(func(*http.Request) (*http.Response, error) {
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
	needed := &Needed{URL: "https://x.example/mcp?a=1&b='2'"}
	if want := `talaria login 'https://x.example/mcp?a=1&b='\''2'\'''`; !strings.Contains(needed.Hint(), want) {
		t.Errorf("got %s, want %s", needed.Hint(), want)
	}
}

func TestBook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talaria", "oauth.json")
	book := &Book{Path: path, store: oauth.FileStore(path)}
	if all, err := book.All(t.Context()); len(all) != 0 || err != nil {
		t.Errorf("an empty book: got %v, %v", all, err)
	}
	for _, l := range []Login{{URL: "https://b.example"}, {URL: "https://a.example", ClientID: "x", ClientSecret: "y"}} {
		if err := book.Put(t.Context(), &l); err != nil {
			t.Fatal(err)
		}
	}
	all, err := book.All(t.Context())
	if err != nil || len(all) != 2 || all[0].URL != "https://a.example" || all[0].ClientSecret != "y" {
		t.Errorf("got %v, %v", all, err)
	}
	if l, err := book.Find(t.Context(), "https://b.example"); err != nil || l == nil {
		t.Errorf("got %v, %v", l, err)
	}
	if l, err := book.Find(t.Context(), "https://b.example/mcp"); err != nil || l != nil {
		t.Errorf("another URL: got %v, %v", l, err)
	}
	if err := book.Remove(t.Context(), "https://b.example"); err != nil {
		t.Fatal(err)
	}
	if l, err := book.Find(t.Context(), "https://b.example"); err != nil || l != nil {
		t.Errorf("removed: got %v, %v", l, err)
	}
	if err := os.WriteFile(path, []byte(`{"talaria logins": ["secret"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := book.All(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a broken book: got %v", err)
	}
}
