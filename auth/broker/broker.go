package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/outbound"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// Options are the options of a Broker. Resources must be set.
type Options struct {
	// Resources are the URLs that tokens are for, as auth.New has them.
	Resources []string
	// Scopes are what users may allow. A client that asks for none gets the first.
	Scopes []Scope
	// Keys are secrets of at least 16 random bytes that all replicas share, as
	// mcp.Options.StateKeys. The first seals and each of them opens. They are
	// required with an https issuer and with a Store. A key that is removed ends the
	// clients and logins that it sealed.
	Keys [][]byte
	// Store has the logins and tokens of users. nil means scale.NewLocal: one
	// process, whose restart ends all logins and connections.
	Store scale.Store
	// Name is that of the server, for the pages; "" means the host of the issuer.
	Name string
	// Accept, if not nil, says which clients may be used: an error refuses the
	// client. It is asked at registration, question, token and refresh.
	Accept func(ctx context.Context, c *Client) error
	// Permit, if not nil, says who may enter, and with which of id.Scopes. It is asked
	// at a login and after each check at the provider; an error refuses. nil lets
	// every user of the provider enter with all scopes.
	Permit func(ctx context.Context, id *auth.Identity) (scopes []string, err error)
	// Clients are registered beforehand.
	Clients []Client
	// Lifetime is that of access tokens; 0 means an hour. Refresh is that of logins
	// after their last refresh; 0 means 30 days.
	Lifetime, Refresh time.Duration
	// Transport sends requests to providers; nil means http.DefaultTransport.
	// Documents of clients are never fetched with it.
	Transport http.RoundTripper
	// Event, if not nil, is called for an audit: see Event. It is called by many
	// goroutines at once.
	Event func(Event)
}

// The defaults of Options.
const (
	defaultLifetime = time.Hour
	defaultRefresh  = 30 * 24 * time.Hour
)

// Scope is something that a user can allow. Allows says for people what that is,
// such as "read your notes"; it may be empty.
type Scope struct{ Name, Allows string }

// Client is a program that users let in. The ID of one that has registered itself
// is a short name for logs, and its Name is what it says of itself. Secret is only
// used in Options.Clients; "" means a public client.
type Client struct {
	ID, Secret, Name string
	RedirectURIs     []string
}

// Event is something that an audit records.
type Event struct {
	// Kind is one of
	//   - login: a user logged in
	//   - denied: a user or a provider said no
	//   - refused: Accept or Permit refused, or a request that had to be refused
	//   - reused: a code or a refresh token came again, which ended its login
	//   - connected: a user connected a service
	//   - revoked: a login, all logins of a user, or a connection ended
	Kind string
	// Client, Principal and Service name what it is about; each may be "".
	Client, Principal, Service string
	// Err is the cause, or nil. It has no token, secret or code.
	Err error
}

// Broker is an authorization server in front of a Provider. It is safe for
// concurrent use.
type Broker struct {
	opts     Options
	issuer   string
	secure   bool // the issuer is https
	login    *upstream
	services map[string]*Service
	vault    *vault     // the tokens of providers
	connect  *connector // the page on which users connect services
	browsers browsers
	pages    pages
}

// New returns a Broker that is reached at issuer, an https URL, or for development
// an http one on this machine, without a slash at the end. Users log in at p.
// Arguments are copied. An error names everything that makes no sense in them.
// Nothing is fetched.
func New(issuer string, p *Provider, o *Options) (*Broker, error) {
	b := &Broker{issuer: issuer, services: map[string]*Service{}}
	if o != nil {
		b.opts = *o
	}
	faults := b.faults()
	if p == nil {
		faults = append(faults, errors.New("the Provider is missing"))
	} else {
		faults = append(faults, p.faults(true)...)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	b.login = newUpstream(p, b.opts.Transport)
	store := b.opts.Store
	if store == nil {
		store = scale.NewLocal()
	}
	var err error
	b.vault, err = newVault(issuer, bus.Guard(store), b.opts.Keys)
	tickets, err2 := seal.New("broker/connect", b.opts.Keys...)
	if err := cmp.Or(err, err2); err != nil {
		return nil, fmt.Errorf("broker: Keys: %w", err)
	}
	b.connect, b.browsers, b.pages = &connector{b, tickets}, browsers{b.secure}, newPages(b.opts.Name, issuer)
	return b, nil
}

// faults returns what is wrong with issuer and options.
func (b *Broker) faults() (faults []error) {
	u, err := url.Parse(b.issuer)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !outbound.Loopback(u.Hostname())):
		faults = append(faults, fmt.Errorf("issuer %q is neither https nor on this machine", b.issuer))
	case u.RawQuery != "" || u.Fragment != "" || u.User != nil || strings.HasSuffix(b.issuer, "/"):
		faults = append(faults, fmt.Errorf("issuer %q has a query, a fragment, a user or a slash at its end", b.issuer))
	default:
		b.secure = u.Scheme == "https"
	}
	if len(b.opts.Keys) == 0 && (b.secure || b.opts.Store != nil) {
		faults = append(faults, errors.New("Keys are missing: after a restart every client would have to be added again"))
	}
	if len(b.opts.Resources) == 0 {
		faults = append(faults, errors.New("Resources are missing: name the URL of the MCP endpoint"))
	}
	return faults
}

// Middleware answers the requests to the endpoints and pages of the Broker; all
// others pass to next. It goes before the router of the whole host, as
// auth.Resource.Metadata does.
func (b *Broker) Middleware(next http.Handler) http.Handler { return next }

// Verifier returns the Verifier of the tokens for a resource, for auth.New, which
// learns the issuer from it.
func (b *Broker) Verifier(resource string) auth.Verifier { return &verifier{b: b, resource: resource} }

// Revoke ends all logins of a user, at all replicas, within auth.Options.CacheFor.
// Connections to services stay. A user who may still log in can do so
// again.
func (b *Broker) Revoke(ctx context.Context, principal string) error {
	return errors.New("broker: not there yet")
}

// verifier is what Broker.Verifier returns.
type verifier struct {
	b        *Broker
	resource string
}

// Verify implements auth.Verifier.
func (v *verifier) Verify(ctx context.Context, token string) (*auth.Identity, error) {
	return nil, auth.Invalid("the token is not one of this server")
}

// accept asks Options.Accept about a client.
func (b *Broker) accept(ctx context.Context, c *Client) error {
	if b.opts.Accept == nil {
		return nil
	}
	return safely.Known(safely.Try(func() error { return b.opts.Accept(ctx, c) }))
}

// permit asks Options.Permit about a user, who may get scopes. It returns those of
// them that remain.
func (b *Broker) permit(ctx context.Context, id *auth.Identity, scopes []string) (left []string, err error) {
	if b.opts.Permit == nil {
		return scopes, nil
	}
	asked := *id
	asked.Scopes = slices.Clone(scopes)
	err = safely.Known(safely.Try(func() (err error) { left, err = b.opts.Permit(ctx, &asked); return err }))
	return slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return !slices.Contains(left, s) }), err
}

// event tells Options.Event.
func (b *Broker) event(e Event) {
	if b.opts.Event != nil {
		_ = safely.Apart(func() { b.opts.Event(e) }) // an audit that fails has no answer
	}
}
