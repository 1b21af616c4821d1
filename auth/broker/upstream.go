package broker

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/internal/jwt"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
)

// Limits of requests to providers.
const (
	providerTimeout = 10 * time.Second
	maxRequests     = 64               // at a time, to one provider
	discoveryAge    = time.Hour        // time for which the metadata of a provider is used
	discoveryPause  = 10 * time.Second // interval after a discovery that failed
	providerLeeway  = 30 * time.Second // by which the clock of a provider may differ
	maxSubject      = 1 << 10          // bytes of the subject of a user
)

// upstream is a Provider in use. It is safe for concurrent use.
type upstream struct {
	p      Provider
	web    *http.Client
	places chan struct{} // has a value for each request in progress
	header atomic.Bool   // a provider without metadata takes the secret in the header only
	lock   chan struct{} // has a value while found is used
	found  *endpoints    // nil until the first use
	failed error         // of the last discovery; nil if it succeeded
	until  time.Time     // when the metadata is due to be discovered
}

// endpoints are where a provider is. They do not change.
type endpoints struct {
	auth, token, revoke string
	sendsIssuer         bool
	style               oauth2.AuthStyle
	ids                 *jwt.Verifier // of ID tokens; nil without an Issuer
}

// errBusy, or an error that wraps it, means that a provider did not answer: the
// same may succeed later. Any other error of upstream is final.
var errBusy = errors.New("the provider does not answer")

// awayError is errBusy with its cause. Its text leaves the cause out, which may have
// an address inside the network.
type awayError struct{ cause error }

func (*awayError) Error() string     { return errBusy.Error() }
func (e *awayError) Unwrap() []error { return []error{errBusy, e.cause} }

// refusedError is the answer of a provider that refuses.
type refusedError struct {
	status int
	code   string // of RFC 6749, or a provider's own
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("the provider answered with status %d and error %q", e.status, visible.Line(e.code, 100))
}

// aboutRequest are the errors of RFC 6749 (section 5.2) and RFC 8707 for a request whose client
// the provider has recognized. Keycloak answers a wrong secret with unauthorized_client.
var aboutRequest = []string{"invalid_grant", "unsupported_grant_type", "invalid_scope", "invalid_target", "access_denied", "temporarily_unavailable"}

// client reports whether the provider may not have recognized the client: a status 401 says so,
// unless its error is about what the client sent.
func (e *refusedError) client() bool {
	return e.code == "invalid_client" || e.status == http.StatusUnauthorized && !slices.Contains(aboutRequest, e.code)
}

func newUpstream(p *Provider, base http.RoundTripper) *upstream {
	u := &upstream{p: *p, places: make(chan struct{}, maxRequests), lock: make(chan struct{}, 1)}
	u.p.Scopes = slices.Clone(p.Scopes)
	if u.p.Scopes == nil && p.Issuer != "" {
		u.p.Scopes = []string{"openid", "profile", "email"}
	}
	u.p.Params = url.Values{}
	for name, values := range p.Params {
		u.p.Params[name] = slices.Clone(values)
	}
	u.web = &http.Client{
		Transport: base, Timeout: providerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return u
}

// address returns the URL that a provider is known by.
func (u *upstream) address() string {
	if u.p.Issuer != "" {
		return u.p.Issuer
	}
	return u.p.AuthURL
}

// name returns what people know the provider by: the host of its address.
func (u *upstream) name() string {
	if at, err := url.Parse(u.address()); err == nil {
		return at.Host
	}
	return u.address()
}

// origin returns the issuer of the identities of this provider: Issuer, or the
// origin of AuthURL.
func (u *upstream) origin() string {
	if u.p.Issuer != "" {
		return u.p.Issuer
	}
	at, err := url.Parse(u.p.AuthURL)
	if err != nil {
		return u.p.AuthURL
	}
	return at.Scheme + "://" + at.Host
}

// ask calls fn, which sends requests to the provider, in the guard and within the
// limits. Whatever is not an answer of the provider becomes errBusy.
func (u *upstream) ask(ctx context.Context, fn func(ctx context.Context) error) error {
	select {
	case u.places <- struct{}{}:
		defer func() { <-u.places }()
	default:
		return fmt.Errorf("%w: too many requests at a time", errBusy)
	}
	ctx, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	// On a goroutine of its own: the transport and Provider.User are users' code.
	err := safely.Try(func() error { return fn(context.WithValue(ctx, oauth2.HTTPClient, u.web)) })
	if failed, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		status := 0
		if failed.Response != nil {
			status = failed.Response.StatusCode
		}
		err = &refusedError{status, failed.ErrorCode} // not its body, which may repeat what was sent
		if status >= 500 || status == http.StatusTooManyRequests || failed.ErrorCode == "temporarily_unavailable" {
			return fmt.Errorf("%w: %w", errBusy, err)
		}
		return err
	}
	invalid, ok := errors.AsType[*auth.Error](err)
	if err == nil || ok && invalid.Status == http.StatusUnauthorized || errors.Is(err, errBadToken) {
		return err
	}
	return &awayError{err}
}

// errBadToken is wrapped by errors of an ID token, or its lack.
var errBadToken = errors.New("the ID token is not valid")

// at returns the endpoints, which the first call discovers. If they cannot be
// discovered again later, those that are known stay. A discovery that failed is the
// answer to all calls for discoveryPause.
func (u *upstream) at(ctx context.Context) (*endpoints, error) {
	if u.p.Issuer == "" {
		e := &endpoints{auth: u.p.AuthURL, token: u.p.TokenURL, revoke: u.p.RevokeURL, style: oauth2.AuthStyleInParams}
		if u.header.Load() {
			e.style = oauth2.AuthStyleInHeader
		}
		return e, nil
	}
	wait, stop := context.WithTimeout(ctx, providerTimeout)
	defer stop()
	select {
	case u.lock <- struct{}{}:
		defer func() { <-u.lock }()
	case <-wait.Done():
		return nil, &awayError{context.Cause(wait)}
	}
	if !time.Now().Before(u.until) {
		var e *endpoints
		// A caller that is gone says nothing about the provider.
		u.failed = u.ask(context.WithoutCancel(ctx), func(ctx context.Context) (err error) { e, err = u.discover(ctx); return err })
		if u.until = time.Now().Add(discoveryPause); u.failed == nil {
			u.found, u.until = e, time.Now().Add(discoveryAge)
		}
	}
	if u.found != nil {
		return u.found, nil
	}
	return nil, u.failed
}

// discover gets the endpoints from the metadata of the provider.
func (u *upstream) discover(ctx context.Context) (*endpoints, error) {
	m, err := jwt.Discover(ctx, u.web, u.p.Issuer)
	if err != nil {
		return nil, err
	}
	for _, where := range []string{m.Authorize, m.Token, m.Keys} {
		if err := jwt.SafeURL(where); err != nil {
			return nil, fmt.Errorf("the metadata of %s: %w", u.p.Issuer, err)
		}
	}
	e := &endpoints{auth: m.Authorize, token: m.Token, revoke: u.p.RevokeURL, sendsIssuer: m.SendsIssuer}
	if e.revoke == "" && jwt.SafeURL(m.Revoke) == nil {
		e.revoke = m.Revoke
	}
	e.style = oauth2.AuthStyleInHeader
	if u.p.ClientSecret == "" || len(m.AuthMethods) > 0 && !slices.Contains(m.AuthMethods, "client_secret_basic") {
		e.style = oauth2.AuthStyleInParams
	}
	if u.found != nil && u.found.ids != nil {
		e.ids = u.found.ids // and its keys
		return e, nil
	}
	algorithms, err := jwt.Algorithms(jwt.Asymmetric)
	if err != nil {
		return nil, err
	}
	keys, err := jwt.NewKeys(u.p.Issuer, jwt.KeyOptions{Client: u.web})
	e.ids = &jwt.Verifier{Kind: jwt.ID, Issuer: u.p.Issuer, Algorithms: algorithms, Leeway: providerLeeway, Keys: keys}
	return e, err
}

// request gets tokens by get. The secret is in the form if no metadata says where the
// provider takes it. A provider that does not recognize the client there receives it in
// the header, in this and all later requests. Nothing else is sent twice: a provider could
// take a second request with the same code or token for theft.
func (u *upstream) request(ctx context.Context, redirect string, get func(context.Context, *oauth2.Config) (*oauth2.Token, error)) (t *oauth2.Token, err error) {
	e, err := u.at(ctx)
	if err != nil {
		return nil, err
	}
	c := &oauth2.Config{
		ClientID: u.p.ClientID, ClientSecret: u.p.ClientSecret, RedirectURL: redirect,
		Endpoint: oauth2.Endpoint{AuthURL: e.auth, TokenURL: e.token, AuthStyle: e.style},
	}
	send := func(ctx context.Context) (err error) { t, err = get(ctx, c); return err }
	err = u.ask(ctx, send)
	refused, ok := errors.AsType[*refusedError](err)
	if u.p.Issuer != "" || u.p.ClientSecret == "" || e.style != oauth2.AuthStyleInParams || !ok || errors.Is(err, errBusy) || !refused.client() {
		return t, err
	}
	c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if again := u.ask(ctx, send); again == nil {
		u.header.Store(true)
		return t, nil
	}
	return nil, err
}

// exchange redeems a code.
func (u *upstream) exchange(ctx context.Context, code, verifier, redirect string) (*oauth2.Token, error) {
	return u.request(ctx, redirect, func(ctx context.Context, c *oauth2.Config) (*oauth2.Token, error) {
		return c.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	})
}

// aboutUs are errors by which a provider refuses this server, not a user. Any other
// means that the tokens of the user have ended: providers have names of their own for
// that.
var aboutUs = []string{
	"", "invalid_client", "invalid_request", "invalid_scope", "unsupported_grant_type", "slow_down", "server_error",
	"incorrect_client_credentials", "invalid_client_id", "bad_client_secret", // of GitHub and Slack
}

// refresh gets newer tokens, keeping the refresh token if the provider gives no
// other.
func (u *upstream) refresh(ctx context.Context, t *oauth2.Token) (*oauth2.Token, error) {
	newer, err := u.request(ctx, "", func(ctx context.Context, c *oauth2.Config) (*oauth2.Token, error) {
		return c.TokenSource(ctx, &oauth2.Token{RefreshToken: t.RefreshToken}).Token()
	})
	if refused, ok := errors.AsType[*refusedError](err); ok && !errors.Is(err, errBusy) && (refused.client() || slices.Contains(aboutUs, refused.code)) {
		err = fmt.Errorf("%w: %w", errBusy, err)
	}
	return newer, err
}

// revoke ends the tokens at the provider, and reports whether it could.
func (u *upstream) revoke(ctx context.Context, t *oauth2.Token) (ended bool, err error) {
	e, err := u.at(ctx)
	if err != nil || e.revoke == "" {
		return false, err
	}
	form := url.Values{"token": {t.RefreshToken}, "token_type_hint": {"refresh_token"}}
	if t.RefreshToken == "" {
		form = url.Values{"token": {t.AccessToken}, "token_type_hint": {"access_token"}}
	}
	if e.style == oauth2.AuthStyleInParams {
		form.Set("client_id", u.p.ClientID)
		if u.p.ClientSecret != "" {
			form.Set("client_secret", u.p.ClientSecret)
		}
	}
	err = u.ask(ctx, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.revoke, strings.NewReader(form.Encode()))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if e.style != oauth2.AuthStyleInParams {
			req.SetBasicAuth(url.QueryEscape(u.p.ClientID), url.QueryEscape(u.p.ClientSecret))
		}
		res, err := u.web.Do(req)
		if err != nil {
			return err
		}
		ended = res.StatusCode == http.StatusOK
		return res.Body.Close()
	})
	return ended, err
}

// identify returns whose a token is: by its ID token, whose nonce must be nonce
// unless that is "", or by Provider.User. Issuer is that of origin. nil without an
// error means that the answer does not say.
func (u *upstream) identify(ctx context.Context, t *oauth2.Token, nonce string) (id *auth.Identity, err error) {
	e, err := u.at(ctx)
	if err != nil {
		return nil, err
	}
	raw, _ := t.Extra("id_token").(string)
	switch {
	case e.ids != nil && raw != "":
		err = u.ask(ctx, func(ctx context.Context) (err error) { id, err = u.verify(ctx, e.ids, raw, nonce); return err })
	case u.p.User != nil:
		err = u.ask(ctx, func(ctx context.Context) (err error) {
			if id, err = u.p.User(ctx, &http.Client{Transport: &bearer{u.web.Transport, t.AccessToken}, Timeout: providerTimeout}); err != nil {
				return err
			}
			if id == nil || id.Subject == "" {
				return errors.New("Provider.User named no Subject")
			}
			id = &auth.Identity{Subject: id.Subject, Claims: id.Claims}
			return nil
		})
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(id.Subject) > maxSubject {
		return nil, fmt.Errorf("%w: the subject has more than %d bytes", errBadToken, maxSubject)
	}
	id.Issuer = u.origin()
	return id, nil
}

// verify verifies an ID token (OpenID Connect Core, section 3.1.3.7).
func (u *upstream) verify(ctx context.Context, ids *jwt.Verifier, raw, nonce string) (*auth.Identity, error) {
	c, err := ids.Verify(ctx, raw, func(audience []string) bool { return slices.Contains(audience, u.p.ClientID) })
	if refused, ok := errors.AsType[*jwt.Refusal](err); ok {
		return nil, fmt.Errorf("%w: %w", errBadToken, refused)
	} else if err != nil {
		return nil, err
	}
	party, named := c.All["azp"].(string)
	said, _ := c.All["nonce"].(string)
	switch {
	case named && party != u.p.ClientID, !named && len(c.Audience) > 1:
		return nil, fmt.Errorf("%w: it was issued for another client", errBadToken)
	case nonce != "" && subtle.ConstantTimeCompare([]byte(nonce), []byte(said)) == 0:
		return nil, fmt.Errorf("%w: it is of another login", errBadToken)
	}
	claim := u.p.Subject
	if claim == "" {
		claim = "sub"
	}
	subject, _ := c.All[claim].(string)
	if subject == "" {
		return nil, fmt.Errorf("%w: it has no claim %s that is a text", errBadToken, claim)
	}
	return &auth.Identity{Subject: subject, Claims: c.All}, nil
}

// bearer adds a token to requests. It sends it over https, or on this machine, and
// http.Client follows no redirect with it to another host.
type bearer struct {
	base  http.RoundTripper
	token string
}

// RoundTrip implements http.RoundTripper.
func (t *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := jwt.SafeURL(r.URL.String()); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	if r.Response == nil { // no redirect, which may lead elsewhere
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	base := t.base
	if base == nil {
		base = http.DefaultTransport
	}
	return base.RoundTrip(r)
}
