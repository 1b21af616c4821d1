package browsertest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestBroken: the first screen of a server that does not work has the cause, the next
// step, and what it wrote to standard error.
func TestBroken(t *testing.T) {
	t.Parallel()
	status := func(code int, kind, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s.URL + "/mcp"
	}
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = quiet
	tls.StartTLS()
	t.Cleanup(tls.Close)
	cases := []struct {
		name, target string
		args         []string
		tool         string // to be called, to see it
		state        string
		want         []string
	}{
		{"exits at once", fixture(t, "exits"), nil, "", "failed", []string{"ended: exit status 3", "its standard error says why", "reading the configuration", "no such table: bills", "Try again"}},
		{"command not found", "no-such-command --stdio", nil, "", "failed", []string{"no-such-command", "a TARGET is a URL", "Nothing was written to standard error", "Try again"}},
		{"noise on standard output", fixture(t, "noisy"), nil, "", "ready", []string{"not an MCP message", "Bills is starting up ...", "Write logs to standard error", "listening"}},
		{"hangs in initialize", fixture(t, "hangs"), []string{"--timeout", "5s"}, "", "failed", []string{"timeout: no answer", "--timeout sets how long to wait", "waiting for the database", "Try again"}},
		{"wrong revision", fixture(t, "old"), nil, "", "failed", []string{"1999-12-31", "no revision in common", "is to be updated", "Try again"}},
		{"one bad tool", fixture(t, "onebad"), nil, "bad", "ready", []string{"bad", "!", "description is a number and must be a string"}},
		{"bad cursor", fixture(t, "cursor"), nil, "", "ready", []string{"the list does not end", `"again"`, "the last page has no nextCursor", "good"}},
		{"401", status(http.StatusUnauthorized, "text/plain", "who are you?"), nil, "", "failed", []string{"wants a token or a key", "--header NAME=value", "Try again"}},
		{"403", status(http.StatusForbidden, "text/plain", "not you"), nil, "", "failed", []string{"403 Forbidden: not you", "check the host in the URL", "Try again"}},
		{"500 with HTML", status(http.StatusInternalServerError, "text/html", "<!doctype html><title>Oops</title><h1>Internal Server Error</h1>"), nil, "", "failed", []string{"500 Internal Server Error", `a page with the title "Oops"`, "look at what it logs", "Try again"}},
		{"certificate of nobody", tls.URL + "/mcp", nil, "", "failed", []string{"certificate", "SSL_CERT_FILE", "Try again"}},
		{"TLS where there is none", strings.Replace(status(http.StatusOK, "text/plain", ""), "http:", "https:", 1), nil, "", "failed", []string{"does not look like a TLS handshake", "try http://", "Try again"}},
		{"dies in a call", fixture(t, "dies"), nil, "good", "failed", []string{"exit status 2", "panic: division by zero", "Try again"}},
	}
	var links []string
	for _, c := range cases {
		links = append(links, inspect(t, append([]string{c.target}, c.args...)...).link)
	}
	page := newTab(t) // one for all, since a tab costs more than the rest
	for n, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := page.in(t)
			t.Cleanup(b.tell)
			b.open("about:blank")
			b.open(links[n])
			if c.tool != "" {
				b.call(c.tool)
			}
			b.until(`document.querySelector('.dot.` + c.state + `')`)
			for _, want := range c.want {
				b.reads(want) // it comes in parts
			}
			seen := b.firstScreen()
			for _, want := range c.want {
				if !strings.Contains(seen, want) {
					t.Errorf("the first screen does not have %q:\n%s", want, seen)
				}
			}
		})
	}
}

var quiet = log.New(io.Discard, "", 0)
