package login

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// Needed is the error of a request that only a login can help.
type Needed struct {
	URL    string
	Scopes []string        // that the login should be for; none leaves it to the server
	Token  bool            // a token was given, and is of no use
	None   bool            // there is nothing to log in to: tokens and keys come from elsewhere
	Server string          // what the server says
	Err    error           // why the stored logins cannot be read, or nil
	Answer *protocol.Error // the JSON-RPC error in the server's answer, nil if there is none
}

// Error says what is wrong.
func (e *Needed) Error() string {
	var text string
	address := Shown(e.URL)
	switch {
	case e.Token && len(e.Scopes) > 0:
		text = address + " wants a token with more scopes: " + strings.Join(e.Scopes, " ")
	case e.Token:
		text = address + " refuses the token"
	case e.None:
		text = address + " wants a token or a key, and names nowhere to log in"
	case len(e.Scopes) > 0:
		text = address + " wants a login for " + strings.Join(e.Scopes, " ")
	default:
		text = address + " wants a login"
	}
	if e.Server != "" {
		text += "; it says " + e.Server
	}
	if e.Err != nil {
		text += "\n" + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Needed) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *Needed) Hint() string {
	if e.None && e.Token {
		return "check the token; the server names nowhere to log in"
	}
	if e.None {
		return "ask who runs it; then for a token: --token-file FILE or TALARIA_TOKEN, for an API key: --header NAME=value"
	}
	command := "talaria login " + Quote(Shown(e.URL))
	if len(e.Scopes) > 0 {
		command += " --scope " + Quote(strings.Join(e.Scopes, " "))
	}
	if e.Token {
		return "check the token, or leave it out after: " + command
	}
	return "run: " + command + "\n(for a token of your own: --token-file or TALARIA_TOKEN; for an API key: --header NAME=value)"
}

// Shown returns a URL for people, for logs and for the clients of a proxy:
// without passwords and the values of its query, where many servers take keys.
func Shown(address string) string {
	head, query, found := strings.Cut(address, "?")
	if u, err := url.Parse(head); err == nil && u.User != nil {
		u.User = url.User("…")
		head = strings.Replace(u.String(), url.User("…").String(), "…", 1)
	}
	if !found {
		return head
	}
	parts := strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
	for i, part := range parts {
		name, _, ok := strings.Cut(part, "=")
		if !ok {
			name = "" // the whole of it may be the key
		} else {
			name += "="
		}
		parts[i] = name + "…"
	}
	return head + "?" + strings.Join(parts, "&")
}

// Gate makes errors of the answers that ask for a login.
type Gate struct {
	URL   string
	Token bool  // requests have a token of the user's
	Err   error // why the stored logins cannot be read, or nil
	Next  http.RoundTripper
}

var challengeParameter = regexp.MustCompile(`\b(scope|error|error_description|resource_metadata)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))`)

// bodyTime is how long a refusal has for what it says.
const bodyTime = time.Second

// RoundTrip implements http.RoundTripper.
func (g *Gate) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := g.Next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return resp, err
	}
	said := map[string]string{}
	for _, value := range resp.Header.Values("WWW-Authenticate") {
		for _, m := range challengeParameter.FindAllStringSubmatch(value, -1) {
			said[m[1]] = m[2] + m[3]
		}
	}
	if resp.StatusCode == http.StatusForbidden && said["error"] != "insufficient_scope" {
		return resp, nil // no login helps
	}
	timer := time.AfterFunc(bodyTime, func() { resp.Body.Close() })
	defer timer.Stop()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // cut off, it is not an answer
	resp.Body.Close()
	needed := &Needed{URL: g.URL, Token: g.Token, Err: g.Err, Answer: answered(body)}
	needed.None = resp.StatusCode == http.StatusUnauthorized && said["resource_metadata"] == "" && !g.leads(r.Context())
	if said["error"] == "insufficient_scope" {
		needed.Scopes = scopes(said["scope"])
	} else if text := said["error_description"]; text != "" && g.Token {
		needed.Server = strconv.QuoteToASCII(text[:min(len(text), 200)])
	}
	return nil, needed
}

// leads reports whether something at the server leads to a login, as far as
// that can be found out soon; who does not answer may have one.
func (g *Gate) leads(ctx context.Context) bool {
	ctx, stop := context.WithTimeout(ctx, gateTime)
	defer stop()
	known, err := hasMetadata(ctx, &http.Client{Transport: g.Next, CheckRedirect: stay}, g.URL)
	return known || err != nil
}

// gateTime is how long a command that was refused looks for a login.
const gateTime = 5 * time.Second

// answered returns the error of a JSON-RPC response, nil if body is not one.
func answered(body []byte) *protocol.Error {
	var response struct {
		Error *protocol.Error `json:"error"`
	}
	if jsonx.Unmarshal(body, &response) != nil || response.Error == nil || response.Error.Code == 0 {
		return nil
	}
	return response.Error
}

// CloseIdleConnections closes connections that are not in use.
func (g *Gate) CloseIdleConnections() {
	if closer, ok := g.Next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// scopes reads the scopes of a server, as far as they are such (RFC 6749,
// section 3.3), for commands that are to be typed. The client asks for
// offline_access by itself.
func scopes(text string) []string {
	var list []string
	for _, scope := range strings.Fields(text) {
		if scope != "offline_access" && !strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'\\`$&|;<>()!*?", r) }) {
			list = append(list, scope)
		}
	}
	return list
}

// Quote returns text as one word of a shell.
func Quote(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.,:/@%+=", r))
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
