package streamable

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Which pages may reach the server: by the address it was reached at, Host and
// Origin.
func TestGuard(t *testing.T) {
	const loopback, loopback6, public = "127.0.0.1:8080", "[::1]:8080", "192.0.2.1:80"
	tests := []struct {
		name           string
		local          string // "" for a connection that is not TCP
		host, origin   string
		hosts, origins []string
		ok             bool
	}{
		{name: "loopback, no page", local: loopback, host: "127.0.0.1:8080", ok: true},
		{name: "loopback, name", local: loopback, host: "localhost:8080", ok: true},
		{name: "loopback, name in capitals", local: loopback, host: "LocalHost:8080", ok: true},
		{name: "loopback, other loopback address", local: loopback, host: "127.9.9.9", ok: true},
		{name: "loopback 6", local: loopback6, host: "[::1]:8080", ok: true},
		{name: "loopback 6, no port", local: loopback6, host: "[::1]", ok: true},
		{name: "loopback, mapped", local: "[::ffff:127.0.0.1]:8080", host: "evil.example.com", ok: false},
		{name: "loopback, rebound", local: loopback, host: "evil.example.com", origin: "http://evil.example.com", ok: false},
		{name: "loopback, rebound without origin", local: loopback, host: "evil.example.com:8080", ok: false},
		{name: "loopback, name that begins so", local: loopback, host: "localhost.evil.example.com", ok: false},
		{name: "loopback, address as part", local: loopback, host: "127.0.0.1.evil.example.com", ok: false},
		{name: "loopback, no host", local: loopback, host: "", ok: false},
		{name: "loopback, own page", local: loopback, host: "localhost:8080", origin: "http://localhost:8080", ok: true},
		{name: "loopback, local page of another port", local: loopback, host: "localhost:8080", origin: "http://127.0.0.1:3000", ok: true},
		{name: "loopback, page of a stranger", local: loopback, host: "localhost:8080", origin: "https://evil.example.com", ok: false},
		{name: "loopback, page that looks local", local: loopback, host: "localhost:8080", origin: "https://localhost.evil.example.com", ok: false},
		{name: "loopback, sandboxed page", local: loopback, host: "localhost:8080", origin: "null", ok: false},
		{name: "loopback, file", local: loopback, host: "localhost:8080", origin: "file://", ok: false},
		{name: "loopback, no URL", local: loopback, host: "localhost:8080", origin: "http://[::1", ok: false},
		{name: "loopback, listed page", local: loopback, host: "localhost:8080", origin: "https://app.example.com", origins: []string{"https://app.example.com"}, ok: true},
		{name: "loopback, listed with a slash", local: loopback, host: "localhost:8080", origin: "https://app.example.com", origins: []string{"https://APP.example.com/"}, ok: true},
		{name: "loopback, listed for another scheme", local: loopback, host: "localhost:8080", origin: "http://app.example.com", origins: []string{"https://app.example.com"}, ok: false},
		{name: "loopback, any page", local: loopback, host: "localhost:8080", origin: "https://evil.example.com", origins: []string{"*"}, ok: true},
		{name: "loopback, any page, rebound still", local: loopback, host: "evil.example.com", origin: "https://evil.example.com", origins: []string{"*"}, ok: false},
		{name: "loopback, any page, sandboxed", local: loopback, host: "localhost:8080", origin: "null", origins: []string{"*"}, ok: true},

		{name: "public, any host", local: public, host: "api.example.com", ok: true},
		{name: "public, own page", local: public, host: "api.example.com", origin: "https://api.example.com", ok: true},
		{name: "public, own page in capitals", local: public, host: "API.example.com", origin: "https://api.EXAMPLE.com", ok: true},
		{name: "public, page of a stranger", local: public, host: "api.example.com", origin: "https://evil.example.com", ok: false},
		{name: "public, local page", local: public, host: "api.example.com", origin: "http://localhost", ok: false},
		{name: "public, another port", local: public, host: "api.example.com", origin: "https://api.example.com:444", ok: false},
		{name: "public, listed page", local: public, host: "api.example.com", origin: "https://app.example.com", origins: []string{"https://app.example.com"}, ok: true},
		{name: "public, listed extension", local: public, host: "api.example.com", origin: "vscode-webview://abc", origins: []string{"vscode-webview://abc"}, ok: true},
		{name: "no TCP", host: "anything", ok: true},

		{name: "hosts, listed", local: public, host: "api.example.com", hosts: []string{"api.example.com"}, ok: true},
		{name: "hosts, listed, any port", local: public, host: "API.example.com:8443", hosts: []string{"api.Example.com"}, ok: true},
		{name: "hosts, this port", local: public, host: "api.example.com:8443", hosts: []string{"api.example.com:8443"}, ok: true},
		{name: "hosts, another port", local: public, host: "api.example.com:8444", hosts: []string{"api.example.com:8443"}, ok: false},
		{name: "hosts, not listed", local: public, host: "evil.example.com", hosts: []string{"api.example.com"}, ok: false},
		{name: "hosts, IPv6", local: public, host: "[2001:db8::1]", hosts: []string{"[2001:db8::1]"}, ok: true},
		{name: "hosts, IPv6, any port", local: public, host: "[2001:db8::1]:8080", hosts: []string{"[2001:db8::1]"}, ok: true},
		{name: "hosts, IPv6, bare", local: public, host: "[2001:db8::1]:8080", hosts: []string{"2001:db8::1"}, ok: true},
		{name: "hosts, on loopback behind a proxy", local: loopback, host: "api.example.com", hosts: []string{"api.example.com"}, ok: true},
		{name: "hosts, own page behind a proxy", local: loopback, host: "api.example.com", origin: "https://api.example.com", hosts: []string{"api.example.com"}, ok: true},
		{name: "hosts, loopback name not listed", local: loopback, host: "localhost", hosts: []string{"api.example.com"}, ok: false},
		{name: "hosts, local page not listed", local: loopback, host: "api.example.com", origin: "http://localhost", hosts: []string{"api.example.com"}, ok: false},
	}
	for _, tt := range tests {
		h := New(newBackend().as(), Options{AllowedHosts: tt.hosts, AllowedOrigins: tt.origins})
		for _, method := range []string{"POST", "GET", "DELETE", "OPTIONS"} {
			r := httptest.NewRequest(method, "/mcp", strings.NewReader(call("server/discover", "")))
			setHeaders(r, headers{content, modern, discover})
			r.Host = tt.host
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			if tt.local != "" {
				r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(tcpAddr(t, tt.local))))
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			switch {
			case !tt.ok:
				check(t, tt.name+" "+method, w, 403, -32600, false)
			case w.Code == 403:
				t.Errorf("%s: %s is refused: %s", tt.name, method, w.Body)
			case method == "POST":
				check(t, tt.name, w, 200, 0, true)
			}
		}
	}
}

func tcpAddr(t *testing.T, text string) *net.TCPAddr {
	t.Helper()
	addr, err := net.ResolveTCPAddr("tcp", text)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func TestGuardManyOrigins(t *testing.T) {
	h := New(newBackend().as(), Options{AllowedOrigins: []string{"https://a.example.com"}})
	w := post(h, call("server/discover", ""), modern, discover, "Origin: https://a.example.com", "+Origin: https://a.example.com")
	check(t, "two origins", w, 403, -32600, false)
}

// The real thing: what net/http puts into the context of a connection.
func TestGuardOnLoopbackListener(t *testing.T) {
	srv := httptest.NewServer(New(newBackend().as(), Options{}))
	defer srv.Close()
	for host, want := range map[string]int{"": 200, "evil.example.com": 403} {
		r, err := http.NewRequest("POST", srv.URL, strings.NewReader(call("server/discover", "")))
		if err != nil {
			t.Fatal(err)
		}
		setHeaders(r, headers{content, modern, discover})
		if host != "" {
			r.Host = host
		}
		w, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		if w.StatusCode != want {
			t.Errorf("Host %q: %d, want %d", host, w.StatusCode, want)
		}
	}
}
