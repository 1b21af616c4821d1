package issuing

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/seal"
)

// Request is what a client asks its user for. It is made at the authorization
// endpoint, and ends with SendBack.
type Request struct {
	// Client is the client, Name what it says of itself, and Verified what vouches for that.
	Client, Name, Verified string
	Redirect               string
	Resource               string
	Scopes                 []string
	// ID names the login; two requests with one ID are one login.
	ID    string
	Until time.Time

	state, challenge string
	key              string // that the code is to be bound to; "" for none
	refresh          bool
}

// The texts of pages that several places show.
const (
	TextUnknown = "This program is not known here. Remove the server from the program and add it again."
	TextOver    = "This login is over. Begin again in the program."
	TextCookie  = "Your browser kept no cookie (a proxy may have changed it), or this was begun in another one. Begin again in the program."
)

// parts returns the request as texts, and requestOf the request that they are.
func (q *Request) parts() []string {
	return append([]string{
		q.Client, q.Name, q.Verified, q.Redirect, q.Resource, q.ID, strconv.FormatInt(q.Until.Unix(), 10), q.state, q.challenge, q.key, strconv.FormatBool(q.refresh),
	}, q.Scopes...)
}

const requestParts = 11 // without its scopes

func requestOf(p []string) (*Request, bool) {
	until, err := strconv.ParseInt(p[6], 10, 64)
	return &Request{
		Client: p[0], Name: p[1], Verified: p[2], Redirect: p[3], Resource: p[4], ID: p[5], Until: time.Unix(until, 0), state: p[7], challenge: p[8], key: p[9],
		refresh: p[10] == "true", Scopes: p[requestParts:],
	}, err == nil && time.Now().Before(time.Unix(until, 0))
}

// Text returns the request as a text, which is to be sealed.
func (q *Request) Text() string { return string(seal.Binding(q.parts()...)) }

// ParseRequest returns the request of a Text, if its time is not over.
func ParseRequest(text string) (*Request, bool) {
	p, ok := unpack([]byte(text))
	if !ok || len(p) < requestParts {
		return nil, false
	}
	return requestOf(p)
}

// authorize shows the user what a client wants (OAuth 2.1, section 4.1.1).
// Errors are shown to the user, and sent to the client only if that is on this
// machine: a client that anyone may register must not make this server send users
// elsewhere.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	for name, values := range q {
		if err != nil || len(values) > 1 && name != "resource" || len(values[0]) > maxID {
			s.c.Fault(w, r, http.StatusBadRequest, "The program sent a parameter more than once, or too long a one, or one that cannot be read.")
			return
		}
	}
	c, err := s.clients.registered(q.Get("client_id"))
	if err != nil && isDocument(q.Get("client_id")) {
		c, err = s.clients.documents.client(r.Context(), q.Get("client_id"))
	}
	switch {
	case errors.Is(err, errUnknown):
		s.c.Fault(w, r, http.StatusBadRequest, TextUnknown)
		return
	case err != nil:
		s.c.Fault(w, r, http.StatusBadRequest, "The program cannot be checked: "+err.Error()+".")
		return
	}
	req := &Request{Client: c.ID, Name: c.Name, Verified: c.Verified, Redirect: q.Get("redirect_uri"), state: q.Get("state"), refresh: c.Refresh}
	if req.Redirect == "" && len(c.RedirectURIs) == 1 {
		req.Redirect = c.RedirectURIs[0]
	}
	if !c.allows(req.Redirect) {
		s.c.Fault(w, r, http.StatusBadRequest, "The redirect_uri is not one of the program's.")
		return
	}
	if err := s.c.Accept(r.Context(), c); err != nil {
		s.c.Event("refused", c.ID, nil, err)
		s.c.Fault(w, r, http.StatusForbidden, "This server does not let this program in.")
		return
	}
	if code, description := s.read(req, q); code != "" {
		if Loopback(req.Redirect) {
			s.SendBack(w, req, url.Values{"error": {code}, "error_description": {description}})
		} else {
			s.c.Fault(w, r, http.StatusBadRequest, "The program asked in a way that this server does not accept: "+description+".")
		}
		return
	}
	req.ID, req.Until = rand.Text(), time.Now().Add(TimeToConsent)
	s.c.Ask(w, r, req, s.Keeper.SealText("question", s.browser(w, r, true), req.parts()...))
}

// read reads the rest of a request, and returns what is wrong with it: an error
// code of RFC 6749 or RFC 8707, and a text; both are "" if nothing is.
func (s *Server) read(req *Request, q url.Values) (code, description string) {
	req.challenge, req.Resource = q.Get("code_challenge"), s.resource(q)
	req.Scopes, req.key = strings.Fields(q.Get("scope")), q.Get("dpop_jkt")
	switch {
	case len(req.state) > maxURL:
		return "invalid_request", "the state is too long"
	case q.Get("response_type") != "code":
		return "unsupported_response_type", "response_type must be code"
	case req.challenge == "" || q.Get("code_challenge_method") != "S256":
		return "invalid_request", "PKCE with S256 is required"
	case len(req.challenge) != 43:
		return "invalid_request", "the code_challenge is no SHA-256 hash"
	case req.key != "" && len(req.key) != 43:
		return "invalid_request", "the dpop_jkt is no thumbprint"
	case req.Resource == "":
		return "invalid_target", "the resource must be " + strings.Join(s.c.Resources, " or ")
	}
	if len(req.Scopes) == 0 {
		req.Scopes = slices.Clone(s.c.Scopes[:min(1, len(s.c.Scopes))])
	}
	for _, scope := range req.Scopes {
		if scope != Offline && !slices.Contains(s.c.Scopes, scope) {
			return "invalid_scope", "the scopes are " + strings.Join(append(slices.Clone(s.c.Scopes), Offline), ", ")
		}
	}
	slices.Sort(req.Scopes)
	req.Scopes = slices.Compact(req.Scopes)
	return "", ""
}

// browser returns what a question is bound to, "" for nothing.
func (s *Server) browser(w http.ResponseWriter, r *http.Request, create bool) string {
	if s.c.Browser == nil {
		return ""
	}
	return s.c.Browser(w, r, create)
}

// Hash returns a SHA-256 hash as text.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// SameSite reports whether a form comes from a page of this server, as far as the
// browser says: by Sec-Fetch-Site, or by Origin if it does not send that.
func (s *Server) SameSite(r *http.Request) bool {
	if from := r.Header.Get("Sec-Fetch-Site"); from != "" {
		return from == "same-origin"
	}
	origin := r.Header.Get("Origin")
	return origin == "" || strings.HasPrefix(strings.ToLower(s.c.Issuer)+"/", origin+"/")
}

// consent takes the user's answer. Scopes that the user has taken out are not
// granted; offline_access, which the page does not show, goes with the others.
func (s *Server) consent(w http.ResponseWriter, r *http.Request) {
	if !s.SameSite(r) {
		s.c.Fault(w, r, http.StatusForbidden, "The answer came from a page of another site. Begin again in the program.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		s.c.Fault(w, r, http.StatusBadRequest, "The form cannot be read.")
		return
	}
	place := s.browser(w, r, false)
	if place == "" && s.c.Browser != nil {
		s.c.Fault(w, r, http.StatusForbidden, TextCookie)
		return
	}
	parts, ok := s.Keeper.OpenText("question", place, r.PostForm.Get("id"), requestParts)
	if !ok { // of another browser, or nothing of this server
		s.c.Fault(w, r, http.StatusForbidden, TextCookie)
		return
	}
	req, ok := requestOf(parts)
	if !ok {
		s.c.Fault(w, r, http.StatusForbidden, TextOver)
		return
	}
	if r.PostForm.Get("answer") != "allow" {
		s.c.Event("denied", req.Client, nil, errors.New("the user has not agreed"))
		s.SendBack(w, req, url.Values{"error": {"access_denied"}, "error_description": {"the user has not agreed"}})
		return
	}
	req.Scopes = slices.DeleteFunc(req.Scopes, func(scope string) bool {
		return scope != Offline && !slices.Contains(r.PostForm["scope"], scope)
	})
	s.c.Answered(w, r, req)
}

// SendBack sends the user back to the client (RFC 9207 says with the issuer). What
// the redirect has in its query stays as it is.
func (s *Server) SendBack(w http.ResponseWriter, req *Request, answer url.Values) {
	answer.Set("iss", s.c.Issuer)
	if req.state != "" {
		answer.Set("state", req.state)
	}
	to := req.Redirect
	switch {
	case !strings.Contains(to, "?"):
		to += "?"
	case !strings.HasSuffix(to, "?") && !strings.HasSuffix(to, "&"):
		to += "&"
	}
	w.Header().Set("Location", to+answer.Encode())
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusSeeOther)
}

// verifies reports whether a code_verifier is that of a challenge.
func verifies(challenge, verifier string) bool {
	return len(verifier) >= 43 && len(verifier) <= 128 && subtle.ConstantTimeCompare([]byte(Hash(verifier)), []byte(challenge)) == 1
}
