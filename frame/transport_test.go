package frame

import (
	"net/http/httptest"
	"testing"

	"github.com/talaria-go/mcp/internal/core"
)

func TestHTTPFacts(t *testing.T) {
	r := httptest.NewRequest("POST", "http://api.example.com:8080/v1/mcp?tenant=acme&tenant=other&empty=&q=a%20b", nil)
	r.RemoteAddr = "192.0.2.7:1234"
	r.Header.Set("Authorization", "Bearer x")
	r.Header.Add("X-Forwarded-For", "198.51.100.1")
	f := newFrame(t.Context(), core.Config{Transport: core.Transport{Kind: string(HTTP), HTTP: r}})
	for _, tt := range []struct{ name, got, want string }{
		{"transport", string(f.Transport()), "http"},
		{"remote address", f.RemoteAddr(), "192.0.2.7:1234"}, // the forwarding header is not believed
		{"header", f.Header("authorization"), "Bearer x"},
		{"no header", f.Header("X-None"), ""},
		{"query", f.Query("tenant"), "acme"},
		{"escaped query", f.Query("q"), "a b"},
		{"empty query", f.Query("empty"), ""},
		{"no query", f.Query("none"), ""},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got, tt.want)
		}
	}
	if f.HTTPRequest() != r {
		t.Error("another HTTP request")
	}
}

func TestFactsWithoutHTTP(t *testing.T) {
	for _, tt := range []struct {
		via    core.Transport
		remote string
	}{
		{core.Transport{Kind: string(Stdio)}, ""},
		{core.Transport{Kind: string(Pipe)}, ""},
		{core.Transport{Kind: string(Socket), Remote: "192.0.2.7:1234"}, "192.0.2.7:1234"},
	} {
		f := newFrame(t.Context(), core.Config{Transport: tt.via})
		if got := f.RemoteAddr(); got != tt.remote || string(f.Transport()) != tt.via.Kind {
			t.Errorf("%s: comes from %q over %s", tt.via.Kind, got, f.Transport())
		}
		if f.HTTPRequest() != nil || f.Header("Host") != "" || f.Query("tenant") != "" {
			t.Errorf("%s: facts of HTTP", tt.via.Kind)
		}
	}
}
