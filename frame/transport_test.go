package frame

import (
	"crypto/tls"
	"net/http/httptest"
	"os"
	"testing"
)

func TestHTTPFacts(t *testing.T) {
	r := httptest.NewRequest("POST", "http://api.example.com:8080/v1/mcp?tag=a&tag=b&empty=&odd=%zz", nil)
	r.RemoteAddr = "192.0.2.7:1234"
	r.Header.Set("Authorization", "Bearer x")
	r.Header.Add("X-Forwarded-Proto", "https")
	f := New(t.Context(), Config{Transport: Transport{Kind: HTTP, HTTP: r}})
	tr := f.Transport()
	for _, tt := range []struct{ name, got, want string }{
		{"remote address", tr.RemoteAddr(), "192.0.2.7:1234"},
		{"scheme", tr.Scheme(), "http"}, // the forwarding header is not believed
		{"host", tr.Host(), "api.example.com:8080"},
		{"path", tr.Path(), "/v1/mcp"},
		{"header", f.Header("authorization"), "Bearer x"},
		{"no header", f.Header("X-None"), ""},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got, tt.want)
		}
	}
	if got := tr.Query()["tag"]; len(got) != 2 {
		t.Errorf("Query()[tag] = %q, want both", got)
	}
	if f.HTTPRequest() != r || tr.Env() != nil || tr.PID() != 0 {
		t.Error("HTTP request, environment or process id are wrong")
	}
	r.TLS = &tls.ConnectionState{}
	if got := tr.Scheme(); got != "https" {
		t.Errorf("scheme over TLS %q, want https", got)
	}
	if got := (Transport{Kind: HTTP, HTTP: httptest.NewRequest("GET", "/x", nil)}).Query(); got != nil {
		t.Errorf("Query() without parameters = %v, want nil", got)
	}
}

func TestStdioFacts(t *testing.T) {
	t.Setenv("TALARIA_TEST", "a=b")
	f := New(t.Context(), Config{Transport: Transport{Kind: Stdio}})
	if got := f.Transport().Env()["TALARIA_TEST"]; got != "a=b" {
		t.Errorf("environment: %q, want a=b", got)
	}
	if got := f.Transport().PID(); got != os.Getpid() {
		t.Errorf("process id %d, want %d", got, os.Getpid())
	}
	noHTTP(t, f)
}

func TestPipeFacts(t *testing.T) {
	f := New(t.Context(), Config{Transport: Transport{Kind: Pipe}})
	if f.Transport().Env() != nil || f.Transport().PID() != 0 {
		t.Error("a pipe has the environment or the process id of this process")
	}
	noHTTP(t, f)
}

func noHTTP(t *testing.T, f *Frame) {
	t.Helper()
	tr := f.Transport()
	if got := tr.RemoteAddr() + tr.Scheme() + tr.Host() + tr.Path() + f.Header("Host"); got != "" {
		t.Errorf("facts of HTTP without HTTP: %q", got)
	}
	if tr.Query() != nil || f.HTTPRequest() != nil {
		t.Error("a query or a request without HTTP")
	}
}
