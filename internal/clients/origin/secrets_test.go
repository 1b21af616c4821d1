package origin

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestSecretForms: a credential is masked in each form in which a server repeats it.
func TestSecretForms(t *testing.T) {
	for name, c := range map[string]struct{ address, token, said string }{
		"as JSON that escapes slashes":   {"http://h/mcp", `abc/defgh+ij==`, `{"error":"bad abc\/defgh+ij=="}`},
		"as JSON that escapes HTML":      {"http://h/mcp", `abc&defgh<ij`, `{"error":"bad abc\u0026defgh\u003cij"}`},
		"as JSON with a quote":           {"http://h/mcp", `abc\defghij`, `{"error":"bad abc\\defghij"}`},
		"query as it was sent":           {"http://h/mcp?key=abc+defgh/ij==", "", `no /mcp?key=abc+defgh/ij== here`},
		"query with small hexadecimals":  {"http://h/mcp?key=abc%2fdefghij", "", `no /mcp?key=abc%2fdefghij here`},
		"query of a malformed escape":    {"http://h/mcp?key=abc%zzdefghij", "", `no /mcp?key=abc%zzdefghij here`},
		"query with a semicolon":         {"http://h/mcp?key=abcdefghij;x=1", "", `no abcdefghij`},
		"query that is a key":            {"http://h/mcp?abcdef%2fghij", "", `no /mcp?abcdef%2fghij`},
		"user information, percent form": {"http://me:abc%2Fdefghij@h/mcp", "", `no me:abc%2Fdefghij@h`},
	} {
		u, err := url.Parse(c.address)
		if err != nil {
			t.Fatal(name, err)
		}
		r := &http.Request{URL: u, Header: http.Header{}}
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		got := Hidden(errors.New(c.said), r).Error()
		if !strings.Contains(got, "[hidden]") || strings.Contains(got, "defgh") {
			t.Errorf("%s: %s", name, got)
		}
		if strings.HasPrefix(c.said, "{") && !json.Valid([]byte(got)) {
			t.Errorf("%s: not JSON: %s", name, got)
		}
	}
	origin := &http.Request{URL: &url.URL{}, Header: http.Header{"Origin": {"http://app.example"}}}
	if got := Hidden(errors.New("no http://app.example"), origin).Error(); got != "no http://app.example" {
		t.Error(got) // the error is about it, and it is not a credential
	}
	var s Secrets // an argument that is written in another way is not a credential
	s.Note(http.Header{}, "q=long%20argument&r=a/long/one", &http.Request{URL: &url.URL{RawQuery: "q=long+argument&r=a%2Flong%2Fone&key=abcdefghij"}})
	if got := s.Masked("long argument, a/long/one, abcdefghij"); got != "long argument, a/long/one, [hidden]" {
		t.Error(got)
	}
}
