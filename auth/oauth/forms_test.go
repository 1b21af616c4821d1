package oauth

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/clients/attend"
)

// reformed is an http.RoundTripper that rewrites the documents that servers answer
// with, by path.
type reformed func(path, text string) string

func (r reformed) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := direct.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	body = []byte(r(req.URL.Path, string(body)))
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

// with returns a text with more members, the first of which take the place of later
// ones with the same name in no reader: names must not be there.
func with(text, members string) string { return strings.Replace(text, "{", "{"+members+",", 1) }

// Forms of JSON that servers write are read in every document of the flow: metadata
// of both servers, registration, tokens, a refreshed token, and errors.
func TestFormsOfDocuments(t *testing.T) {
	forms := map[string]reformed{
		"byte order mark":   func(_, text string) string { return "\ufeff" + text },
		"mark, then spaces": func(_, text string) string { return "\ufeff\r\n\t " + text + "\r\n" },
		"half a pair":       func(_, text string) string { return with(text, `"note":"\ud83d"`) },
		"null": func(path, text string) string {
			switch path {
			case "/token":
				return with(text, `"id_token":null,"issued_token_type":null,"error":null,"error_uri":null`)
			case "/register":
				return with(text, `"client_secret":null,"client_secret_expires_at":null,"registration_access_token":null`)
			}
			return with(text, `"scopes_supported":null,"grant_types_supported":null,"response_types_supported":null,"dpop_bound_access_tokens_required":null`)
		},
		"numbers": func(path, text string) string {
			if path == "/register" {
				return with(text, `"client_secret":"s","client_secret_expires_at":4e9,"client_id_issued_at":1.7e9`)
			}
			return strings.Replace(text, `"expires_in":3600`, `"expires_in":3600.0`, 1)
		},
		"text for numbers": func(path, text string) string {
			if path == "/register" {
				return with(text, `"client_secret":"s","client_secret_expires_at":"4000000000"`)
			}
			return strings.Replace(text, `"expires_in":3600`, `"expires_in":"3600"`, 1)
		},
		"a list of scopes": func(_, text string) string { return strings.Replace(text, `"scope":""`, `"scope":["a","b"]`, 1) },
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.client(&Options{Outbound: form})
			for range 2 {
				mustCall(t, c)
				status, err := c.Status(t.Context())
				if left := time.Until(status.Expiry); err != nil || left < 50*time.Minute || left > time.Hour {
					t.Errorf("the token is valid for %v, %v", left, err)
				}
				w.expire()
			}
			if n := w.count("issuer POST /token refresh_token"); n != 1 {
				t.Errorf("%d refreshes", n)
			}
			for path, step := range map[string]Step{"issuer /token": StepToken, "issuer /register": StepRegistration, "issuer /revoke": StepRevocation} {
				w := newWorld(t)
				c := w.client(&Options{Outbound: form})
				if step == StepRevocation {
					mustCall(t, c)
				}
				w.handlers[path] = func(rw http.ResponseWriter, _ *http.Request) {
					writeJSON(rw, 400, map[string]any{"error": "slow_down", "error_description": "later"})
				}
				_, _, err := call(c)
				if step == StepRevocation {
					err = c.Logout(t.Context())
				}
				if e, ok := errors.AsType[*Error](err); !ok || e.Step != step || e.Code != "slow_down" || e.Status != 400 {
					t.Errorf("%s: %v", path, err)
				}
			}
		})
	}
}

// Each answer of a token endpoint is read or refused with the member and its value.
// No text is that of another package, and no secret is in it.
func TestTokenAnswers(t *testing.T) {
	const year = 365 * 24 * time.Hour
	answers := map[string]struct {
		media   string
		valid   time.Duration // 0: unknown
		problem string        // in the error; "" for none
	}{
		`"expires_in":60`:                  {valid: time.Minute},
		`"expires_in":60.0`:                {valid: time.Minute},
		`"expires_in":6e1`:                 {valid: time.Minute},
		`"expires_in":60.9`:                {valid: time.Minute},
		`"expires_in":"60"`:                {valid: time.Minute},
		`"expires_in":""`:                  {},
		`"expires_in":null`:                {},
		`"expires_in":0`:                   {},
		`"expires_in":-5`:                  {},
		`"expires_in":9223372036854775808`: {valid: 68 * year},
		`"expires_in":1e400`:               {valid: 68 * year},
		`"expires_in":"soon"`:              {problem: `the answer has the expires_in "\"soon\"", which is not a number of seconds`},
		`"expires_in":"NaN"`:               {problem: `expires_in "\"NaN\""`},
		`"expires_in":true`:                {problem: "the answer has the expires_in true, which"},
		`"expires_in":{"s":60}`:            {problem: "expires_in"},
		`"expires_in":[60]`:                {problem: "expires_in"},
		`"token_type":5`:                   {problem: "its member token_type is 5"},
		`"refresh_token":{"a":"7777777"}`:  {problem: "its member refresh_token is a object"},
		`"scope":5`:                        {},
		`"error":5`:                        {},
		`"error":"invalid_scope"`:          {problem: "invalid_scope"},
		`]`:                                {problem: "the answer is no JSON of the right form"},
		"access_token=x&token_type=Bearer&expires_in=60": {media: formMedia + "; charset=utf-8", valid: time.Minute},
		"access_token=x&token_type=Bearer":               {media: formMedia},
		"access_token=x&token_type=Bearer&expires_in=no": {media: formMedia, problem: `expires_in "\"no\""`},
		"error=invalid_scope&error_description=none":     {media: formMedia, problem: "invalid_scope: the server says none"},
		"token_type=Bearer":                              {media: formMedia, problem: "has no access_token"},
	}
	for text, want := range answers {
		w := newWorld(t)
		w.handlers["issuer /token"] = func(rw http.ResponseWriter, _ *http.Request) {
			body := text
			if want.media == "" {
				want.media = "application/json"
				body = `{"access_token":"7777777",` + text + `}`
				if !strings.Contains(text, "token_type") {
					body = with(body, `"token_type":"Bearer"`)
				}
			}
			rw.Header().Set("Content-Type", want.media)
			_, _ = io.WriteString(rw, body)
		}
		c := w.client(nil)
		err := c.Login(t.Context())
		if want.problem != "" {
			if err == nil || !strings.Contains(err.Error(), want.problem) || strings.Contains(err.Error(), "7777777") || strings.Contains(err.Error(), "oauth2") {
				t.Errorf("%s: got %v, want %q in it", text, err, want.problem)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		status, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		left := time.Until(status.Expiry)
		if (want.valid == 0) != status.Expiry.IsZero() || want.valid != 0 && (left > want.valid+year || left < want.valid-time.Minute) {
			t.Errorf("%s: expires at %v", text, status.Expiry)
		}
	}
}

// A registration that is refused costs no window, and a client that is refused right
// after it was registered costs one, whatever its identifier is.
func TestRefusedRegistration(t *testing.T) {
	refuses := func(rw http.ResponseWriter, _ *http.Request) {
		writeJSON(rw, 401, map[string]any{"error": "invalid_client"})
	}
	same := func(rw http.ResponseWriter, _ *http.Request) { writeJSON(rw, 201, map[string]any{"client_id": "same"}) }
	tests := []struct {
		name       string
		known      string // the redirect URI of the client in the store; "" for no client
		register   http.HandlerFunc
		registered int
		windows    int
	}{
		{"nothing known", "", refuses, 1, 0},
		{"known with another redirect URI", "http://127.0.0.1:2/other", refuses, 1, 0},
		{"known and forgotten", consentURI, refuses, 1, 1},
		{"the same identifier again", "http://127.0.0.1:2/other", same, 1, 1},
		{"known, and the same identifier again", consentURI, same, 1, 2},
	}
	for _, tt := range tests {
		w := newWorld(t)
		w.handlers["issuer /register"] = tt.register
		w.refuse = func(url.Values) string { return "invalid_client" }
		c := w.client(nil)
		if tt.known != "" {
			client := &Registration{Issuer: w.issuer.URL, ClientID: "same", RedirectURIs: []string{tt.known}}
			if err := c.storage.write(t.Context(), c.storage.clientKey(w.issuer.URL), client); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := call(c); !hasCode(err, "invalid_client") || !errors.Is(err, attend.ErrUnauthorized) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if n, windows := w.count("issuer POST /register"), w.count("issuer GET /authorize"); n != tt.registered || windows != tt.windows {
			t.Errorf("%s: registered %d times, %d windows", tt.name, n, windows)
		}
	}
}
