package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/talaria-go/mcp/auth/internal/jwt"
)

// IntrospectionOptions are the options of a Verifier made by NewIntrospection.
// The zero value has the defaults.
type IntrospectionOptions struct {
	// ClientID and ClientSecret are the credentials of this server, sent with
	// HTTP Basic (RFC 6749, section 2.3.1).
	ClientID, ClientSecret string
	// Authorize, if not nil, authenticates in another way: it may change the
	// request as needed. ClientID and ClientSecret are not used then.
	Authorize func(req *http.Request) error
	// Issuer is the issuer of the tokens, as its metadata names it. It becomes
	// part of the Identity, and responses that name another issuer are refused.
	// If it is empty, the endpoint takes its place and nothing is compared.
	Issuer string
	// Audiences are those whose tokens are accepted; see JWTOptions.Audiences.
	Audiences []string
	// AnyAudience accepts tokens whatever server they were issued for; see
	// JWTOptions.AnyAudience. It is for authorization servers that name no
	// audience, and only if they call tokens for other servers inactive.
	AnyAudience bool
	// Leeway is how far clocks may differ; 0 means 30 s, negative none.
	Leeway time.Duration
	// Client sends the requests; nil means a client that follows no redirects.
	Client *http.Client
	// Timeout limits a request; 0 means 10 s.
	Timeout time.Duration
	// MaxConcurrent limits the requests at a time, so that a flood of invented
	// tokens does not become one of requests to the issuer; beyond it requests
	// to this server are answered with 503. 0 means 64.
	MaxConcurrent int
}

// defaultMaxQuestions is the default of IntrospectionOptions.MaxConcurrent.
const defaultMaxQuestions = 64

// introspection is what NewIntrospection returns. places holds one value for each
// request in progress.
type introspection struct {
	opts      IntrospectionOptions
	endpoint  string
	audiences audiences
	client    *http.Client
	places    chan struct{}
	err       error // what NewIntrospection was given makes no sense
}

// NewIntrospection returns a Verifier that asks the issuer of access tokens about
// them (RFC 7662), at endpoint, an https URL. Answers are kept for
// Options.CacheFor, and requests that arrive with the same token at a time ask
// once. Tokens have to be for the resource that New is given, unless the options
// say otherwise; without either none is accepted. A nil opts stands for the
// defaults. If the arguments make no sense, New and Verify return an error.
func NewIntrospection(endpoint string, opts *IntrospectionOptions) Verifier {
	v := &introspection{endpoint: endpoint}
	if opts != nil {
		v.opts = *opts
	}
	if err := jwt.SafeURL(endpoint); err != nil {
		v.err = fmt.Errorf("auth: NewIntrospection: the endpoint: %w", err)
	}
	v.audiences = newAudiences(v.opts.Audiences, v.opts.AnyAudience)
	v.opts.Leeway = jwt.OrDefault(v.opts.Leeway, defaultLeeway)
	v.opts.Timeout = jwt.OrDefault(v.opts.Timeout, jwt.DefaultTimeout)
	v.client = jwt.HTTPClient(v.opts.Client)
	v.places = make(chan struct{}, max(1, jwt.OrDefault(v.opts.MaxConcurrent, defaultMaxQuestions)))
	return v
}

// bind implements binder.
func (v *introspection) bind(resource string) (Verifier, error) {
	if v.err != nil || !v.audiences.none() {
		return v, v.err
	}
	bound := *v
	bound.audiences = newAudiences([]string{resource}, false)
	return &bound, nil
}

// Issuers implements jwt.Issuer.
func (v *introspection) Issuers() []string {
	if v.opts.Issuer == "" {
		return nil
	}
	return []string{v.opts.Issuer}
}

// Verify implements Verifier.
func (v *introspection) Verify(ctx context.Context, token string) (*Identity, error) {
	switch {
	case v.err != nil:
		return nil, v.err
	case v.audiences.none():
		return nil, errNoAudience
	}
	select {
	case v.places <- struct{}{}:
		defer func() { <-v.places }()
	default:
		return nil, errors.New("auth: too many tokens to ask about at a time")
	}
	ctx, cancel := context.WithTimeout(ctx, v.opts.Timeout)
	defer cancel()
	text, err := v.ask(ctx, token)
	if err != nil {
		return nil, err
	}
	c, err := jwt.Parse(text)
	if err != nil {
		return nil, errors.New("auth: introspection: the answer is malformed") // the token is not to blame
	}
	if active, _ := c.All["active"].(bool); !active {
		return nil, Invalid("the token is not active")
	}
	if err := v.valid(c, time.Now()); err != nil {
		return nil, err
	}
	id := identityOf(c, []string{"scope"})
	if id.Issuer = v.opts.Issuer; id.Issuer == "" {
		id.Issuer = v.endpoint // the subjects of two must not be mixed up
	}
	if id.Subject == "" && id.ClientID == "" {
		id.Subject, _ = c.All["username"].(string)
	}
	return id, nil
}

// ask sends a token to the endpoint and returns the body of the response.
func (v *introspection) ask(ctx context.Context, token string) ([]byte, error) {
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	switch {
	case v.opts.Authorize != nil:
		if err := v.opts.Authorize(req); err != nil {
			return nil, fmt.Errorf("auth: introspection: %w", err)
		}
	case v.opts.ClientID != "":
		req.SetBasicAuth(url.QueryEscape(v.opts.ClientID), url.QueryEscape(v.opts.ClientSecret))
	}
	text, err := jwt.Fetch(v.client, req)
	if err != nil {
		return nil, fmt.Errorf("auth: introspection: %w", err)
	}
	return text, nil
}

// valid checks the response. Unlike the claims of a JWT it may omit the times:
// "active" says that they are right.
func (v *introspection) valid(c *jwt.Claims, now time.Time) error {
	leeway := v.opts.Leeway
	switch {
	case c.Issuer != "" && v.opts.Issuer != "" && c.Issuer != v.opts.Issuer:
		return Invalid("the token is of an issuer that this server does not trust")
	case !v.audiences.include(c.Audience):
		return Invalid("the token was issued for another server")
	case c.Other(jwt.Access):
		return Invalid("the token is of another type than access tokens are")
	case c.Unbound():
		return Invalid("the token is bound in a way that this server cannot check")
	case c.Expiry != nil && !now.Before(jwt.Date(*c.Expiry).Add(leeway)):
		return Invalid("the token has expired")
	case c.NotBefore != nil && now.Add(leeway).Before(jwt.Date(*c.NotBefore)):
		return Invalid("the token is not valid yet")
	}
	return nil
}
