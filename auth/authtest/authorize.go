package authtest

import (
	"cmp"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// request is what a client asks its user for. It is made at the authorization
// endpoint, waits for the user's answer until until, and is then part of the
// grant, since the token endpoint has to find the same client, redirect and
// resource.
type request struct {
	client    client
	redirect  string
	state     string
	challenge string
	key       string // that the code is bound to; "" for none
	resource  string
	scopes    []string
	until     time.Time
}

// The times that users and clients have.
const (
	timeToConsent = 10 * time.Minute
	timeForCode   = time.Minute
	timeToRefresh = 24 * time.Hour
)

// authorize shows the user what a client wants (OAuth 2.1, section 4.1.1).
// Faults of the client and of where it wants its user sent back to are shown to
// the user; all others are sent to the client, through the user's browser.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	c, err := s.client(r.Context(), q.Get("client_id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req := request{client: c, redirect: q.Get("redirect_uri"), state: q.Get("state")}
	if req.redirect == "" && len(c.RedirectURIs) == 1 {
		req.redirect = c.RedirectURIs[0]
	}
	if !c.allows(req.redirect) {
		// The user is sent only to addresses of the client.
		http.Error(w, "the redirect_uri is not one of the client's", http.StatusBadRequest)
		return
	}
	if code, description := s.read(&req, q); code != "" {
		s.sendBack(w, r, req, url.Values{"error": {code}, "error_description": {description}})
		return
	}
	req.until = time.Now().Add(timeToConsent)
	id := newSecret()
	s.store.mu.Lock()
	s.store.asked.put(id, req)
	s.store.mu.Unlock()
	s.show(w, id, req)
}

// read reads the rest of a request, and returns what is wrong with it: an error
// code of RFC 6749 or RFC 8707, and a text; both are "" if nothing is. A client
// that names no scope asks for the first.
func (s *Server) read(req *request, q url.Values) (code, description string) {
	req.challenge, req.resource = q.Get("code_challenge"), q.Get("resource")
	req.scopes, req.key = strings.Fields(q.Get("scope")), q.Get("dpop_jkt")
	switch {
	case q.Get("response_type") != "code":
		return "unsupported_response_type", "response_type must be code"
	case req.challenge == "" || q.Get("code_challenge_method") != "S256":
		return "invalid_request", "PKCE with S256 is required"
	case len(req.challenge) != 43:
		return "invalid_request", "the code_challenge is no SHA-256 hash"
	case req.resource != s.opts.Resource || len(q["resource"]) > 1:
		return "invalid_target", "the resource must be " + s.opts.Resource
	}
	if len(req.scopes) == 0 {
		req.scopes = s.names()[:min(1, len(s.opts.Scopes))]
	}
	for _, scope := range req.scopes {
		if scope != offline && !slices.Contains(s.names(), scope) {
			return "invalid_scope", "there is no scope " + scope
		}
	}
	return "", ""
}

// sendBack sends the user back to the client (RFC 9207 says with the issuer).
func (s *Server) sendBack(w http.ResponseWriter, r *http.Request, req request, answer url.Values) {
	answer.Set("iss", s.opts.Issuer)
	if req.state != "" {
		answer.Set("state", req.state)
	}
	u, err := url.Parse(req.redirect)
	if err != nil {
		http.Error(w, "the redirect_uri is no URI", http.StatusBadRequest)
		return
	}
	query := u.Query()
	for name, values := range answer {
		query[name] = values
	}
	u.RawQuery = query.Encode()
	http.Redirect(w, r, u.String(), http.StatusSeeOther)
}

var page = template.Must(template.New("consent").Parse(`<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>Development authorization server</title>
<style>body{font:16px/1.5 sans-serif;max-width:34em;margin:3em auto;padding:0 1em}.note{background:#fd6;padding:.5em 1em}</style>
<p class="note">For development only: this server asks nobody for a password, and forgets everything when it ends.</p>
<h1>{{.Client}} asks for access</h1>
<p>to <code>{{.Resource}}</code>. You will be sent back to <strong>{{.Host}}</strong>.</p>
<form method="post" action="consent">
<input type="hidden" name="id" value="{{.ID}}">
<p><label>You are <input name="user" value="alice" required maxlength="40"></label></p>
{{range .Scopes}}<p><label><input type="checkbox" name="scope" value="{{.Name}}" checked> {{with .Allows}}{{.}} {{end}}(<code>{{.Name}}</code>)</label></p>
{{end}}<p><button name="answer" value="allow">Allow</button> <button name="answer" value="deny">Deny</button></p>
</form>
</html>
`))

// show answers with the page that asks the user. id is the secret in its form,
// by which consent finds the request again; what the page shows of the client
// is what that says of itself.
func (s *Server) show(w http.ResponseWriter, id string, req request) {
	name, host := cmp.Or(req.client.Name, "A client without a name"), ""
	if u, err := url.Parse(req.redirect); err == nil {
		host = u.Scheme + "://" + u.Host
	}
	var scopes []Scope
	for _, scope := range s.opts.Scopes {
		if slices.Contains(req.scopes, scope.Name) {
			scopes = append(scopes, scope)
		}
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	// No other page may put this one into a frame and have the user click.
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'")
	header.Set("Referrer-Policy", "no-referrer")
	_ = page.Execute(w, struct {
		ID, Client, Resource, Host string
		Scopes                     []Scope
	}{id, name, req.resource, host, scopes}) // fails only if the browser does not read it
}

// consent takes the user's answer. A question has one answer, whatever it is.
// Scopes that the user has taken out are not granted; offline_access, which the
// page does not show, goes with the others if it was asked for.
func (s *Server) consent(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxDocument)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read", http.StatusBadRequest)
		return
	}
	id := r.PostForm.Get("id")
	s.store.mu.Lock()
	req, ok := s.store.asked.get(id)
	delete(s.store.asked.items, id)
	s.store.mu.Unlock()
	if !ok || time.Now().After(req.until) {
		http.Error(w, "this question has been answered or is too old; begin again from the client", http.StatusBadRequest)
		return
	}
	user := strings.TrimSpace(r.PostForm.Get("user"))
	if r.PostForm.Get("answer") != "allow" || user == "" || len(user) > 200 {
		s.sendBack(w, r, req, url.Values{"error": {"access_denied"}, "error_description": {"the user has not agreed"}})
		return
	}
	allowed := []string{}
	for _, scope := range req.scopes {
		if scope == offline || slices.Contains(r.PostForm["scope"], scope) {
			allowed = append(allowed, scope)
		}
	}
	code := s.store.putGrant(&s.store.codes, grant{
		id: newSecret(), request: req, user: user, scopes: allowed, until: time.Now().Add(timeForCode),
	})
	s.sendBack(w, r, req, url.Values{"code": {code}})
}
