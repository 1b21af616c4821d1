package outbound

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestAddresses: which URLs may be asked. None of those that are refused gets
// so much as a connection.
func TestAddresses(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++; _, _ = io.WriteString(w, "{}") }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	own, _ := url.Parse(server.URL)

	tests := []struct {
		url    string
		config Config
		want   string // in the error; empty for none
	}{
		{server.URL, Config{Loopback: true}, ""},
		{"http://localhost:" + port, Config{Loopback: true}, ""},
		{"http://[::ffff:127.0.0.1]:" + port, Config{Loopback: true}, ""},
		{server.URL, Config{Private: true}, ""},
		{server.URL, Config{Insecure: true, Trusted: []*url.URL{own}}, ""},

		{server.URL, Config{}, "http"},
		{server.URL, Config{Insecure: true}, "private or reserved"},
		{"https://127.0.0.1:" + port, Config{}, "private or reserved"},
		{"https://localhost:" + port, Config{}, "private or reserved"},
		{"https://[::1]:" + port, Config{}, "private or reserved"},
		{"https://[::ffff:127.0.0.1]:" + port, Config{}, "private or reserved"},
		{"https://10.1.2.3/", Config{Loopback: true}, "private or reserved"},
		{"https://172.16.0.1/", Config{Loopback: true}, "private or reserved"},
		{"https://192.168.1.1/admin", Config{Loopback: true}, "private or reserved"},
		{"https://169.254.169.254/latest/meta-data/", Config{Loopback: true}, "private or reserved"},
		{"https://[::ffff:169.254.169.254]/", Config{Loopback: true}, "private or reserved"},
		{"https://[64:ff9b::a9fe:a9fe]/", Config{Loopback: true}, "private or reserved"},
		{"https://[fd00::1]/", Config{Loopback: true}, "private or reserved"},
		{"https://[fe80::1]/", Config{Loopback: true}, "private or reserved"},
		{"https://100.64.0.1/", Config{Loopback: true}, "private or reserved"},
		{"https://0.0.0.0:" + port, Config{Loopback: true}, "private or reserved"},
		{"https://[::]:" + port, Config{Loopback: true}, "private or reserved"},
		{"https://192.0.2.1/", Config{Loopback: true}, "private or reserved"},
		{"https://255.255.255.255/", Config{Loopback: true}, "private or reserved"},
		{"https://2130706433/", Config{}, "in disguise"},
		{"https://0177.0.0.1/", Config{}, "in disguise"},
		{"https://0x7f.1/", Config{}, "in disguise"},
		{"https://127.0.0.0x1/", Config{}, "in disguise"},
		{"https://127.0.0.1./", Config{}, "in disguise"},
		{"https://127.0.0.①/", Config{}, "in disguise"},
		{"https://LOCALHOST./", Config{}, "private or reserved"},
		{"https://issuer.localhost/", Config{}, "private or reserved"},
		{"https://[::127.0.0.1]/", Config{}, "private or reserved"},
		{"https://[2002:7f00:1::]/", Config{}, "private or reserved"},
		{"https://[2001:0:7f00:1::]/", Config{}, "private or reserved"},
		{"https://[64:ff9b:1::a00:1]/", Config{}, "private or reserved"},
		{"https://[fe80::1%25eth0]/", Config{}, "private or reserved"},
		{"http://example.com/", Config{Loopback: true}, "http"},
		{"http://127.0.0.1.evil.example/", Config{Loopback: true}, "http"},
		{"file:///etc/passwd", Config{Private: true}, "scheme"},
		{"gopher://127.0.0.1:6379/_FLUSHALL", Config{Private: true}, "scheme"},
		{"https://user:secret@example.com/", Config{Private: true}, "user information"},
		{"https:///path", Config{Private: true}, "no Host"},
	}
	for _, test := range tests {
		t.Run(test.url, func(t *testing.T) {
			before := asked
			c := New(test.config)
			defer c.CloseIdleConnections()
			answer, err := c.Get(t.Context(), test.url, nil)
			if test.want == "" {
				if err != nil || string(answer.Body) != "{}" {
					t.Errorf("got %v, %v", answer, err)
				}
				return
			}
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if asked != before {
				t.Error("the server was asked")
			}
		})
	}
}

// TestNamesThatChange: a name is judged by the address that it has when it is
// dialled, not by one that it had before.
func TestNamesThatChange(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, name := range []string{"localhost", "127.0.0.1", "::ffff:127.0.0.1"} {
		for loopback, want := range map[bool]string{true: "", false: "private or reserved"} {
			conn, err := New(Config{Loopback: loopback}).dial(t.Context(), "tcp", net.JoinHostPort(name, port))
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %v: %v", name, loopback, err)
			}
			if err == nil {
				conn.Close()
			}
		}
	}
}

func TestRedirects(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/1", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/2", http.StatusFound) })
	mux.HandleFunc("/2", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://10.0.0.1/", http.StatusFound)
	})
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, MaxBytes+1)) })
	mux.HandleFunc("/full", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, MaxBytes)) })
	server := httptest.NewServer(mux)
	defer server.Close()
	c := New(Config{Loopback: true})
	defer c.CloseIdleConnections()
	for path, want := range map[string]string{
		"/1": "", "/full": "", "/loop": "more than 3 redirects", "/away": "private or reserved", "/big": "more than 1048576 bytes",
	} {
		_, err := c.Get(t.Context(), server.URL+path, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("GET %s: got %v, want %q", path, err, want)
		}
	}
	if _, err := c.Post(t.Context(), server.URL+"/1", "text/plain", nil, []byte("secret")); err == nil || !strings.Contains(err.Error(), "must not do") {
		t.Errorf("POST: got %v", err)
	}
}

// TestDowngrade: https does not lead to http, not even on loopback.
func TestDowngrade(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer secure.Close()
	c := New(Config{Loopback: true, Transport: secure.Client().Transport})
	if _, err := c.Get(t.Context(), secure.URL, nil); err == nil || !strings.Contains(err.Error(), "from https to http") {
		t.Errorf("got %v", err)
	}
}

// TestProxy: the proxy that the user has set may be anywhere.
func TestProxy(t *testing.T) {
	proxied := ""
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxied = r.Method + " " + r.Host
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	c := New(Config{})
	defer c.CloseIdleConnections()
	u, _ := url.Parse(proxy.URL)
	c.base.(*http.Transport).Proxy = func(*http.Request) (*url.URL, error) { c.proxies.Store(HostPort(u), true); return u, nil }
	if _, err := c.Get(t.Context(), "https://issuer.example/x", nil); err == nil || proxied != "CONNECT issuer.example:443" {
		t.Errorf("proxied %q, %v", proxied, err)
	}
}
