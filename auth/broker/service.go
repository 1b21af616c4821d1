package broker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/ask"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/wire"
)

// Service is a service beyond the server, which handlers call as their caller, such as an issue
// tracker. The vault has the tokens of each user who connected it. It is safe for
// concurrent use.
type Service struct {
	b    *Broker
	name string
	key  string    // of its entries; "" for the tokens of the login
	up   *upstream // the provider
	opts ServiceOptions
}

// ServiceOptions are the options of a Service.
type ServiceOptions struct {
	// Origins are where tokens may go, such as https://api.github.com: https, or http
	// on this machine. Client needs at least one.
	Origins []string
	// Scopes are asked of the provider; nil means Provider.Scopes. They must be nil for
	// the provider of the login.
	Scopes []string
	// Transport carries the requests of Client; nil means http.DefaultTransport. It is
	// called by many goroutines at once, on those of the handler.
	Transport http.RoundTripper
}

// connectWait is how long a call waits for the user who has agreed to connect a
// service.
const connectWait = 45 * time.Second

// serviceTimeout is how long a request of Client takes at most, with its body.
const serviceTimeout = 30 * time.Second

// ConnectError means that the caller has to connect a service first, or cannot. Its
// text is for the model. A handler returns it as it is.
type ConnectError struct {
	Service string
	// URL is the page where the user connects the service; "" where that cannot help.
	// It works for ten minutes, and only for the caller.
	URL string
	// Code is
	//   - missing: the user has not connected the service
	//   - refused: the service refused the tokens of the user
	//   - foreign: the caller did not log in at the provider of the Broker
	Code string

	issuer string // of the logins that can be used, with foreign
}

// The codes of ConnectError.
const (
	codeMissing = "missing"
	codeRefused = "refused"
	codeForeign = "foreign"
)

// Error says what the model has to do.
func (e *ConnectError) Error() string {
	switch e.Code {
	case codeForeign:
		return e.Service + " cannot be used: this caller did not log in at " + e.issuer
	case codeRefused:
		return e.Service + " refused the login of this user: ask the user to open " + e.URL + ", then call again"
	}
	return e.Service + " is not connected: ask the user to open " + e.URL + ", then call again"
}

// serviceName is what names of services look like: they are part of a path.
var serviceName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// Service makes a Service. name is shown to users, and is part of the redirect URI to
// register at the provider, ISSUER/callback/NAME: up to 32 small letters, digits, dashes
// and underscores. p nil stands for the provider of the login and the tokens that it
// gave, without a second visit. Arguments are copied. Services are made before the
// Broker serves. An error names everything that makes no sense.
func (b *Broker) Service(name string, p *Provider, o *ServiceOptions) (*Service, error) {
	s := &Service{b: b, name: name, key: name, up: b.login}
	if o != nil {
		s.opts = *o
		s.opts.Origins, s.opts.Scopes = slices.Clone(o.Origins), slices.Clone(o.Scopes)
	}
	var faults []error
	if !serviceName.MatchString(name) {
		faults = append(faults, fmt.Errorf("name %q: use up to 32 small letters, digits, dashes and underscores", name))
	}
	if b.services[name] != nil {
		faults = append(faults, errors.New("there is a Service of that name already"))
	}
	for i, origin := range s.opts.Origins {
		u, err := url.Parse(origin)
		if err != nil || !sendable(u) || strings.TrimSuffix(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			faults = append(faults, fmt.Errorf("origin %q is not like https://api.example.com", origin))
			continue
		}
		s.opts.Origins[i] = originOf(u)
	}
	switch {
	case p != nil:
		faults = append(faults, p.faults(false)...)
		s.up = newUpstream(p, b.opts.Transport)
	case s.opts.Scopes != nil:
		faults = append(faults, errors.New("the Scopes are those of the Provider of the login: name them there"))
	default:
		s.key = ""
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("broker: Service %q: %w", name, err)
	}
	if s.opts.Transport == nil {
		s.opts.Transport = http.DefaultTransport
	}
	b.services[name] = s
	return s, nil
}

// originOf returns the origin of a URL, with the port that its scheme stands for.
func originOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// sendable reports whether a token may be sent to a URL, as far as its scheme goes.
func sendable(u *url.URL) bool {
	return u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && facts.Loopback(u.Hostname()))
}

// scopes returns what is asked of the provider for the service.
func (s *Service) scopes() []string {
	if s.opts.Scopes != nil {
		return s.opts.Scopes
	}
	return s.up.p.Scopes
}

// Client returns an HTTP client that adds the token of the caller of f to requests to
// Origins. A redirect elsewhere is followed without it; a request that has an
// Authorization header keeps that. The client works until f ends. Its Timeout is 30 seconds,
// which a handler may change. After status 401 it refreshes the token once and sends the
// request again, if its body can be sent again; a second 401 is a *ConnectError.
//
// A user who has not connected the service is asked to, by URL elicitation: the error
// may be mcp.ErrInputRequired, which the handler has to return. It is a *ConnectError
// if the client cannot ask so, if the user does not agree, or has not connected within
// 45 seconds after that. It is called by many goroutines at once.
func (s *Service) Client(f *frame.Frame) (*http.Client, error) {
	if len(s.opts.Origins) == 0 {
		return nil, fmt.Errorf("broker: Service %q has no Origins: Client would send tokens nowhere", s.name)
	}
	t, err := s.token(f)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &caller{s: s, f: f, token: t}, Timeout: serviceTimeout}, nil
}

// Token returns an access token of the caller of f, for other libraries; there is no
// refresh token with it. Its errors are those of Client. Send it nowhere but to the service.
func (s *Service) Token(f *frame.Frame) (*oauth2.Token, error) {
	t, err := s.token(f)
	if err != nil {
		return nil, err
	}
	return shown(t), nil
}

// shown returns a token without what refreshes it.
func shown(t *oauth2.Token) *oauth2.Token {
	return &oauth2.Token{AccessToken: t.AccessToken, TokenType: t.TokenType, Expiry: t.Expiry}
}

// token returns a token of the caller, who is asked to connect the service first.
func (s *Service) token(f *frame.Frame) (*oauth2.Token, error) {
	id := f.Identity()
	if id == nil || id.Subject == "" || id.Issuer != s.b.login.origin() {
		return nil, &ConnectError{Service: s.name, Code: codeForeign, issuer: s.b.login.origin()}
	}
	t, err := s.b.vault.fresh(f, s.up, id.Principal(), s.key, false)
	if !errors.Is(err, errNone) && !errors.Is(err, errRefused) {
		return t, s.failed(err)
	}
	if t, err := s.connect(f); t != nil || err != nil {
		return t, err
	}
	return nil, s.missing(f, err)
}

// failed returns the error of a call that got no token, nil for nil.
func (s *Service) failed(err error) error {
	if err == nil {
		return nil
	}
	return &unavailableError{s.name, err}
}

// unavailableError means that there are no tokens of a service at present. Its text is
// for the model, and leaves the cause out, which may have an address inside the network.
type unavailableError struct {
	service string
	cause   error
}

func (e *unavailableError) Error() string {
	return "broker: the tokens of " + e.service + " are not available now: try again in a minute"
}

func (e *unavailableError) Unwrap() error { return e.cause }

// missing returns the error of a caller without tokens, or with such as were refused.
func (s *Service) missing(f *frame.Frame, cause error) error {
	e := &ConnectError{Service: s.name, Code: codeMissing, URL: s.b.connect.link(f, s)}
	if errors.Is(cause, errRefused) {
		e.Code = codeRefused
	}
	return e
}

// unusable returns the error of a request whose token could not be had.
func (s *Service) unusable(f *frame.Frame, err error) error {
	if errors.Is(err, errNone) || errors.Is(err, errRefused) {
		return s.missing(f, err)
	}
	return s.failed(err)
}

// connect asks the caller to connect the service, and waits for that after the user
// agreed. Without a token and an error the user did not.
func (s *Service) connect(f *frame.Frame) (*oauth2.Token, error) {
	if can := f.ClientCapabilities().Elicitation; can == nil || can.URL == nil {
		return nil, nil
	}
	what := "broker connect " + s.name
	link, err := ask.Once(f, what, func() (string, error) { return s.b.connect.link(f, s), nil })
	if err != nil {
		return nil, err
	}
	answer, err := ask.ElicitURL(f, what, "Connect "+s.name+" to go on.", link)
	switch {
	case errors.Is(err, wire.ErrInputRequired), err != nil && f.Err() != nil:
		return nil, err
	case err != nil || !answer.Accepted():
		return nil, nil // nothing can be asked here, or the user said no
	}
	wait, stop := context.WithTimeout(f, connectWait)
	defer stop()
	t, err := s.b.vault.await(wait, s.up, f.Principal(), s.key)
	if err != nil && f.Err() == nil && wait.Err() != nil {
		return nil, nil
	}
	return t, s.failed(err)
}

// Disconnect forgets the tokens of a user, given by its principal, at all replicas. It
// ends them at the provider before, where that is possible; an Event says whether it
// was. With the provider of the login, the login's tokens are forgotten, too.
func (s *Service) Disconnect(ctx context.Context, principal string) error {
	revoked, err := s.b.vault.forget(ctx, s.up, principal, s.key, "")
	if err != nil {
		return s.failed(err)
	}
	e := Event{Kind: "revoked", Principal: principal, Service: s.name}
	if !revoked {
		e.Err = errors.New("the provider was not asked to end the tokens, or could not")
	}
	s.b.event(e)
	return nil
}
