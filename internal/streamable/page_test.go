package streamable

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A person who opens the endpoint in a browser gets a page that ends, and says what this
// is; clients get what they got.
func TestPage(t *testing.T) {
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
	for name, tt := range map[string]struct {
		sse         bool
		method      string
		accept      []string
		session     string
		status      int
		media, text string
	}{
		"a browser":                     {false, "GET", []string{browser}, "", 406, "text/html; charset=utf-8", "talaria inspect http://x.example/a%22b&amp;c -b"},
		"a browser, HTTP+SSE":           {true, "GET", []string{browser}, "", 406, "text/html; charset=utf-8", "HTTP+SSE of revision 2024-11-05"},
		"two headers":                   {true, "GET", []string{"application/xml", "TEXT/HTML;q=0.1"}, "", 406, "text/html; charset=utf-8", "MCP endpoint"},
		"a browser, of a session":       {true, "GET", []string{browser}, "s1", 406, "text/html; charset=utf-8", "MCP endpoint"},
		"a head":                        {false, "HEAD", []string{browser}, "", 406, "text/html; charset=utf-8", "MCP endpoint"},
		"a head, HTTP+SSE":              {true, "HEAD", []string{browser}, "", 406, "text/html; charset=utf-8", "MCP endpoint"},
		"XHTML":                         {true, "GET", []string{"application/xhtml+xml"}, "", 406, "text/html; charset=utf-8", "MCP endpoint"},
		"an address that is opened":     {true, "NAVIGATE", []string{"*/*"}, "", 406, "text/html; charset=utf-8", "MCP endpoint"},
		"a client's head":               {true, "HEAD", []string{"*/*"}, "", 405, "application/json", "use POST"},
		"no page, of all things":        {false, "GET", []string{"text/html; q=0.00, */*"}, "", 405, "application/json", "GET is for legacy sessions"},
		"a client":                      {false, "GET", []string{"text/event-stream"}, "", 405, "application/json", "GET is for legacy sessions"},
		"a client that takes pages too": {false, "GET", []string{"text/html, text/event-stream"}, "", 405, "application/json", "GET is for legacy sessions"},
		"a client that takes all":       {false, "GET", []string{"*/*"}, "", 405, "application/json", "GET is for legacy sessions"},
		"no Accept":                     {false, "GET", nil, "", 405, "application/json", "GET is for legacy sessions"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(tt.method, "http://x.example/a%22b&c", nil)
			r.Header["Accept"] = tt.accept
			if tt.method == "NAVIGATE" {
				r.Method = "GET"
				r.Header.Set("Sec-Fetch-Mode", "navigate")
			}
			if tt.session != "" {
				r.Header.Set(headerSession, tt.session)
			}
			w := httptest.NewRecorder()
			New(newBackend().as(), Options{SSE: tt.sse}).ServeHTTP(w, r)
			if w.Code != tt.status || w.Header().Get("Content-Type") != tt.media || !strings.Contains(w.Body.String(), tt.text) {
				t.Errorf("%d %s %s", w.Code, w.Header().Get("Content-Type"), w.Body)
			}
			if page := tt.status == http.StatusNotAcceptable; page != (w.Header().Get("Content-Security-Policy") == "default-src 'none'") {
				t.Errorf("headers %v", w.Header())
			}
		})
	}
}
