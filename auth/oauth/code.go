package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"

	"golang.org/x/oauth2"
)

// AuthorizationCode is the grant of users: an authorization server asks the
// user for consent in a browser (OAuth 2.1, section 4.1). PKCE with S256 is
// used always, and servers without it are refused.
type AuthorizationCode struct {
	// Agent takes the user to the authorization server and brings its answer
	// back; nil means &Loopback{}.
	Agent UserAgent
}

// UserAgent takes users to authorization servers. Loopback and Manual implement
// it. Flows of one Client call it one at a time.
type UserAgent interface {
	// Open prepares one visit. The redirect URI of the visit should be one of
	// registered if possible, because the authorization server knows those
	// already.
	Open(ctx context.Context, registered []string) (Visit, error)
}

// Visit is one visit of the user to an authorization server. Its methods are
// called by one goroutine, Close exactly once.
type Visit interface {
	// RedirectURI is where the authorization server is to send the user.
	RedirectURI() string
	// Authorize takes the user to the URL and returns the URL that the user was
	// sent to in the end: the redirect URI with the answer in its query. It
	// need not check the answer.
	Authorize(ctx context.Context, authorizeURL string) (redirected string, err error)
	// Close ends the visit, whether or not it came to an answer.
	Close() error
}

// check, extension, kind, interactive, trusts and obtain implement Grant.
func (*AuthorizationCode) check() error { return nil }

func (*AuthorizationCode) extension() string { return "" }

func (*AuthorizationCode) kind() string { return grantCode }

func (*AuthorizationCode) interactive() bool { return true }

func (*AuthorizationCode) trusts() []*url.URL { return nil }

func (g *AuthorizationCode) obtain(ctx context.Context, r *grantRequest) (*tokenAnswer, error) {
	if err := r.authority.server.checkCode(); err != nil {
		return nil, err
	}
	if err := r.attend(ctx); err != nil {
		return nil, err
	}
	c, issuer := r.client, r.authority.server.Issuer
	for again := false; ; again = true {
		token, err := g.visit(ctx, r)
		if r.used == nil || !hasCode(err, "invalid_client", "unauthorized_client") {
			return token, err
		}
		// The authorization server does not know the client. One that was
		// registered dynamically is forgotten. If that was before this login, the
		// user is asked once more, for a new one; a client that is refused right
		// after it was registered is refused for good.
		if failure := c.storage.forgetClient(ctx, issuer, r.used.ClientID); failure != nil {
			return nil, failure
		}
		if again || !r.used.stored {
			return nil, err
		}
		r.used = nil
	}
}

// visit takes the user to the authorization server once and exchanges the code
// for a token. Each visit has a state and a PKCE verifier of its own.
func (g *AuthorizationCode) visit(ctx context.Context, r *grantRequest) (_ *tokenAnswer, err error) {
	c, server := r.client, r.authority.server
	ctx, cancel := context.WithTimeout(ctx, c.opts.LoginTimeout)
	defer cancel()
	failed := func(err error) error {
		return &Error{Step: StepAuthorization, URL: server.Issuer, Err: err}
	}
	agent := g.Agent
	if agent == nil {
		agent = &Loopback{}
	}
	known, err := c.storage.registered(ctx, server.Issuer)
	if err != nil {
		return nil, err
	}
	var uris []string
	if known != nil {
		uris = known.RedirectURIs
	}
	visit, err := agent.Open(ctx, uris)
	if err != nil {
		return nil, failed(err)
	}
	defer func() {
		if closing := visit.Close(); err == nil && closing != nil {
			err = failed(closing)
		}
	}()
	client, err := c.registrar.registration(ctx, server, c.registrar.codeMetadata(visit.RedirectURI()))
	if err != nil {
		return nil, err
	}
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	r.used, r.shown = client, true
	redirected, err := visit.Authorize(ctx, r.authorizeURL(client, visit.RedirectURI(), state, verifier))
	if err != nil {
		if client.stored && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w (if the page did not know the client: Client.ForgetRegistration)", err)
		}
		return nil, failed(err)
	}
	code, err := readAnswer(redirected, visit.RedirectURI(), state, server)
	if err != nil {
		return nil, err
	}
	return r.ask(ctx, client, url.Values{
		"grant_type":    {grantCode},
		"code":          {code},
		"redirect_uri":  {visit.RedirectURI()},
		"code_verifier": {verifier},
	})
}

// readAnswer returns the code in an authorization response, after checking that the response belongs
// to this visit and comes from this issuer (RFC 9207, section 2.4). If it does not, not even its error
// is used, since anyone may have sent it.
//
// https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#authorization-response-validation
func readAnswer(redirected, redirectURI, state string, server *serverMetadata) (string, error) {
	failed := func(e Error) (string, error) {
		e.Step, e.URL = StepAuthorization, server.Issuer
		return "", &e
	}
	u, err := url.Parse(redirected)
	if err != nil {
		return failed(Error{Problem: "the answer is no URL"}) // err quotes it, with the code
	}
	want, err := url.Parse(redirectURI)
	if err != nil || u.Scheme != want.Scheme || u.Host != want.Host || u.Path != want.Path {
		return failed(Error{Problem: "the answer did not come to the redirect URI " + redirectURI})
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return failed(Error{Problem: "the query of the answer is malformed"})
	}
	for _, name := range []string{"state", "iss", "code", "error"} {
		if len(query[name]) > 1 {
			return failed(Error{Problem: "the answer has the parameter " + name + " twice"})
		}
	}
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(state)) != 1 {
		return failed(Error{Problem: "the answer has another state than the request: it belongs to no visit of this client"})
	}
	switch {
	case query.Has("iss") && query.Get("iss") != server.Issuer:
		return failed(Error{Problem: "the answer comes from " + printable(query.Get("iss")) + ", another issuer (RFC 9207)"})
	case !query.Has("iss") && server.IssuerParameterPromise:
		return failed(Error{Problem: "the answer has no iss parameter, which the metadata promises (RFC 9207)"})
	}
	if code := query.Get("error"); code != "" {
		e := Error{Code: code, Problem: "the authorization server refuses"}
		if text := query.Get("error_description"); text != "" {
			e.Problem += " and says " + printable(text)
		}
		return failed(e)
	}
	if query.Get("code") == "" {
		return failed(Error{Problem: "the answer has no code"})
	}
	return query.Get("code"), nil
}
